// A browser, and pages of which everything is noted that they do not keep to themselves.
const { chromium } = await import(process.env.LAPSCOPE_TEST_PLAYWRIGHT);

export async function launch() {
  // as root chromium has no sandbox of its own
  const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: process.env.LAPSCOPE_TEST_BROWSER, args });
}

export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
  const page = await context.newPage(), said = [];
  page.on("console", (message) => said.push("console: " + message.text()));
  page.on("pageerror", (error) => said.push("error: " + error.message));
  page.on("dialog", (dialog) => { said.push("dialog: " + dialog.message()); dialog.dismiss(); });
  page.on("request", (request) => { if (request.url() !== "file://" + file) said.push("request: " + request.url()); });
  await page.goto("file://" + file);
  await painted(page);
  return { page, said, close: () => context.close() };
}

// until what was asked for is on the screen
export const painted = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
