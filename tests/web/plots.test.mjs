// SPDX-License-Identifier: MIT
// The plots of a page: made by the real binary where it can make them here, walked by keyboard, exported, and quiet with
// names that would like to act.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
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
} from "./browser.mjs";

after(closeBrowser);

const data = (name) => `${root}/tests/web/data/${name}.json`;
const once = (make) => {
  let made;
  return () => (made ??= make());
};
const figure = (page, id) => page.locator(`#fig-${id}`);
const tool = (page, id, name) => figure(page, id).getByRole("button", { name: new RegExp(`^${name} of`) });

/** What `read` gives matches before long: a page answers a frame or two after it was asked. */
async function settles(read, pattern) {
  let text = "";
  for (const end = Date.now() + 5000; Date.now() < end; await new Promise((go) => setTimeout(go, 20)))
    if (pattern.test((text = await read()))) return text.match(pattern);
  assert.match(text, pattern);
}
const viewOf = (page) => () => page.evaluate(() => decodeURIComponent(location.hash));
const answerOf = (page, id) => () => figure(page, id).locator(".answer").textContent();

// ---- pages by the binary ----

const sweep = once(() => report("plots-sweep", data("sweep")));
const layered = once(() => report("plots-layers", data("layers")));

function saved(name, change) {
  const doc = readJson(data("sweep"));
  change(doc);
  const path = join(scratch, name);
  writeFileSync(path, JSON.stringify(doc));
  return path;
}

function slower(doc) {
  doc.id = "01M7F388VSJSRB5M3GE4CD5S2Z";
  doc.created = "2026-11-15T09:00:00.000Z";
  for (const c of doc.cases) c.samples_raw = null;
  for (const c of doc.cases)
    for (const k of ["value", "lo", "hi"]) if (c.latency_ns.p50[k]) c.latency_ns.p50[k] = Math.round(c.latency_ns.p50[k] * 1.5);
}

const compared = once(() =>
  report(
    "plots-compared",
    saved("base.json", () => {}),
    saved("new.json", slower),
  ),
);

/** 40 runs a day apart, 10 % slower from the 31st on. */
function history() {
  for (let i = 1; i <= 40; i++)
    saved(`h-${i}.json`, (doc) => {
      doc.cases = doc.cases.slice(0, 1);
      doc.id = `01KA${String(i).padStart(22, "0")}`;
      doc.created = new Date(Date.UTC(2026, 0, i, 12)).toISOString();
      doc.config.git_commit = `${(0xabc0000 + i).toString(16)}${"0".repeat(33)}`;
      const v = Math.round(7e7 * (i > 30 ? 1.1 : 1) * (1 + (((i * 7919) % 13) - 6) / 600));
      doc.cases[0].latency_ns.p50 = { value: v, lo: v - 1e5, hi: v + 1e5 };
      doc.cases[0].samples_raw = null;
    });
  const out = join(scratch, "plots-history.html");
  run(
    "history",
    "import",
    "--history",
    join(scratch, "h.db"),
    ...Array.from({ length: 40 }, (_, i) => join(scratch, `h-${i + 1}.json`)),
  );
  run("trend", "--history", join(scratch, "h.db"), "--html", out);
  return out;
}

function watched() {
  const [doc, trace] = [join(scratch, "watched.json"), join(scratch, "watched.tare")];
  run(
    "run",
    "--no-history",
    "-q",
    "-o",
    doc,
    "--trace",
    trace,
    "--interval",
    "50ms",
    "--alert",
    "process.threads>0",
    "--",
    "sh",
    "-c",
    "sleep 0.7",
  );
  return report("plots-watched", doc, trace);
}

// ---- curves ----

test("curves over the batch mark the knee that the run found, and have a table twin", async () => {
  await withPage(sweep(), async (page) => {
    const summary = await page.textContent("#summary-throughput-batch");
    assert.match(summary, /Most: [\d.]+\stexts\/s at batch=4/);
    assert.match(summary, /Knee: from batch 4 on, doubling the batch/);
    await tool(page, "throughput-batch", "Table").click();
    const cells = await figure(page, "throughput-batch").locator("tbody tr").allTextContents();
    assert.equal(cells.length, 5);
    await settles(viewOf(page), /table\.throughput-batch=1/);
    await shot(page, "plots-curves");
  });
});

test("a plot is walked with the arrow keys and says where it is", async () => {
  await withPage(sweep(), async (page) => {
    const plot = figure(page, "latency-batch").locator(".plot");
    await plot.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await settles(() => figure(page, "latency-batch").locator(".legend").textContent(), /p50.*ms.*batch: 4/);
  });
});

