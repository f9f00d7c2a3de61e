// SPDX-License-Identifier: MIT
// pictures - the pictures of README, of pages that `make demo` made of real measurements; `make pictures` runs it.
// usage: node tools/pictures.mjs BENCH.html TRACE.html FOLDER
import { join } from "node:path";

const [bench, trace, folder] = process.argv.slice(2);
const { withPage, closeBrowser } = await import("../tests/web/browser.mjs");

/** The top of a page. */
async function picture(page, name, height) {
  await withPage(
    page,
    async (tab) => {
      await tab.evaluate(() => document.fonts.ready);
      await tab.screenshot({ path: join(folder, `${name}.png`), clip: { x: 0, y: 0, width: 1280, height }, fullPage: true });
    },
    { width: 1280, height },
  );
}

await picture(bench, "bench", 1130);
await picture(trace, "flame", 790);
await closeBrowser();
