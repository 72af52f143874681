// Tests of pages of two runs: DIRECTORY with NAME.html and NAME.json, what `lapscope diff` says of the same runs.
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
const sides = ["heat-a", "heat-b"];
const view = (page, id) => page.evaluate((id) => ({ ...Page.planes[id].view }), id);
const key = (page, id) => page.textContent(`#${id}-figure .key`);

for (const name of names) {
  test(`${name}_has_the_numbers_of_the_diff`, name, async ({ page }) => {
    assert.equal(await page.evaluate(() => window.owned), undefined);
    const diff = JSON.parse(fs.readFileSync(path.join(directory, name + ".json")));
    const numbers = await page.$$eval("[data-json]", (all) => all.map((it) => [it.dataset.json, it.dataset.value, it.textContent]));
    for (const [pointer, value, shown] of numbers) {
      const wanted = pointer.split("/").slice(1).reduce((at, key) => at[key], diff);
      assert.equal(Number(value), wanted, pointer);
      assert.notEqual(shown.trim(), "", pointer);
    }
    assert.ok(numbers.length > 20, `${numbers.length} numbers`);
  });
}

test("sites_are_sorted_filtered_and_unfolded", "changed", async ({ page }) => {
  const all = (await rows(page)).length;
  const changes = () => page.$$eval("#site-table > tbody > tr:first-child > td:nth-child(4)", (cells) => cells.map((cell) => Number(cell.dataset.key)));
  const column = page.locator("#site-table thead th:nth-child(4) button");
  await column.focus();
  await page.keyboard.press("Enter");
  const falling = await changes();
  assert.deepEqual(falling, [...falling].sort((a, b) => b - a));
  await page.keyboard.press("Enter");
  const rising = await changes();
  assert.deepEqual(rising, [...rising].sort((a, b) => a - b));
  await page.fill("#site-filter", "barrier");
  const shown = (await rows(page)).filter((row) => !row.hidden).length;
  assert.ok(shown > 0 && shown < all, `${shown} of ${all}`);
  await page.fill("#site-filter", "");
  const button = page.locator("#site-table .unfold").first();
  await button.focus();
  await page.keyboard.press("Enter");
  assert.equal((await rows(page)).filter((row) => !row.detail).length, 1);
  await page.click("#unfold-all");
  assert.equal((await rows(page)).filter((row) => !row.detail).length, all);
});

test("both_pictures_have_one_scale", "slower", async ({ page }) => {
  assert.deepEqual(await view(page, "heat-a"), await view(page, "heat-b"));
  assert.match(await key(page, "heat-a"), /%/);
  assert.equal(await key(page, "heat-a"), await key(page, "heat-b"));
  const before = await Promise.all(sides.map((id) => pixels(page, id)));
  assert.notEqual(before[0], before[1]);
  await page.selectOption("#pair-shows", "1");
  await painted(page);
  for (const [at, id] of sides.entries()) {
    assert.notEqual(await pixels(page, id), before[at], id);
    assert.match(await key(page, id), /late partner/);
  }
  // and what they hold is what the diff says was exposed, up to rounding
  const diff = JSON.parse(fs.readFileSync(path.join(directory, "slower.json")));
  for (const run of ["a", "b"]) {
    const drawn = await page.evaluate((run) => Data[run].heat.exposed.flatMap(Page.unpack).reduce((sum, ns) => sum + ns, 0), run);
    const causes = [...Object.values(diff.overlap.exposed_by_cause), ...Object.values(diff.overlap.blocked_by_cause)];
    const told = causes.reduce((sum, pair) => sum + pair[run + "_ns"], 0);
    assert.ok(Math.abs(drawn - told) <= told * 0.01, `${run}: ${drawn} and ${told}`);
  }
});

test("pictures_are_read_by_keys", "slower", async ({ page }) => {
  for (const id of sides) {
    const whole = await view(page, id);
    await page.locator(`#${id}-figure canvas`).focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await live(page, id), /rank/);
    await page.keyboard.press("+");
    const near = await view(page, id);
    assert.ok(near.x1 - near.x0 < whole.x1 - whole.x0, "not nearer");
    await page.keyboard.press("0");
    assert.deepEqual(await view(page, id), whole);
  }
});

for (const name of names) test(`${name}_is_dark_narrow_and_on_paper`, name, async ({ page }) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
  const light = await paper(), drawn = await pixels(page, "heat-b");
  await page.click("#theme");
  await painted(page);
  assert.notEqual(await paper(), light);
  assert.notEqual(await pixels(page, "heat-b"), drawn, "the picture stayed light");
  await page.setViewportSize({ width: 400, height: 800 });
  await painted(page);
  assert.ok(await fits(), "wider than a narrow screen");
  await page.setViewportSize({ width: 1280, height: 900 });
  const pdf = await page.pdf({ format: "A4" });
  const pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  assert.ok(pages > 0 && pages < 30, `${pages} pages`);
});

test("every_control_has_a_name", "changed", async ({ page }) => {
  const nameless = await page.$$eval("button, input, select, canvas, summary, a", (all) =>
    all.filter((it) => !(it.getAttribute("aria-label") || it.textContent.trim() || (it.labels && it.labels.length))).map((it) => it.outerHTML.slice(0, 90)));
  assert.deepEqual(nameless, []);
});

await run(tests, file);
