// SPDX-License-Identifier: MIT
// What stands first on a page and what stands around the plots: headline, targets, environment, static cost.
import assert from "node:assert/strict";
import { test } from "node:test";
import { configRows, hostFacts } from "../src/data/environment";
import { bestCase, headlineNumbers } from "../src/data/headline";
import { readPage, type RunDocument, type Target } from "../src/data/page";
import { isLowerBound, opRows, staticLines } from "../src/data/static";
import { metBy, targetGroups, targetRows } from "../src/data/targets";

const plain = (text: string): string => text.replace(/\u00a0/g, " ");

const run: RunDocument = {
  cases: [
    {
      name: "batch=1",
      samples: 100,
      latency_ns: { p50: { value: 2e6, lo: 1.9e6, hi: 2.2e6 } },
      throughput: { value: 500, lo: 480, hi: 520, unit: "texts/s" },
      self: { ns_per_run: 600, share: 0.0003 },
    },
    {
      name: "batch=8",
      samples: 50,
      latency_ns: { p50: { value: 9e6, lo: null, hi: null } },
      throughput: { value: 880, unit: "texts/s" },
      memory: { rss_peak: 2 ** 30 },
    },
    { name: "batch=16", latency_ns: null, throughput: null },
  ],
  targets: [],
};

test("the headline takes the best of what is known and names its case", () => {
  const tiles = Object.fromEntries(headlineNumbers(run).map((t) => [t.name, t]));
  assert.equal(plain(tiles["Lowest median latency"]!.value), "2 ms");
  assert.match(plain(tiles["Lowest median latency"]!.detail), /1\.9 ms to 2\.2 ms · batch=1/);
  assert.equal(plain(tiles["Highest throughput"]!.value), "880 texts/s");
  assert.match(tiles["Highest throughput"]!.detail, /no interval · batch=8/);
  assert.equal(plain(tiles["Peak memory"]!.value), "1 GiB");
  assert.equal(tiles["Measured runs"]!.value, "150");
  assert.ok(!("Targets met" in tiles));
});

test("a watched program has wall time, processor time, memory and its end", () => {
  const once = { p50: { value: 2e9 }, min: 2e9 };
  const c = { name: "", latency_ns: once, cpu: { user_ns: 3e9, system_ns: 1e9 }, memory: { rss_peak: 2 ** 30 }, samples: 1 };
  const of = (watch: object) =>
    headlineNumbers({ cases: [{ ...c, watch }] } as never).map((t) => [t.name, plain(t.value), plain(t.detail)]);
  assert.deepEqual(of({ exit_code: 3, samples: 20 }), [
    ["Wall time", "2 s", "20 samples"],
    ["Processor time", "4 s", "3 s user, 1 s system; 2 processors on average"],
    ["Peak memory", "1 GiB", "resident, of the process"],
    ["Exit code", "3", "failure"],
  ]);
  assert.deepEqual(of({ exit_code: null, signal: 9, still_running: 2 })[3], ["Ended by signal", "9", "2 of its processes still ran"]);
  assert.equal(of({ exit_code: null }).length, 3, "an end that nobody saw is not told");
});

test("a model that was looked at has its totals; a lower bound says so", () => {
  const cost = { macs: 2e9, flops: 4e9, complete: false };
  const graph = { parameters: 22.7e6, parameter_bytes: 2 ** 20, activation_peak: null, cost_per_run: cost, nodes: 222 };
  const run = { kind: "inspect", subject: { static: graph, size_bytes: 2 ** 21 }, cases: [{ name: "x" }] } as never;
  assert.deepEqual(
    headlineNumbers(run).map((t) => [t.name, plain(t.value), plain(t.detail)]),
    [
      ["Parameters", "22.7 M", "1 MiB of weights"],
      ["Multiply-accumulates", "2 G", "at least, per run; 4 GFLOP"],
      ["Size of the file", "2 MiB", "222 nodes"],
    ],
  );
});

test("a run without any case has no number, rather than a 0", () => {
  assert.deepEqual(headlineNumbers({ cases: [] }), []);
  assert.equal(
    bestCase([{ name: "a" }], (c) => c.samples),
    null,
  );
});

