// SPDX-License-Identifier: MIT
// Cases as curves: which belong together, where the knee is, and that unknown stays unknown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { align, kneeOf, limitOf, servingOf, sweepsOf, wantsLog } from "../src/data/curves";
import type { Case, RunDocument } from "../src/data/page";

function made(params: Record<string, number | string>, rate?: number, half = 0): Case {
  const throughput = rate === undefined ? null : { value: rate, lo: rate - half, hi: rate + half, unit: "texts/s" };
  return {
    name: Object.entries(params)
      .map(([k, v]) => `${k}=${v}`)
      .join(","),
    params,
    throughput,
  };
}

test("cases that differ in one parameter are one curve each, ascending", () => {
  const cases = [4, 1, 16].flatMap((batch) => [64, 128].map((seq) => made({ batch, seq, threads: 2 }, batch)));
  const all = sweepsOf(cases);
  assert.deepEqual([...all.keys()], ["batch", "seq"]);
  const batch = all.get("batch")!;
  assert.deepEqual(
    batch.map((s) => s.fixed),
    ["seq=64", "seq=128"],
  );
  assert.deepEqual(
    batch[0]!.points.map((p) => p.x),
    [1, 4, 16],
  );
  assert.equal(all.get("seq")!.length, 3);
});

test("a parameter that only repeats another makes no curve of its own and splits none", () => {
  const all = sweepsOf([1, 2, 4].map((b) => made({ batch: b, N: b, provider: "cpu" }, b)));
  assert.deepEqual([...all.keys()], ["batch"]);
  assert.equal(all.get("batch")!.length, 1);
  assert.equal(all.get("batch")![0]!.fixed, "");
});

test("one case, texts and what was found out while running are no sweep", () => {
  assert.equal(sweepsOf([made({ batch: 1 }, 1)]).size, 0);
  assert.equal(sweepsOf([made({ precision: "fp32" }, 1), made({ precision: "int8" }, 2)]).size, 0);
  assert.equal(sweepsOf([made({ batch: 1, nan_outputs: 0 }, 1), made({ batch: 1, nan_outputs: 3 }, 1)]).size, 0);
});

test("curves stand on common places with null where one has none", () => {
  const cases = [
    made({ batch: 1, seq: 64 }, 10, 1),
    made({ batch: 2, seq: 64 }, 20),
    made({ batch: 1, seq: 128 }, 5),
    made({ batch: 8, seq: 128 }),
  ];
  const a = align(sweepsOf(cases).get("batch")!, (c) => c.throughput);
  assert.deepEqual(a.x, [1, 2, 8]);
  assert.deepEqual(
    a.curves.map((c) => c.value),
    [
      [10, 20, null],
      [5, null, null],
    ],
  );
  assert.deepEqual(a.curves[0]!.lo, [9, 20, null]);
});

const runOf = (cases: Case[], more: Partial<RunDocument> = {}): RunDocument => ({ cases, findings: [], config: {}, ...more });

test("the knee is the run's own finding where it has one", () => {
  const cases = [1, 4, 16].map((batch) => made({ batch }, 50, 0.1));
  const findings = [{ id: "batch.diminishing-returns", severity: "info", case: "batch=4", title: "from batch 4 on" }];
  const knee = kneeOf(sweepsOf(cases).get("batch")![0]!, runOf(cases, { findings }));
  assert.equal(knee?.x, 4);
  assert.equal(knee?.why, "from batch 4 on");
});

test("without a finding the bounds decide, and wide ones decide nothing", () => {
  const flat = [
    [1, 50],
    [2, 90],
    [4, 92],
    [8, 93],
  ].map(([threads, rate]) => made({ threads: threads! }, rate, 0.5));
  assert.equal(kneeOf(sweepsOf(flat).get("threads")![0]!, runOf(flat))?.x, 2);
  const wide = flat.map((c) => made(c.params as Record<string, number>, c.throughput!.value!, 20));
  assert.equal(kneeOf(sweepsOf(wide).get("threads")![0]!, runOf(wide)), null);
  const open = runOf(flat, { config: { load: "open" } });
  assert.equal(kneeOf(sweepsOf(flat).get("threads")![0]!, open), null);
  const unknown = flat.map((c) => ({ ...c, throughput: { value: 5, lo: null, hi: null } }));
  assert.equal(kneeOf(sweepsOf(unknown).get("threads")![0]!, runOf(unknown)), null);
});

test("a longer text is not meant to gain, so it has no knee", () => {
  const falling = [64, 128, 256].map((seq) => made({ seq }, 6400 / seq, 0.1));
  assert.equal(kneeOf(sweepsOf(falling).get("seq")![0]!, runOf(falling)), null);
});

test("places that double are read on a logarithmic axis", () => {
  assert.equal(wantsLog([1, 2, 4, 8]), true);
  assert.equal(wantsLog([100, 110, 120]), false);
  assert.equal(wantsLog([0, 1, 64]), false);
});

const estimate = (value: number | null, lo: number | null = value, hi: number | null = value) => ({ value, lo, hi });
const served = (name: string, rate: number, p50: number, p95: ReturnType<typeof estimate> | null): Case =>
  ({ name, throughput: { ...estimate(rate), unit: "texts/s" }, latency_ns: { p50: estimate(p50), p95 } }) as Case;

test("throughput over p95: sorted, with the limit, and the best that surely keeps it", () => {
  const cases = [
    served("b=8", 300, 30e6, estimate(90e6, 80e6, 120e6)),
    served("b=1", 100, 10e6, estimate(12e6, 11e6, 13e6)),
    served("b=4", 200, 20e6, estimate(40e6, 30e6, 60e6)),
    served("b=16", 400, 60e6, null),
  ];
  const s = servingOf({ cases, config: { latency_limit_s: 0.1 } } as RunDocument)!;
  assert.equal(s.by, "p95");
  assert.deepEqual(
    s.points.map((p) => p.case),
    ["b=1", "b=4", "b=8"],
  );
  assert.equal(s.limit, 100e6);
  assert.equal(s.best!.case, "b=4", "b=8 may be over the limit: its interval reaches past it");
  assert.equal(s.without, 1);
});

test("where p95 is known of one case only, medians take its place and no limit is drawn", () => {
  const cases = [served("b=1", 100, 10e6, estimate(12e6)), served("b=8", 300, 30e6, null)];
  const s = servingOf({ cases, config: { latency_limit_s: 0.1 } } as RunDocument)!;
  assert.deepEqual([s.by, s.limit, s.best, s.without], ["p50", null, null, 0]);
  assert.equal(servingOf({ cases: cases.slice(0, 1) } as RunDocument), null);
});

test("the limit on p95: what was asked, else the strictest target on p95", () => {
  const target = (metric: string, op: string, value: number) => ({ metric, op, value });
  const run = { targets: [target("latency.p95", "<=", 8e7), target("latency.p95", "<=", 5e7), target("latency.p50", "<=", 1e7)] };
  assert.equal(limitOf(run as RunDocument), 5e7);
  assert.equal(limitOf({ ...run, config: { latency_limit_s: 0.2 } } as unknown as RunDocument), 2e8);
  assert.equal(limitOf({ targets: [target("latency.p95", ">=", 1)] } as RunDocument), null);
});
