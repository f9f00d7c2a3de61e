// SPDX-License-Identifier: MIT
// The page around its parts: made by the real binary, quiet, readable, reachable by keyboard, right at every width, and the
// same again from its address.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  closeBrowser,
  downloaded,
  fill,
  overflow,
  readJson,
  report,
  root,
  run,
  scratch,
  shot,
  violations,
  withPage,
  write,
} from "./browser.mjs";

after(closeBrowser);

const SWEEP = `${root}/tests/web/data/sweep.json`;
const sweep = report("sweep", SWEEP);
const VIEWER_MOST = 400 * 1024;

// ---- content ----

test("a run's page says what was weighed, what to do and what was found", async () => {
  await withPage(sweep, async (page) => {
    assert.equal(await page.textContent("h1"), "minilm");
    const text = await page.textContent("main");
    assert.match(text, /Recommended for throughput/);
    assert.match(text, /batch=4,seq=128/);
    assert.match(text, /from batch 4 on, doubling the batch/);
    assert.match(text, /use batch 4 unless latency and memory do not matter/);
    assert.match(text, /unknown: no cpufreq in \/sys/);
    assert.match(await page.textContent("header p"), /2026-11-15 07:55:21 UTC/);
  });
});

test("evidence of a finding is one click away", async () => {
  await withPage(sweep, async (page) => {
    const outliers = page.locator(".finding", { hasText: "46 of 519 runs" });
    assert.equal(await outliers.locator("dl").isVisible(), false);
    await outliers.locator("summary").click();
    assert.match(await outliers.locator("dl").innerText(), /explained\s*33/);
  });
});

test("twenty cases: the viewer is small, the data is plain, the first content comes at once", async (t) => {
  const document = readJson("data/sweep.json");
  const [first] = document.cases;
  document.cases = Array.from({ length: 20 }, (_, i) => ({
    ...first,
    name: `batch=${i + 1},seq=128`,
    params: { ...first.params, batch: i + 1 },
  }));
  const file = report("twenty", write("twenty.json", document));
  const data = readFileSync(file, "utf8").match(/application\/json">([^]*?)<\/script>/)[1];
  assert.ok(statSync(file).size - data.length < VIEWER_MOST);
  assert.equal(JSON.parse(data).items[0].document.cases[19].samples_ns.length, 519);
  await withPage(file, async (page) => {
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    t.diagnostic(
      `first content after ${Math.round(paint)} ms, viewer ${statSync(file).size - data.length} B, data ${data.length} B`,
    );
    assert.equal(await page.locator("#content section").first().isVisible(), true);
  });
});

test("two runs are compared on the way, and each is there to look at", async () => {
  const document = readJson("data/sweep.json");
  const later = { ...document, id: "01M7F388VSJSRB5M3GE4CD5S2Z", created: "2026-11-15T08:55:21.337Z" };
  await withPage(report("both", SWEEP, write("later.json", later)), async (page) => {
    const tabs = await page.locator(".tabs button").allInnerTexts();
    assert.deepEqual(
      tabs.map((t) => t.split(/\s/)[0]),
      ["Comparison", "Run", "Run"],
    );
    assert.match(await page.textContent("main"), /unverified/);
    await page.keyboard.press("3");
    assert.match(await page.textContent("header p"), /2026-11-15 08:55:21 UTC/);
    assert.match(page.url(), /item=2/);
  });
});

test("inspect and run make pages of their own", async () => {
  run("synth", "mlp", "-o", "mlp.onnx");
  run("inspect", "mlp.onnx", "--html", "inspect.html");
  await withPage(join(scratch, "inspect.html"), async (page) => {
    const text = await page.textContent("main");
    assert.match(text, /Static cost/);
    assert.match(text, /535\.82?\sk|536\sk/);
    assert.match(text, /1071626\*batch_size/);
    assert.doesNotMatch(text, /in numbers|measured/); // nothing was run
  });
  run("run", "-i", "20ms", "--html", "run.html", "--no-history", "--", "sh", "-c", "seq 1 300000 | sort -r | tail -1");
  await withPage(join(scratch, "run.html"), async (page) => {
    const tabs = await page.locator(".tabs button").allInnerTexts();
    assert.ok(
      tabs.some((t) => t.startsWith("Timeline")),
      tabs.join(),
    );
  });
});

// ---- manners ----

test("no serious accessibility violation, in light and in dark", async () => {
  for (const theme of ["light", "dark"])
    await withPage(
      sweep,
      async (page) => {
        assert.equal(await page.getAttribute("html", "data-theme"), theme);
        assert.deepEqual(await violations(page), []);
        await shot(page, `shell-${theme}`);
      },
      { theme },
    );
});

test("nothing sticks out at 375 pixels", async () => {
  await withPage(
    sweep,
    async (page) => {
      assert.equal(await overflow(page), 0);
      assert.deepEqual(await violations(page), []);
      await shot(page, "shell-375");
    },
    { width: 375, height: 800 },
  );
});

test("a walk with the keyboard alone", async () => {
  await withPage(sweep, async (page) => {
    const focused = () => page.evaluate(() => document.activeElement.textContent.slice(0, 40));
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Skip to content");
    await page.keyboard.press("j");
    assert.equal(await focused(), "Curves");
    await page.keyboard.press("k");
    assert.equal(await focused(), "Headline");
    await page.keyboard.press("?");
    assert.match(await page.textContent("[role=dialog]"), /next part, previous part/);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("[role=dialog]").count(), 0);
    await page.locator(".plot").first().focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const said = await page.locator("figure [aria-live]").first().textContent();
    assert.match(said, /^4: throughput 64\.51/);
    await page.keyboard.press("+");
    assert.match(page.url(), /zoom\./);
    await page.keyboard.press("0");
    assert.doesNotMatch(page.url(), /zoom\./);
  });
});

