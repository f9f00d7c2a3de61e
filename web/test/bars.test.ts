// SPDX-License-Identifier: MIT
// Bars: reading, rows, what is in sight, links between calls and kernels, and documents that are damaged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { around, type Bars, barsOf, depthsOf, firstFrom, innermost, launchedBy, longest, makeRow, nameAt, nextMatch, ofName, readBars, searchNames, spotOf, visible } from "../src/data/bars";
import { kernelGrid, partsOf, searched, stepParts } from "../src/data/gpu";
import { joinSteps } from "../src/scenes/steps";
import { pack } from "./pack";

const deltas = (v: number[]): string => pack(v.map((x, i) => x - (i ? v[i - 1]! : 0)));

/** Two calls of thread 7 in the ranges "step" and, within, "inner"; they launch a kernel and a copy; a third kernel has no call. */
function document(): Record<string, unknown> {
  return {
    schema: "tare.bars/1", seen: 9, shown: 9, end_ns: 1000, file: "x.tare",
    names: { text: ["launch", "step", "inner", "kernel a", "kernel b", "copy to-device", "work"], kind: ["call", "range", "range", "kernel", "kernel", "copy", "scope"],
      full: [null, null, null, "void a()", null, null, null], group: [null, null, null, "matmul", "other", null, null], file: [], line: [] },
    shapes: pack([4, 1, 1, 128, 1, 1, 32, 0, 1024, 0]),
    lanes: [
      { kind: "calls", pid: 5, thread: 7, name: "CUDA calls of thread 7", n: 2, start: deltas([100, 300]), length: pack([10, 10]), what: pack([0, 0]) },
      { kind: "ranges", pid: 5, thread: 7, name: "NVTX", n: 2, start: deltas([50, 290]), length: pack([500, 100]), what: pack([1, 2]) },
      { kind: "stream", pid: 5, name: "GPU 0 stream 1", n: 3, start: deltas([150, 350, 600]), length: pack([100, 50, 400]), what: pack([3, 5, 4]), call: pack([0, 1, NaN]), more: pack([1, 4096, 0]) },
      { kind: "scopes", pid: 5, thread: 7, thread_name: "main", name: "main", n: 2, start: deltas([0, 320]), length: pack([200, 10]), what: pack([6, 6]), more: pack([0, 2]) },
    ],
    gpu: { devices: [{ number: 0, busy_ns: 550, wall_ns: 850, busy: 0.647, idle: [{ cause: "unknown", ns: 200 }, { cause: "sync", ns: 100 }] }],
      kernels: [{ name: "kernel b", group: "other", count: 1, total_ns: 400, p50_ns: 400, p95_ns: 400 }, { name: "kernel a", full: "void a()", group: "matmul", count: 1, total_ns: 100 }] },
    courses: [{ number: 0, pid: 5, steps: { n: 2, start: deltas([0, 500]), length: pack([500, 500]), busy: pack([150, 400]), idle: { unknown: pack([350, 0]), sync: pack([0, 100]) } } }],
  };
}

const made = (): Bars => readBars(document() as never);

test("a document is read: lanes, names, what called what", () => {
  const b = made();
  assert.deepEqual(b.lanes.map((l) => [l.kind, l.first, l.n, l.height]), [["calls", 0, 2, 1], ["ranges", 2, 2, 2], ["stream", 4, 3, 1], ["scopes", 7, 2, 1]]);
  assert.deepEqual(b.order.map((l) => l.kind), ["stream", "ranges", "scopes", "calls"]);
  assert.deepEqual([...b.lanes[2]!.call!], [0, 1, -1]);
  assert.deepEqual([...b.lanes[2]!.start], [150, 350, 600]);
  assert.deepEqual([...b.lanes[2]!.more!], [1, 4096, 0]);
  assert.equal(b.from, 0);
  assert.equal(nameAt(b, spotOf(b, 5)!).text, "copy to-device");
  assert.equal(spotOf(b, 9), null);
  assert.equal(spotOf(b, -1), null);
});

test("a kernel leads to its call, the call to the range and the scope around it, and back", () => {
  const b = made();
  assert.deepEqual([...launchedBy(b, 0)], [4]);
  assert.deepEqual([...launchedBy(b, 1)], [5]);
  assert.equal(nameAt(b, around(b, spotOf(b, 0)!, "ranges")!).text, "step");
  assert.equal(nameAt(b, around(b, spotOf(b, 1)!, "ranges")!).text, "inner");
  assert.equal(nameAt(b, around(b, spotOf(b, 0)!, "scopes")!).text, "work");
  assert.equal(around(b, spotOf(b, 1)!, "scopes"), null, "no scope was open then");
  assert.equal(innermost(b.lanes[1]!, 600), null);
});

