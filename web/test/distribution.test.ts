// SPDX-License-Identifier: MIT
// Single times: buckets keep every count, percentiles are those of the sorted list, slow runs are told with their cause.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bound, gridOfCases } from "../src/data/cases";
import {
  histogramBars,
  nines,
  outlierText,
  quantilesOfBars,
  quantilesOfSamples,
  sampleSeries,
  shareOfNines,
} from "../src/data/distribution";

const sum = (list: { count: number }[]) => list.reduce((n, b) => n + b.count, 0);

test("buckets are those of the document, without the empty ends", () => {
  const bars = histogramBars({ scale: 0, offset: 3, zero: 0, counts: [0, 2, 0, 5, 0] });
  assert.deepEqual(bars, [
    { lo: 16, hi: 32, count: 2 },
    { lo: 32, hi: 64, count: 0 },
    { lo: 64, hi: 128, count: 5 },
  ]);
});

test("many buckets are joined and lose no run; neighbours touch", () => {
  const counts = Array.from({ length: 1000 }, (_, i): number => (i % 7 === 0 ? 0 : 3));
  const bars = histogramBars({ scale: 6, offset: 1000, zero: 4, counts });
  assert.ok(bars.length <= 65);
  assert.equal(sum(bars), counts.reduce((a, b) => a + b, 0) + 4);
  for (let i = 1; i < bars.length; i++) assert.ok(Math.abs(bars[i]!.lo - bars[i - 1]!.hi) < 1e-6 * bars[i]!.lo);
});

test("no histogram, an empty one and one of zeros only", () => {
  assert.deepEqual(histogramBars(null), []);
  assert.deepEqual(histogramBars({ scale: 6, offset: 0, zero: 0, counts: [] }), []);
  assert.deepEqual(histogramBars({ scale: 6, offset: 0, zero: 9, counts: [0] }), [{ lo: 0, hi: 1, count: 9 }]);
});

test("percentiles of samples are ranks of the sorted list", () => {
  const samples = Array.from({ length: 1000 }, (_, i) => ((i * 7919) % 1000) + 1); // 1..1000, shuffled
  const q = quantilesOfSamples(samples);
  const at = (share: number) => q.value[q.share.findIndex((s) => Math.abs(s - share) < 1e-9)];
  assert.equal(at(0.5), 500);
  assert.equal(at(0.999), 999);
  assert.equal(q.value[0], 1);
  assert.ok(q.share.every((s, i) => i === 0 || s > q.share[i - 1]!));
  assert.ok(q.value.every((v, i) => i === 0 || v >= q.value[i - 1]!));
  assert.deepEqual(quantilesOfSamples([]), { share: [], value: [] });
});

test("no share is claimed that so few samples cannot tell", () => {
  assert.ok(Math.max(...quantilesOfSamples([1, 2, 3, 4, 5]).share) <= 0.8);
});

test("percentiles of buckets end at their upper edges", () => {
  const q = quantilesOfBars([
    { lo: 1, hi: 2, count: 90 },
    { lo: 2, hi: 4, count: 9 },
    { lo: 4, hi: 8, count: 1 },
  ]);
  const at = (share: number) => q.value[q.share.findIndex((s) => Math.abs(s - share) < 1e-9)];
  assert.equal(at(0.5), 2);
  assert.equal(at(0.99), 4);
});

test("every nine has the same room", () => {
  assert.ok(Math.abs(nines(0.99) - 2) < 1e-12);
  assert.ok(Math.abs(shareOfNines(nines(0.995)) - 0.995) < 1e-12);
});

test("slow runs stand out, and only where a limit is known", () => {
  const s = sampleSeries([10, 30, 11], 20);
  assert.deepEqual(s.index, [1, 2, 3]);
  assert.deepEqual(s.outlier, [null, 30, null]);
  assert.equal(s.outliers, 1);
  assert.equal(sampleSeries([10, 30], null).outliers, 0);
});

test("slow runs are told with their cause, or that there is none", () => {
  const time = (ns: number) => `${ns} ns`;
  const text = (outliers: object | null) => outlierText({ name: "", outliers }, time);
  assert.equal(
    text({ count: 39, explained: 30, limit_ns: 24 }),
    "39 runs slower than 24 ns. 30 of them coincide with a context switch, steal or throttling; for 9 runs there is no explanation.",
  );
  assert.equal(
    text({ count: 2, explained: 2, limit_ns: 24 }),
    "2 runs slower than 24 ns. All of them coincide with a context switch, steal or throttling.",
  );
  assert.match(text({ count: 2, explained: 0, limit_ns: 24 }), /None of them coincide/);
  assert.equal(text({ count: 0, explained: 0, limit_ns: 24 }), "No run was slower than 24 ns.");
  assert.equal(text({ count: 3, limit_ns: 24 }), "3 runs slower than 24 ns.");
  assert.equal(text(null), "");
});

test("a hundred thousand samples are turned around in little time", () => {
  const samples = Float64Array.from({ length: 100_000 }, (_, i) => 1e6 + ((i * 7919) % 100_003));
  const start = process.hrtime.bigint();
  assert.equal(sampleSeries(samples, 1.09e6).value.length, 100_000);
  assert.ok(quantilesOfSamples(samples).value.length > 50);
  assert.ok(Number(process.hrtime.bigint() - start) < 2e9, "a wide margin: this takes tens of milliseconds");
});

test("a percentile that falls on a run which was not served is what it exceeds", () => {
  const late = { name: "rate=20", latency_ns: { p50: { value: 2e7 }, p95: null, p99: null, at_least: { p95: 1_700_000_000 } } };
  assert.equal(bound(late as never, "p95"), "> 1.7\u00a0s");
  assert.equal(bound(late as never, "p99"), undefined);
  const { columns, rows } = gridOfCases([late as never]);
  const at = columns.findIndex((c) => c.title.startsWith("p95"));
  assert.equal(rows[0]![at], "> 1.7\u00a0s");
  assert.equal(rows[0]![at + 1], undefined);
});