test("what is under the pointer is told without room of its own: nothing on the page moves", async () => {
  const boxes = (page) =>
    page.evaluate(() => [...document.querySelectorAll("h2, h3, figure, .plot, .drawing, .summary, table, footer")].map((e) => {
      const { x, y, width, height } = e.getBoundingClientRect();
      return [e.tagName, e.className, x, y + scrollY, width, height].join(" ");
    }));
  for (const [file, least] of [[sweep(), 6], [layered(), 4], [compared(), 1]])
    for (const width of [375, 1280])
      await withPage(file, async (page) => {
        const all = await page.locator(".plot, .drawing").all();
        let told = 0;
        for (const one of all) {
          if (!(await one.isVisible())) continue;
          await one.scrollIntoViewIfNeeded();
          await page.mouse.move(1, 1);
          const [before, b] = [await boxes(page), await one.boundingBox()];
          for (const [x, y] of [[0.3, 0.4], [0.5, 0.2], [0.7, 0.6]]) {
            await page.mouse.move(b.x + b.width * x, b.y + b.height * y);
            await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
            told += (await page.locator(".tip, .readout").count()) > 0;
            assert.deepEqual(await boxes(page), before);
          }
        }
        assert.ok(told >= least, `${told} places told something`);
      }, { width });
});

test("what a run allocates is a table beside the memory of the cases", async () => {
  const doc = readJson(data("sweep"));
  doc.cases[0].allocations = {
    runs: 10, processes: 1, lost: null, each: { blocks: 12.5, bytes: 2048, largest: 1024, peak: 1536, kept: 0 }, first: null,
    load: { blocks: 3, bytes: 4096, largest: 4096, peak: 4096, kept: 4096 }, sizes: null, other_sites: null,
    sites: [{ function: "<b>make</b>", file: "/src/made.c", line: 7, blocks: 2, bytes: 64, short_lived: 0.5 }, { function: null, file: "/lib/libort.so", offset: 255, blocks: 1, bytes: 32 }],
  };
  await withPage(fill("allocations", [{ kind: "run", name: "r", document: doc }]), async (page) => {
    const rows = await page.$$eval("#memory .table[aria-label='Allocations'] tbody tr", (all) => all.map((r) => [...r.children].map((c) => c.textContent.replace(/\u00a0/g, " "))));
    assert.deepEqual(rows, [["batch=1,seq=128", "a run", "12.5", "2 KiB", "1 KiB", "1.5 KiB", "0 B"], ["batch=1,seq=128", "loading", "3", "4 KiB", "4 KiB", "4 KiB", "4 KiB"]]);
    await page.click("#memory summary");
    assert.match(await page.textContent("#memory details .table"), /<b>make<\/b> \(made\.c:7\).*libort\.so \+0xff/);
    assert.deepEqual(await violations(page), []);
  });
});

test("plots and drawings are handed out as CSV, SVG and PNG", async () => {
  await withPage(sweep(), async (page) => {
    for (const id of ["throughput-batch", "histogram", "memory"]) {
      const csv = await downloaded(page, () => tool(page, id, "Save CSV").click());
      assert.equal(csv.name, `${id}.csv`);
      assert.ok(csv.bytes.toString().split("\r\n").length > 3);
      const svg = (await downloaded(page, () => tool(page, id, "Save SVG").click())).bytes.toString();
      assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
      assert.ok((svg.match(/<(polyline|polygon|circle)/g) ?? []).length > 5);
      const png = await downloaded(page, () => tool(page, id, "Save PNG").click());
      assert.equal(png.bytes.subarray(1, 4).toString(), "PNG");
    }
  });
});

// ---- distribution ----

test("the distribution shows the advised case first, another by choice, and the choice is in the address", async () => {
  await withPage(sweep(), async (page) => {
    const select = page.locator("#distribution select");
    assert.equal(await select.locator("option:checked").textContent(), "batch=4,seq=128");
    await select.selectOption({ label: "batch=1,seq=128" });
    await settles(viewOf(page), /case=0/);
    await settles(() => page.textContent("#summary-histogram"), /519 runs/);
    assert.match(
      await page.textContent("#summary-order"),
      /46 runs slower than 24\.44\sms\. 33 of them coincide with a context switch/,
    );
  });
  await withPage(sweep(), async (page) => assert.match(await page.textContent("#summary-histogram"), /519 runs/), {
    hash: "case=0",
  });
});

