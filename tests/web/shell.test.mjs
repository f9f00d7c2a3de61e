// SPDX-License-Identifier: MIT
// The page around its parts: made by the real binary, quiet, readable, reachable by keyboard, right at every width.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, overflow, report, root, shot, violations, withPage } from "./browser.mjs";

after(closeBrowser);

const sweep = () => report("sweep", `${root}/tests/web/data/sweep.json`);

test("a run's page says what was weighed, what to do and what was found", async () => {
  await withPage(sweep(), async (page) => {
    assert.match(await page.textContent("h1"), /sweep\.json|minilm/);
    const text = await page.textContent("main");
    assert.match(text, /Recommended for throughput/);
    assert.match(text, /batch=4,seq=128/);
    assert.match(text, /from batch 4 on, doubling the batch/);
    assert.match(text, /use batch 4 unless latency and memory do not matter/);
    await shot(page, "shell-light");
  });
});

test("no serious accessibility violation, in light and in dark", async () => {
  for (const theme of ["light", "dark"])
    await withPage(sweep(), async (page) => {
      assert.equal(await page.getAttribute("html", "data-theme"), theme);
      assert.deepEqual(await violations(page), []);
      await shot(page, `shell-${theme}`);
    }, { theme });
});

test("nothing sticks out at 375 pixels", async () => {
  await withPage(sweep(), async (page) => {
    assert.equal(await overflow(page), 0);
    await shot(page, "shell-375");
  }, { width: 375, height: 800 });
});
