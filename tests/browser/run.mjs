// Tests of pages in a browser: DIRECTORY with NAME.html and NAME.json, the report of the same run. Each test is a line
// "test NAME ... ok", as cargo prints them.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { painted } from "./open.mjs";
import { live, pixels, rows, run } from "./suite.mjs";

const directory = path.resolve(process.argv[2]);
const file = (name) => path.join(directory, name + ".html");
const names = fs.readdirSync(directory).filter((name) => name.endsWith(".html")).map((name) => name.slice(0, -5)).sort();
const tests = [];
const test = (name, of, body) => tests.push({ name, of, body });

// Sorting, unfolding, a theme and every key take less than this many layouts of the whole page, measured beside them.
const LONGEST_CLICK = 6;
// Pages of which most have more numbers than these.
const SHORT = ["dead", "killed-in-sums", "one-rank"];

for (const name of names) {
  test(`${name}_says_nothing_and_asks_nobody`, name, async ({ page, said }) => {
    assert.equal(await page.evaluate(() => window.owned), undefined);
    assert.deepEqual(said, []);
    for (const id of ["heat", "timeline", "matrix"]) {
      const figure = await page.$(`#${id}-figure`);
      const why = await page.$(`#${id} .missing:not(noscript *)`);
      assert.ok(figure || why, `${id} is empty`);
    }
  });

  test(`${name}_has_the_numbers_of_the_json`, name, async ({ page }) => {
    const report = JSON.parse(fs.readFileSync(path.join(directory, name + ".json")));
    const numbers = await page.$$eval("[data-json]", (all) => all.map((it) => [it.dataset.json, it.dataset.value, it.textContent]));
    for (const [pointer, value, shown] of numbers) {
      const wanted = pointer.split("/").slice(1).reduce((at, key) => at[key], report);
      assert.equal(Number(value), wanted, pointer);
      assert.notEqual(shown.trim(), "", pointer);
    }
    assert.ok(numbers.length > (SHORT.includes(name) ? 3 : 20), `${numbers.length} numbers`);
  });
}

test("rows_are_sorted_by_a_column", "small", async ({ page }) => {
  const before = await rows(page);
  const column = page.locator("#site-table thead th:nth-child(5) button");
  const calls = () => page.$$eval("#site-table > tbody > tr:first-child > td:nth-child(5)", (cells) => cells.map((cell) => Number(cell.dataset.key)));
  await column.click();
  const falling = await calls();
  assert.deepEqual(falling, [...falling].sort((a, b) => b - a));
  await column.focus();
  await page.keyboard.press("Enter");
  const rising = await calls();
  assert.deepEqual(rising, [...rising].sort((a, b) => a - b));
  assert.equal(await page.getAttribute("#site-table thead th:nth-child(5)", "aria-sort"), "ascending");
  assert.equal((await rows(page)).length, before.length);
});

test("rows_are_filtered_by_text_and_kind", "small", async ({ page }) => {
  const all = (await rows(page)).length;
  await page.fill("#site-filter", "barrier");
  assert.equal((await rows(page)).filter((row) => !row.hidden).length, 1);
  assert.match(await page.textContent("#site-count"), new RegExp(`^1 of ${all} `));
  await page.fill("#site-filter", "");
  await page.selectOption("#site-kind", "requests");
  const shown = (await rows(page)).filter((row) => !row.hidden).length;
  assert.ok(shown > 0 && shown < all, `${shown} of ${all}`);
});

test("rows_unfold_and_advice_leads_to_them", "small", async ({ page }) => {
  const button = page.locator("#site-table .unfold").first();
  await button.focus();
  await page.keyboard.press("Enter");
  assert.equal((await rows(page))[0].detail, false);
  assert.equal(await button.getAttribute("aria-expanded"), "true");
  await page.click("#unfold-all");
  assert.ok((await rows(page)).every((row) => !row.detail));
  await page.click("#unfold-all");
  const link = page.locator("#advice .links a").first();
  const id = (await link.getAttribute("href")).slice(1);
  await link.click();
  const row = (await rows(page)).find((row) => row.id === id);
  assert.ok(!row || !row.detail, "its row is not unfolded");
  assert.equal(await page.evaluate((id) => document.querySelector(":target").id === id, id), true);
});

