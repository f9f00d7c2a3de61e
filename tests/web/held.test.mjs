// SPDX-License-Identifier: MIT
// Memory by line: of a made-up history of allocations, with its slider, its tables and its flame graphs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, test } from "node:test";
import { built, closeBrowser, fill, overflow, root, scratch, shot, violations, withPage } from "./browser.mjs";

after(closeBrowser);

const written = () => {
  const page = join(scratch, "memory.html");
  execFileSync(join(built, "tare"), ["report", "--memory", "--html", page, join(root, "fuzz/corpus/trace/memory-history")], { stdio: "ignore" });
  return page;
};

test("who held memory, over time and at one moment", async () => {
  await withPage(written(), async (p) => {
    const text = await p.textContent("main");
    assert.match(text, /Memory of process 4243 by line/);
    assert.match(text, /cache data\.py:30 keeps 766.MiB more each minute/);
    const slider = p.locator("#held-4242-moment");
    await slider.fill("95");
    assert.match(await p.textContent("main"), /4.*s: 14\.\d.MiB held/);
    await slider.fill("0");
    assert.match(await p.textContent("output[for=held-4242-moment]"), /held/);
    assert.match(await p.evaluate(() => decodeURIComponent(location.hash)), /held-4242\.at=0/);
    assert.deepEqual(await violations(p), []);
    assert.equal(await overflow(p), 0);
    await shot(p, "held");
  });
});

test("flame graphs of the peak, of what grew and of churn are documents of the page", async () => {
  await withPage(written(), async (p) => {
    for (const [key, words] of [["2", /held at the peak/], ["3", /grew/], ["4", /freed within 1 ms/]]) {
      await p.keyboard.press(key);
      await p.waitForFunction((w) => new RegExp(w).test(document.querySelector("main").textContent), words.source);
    }
    await p.click("button:text-is('Table')");
    assert.match(await p.textContent(".table"), /libtmp\.so\.1\+0x234/);
  });
});

test("hostile names are text", async () => {
  const group = { name: "<img src=x onerror=alert(1)>", file: "\u202eevil.py", line: 1, held_over_time: [1, 2, 3], at_peak: { bytes: 2 } };
  const document = { schema: "tare.memory/1", processes: [{ pid: 1, from_ns: 0, to_ns: 3e9, held_over_time: [1, 2, 3], groups: [group], findings: [{ title: "<b>x</b>" }] }] };
  await withPage(fill("held-hostile", [{ kind: "memory", name: "x", document }]), async (p) => {
    assert.equal(await p.locator("main img").count(), 0);
    assert.match(await p.textContent("main"), /<img src=x/);
  });
});