test("a search finds names and walks their bars in order of time", () => {
  const b = made();
  const found = searchNames(b.names, "kernel")!;
  assert.deepEqual([...found], [0, 0, 0, 1, 1, 0, 0]);
  assert.deepEqual(ofName(b, found), { count: 2, total: 500, longest: 6 });
  assert.equal(nextMatch(b, found, -1, false), 4);
  assert.equal(nextMatch(b, found, 4, false), 6);
  assert.equal(nextMatch(b, found, 6, false), -1);
  assert.equal(nextMatch(b, found, 6, true), 4);
  assert.deepEqual([...searchNames(b.names, "=void a()")!], [0, 0, 0, 1, 0, 0, 0]);
  assert.deepEqual([...searchNames(b.names, "MATMUL")!], [0, 0, 0, 1, 0, 0, 0]);
  assert.equal(searchNames(b.names, "  "), null);
});

test("bars lie in rows: within one another higher, one after the other side by side", () => {
  const start = Float64Array.of(0, 10, 20, 60, 100);
  const length = Float64Array.of(100, 40, 10, 30, 5);
  assert.deepEqual([...depthsOf(start, length)!], [0, 1, 2, 1, 0]);
  assert.equal(depthsOf(Float64Array.of(0, 10), Float64Array.of(10, 5)), null, "nothing lies within another");
  assert.deepEqual([...depthsOf(Float64Array.of(0, 5, 12), Float64Array.of(10, 10, 2))!], [0, 1, 2], "overlapping in part, as damage may");
});

test("the bars in sight and the longest of them, against looking at each", () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
  const n = 777;
  const start = new Float64Array(n);
  const end = new Float64Array(n);
  for (let i = 0, t = 0; i < n; i++) {
    start[i] = t += random(20);
    end[i] = t += random(50);
  }
  const row = makeRow(0, null, start, end);
  for (let k = 0; k < 500; k++) {
    const from = random(26000);
    const to = from + 1 + random(3000);
    const all = [...start.keys()].filter((i) => end[i]! >= from && start[i]! < to);
    const [i, j] = visible(row, from, to);
    assert.deepEqual([i, Math.max(i, j)], all.length ? [all[0], all[all.length - 1]! + 1] : [i, i]);
    if (!all.length) continue;
    const most = Math.max(...all.map((x) => end[x]! - start[x]!));
    const top = longest(row, i, j);
    assert.equal(end[top]! - start[top]!, most);
    assert.ok(Math.abs(row.busy[j]! - row.busy[i]! - all.reduce((s, x) => s + end[x]! - start[x]!, 0)) < 1e-6);
  }
  assert.equal(firstFrom(start, Infinity, 0, n), n);
  assert.equal(firstFrom(start, -1, 0, n), 0);
});

test("damage is told, and never read past", () => {
  const broken = (change: (d: ReturnType<typeof document>) => void): string => {
    const d = document();
    change(d);
    const found = barsOf(d as never);
    return typeof found === "string" ? found : "";
  };
  const lane = (d: Record<string, unknown>, i: number) => (d.lanes as Record<string, unknown>[])[i]!;
  assert.match(broken((d) => (d.schema = "tare.bars/2")), /tare\.bars\/2/);
  assert.match(broken((d) => (lane(d, 0).what = pack([0, 99]))), /"what" is out of range/);
  assert.match(broken((d) => (lane(d, 2).call = pack([0, 50, 0]))), /"call" is out of range/);
  assert.match(broken((d) => (lane(d, 0).n = 3)), /no column of 3/);
  assert.match(broken((d) => (lane(d, 0).start = pack([5, -3]))), /back in time/);
  assert.match(broken((d) => (lane(d, 0).length = pack([5, -3]))), /below zero/);
  assert.match(broken((d) => (lane(d, 0).kind = "constructor")), /no known kind/);
  assert.match(broken((d) => (lane(d, 0).n = 1e9)), /no column/);
  assert.equal(broken((d) => (d.lanes = [])), "");
});

test("tables: shares, percentiles of the document, and a search", () => {
  const b = made();
  const grid = kernelGrid(b);
  assert.deepEqual(grid.rows.map((r) => [r[0], r[6], r[7]]), [["kernel b", 400, 400], ["kernel a", undefined, undefined]]);
  assert.equal(searched(grid, "MAT").rows.length, 1);
});

test("times in parts, in one order; steps of one pixel are their mean", () => {
  const b = made();
  assert.deepEqual(partsOf(b.gpu!.devices![0]!).map((p) => p.cause), ["busy", "sync", "unknown"]);
  const parts = [0, 1].map((i) => stepParts(b.courses[0]!, i));
  assert.deepEqual(parts[1], [{ cause: "busy", ns: 400 }, { cause: "sync", ns: 100 }, { cause: "unknown", ns: 0 }]);
  const [joined] = joinSteps(parts, 1);
  assert.deepEqual([joined!.many, joined!.parts.map((p) => p.ns)], [2, [275, 50, 175]]);
  assert.equal(joinSteps(parts, 10).length, 2);
});
