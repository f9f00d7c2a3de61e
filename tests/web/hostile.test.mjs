// SPDX-License-Identifier: MIT
// Names of models, cases, layers and findings come from strangers. Whatever is in them is shown as text: nothing runs,
// nothing is fetched, nothing breaks the page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { closeBrowser, fill, overflow, readJson, report, violations, withPage, write } from "./browser.mjs";

after(closeBrowser);

const HOSTILE = [
  "<script>window.hacked = 1</script>",
  "</script><script>window.hacked = 2</script>",
  "<!--<script>",
  "]]>",
  "<img src=x onerror=window.hacked=3>",
  '"><svg onload=window.hacked=4>',
  "'; window.hacked = 5; '",
  "${window.hacked=6}",
  "\u202egnp.exe\u202c",
  "line\u2028and\u2029paragraph",
  "\ud83d\udc80 \u0e01\u0e33 \u05d0\u05d1",
  "javascript:window.hacked=7",
  "=cmd|' /C calc'!A0",
  "&lt;b&gt;",
  "a\tb\nc",
];

/** A run document with such a name in every place that takes one. */
function hostileRun() {
  const run = readJson("data/sweep.json");
  const name = (i) => HOSTILE[i % HOSTILE.length];
  run.subject.name = name(1);
  run.subject.path = name(4);
  run.host.hostname = name(0);
  run.findings = HOSTILE.map((h, i) => ({
    id: "machine.virtual",
    severity: "warn",
    title: h,
    case: name(i + 1),
    evidence: { value: 1, text: h },
    action: name(i + 2),
  }));
  run.recommendation.case = name(3);
  run.recommendation.why = name(1);
  run.cases.forEach((c, i) => {
    c.name = name(i);
    c.layers = HOSTILE.map((h, k) => ({
      name: h,
      op: name(k + 1),
      group: name(k + 2),
      provider: "cpu",
      nodes: 1,
      calls: 1,
      total_ns: 1000 * (k + 1),
      share: 0.05,
      time_ns: 1000 * (k + 1),
    }));
    c.unknown = { ...c.unknown, gpu: name(i + 5) };
  });
  return run;
}

async function staysQuiet(page) {
  for (const details of await page.locator("details").all()) await details.evaluate((d) => (d.open = true));
  for (const table of await page.locator(".tools button", { hasText: /^Table$/ }).all()) await table.click();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("main img, main svg[onload], main script").count(), 0);
}

test("hostile names in a document that the binary read are text on its page", async () => {
  const file = report("hostile", write("hostile.json", hostileRun()));
  const html = readFileSync(file, "utf8");
  assert.equal(html.split("</script>").length, 3, "two script elements, and no end of one in the data");
  await withPage(file, async (page) => {
    await staysQuiet(page);
    assert.match(await page.textContent("h1"), /<\/script><script>window\.hacked = 2/);
    assert.deepEqual(await violations(page), []);
  });
});

test("nulls and marks that turn text around are shown as what they are", async () => {
  const run = hostileRun();
  run.subject.name = "nul\u0000 turned \u202e around";
  await withPage(fill("turned", [{ kind: "run", name: "\u0000", document: run }]), async (page) => {
    await staysQuiet(page);
    assert.equal(await page.textContent("h1"), "nul\ufffd turned \ufffd around");
  });
});

test("names of ten megabytes are cut for display", async () => {
  const run = readJson("data/sweep.json");
  const long = "W".repeat(10_000_000);
  run.subject.name = long;
  run.findings[0].title = long;
  run.cases[0].name = long;
  run.cases[0].layers = [{ name: long, op: "MatMul", nodes: 1, calls: 1, total_ns: 10, share: 1, time_ns: 10 }];
  await withPage(fill("long", [{ kind: "run", name: "long.json", document: run }]), async (page) => {
    await staysQuiet(page);
    assert.match(await page.textContent("h1"), /10,000,000 characters/);
    assert.ok((await page.evaluate(() => document.body.innerText.length)) < 100_000);
    assert.equal(await overflow(page), 0);
  });
});

test("the policy of the page forbids what a name could ask for", async () => {
  await withPage(
    fill("policy", [{ kind: "run", document: readJson("data/sweep.json") }]),
    async (page) => {
      const broken = await page.evaluate(async () => {
        const seen = [];
        document.addEventListener("securitypolicyviolation", (e) => seen.push(e.effectiveDirective));
        await fetch("http://127.0.0.1:9/").catch(() => {});
        const script = document.createElement("script");
        script.textContent = "window.hacked = 8";
        document.body.append(script);
        const frame = document.createElement("iframe");
        frame.src = "http://127.0.0.1:9/";
        document.body.append(frame);
        const image = new Image();
        image.src = "http://127.0.0.1:9/x.png";
        await new Promise((done) => setTimeout(done, 200));
        return seen.sort();
      });
      assert.deepEqual(broken, ["connect-src", "frame-src", "img-src", "script-src-elem"]);
      assert.equal(await page.evaluate(() => window.hacked), undefined);
    },
    { noisy: true },
  );
});
