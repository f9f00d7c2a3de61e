// SPDX-License-Identifier: MIT
// Documents that nobody would write and somebody will: members of the wrong kind, nothing, far too much, addresses from
// elsewhere. The page stands, and its numbers are those of the document.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, fill, overflow, readJson, report, root, violations, withPage } from "./browser.mjs";

after(closeBrowser);

const SWEEP = `${root}/tests/web/data/sweep.json`;
const runItem = (document) => ({ kind: "run", name: "spoilt.json", document });

// ---- numbers ----

const SCALES = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9, min: 6e10, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, "%": 0.01 };

/** "1.23 ms" as 1230000; null for unknown. */
function valueOf(text) {
  if (text === "unknown") return null;
  const [number, unit] = text.split("\u00a0");
  return Number(number.replace(/,/g, "").replace("\u2212", "-")) * (unit ? SCALES[unit] : 1);
}

test("the numbers on the page are those of the document, and what it does not know is unknown", async () => {
  const { cases } = readJson("data/sweep.json");
  const wanted = (c) => [
    c.samples,
    c.latency_ns.p50.value,
    c.latency_ns.p50.lo,
    c.latency_ns.p50.hi,
    c.latency_ns.p95?.value ?? null,
    c.latency_ns.p99?.value ?? null,
    c.throughput.value,
    c.memory.rss_peak,
    c.load_ns,
    c.self.share,
  ];
  let checked = 0;
  let unknown = 0;
  await withPage(report("numbers", SWEEP), async (page) => {
    await page.locator("summary", { hasText: "cases in numbers" }).click();
    const rows = await page.locator("#headline tbody tr").all();
    assert.equal(rows.length, cases.length);
    for (const [i, row] of rows.entries()) {
      const cells = await row.locator("td").allTextContents();
      assert.equal(cells[0], cases[i].name);
      for (const [k, want] of wanted(cases[i]).entries()) {
        const got = valueOf(cells[k + 1]);
        const place = `${cells[0]}, column ${k + 1}: ${cells[k + 1]} of ${want}`;
        if (want === null) assert.equal(got, null, place);
        else assert.ok(Math.abs(got - want) <= Math.abs(want) * 0.006, place);
        checked++;
        unknown += want === null;
      }
    }
  });
  assert.ok(checked >= 30 && unknown > 0, `${checked} values, ${unknown} of them unknown`);
});

// ---- members of the wrong kind ----

const WRONG = [null, -5, 1e308, "constructor", [1, "x", null], { a: 1 }, true];

/** A copy in which one member in four is something else. */
function spoilt(value, wrong, random) {
  if (value === null || typeof value !== "object") return value;
  const out = Array.isArray(value) ? [] : {};
  for (const [key, v] of Object.entries(value))
    out[key] = key !== "schema" && random() < 0.25 ? wrong : spoilt(v, wrong, random);
  return out;
}

function randomFrom(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

test("members of the wrong kind leave a page that stands", async () => {
  const documents = { sweep: "run", layers: "run", comparison: "comparison", bars: "bars" };
  for (const [i, wrong] of WRONG.entries()) {
    const items = Object.entries(documents).map(([name, kind], k) => ({
      kind,
      name,
      document: spoilt(readJson(`data/${name}.json`), wrong, randomFrom(10 * i + k + 1)),
    }));
    for (const item of items)
      await withPage(fill("wrong", [item]), async (page) => {
        const text = await page.innerText("main");
        assert.doesNotMatch(text, /\bNaN\b|\bundefined\b|Infinity|native code/, `${item.name} with ${JSON.stringify(wrong)}`);
        assert.ok((await page.locator("main h2").count()) > 0);
      });
  }
});

test("a part that stumbles says so, and the others are there", async () => {
  const comparison = { kind: "comparison", name: "<b>", document: { schema: "tare.comparison/1", cases: [null] } };
  await withPage(fill("stumble", [comparison, runItem(readJson("data/sweep.json"))]), async (page) => {
    assert.match(await page.textContent("#comparison"), /This part cannot be shown; the document has something in it/);
    await page.keyboard.press("2");
    assert.match(await page.textContent("main"), /Recommended for throughput/);
  });
});

test("a newer minor version, and items of kinds to come, are read as far as they are known", async () => {
  const document = { ...readJson("data/sweep.json"), schema: "tare.run/1.9", novelty: { deep: [1, 2] } };
  document.cases[0].novelty = [1];
  await withPage(fill("newer", [{ kind: "hologram", document: {} }, runItem(document), null, "x", runItem([])]), async (page) => {
    assert.equal(await page.textContent("h1"), "minilm");
    assert.equal(await page.locator(".tabs").count(), 0);
  });
});

// ---- much and little ----

test("two hundred cases and five thousand layers", async () => {
  const document = readJson("data/sweep.json");
  const [first] = document.cases;
  const layers = Array.from({ length: 5000 }, (_, i) => ({
    name: `encoder/layer.${i}/dense`, op: "MatMul", group: `g${i % 9}`, nodes: 1, calls: 1,
    total_ns: 1000 + i, time_ns: 1000 + i, share: 1 / 5000,
  }));
  document.cases = Array.from({ length: 200 }, (_, i) => ({
    ...first,
    name: `batch=${i + 1}`,
    params: { ...first.params, batch: i + 1 },
    layers: i === 0 ? layers : null,
  }));
  await withPage(fill("much", [runItem(document)]), async (page) => {
    assert.equal(await overflow(page), 0);
    await page.locator("summary", { hasText: "All 200 cases" }).click();
    assert.ok((await page.locator("#headline tbody tr").count()) <= 200);
    await page.locator("#fig-layers .tools button", { hasText: /^Table$/ }).click();
    assert.ok((await page.locator("#fig-layers tbody tr").count()) < 500, "a long table has only the rows in sight");
    assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) < 20_000);
    assert.deepEqual(await violations(page), []);
  });
});

test("one case, one sample", async () => {
  const document = readJson("data/sweep.json");
  const [only] = document.cases;
  document.cases = [{ ...only, samples: 1, samples_raw: null, samples_ns: [5_000_000], throughput: null, memory: null }];
  await withPage(fill("one", [runItem(document)]), async (page) => {
    assert.match(await page.innerText("main"), /The case in numbers/);
    assert.equal(await overflow(page), 0);
  });
});

// ---- addresses ----

test("an address from elsewhere is no view, and no danger", async () => {
  const file = report("address", SWEEP);
  for (const hash of [
    "item=99&at=nowhere&theme=pink",
    "item=-1&zoom.throughput-batch=9~1&table.memory=7",
    "item=1e9&zoom.throughput-batch=NaN~Infinity",
    "%E0%A4%A&theme=%",
    "at=<img src=x onerror=window.hacked=1>&case=%00",
    "__proto__=1&constructor=2&toString=3",
    `x=${"y".repeat(200_000)}`,
  ])
    await withPage(
      file,
      async (page) => {
        assert.equal(await page.textContent("h1"), "minilm");
        assert.ok((await page.locator(".plot canvas").count()) > 0);
        assert.equal(await page.evaluate(() => window.hacked), undefined);
      },
      { hash },
    );
});
