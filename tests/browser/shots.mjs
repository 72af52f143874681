// Screenshots of a page: FILE.html DIRECTORY.
import path from "node:path";
import { launch, open } from "./open.mjs";

const [file, directory] = process.argv.slice(2).map((name) => path.resolve(name));
const browser = await launch();
for (const width of [1280, 400]) {
  for (const colorScheme of ["light", "dark"]) {
    const { page, said, close } = await open(browser, file, { viewport: { width, height: 900 }, colorScheme });
    await page.screenshot({ path: path.join(directory, `${path.basename(file, ".html")}-${width}-${colorScheme}.png`), fullPage: true });
    said.forEach((line) => console.log(line));
    await close();
  }
}
await browser.close();