test("a percentile that too few samples tell is unknown with its reason", async () => {
  await withPage(sweep(), async (page) => {
    await page.locator("#distribution select").selectOption({ label: "batch=32,seq=128" });
    await settles(() => page.textContent("#summary-percentiles"), /and above unknown: \d+ samples are too few/);
  });
});

/** Milliseconds from the choice of a case until its series is drawn and the frame after it is there, in the page itself. */
const drawn = (page, value) =>
  page.evaluate(async (v) => {
    const frame = () => new Promise(requestAnimationFrame);
    const select = document.querySelector("#distribution select");
    const before = document.querySelector("#fig-order .uplot");
    await frame();
    const start = performance.now();
    select.value = v;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    while (document.querySelector("#fig-order .uplot") === before && performance.now() < start + 20_000) await frame();
    await frame();
    return performance.now() - start;
  }, value);

test("a hundred thousand points are drawn at once", async (t) => {
  const doc = readJson(data("sweep"));
  const samples = Array.from({ length: 100_000 }, (_, i) =>
    Math.round(1.6e7 + 2e6 * Math.sin(i / 900) + ((i * 7919) % 1009) * 1e3 + (i % 997 === 0 ? 2e7 : 0)),
  );
  doc.cases = [0, 1].map((i) => ({
    ...doc.cases[0],
    name: `n${i}`,
    samples: 100_000,
    samples_raw: undefined,
    samples_ns: i ? samples : samples.slice(0, 1000),
    outliers: { count: 101, explained: 90, limit_ns: 3e7 },
  }));
  doc.recommendation = null;
  await withPage(fill("plots-large", [{ kind: "run", name: "large", document: doc }]), async (page) => {
    const times = [];
    for (let i = 0; i < 5; i++) {
      times.push(await drawn(page, "1"));
      await drawn(page, "0");
    }
    times.sort((a, b) => a - b);
    t.diagnostic(`100,000 points: ${times[2].toFixed(0)} ms from choice to picture (median of 5)`);
    assert.ok(times[2] < 3000, `${times[2]} ms, with a wide margin for busy machines`);
    await drawn(page, "1");
    await tool(page, "order", "Table").click();
    assert.ok((await figure(page, "order").locator("tbody tr").count()) < 200, "only rows in sight are in the page");
  });
});

// ---- layers, roofline ----

test("throughput over p95 has the limit and the best case that keeps it", async () => {
  const sweep = readJson("data/sweep.json");
  sweep.cases[0].latency_ns.p95.hi = 30e6; // the others have no upper end
  sweep.config = { ...sweep.config, latency_limit_s: 0.08 };
  await withPage(fill("plots-serving", [{ kind: "run", name: "sweep", document: sweep }]), async (page) => {
    await settles(() => page.textContent("#summary-serving"), /Limit: p95 <= 80\sms\. Most within it, surely: batch=1,seq=128.* 2 without a p95/);
    await figure(page, "serving").locator(".drawing").focus();
    await page.keyboard.press("ArrowRight");
    await settles(answerOf(page, "serving"), /batch=\d+.*p95 [\d.]+/);
    await tool(page, "serving", "Table").click();
    assert.match(await figure(page, "serving").locator("tbody").textContent(), /yes/);
    await shot(page, "plots-serving");
  });
});

test("layers are bars, areas and a roofline; by group on request", async () => {
  await withPage(layered(), async (page) => {
    await settles(() => page.textContent("#summary-layers"), /First: encoder\/layer\.\*\/\w+\/dense ×6/);
    await figure(page, "layers").locator("select").selectOption("layer");
    await settles(() => page.textContent("#summary-layers"), /First: encoder\/layer\.\d\/\w+\/dense [\d.]/);
    await settles(() => page.textContent("#summary-roofline"), /bound by arithmetic.*by memory.*ridge/);
    await figure(page, "layers").locator("select").selectOption("group");
    await settles(() => page.textContent("#summary-layers"), /First: mlp/);
    const map = figure(page, "treemap").locator(".drawing");
    await map.focus();
    await page.keyboard.press("ArrowRight");
    await settles(answerOf(page, "treemap"), /MatMul.* of the time of a run/);
    await page.keyboard.press("Escape");
    await settles(answerOf(page, "treemap"), /^$/);
    await shot(page, "plots-layers");
  });
});

test("pointing at a spot tells what it is", async () => {
  await withPage(layered(), async (page) => {
    const canvas = figure(page, "layers").locator("canvas");
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 16);
    await settles(answerOf(page, "layers"), /: [\d.]+\sms, [\d.]+\s% of the time of a run/);
  });
});