for (const [id, name] of [["heat", "many"], ["timeline", "many"], ["matrix", "many"]]) {
  test(`${id}_is_zoomed_moved_and_read_by_keys`, name, async ({ page }) => {
    const canvas = page.locator(`#${id}-figure canvas`);
    await canvas.scrollIntoViewIfNeeded();
    const view = () => page.evaluate((id) => ({ ...Page.planes[id].view }), id);
    const whole = await view(), first = await pixels(page, id);
    await canvas.focus();
    await page.keyboard.press("ArrowRight");
    const told = await live(page, id);
    assert.match(told, /rank/);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowDown");
    assert.notEqual(await live(page, id), told);
    await page.keyboard.press("+");
    await painted(page);
    const near = await view();
    assert.ok(near.x1 - near.x0 < whole.x1 - whole.x0, "not nearer");
    assert.notEqual(await pixels(page, id), first);
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Shift+ArrowLeft");
    await page.keyboard.press("0");
    assert.deepEqual(await view(), whole);
    // by pointer: the wheel zooms where the pointer is, a drag moves, a tip tells
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.wheel(0, -300);
    await page.waitForFunction(([id, width]) => Page.planes[id].view.x1 - Page.planes[id].view.x0 < width, [id, whole.x1 - whole.x0]);
    const wheeled = await view();
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2 - 60, box.y + box.height / 2, { steps: 3 });
    await page.mouse.up();
    assert.ok((await view()).x0 > wheeled.x0, "not moved");
    await page.click(`#${id}-figure .all`);
    assert.deepEqual(await view(), whole);
    await page.keyboard.press("Escape");
  });
}

test("heat_is_shown_by_cause", "many", async ({ page }) => {
  const all = await pixels(page, "heat");
  const causes = await page.$$eval("#heat-shows option", (options) => options.map((option) => option.value));
  assert.equal(causes.length, 7);
  await page.selectOption("#heat-shows", "1");
  await painted(page);
  assert.notEqual(await pixels(page, "heat"), all);
  assert.match(await page.textContent("#heat-figure .key"), /late partner/);
});

// What the grid holds is what the report says is exposed: only rounding is lost.
test("heat_holds_all_exposed_time", "many", async ({ page }) => {
  const report = JSON.parse(fs.readFileSync(path.join(directory, "many.json")));
  const drawn = await page.evaluate(() => Data.heat.exposed.flatMap(Page.unpack).reduce((sum, ns) => sum + ns, 0));
  const told = report.overlap.totals.exposed_ns + report.overlap.blocking.blocked_ns;
  assert.ok(Math.abs(drawn - told) < told * 0.01, `${drawn} and ${told}`);
});

test("matrix_holds_all_messages", "many", async ({ page }) => {
  const report = JSON.parse(fs.readFileSync(path.join(directory, "many.json")));
  const drawn = await page.evaluate(() => Data.matrix.reduce((sum, cell) => sum + cell[2], 0));
  const sends = report.ranks.reduce((sum, rank) => sum + rank.sent_bytes, 0);
  const bytes = await page.evaluate(() => Data.matrix.reduce((sum, cell) => sum + cell[3], 0));
  assert.ok(drawn > 0);
  assert.ok(Math.abs(bytes - sends) <= sends * 0.05, `${bytes} and ${sends}`);
});

test("dark_follows_the_system_and_the_switch", "small", async ({ page }) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper(), drawn = await pixels(page, "heat");
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await paper();
  assert.notEqual(dark, light);
  await painted(page);
  assert.notEqual(await pixels(page, "heat"), drawn, "the picture stayed light");
  await page.click("#theme");
  assert.equal(await paper(), light);
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await paper(), light);
  await page.click("#theme");
  assert.equal(await paper(), dark);
});

