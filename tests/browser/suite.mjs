// Runs tests of pages, each in a window of its own. Each is a line "test NAME ... ok", as cargo prints them.
import assert from "node:assert/strict";
import { launch, open } from "./open.mjs";

// of the table of call sites
export const rows = (page) => page.$$eval("#site-table > tbody", (rows) => rows.map((row) => ({ id: row.id, hidden: row.hidden, detail: row.rows[1].hidden })));
// of a picture
export const pixels = (page, id) => page.$eval(`#${id}-figure canvas`, (canvas) => canvas.toDataURL());
export const live = (page, id) => page.$eval(`#${id}-figure .live`, (live) => live.textContent);

// Tests are { name, of, body }: `file` says where the page is that a test is `of`.
export async function run(tests, file) {
  const browser = await launch();
  let passed = 0, failed = 0;
  for (const { name, of, body } of tests) {
    const opened = await open(browser, file(of));
    try {
      await body(opened);
      assert.deepEqual(opened.said, []);
      console.log(`test ${name} ... ok`);
      passed++;
    } catch (error) {
      console.log(`${error.stack}\ntest ${name} ... FAILED`);
      failed++;
    }
    await opened.close();
  }
  await browser.close();
  console.log(`test result: ${failed ? "FAILED" : "ok"}. ${passed} passed; ${failed} failed; 0 ignored`);
  process.exit(failed ? 1 : 0);
}