// ---- two runs, many runs, a watched program ----

test("two runs are compared with intervals, verdicts and what else differs", async () => {
  await withPage(compared(), async (page) => {
    await page
      .getByRole("button", { name: /^Comparison/ })
      .first()
      .click();
    const text = await page.textContent("#comparison");
    assert.match(text, /unverified/);
    assert.match(text, /latency\.p50|no verdict/);
    await tool(page, "comparison", "Table").click();
    assert.ok((await figure(page, "comparison").locator("tbody tr").count()) > 5);
    await shot(page, "plots-compared");
  });
});

test("a comparison measured in turn shows its verdicts by word and colour", async () => {
  await withPage(
    fill("plots-ab", [{ kind: "comparison", name: "int8", document: readJson(data("comparison")) }]),
    async (page) => {
      assert.match(await page.textContent("h1"), /^new is [\d.]+x as fast as base \([\d.]+x to [\d.]+x\)/);
      assert.match(await page.textContent("#comparison .verdict"), /improved/);
      await settles(() => page.textContent("#summary-comparison"), /4 improved\. Intervals of the ratio at 95\s% confidence/);
      await figure(page, "comparison").locator(".drawing").focus();
      await page.keyboard.press("End");
      await settles(answerOf(page, "comparison"), /memory\.peak: [\d.]+\s[MG]iB → [\d.]+\s[MG]iB, −[\d.]+\s% .*improved/);
    },
  );
});

test("a history shows where its level changed", async () => {
  await withPage(history(), async (page) => {
    await settles(() => page.textContent("#summary-history-0"), /40 runs on .* changed once, last \+[\d.]+\s% /);
    assert.match(await page.textContent("#history .notes"), /regressed.* since 2026-01-31 12:00, abc001f000/);
    await shot(page, "plots-history");
  });
});

test("a watched program has its timeline, phases and alerts", async () => {
  await withPage(watched(), async (page) => {
    assert.match(await page.textContent("#timeline"), /process\.threads>0/);
    assert.ok((await page.locator("#timeline .plot").count()) >= 2);
    assert.match(await page.textContent("#headline .tiles"), /Wall time.*Processor time.*Peak memory.*Exit code/s);
    assert.equal(await page.locator("#memory").count(), 0, "memory is drawn once, on the timeline");
    const any = figure(page, "time-any");
    await any.locator("select").selectOption({ label: "process.count" });
    await settles(() => any.locator("h3").textContent(), /process\.count/);
    await shot(page, "plots-watched");
  });
});

test("panels of a timeline share the cursor and the stretch they show", async () => {
  const values = Array.from({ length: 50 }, (_, i) => i / 50);
  const series = [
    { metric: "cpu", label: "", unit: "1", values },
    { metric: "process.memory.rss", label: "", unit: "B", values: values.map((v) => v * 1e9) },
  ];
  const file = fill("plots-sync", [
    { kind: "timeline", name: "t", document: { run: "r", at_s: values.map((v) => v * 10), series } },
  ]);
  const place = (page) => () => page.textContent("#fig-time-memory .legend .place");
  await withPage(file, async (page) => {
    const box = await page.locator("#fig-time-cpu .u-over").boundingBox();
    await page.mouse.move(box.x + box.width / 4, box.y + 40);
    await settles(place(page), /: 2\.\d+\ss$/);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + 40, { steps: 4 });
    await page.mouse.up();
    const [, from, to] = await settles(viewOf(page), /zoom\.timeline=([\d.]+)~([\d.]+)/);
    assert.ok(Math.abs(from - 2.45) < 0.3 && Math.abs(to - 4.9) < 0.3, `${from} to ${to}`);
    await page.mouse.move(box.x + box.width / 2, box.y + 40);
    await settles(place(page), /: 3\.\d+\ss$/);
  });
});

// ---- accuracy, what is missing, what is hostile ----

test("accuracy against speed names the cases that none beats", async () => {
  const doc = readJson(data("sweep"));
  doc.cases.forEach((c, i) => {
    c.accuracy = i === 4 ? null : { metric: "cosine", value: 0.9 - 0.01 * i, lo: 0.89 - 0.01 * i, hi: 0.91 - 0.01 * i };
  });
  await withPage(fill("plots-pareto", [{ kind: "run", name: "p", document: doc }]), async (page) => {
    assert.match(
      await page.textContent("#summary-pareto"),
      /Beaten by no other in both: batch=1,seq=128; .*1 cases have no accuracy/,
    );
  });
});

