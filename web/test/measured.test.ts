// SPDX-License-Identifier: MIT
// Memory, roofline and accuracy against speed: what is unknown is left out and counted, never drawn at 0.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryRows } from "../src/data/memory";
import type { Case, Item } from "../src/data/page";
import { paretoOf } from "../src/data/pareto";
import { allowed, roofFor, rooflineOf } from "../src/data/roofline";

test("memory: cases of which nothing is known are no rows; a leak is one beyond doubt", () => {
  const cases: Case[] = [
    {
      name: "a",
      memory: {
        rss_before: 1,
        rss_peak: 9,
        rss_mean: 5,
        arena: { MaxInUse: 4, TotalAllocated: 6 },
        growth: { value: 10, lo: 2, hi: 12 },
      },
    },
    { name: "b", memory: null },
    { name: "c", memory: { rss_peak: 3, growth: { value: 10, lo: -2, hi: 12 } } },
  ];
  const rows = memoryRows(cases);
  assert.deepEqual(
    rows.map((r) => [r.name, r.before, r.peak, r.arenaUsed, r.leaks]),
    [
      ["a", 1, 9, 4, true],
      ["c", null, 3, null, false],
    ],
  );
});

test("roofline: only layers with arithmetic and a time are placed, the others are counted", () => {
  const layers = [
    { name: "m", op: "MatMul", intensity: 100, rate: 90, time_ns: 5, share: 0.5, bound: "compute" },
    { name: "r", op: "Reshape", intensity: null, rate: null, time_ns: 5, share: 0.5 },
  ];
  const r = rooflineOf(layers, { flops: 100, bandwidth: 10, int_ops: 400 })!;
  assert.equal(r.points.length, 1);
  assert.equal(r.unplaced, 1);
  assert.deepEqual(
    r.ceilings.map((c) => [c.label, c.ridge]),
    [["fp32", 10]],
  ); // nothing in it is int8
  assert.equal(allowed(r.ceilings[0]!, 10, 2), 20);
  assert.equal(allowed(r.ceilings[0]!, 10, 50), 100);
  assert.equal(rooflineOf(layers, { flops: null, bandwidth: 10 }), null);
  assert.equal(rooflineOf([], { flops: 100, bandwidth: 10 }), null);
});

test("roofline: layers with operations on a GPU are under the GPU's roof", () => {
  const cpu = { flops: 100, bandwidth: 10 };
  const gpu = { fp32: { value: 50 }, tf32: { value: 400 }, bandwidth: { value: 40 } };
  const here = [{ name: "m", operations: 0 }];
  const there = [...here, { name: "k", operations: 3 }];
  assert.equal(roofFor(here, cpu, gpu)?.flops, 100);
  assert.equal(roofFor(there, cpu, gpu)?.flops, 400);
  assert.equal(roofFor(there, cpu, gpu)?.bandwidth, 40);
  assert.equal(roofFor(there, cpu, null), null); // never under another's
});

function scored(name: string, rate: number, accuracy: number | null): Case {
  return {
    name,
    throughput: { value: rate, unit: "texts/s" },
    accuracy: accuracy === null ? null : { value: accuracy, metric: "cosine" },
  };
}

test("accuracy against speed: beaten ones are told apart, over all runs", () => {
  const items: Item[] = [
    {
      kind: "run",
      name: "fp32",
      document: { cases: [scored("slow", 10, 0.9), scored("worse", 9, 0.8), scored("unscored", 99, null)] },
    },
    { kind: "run", name: "int8", document: { cases: [scored("fast", 30, 0.85)] } },
    { kind: "history", document: {} },
  ];
  const p = paretoOf(items)!;
  assert.equal(p.metric, "cosine");
  assert.equal(p.without, 1);
  assert.deepEqual(
    p.points.map((q) => [q.run, q.case, q.best]),
    [
      ["fp32", "worse", false],
      ["fp32", "slow", true],
      ["int8", "fast", true],
    ],
  );
  assert.equal(paretoOf([{ kind: "run", document: { cases: [scored("x", 1, null)] } }]), null);
});

test("two equal cases beat neither each other", () => {
  const p = paretoOf([{ kind: "run", document: { cases: [scored("a", 1, 1), scored("b", 1, 1)] } }])!;
  assert.deepEqual(
    p.points.map((q) => q.best),
    [true, true],
  );
});