test("targets are turned so that more is better", () => {
  const limit = (t: Partial<Target>): Target => ({ metric: "latency.p95", op: "<=", value: 100, verdict: "pass", ...t });
  assert.equal(metBy(limit({ achieved: 50 })), 2);
  assert.equal(metBy(limit({ achieved: 200 })), 0.5);
  assert.equal(metBy(limit({ op: ">=", achieved: 200 })), 2);
  assert.equal(metBy(limit({ achieved: null })), null);
  const row = targetRows([limit({ unit: "ns", value: 1e8, achieved: 9.1e7, verdict: "pass", confidence: 0.99 })])[0]!;
  assert.equal(plain(row.name), "latency.p95 ≤ 100 ms");
  assert.match(plain(row.text), /91 ms, pass/);
  const counted = (t: Partial<Target>) => plain(targetRows([limit({ unit: "ns", value: 1e8, achieved: null, ...t })])[0]!.achievedText);
  assert.deepEqual([counted({}), counted({ verdict: "fail" }), counted({ verdict: "inconclusive" })], ["≤ 100 ms", "> 100 ms", "unknown"]);
});

test("a target that one case misses is missed", () => {
  const of = (c: string, verdict: string): Target => ({
    metric: "throughput",
    op: ">=",
    value: 10,
    unit: "/s",
    case: c,
    achieved: 9,
    verdict,
  });
  const groups = targetGroups(
    targetRows([of("a", "pass"), of("b", "fail"), { ...of("a", "inconclusive"), metric: "accuracy" }]),
  );
  assert.deepEqual(
    groups.map((g) => [g.rows.length, g.passed, g.failed, g.verdict]),
    [
      [2, 1, 1, "fail"],
      [1, 0, 0, "inconclusive"],
    ],
  );
});

test("what the machine does not tell has the reason of the document, also of the part around it", () => {
  const facts = Object.fromEntries(
    hostFacts({
      governor: null,
      cgroup: { cpu_quota: null },
      unknown: { governor: "no cpufreq", cgroup: "not looked for" },
    }).map((f) => [f.name, f]),
  );
  assert.equal(facts["Clock governor"]!.value, null);
  assert.equal(facts["Clock governor"]!.why, "no cpufreq");
  assert.equal(facts["Processor limit of the group"]!.why, "not looked for");
  assert.equal(facts["Host"]!.why, null);
});

test("nested settings become rows, and not without end", () => {
  assert.deepEqual(configRows({ a: { b: 1, c: [1, 2] }, d: null }), [
    ["a.b", "1"],
    ["a.c", "[1,2]"],
    ["d", "null"],
  ]);
  assert.equal(configRows(Object.fromEntries(Array.from({ length: 999 }, (_, i) => [`k${i}`, i]))).length, 200);
});

test("static totals leave out what neither graph has, and a bound is called one", () => {
  const lines = staticLines({ parameters: 535818, cost_per_run: { macs: 535040, complete: false } }, null);
  assert.deepEqual(
    lines.map((l) => l.name),
    ["parameters", "multiply-accumulates per run"],
  );
  assert.equal(lines[0]!.optimized, null);
  assert.ok(isLowerBound({ cost_per_run: { complete: false } }));
  assert.ok(!isLowerBound({ cost: { complete: true } }));
  assert.deepEqual(opRows({ ops: { Relu: 2, Gemm: 3 }, unknown_ops: { Relu: 1 } }), [
    { op: "Gemm", nodes: 3, unknown: 0 },
    { op: "Relu", nodes: 2, unknown: 1 },
  ]);
});

test("data that is no page is told apart, and unknown kinds are left out", () => {
  assert.match(readPage("null") as string, /no data/);
  assert.match(readPage("{") as string, /no JSON/);
  assert.match(readPage('{"schema":"tare.run/1"}') as string, /not tare\.page\/1/);
  const page = readPage(
    '{"schema":"tare.page/1","items":[{"kind":"dance","document":{}},{"kind":"run","document":{}},null,{"kind":"run"}]}',
  );
  assert.equal(typeof page === "string" ? page : page.items.length, 1);
});