test("prints_on_a4", "many", async ({ page }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  const pdf = await page.pdf({ format: "A4" });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  const pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  assert.ok(pages > 2 && pages < 60, `${pages} pages`);
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.isVisible("#theme"), false);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
  assert.ok(wide, "wider than the paper");
});

// Browsers say that they print while the layout is still the screen's, and give the page the paper's width afterwards.
test("prints_pictures_as_they_are", "many", async ({ page }) => {
  await painted(page);
  const shapes = await page.evaluate(() => {
    dispatchEvent(new Event("beforeprint"));
    return [...document.querySelectorAll("canvas")].map((it) => [it.width / 3, it.width / it.height]);
  });
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 700, height: 1000 });
  const printed = await page.$$eval("canvas", (all) => all.map((it) => it.getBoundingClientRect()).map((it) => it.width / it.height));
  assert.ok(shapes.length > 0);
  shapes.forEach(([width, shape], at) => {
    assert.ok(width <= 680, `drawn for ${width} pixels`);
    assert.ok(Math.abs(printed[at] / shape - 1) < 0.02, `${printed[at]} for ${shape}`);
  });
});

for (const name of ["many", "hostile"]) test(`${name}_fits_a_narrow_screen`, name, async ({ page }) => {
  await page.setViewportSize({ width: 400, height: 800 });
  await painted(page);
  const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide <= seen, `${wide} of ${seen}`);
});

test("every_control_has_a_name_and_a_visible_focus", "many", async ({ page }) => {
  const nameless = await page.$$eval("button, input, select, canvas, summary, a", (all) =>
    all.filter((it) => !(it.getAttribute("aria-label") || it.textContent.trim() || (it.labels && it.labels.length))).map((it) => it.outerHTML.slice(0, 90)));
  assert.deepEqual(nameless, []);
  await page.keyboard.press("Tab");
  for (let step = 0; step < 25; step++) {
    await page.keyboard.press("Tab");
    const outline = await page.evaluate(() => document.activeElement === document.body ? "3px" : getComputedStyle(document.activeElement).outlineWidth);
    assert.equal(outline, "3px", await page.evaluate(() => document.activeElement.outerHTML.slice(0, 90)));
  }
});

// From the event to what it changed on the screen, in times of what the browser takes to lay this page out anew: others use the processor, too.
test("no_click_takes_long", "many", async ({ page }) => {
  const long = await page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const times = [];
    const timed = async (name, act) => {
      const all = [];
      for (let round = 0; round < 5; round++) {
        await frame();
        const begin = performance.now();
        act(round);
        document.body.offsetHeight;
        for (const plane of Object.values(Page.planes)) plane.paint();
        all.push(performance.now() - begin);
      }
      times.push([name, all.sort((a, b) => a - b)[2]]);
    };
    await timed("anew", () => {
      document.body.style.display = "none";
      document.body.offsetHeight;
      document.body.style.display = "";
    });
    const press = (id, key) => document.querySelector(`#${id}-figure canvas`).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await timed("sort", () => document.querySelector("#site-table thead button").click());
    await timed("unfold", () => document.querySelector("#unfold-all").click());
    await timed("theme", () => document.getElementById("theme").click());
    for (const id of Object.keys(Page.planes)) {
      await timed(id + " cursor", () => press(id, "ArrowRight"));
      await timed(id + " zoom", (round) => press(id, round % 2 ? "-" : "+"));
    }
    return times;
  });
  console.log(long.map(([name, ms]) => `${name} ${ms.toFixed(1)} ms`).join(", "));
  const [[, anew], ...acts] = long;
  for (const [name, ms] of acts) assert.ok(ms < LONGEST_CLICK * anew, `${name}: ${(ms / anew).toFixed(1)} times a layout of the page`);
});

await run(tests, file);