test("documents with next to nothing in them are pages without errors", async () => {
  const items = [
    { kind: "run", document: {} },
    { kind: "run", document: { cases: [{ name: "x", latency_ns: {}, memory: {}, layers: [], watch: { metrics: [] } }] } },
    { kind: "comparison", document: {} },
    { kind: "history", document: {} },
    { kind: "timeline", document: {} },
    { kind: "timeline", document: { at_s: [0], series: [] } },
  ];
  const file = fill("plots-empty", items);
  for (let i = 0; i < items.length; i++)
    await withPage(file, async (page) => assert.ok(await page.textContent("main")), { hash: `item=${i}` });
});

const HOSTILE = `</script><script>alert(1)</script><img src=x onerror=alert(2)>"'\u202e\u0000`;

function hostileItems() {
  const layers = readJson(data("layers"));
  const name = HOSTILE + "x".repeat(1e6);
  Object.assign(layers.cases[0], { name, unit: HOSTILE });
  layers.cases[0].layers.slice(0, 3).forEach((l) => Object.assign(l, { name, op: HOSTILE, group: HOSTILE, bound: HOSTILE }));
  const comparison = readJson(data("comparison"));
  Object.assign(comparison.cases[0], { name: HOSTILE });
  Object.assign(comparison.cases[0].metrics[0], { metric: HOSTILE, verdict: HOSTILE, why: HOSTILE, unit: HOSTILE });
  Object.assign(comparison, {
    base: { name: HOSTILE },
    differences: [{ what: HOSTILE, base: HOSTILE, new: HOSTILE, severity: HOSTILE }],
    notes: [{ severity: HOSTILE, text: HOSTILE }],
    reproduce: HOSTILE,
  });
  const timeline = {
    run: "r",
    start: HOSTILE,
    at_s: [0, 1],
    series: [
      { metric: HOSTILE, label: HOSTILE, unit: HOSTILE, values: [1, 2] },
      { metric: "cpu", label: "", unit: "1", values: [0, 1] },
    ],
    phases: [{ name: HOSTILE, start_s: 0, end_s: 1 }],
    alerts: [{ rule: HOSTILE, metric: "cpu", start_s: 0, end_s: null, action: HOSTILE }],
  };
  const history = {
    subject: HOSTILE,
    metric: HOSTILE,
    unit: HOSTILE,
    series: [
      {
        case: HOSTILE,
        host: HOSTILE,
        anchor: HOSTILE,
        points: [{ value: 1, commit: HOSTILE, created: HOSTILE }, { value: 2 }],
        changes: [{ at: 1, worse: true }],
      },
    ],
  };
  return [
    { kind: "run", name: HOSTILE, document: layers },
    { kind: "comparison", document: comparison },
    { kind: "timeline", document: timeline },
    { kind: "history", document: history },
  ];
}

test("hostile names never act and break no plot", async () => {
  const file = fill("plots-hostile", hostileItems());
  for (let i = 0; i < 4; i++)
    await withPage(
      file,
      async (page) => {
        assert.equal(await page.locator("main img, main script").count(), 0);
        for (const button of await page.getByRole("button", { name: /^Table of/ }).all()) await button.click();
        assert.ok((await page.locator("main table").count()) > 0);
        assert.equal(await page.locator("main img, main script").count(), 0);
        assert.equal(await overflow(page), 0);
      },
      { hash: `item=${i}` },
    );
});

// ---- for everyone ----

test("no serious accessibility violation, and nothing sticks out at 375 pixels", async () => {
  const timeline = {
    run: "r",
    start: "2026-11-15T11:45:48.607Z",
    at_s: [0, 1, 2],
    series: [{ metric: "cpu", label: "", unit: "1", values: [null, 0.5, 1] }],
    alerts: [{ rule: "cpu>80%", metric: "cpu", start_s: 1, end_s: null }],
  };
  const file = fill("plots-all", [
    { kind: "run", name: "layers", document: readJson(data("layers")) },
    { kind: "comparison", document: readJson(data("comparison")) },
    { kind: "timeline", document: timeline },
  ]);
  for (const [theme, width] of [
    ["light", 1280],
    ["dark", 375],
  ])
    for (let i = 0; i < 3; i++)
      await withPage(
        file,
        async (page) => {
          if (theme === "light" || i === 0) assert.deepEqual(await violations(page), []);
          assert.equal(await overflow(page), 0);
          await shot(page, `plots-all-${i}-${theme}-${width}`);
        },
        { theme, width, hash: `item=${i}` },
      );
});