test("the address holds the view: theme, table, document", async () => {
  await withPage(sweep, async (page) => {
    await page.locator("header .theme").click();
    assert.equal(await page.getAttribute("html", "data-theme"), "dark");
    await page.locator("#fig-memory .tools button", { hasText: "Table" }).click();
    const url = page.url();
    assert.match(url, /theme=dark/);
    await page.reload();
    assert.equal(page.url(), url);
    assert.equal(await page.getAttribute("html", "data-theme"), "dark");
    assert.equal(await page.locator("#fig-memory table").isVisible(), true);
    assert.equal(await page.locator("#fig-memory tbody tr").count(), 5);
  });
});

test("a table sorts by every column, and says so", async () => {
  await withPage(
    sweep,
    async (page) => {
      const table = page.locator("#fig-memory table");
      const firstCell = () => table.locator("tbody td").first().textContent();
      await table.locator("th button", { hasText: "peak" }).first().click();
      assert.equal(await firstCell(), "batch=32,seq=128");
      assert.equal(await table.locator("th[aria-sort=descending]").count(), 1);
      await table.locator("th button", { hasText: "peak" }).first().click();
      assert.equal(await firstCell(), "batch=4,seq=128");
    },
    { hash: "table.memory=1" },
  );
});

test("every figure exports: SVG that parses, a PNG, a CSV with its rows", async () => {
  const exports = async (page, figure) => {
    const press = (what) =>
      downloaded(page, () => figure.locator(".tools button", { hasText: new RegExp(`^${what}$`) }).click());
    const svg = await press("SVG");
    const parsed = await page.evaluate(
      (text) => new DOMParser().parseFromString(text, "image/svg+xml").documentElement.nodeName,
      svg.bytes.toString(),
    );
    assert.equal(parsed, "svg", svg.name);
    assert.ok(/<(polyline|polygon|circle)/.test(svg.bytes.toString()), svg.name);
    const png = await press("PNG");
    assert.equal(png.bytes.subarray(1, 4).toString(), "PNG", png.name);
    const csv = await press("CSV");
    assert.ok(csv.bytes.toString().split("\r\n").length > 2, csv.name);
  };
  let n = 1;
  for (let i = 0; i < n; i += 3) // headless Chromium drops the eleventh download of a page
    await withPage(sweep, async (page) => {
      n = await page.locator("figure").count();
      for (let k = i; k < Math.min(n, i + 3); k++) await exports(page, page.locator("figure").nth(k));
    });
  assert.ok(n >= 4);
});

test("printed, controls are gone and what was folded is open", async () => {
  await withPage(sweep, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator(".contents").isVisible(), false);
    assert.equal(await page.locator(".tools").first().isVisible(), false);
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.locator("details:not([open])").count(), 0);
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    assert.ok((await page.locator("details:not([open])").count()) > 0);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    const pdf = await page.pdf({ format: "A4" });
    assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  });
});

// ---- nothing to show ----

test("a run that knows nothing is a page of unknowns, not of zeros", async () => {
  const nothing = [
    { kind: "run", name: "nothing.json", document: { schema: "tare.run/1", cases: [], findings: [], targets: [] } },
  ];
  await withPage(fill("nothing", nothing), async (page) => {
    const text = await page.textContent("main");
    assert.match(text, /No rule found anything/);
    assert.match(text, /Processor\s*unknown/);
    assert.doesNotMatch(text, /\b0\s(ms|B|ns|%)/);
    assert.deepEqual(await violations(page), []);
  });
});

test("the empty viewer and data that is none say what they are", async () => {
  const viewer = readFileSync(fill("x", []), "utf8");
  const place = /(application\/json">)[^]*?(<\/script>)/;
  for (const [data, says] of [
    ["null", /no data in it yet/],
    ["{oops", /no JSON/],
    ['{"schema":"other/1"}', /not tare\.page\/1/],
    ['{"schema":"tare.page/1","items":[]}', /without any document/],
  ])
    await withPage(
      write(
        "odd.html",
        viewer.replace(place, (_, a, b) => a + data + b),
      ),
      async (page) => assert.match(await page.textContent("main"), says),
    );
});

test("a history of one run is a plot of one point", async () => {
  const series = [
    {
      case: "",
      host: "h1",
      hostname: "vm",
      noise: null,
      levels: [{ from: 0, to: 1, median: 642077937.9999998 }],
      changes: [],
      points: [{ run: "01M7FHHJQ4MFDHSAF97SWTW7KJ", created: "2026-11-15T12:05:06.404Z", value: 642077938 }],
    },
  ];
  const document = { schema: "tare.trend/1", subject: "sh", metric: "latency.p50", unit: "ns", series };
  await withPage(fill("single", [{ kind: "history", name: "sh", document }]), async (page) => {
    assert.equal(await page.locator(".plot canvas").count(), 1);
    assert.equal(await overflow(page), 0);
  });
});
