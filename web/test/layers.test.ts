// SPDX-License-Identifier: MIT
// Layers: shares add up, groups are sums, and the rectangles of a tree-map fill their box without covering each other.
import assert from "node:assert/strict";
import { test } from "node:test";
import { foldRepeats, profileText, type Rect, slicesOf, squarify, sumBy, treemap, weightOf, withRest } from "../src/data/layers";
import type { Layer } from "../src/data/page";
import { shortName } from "../src/scenes/treemap";

const LAYERS: Layer[] = [
  { name: "/a/MatMul", op: "MatMul", group: "mlp", time_ns: 60, flops: 10 },
  { name: "/b/Add", op: "Add", group: "mlp", time_ns: 10, flops: 1 },
  { name: "/c/MatMul", op: "MatMul", group: "attention", time_ns: 30, flops: 20 },
  { name: "/d/Shape", op: "Shape", group: null, time_ns: 0, flops: 0 },
];

test("time counts where there is any, else arithmetic, else nothing", () => {
  assert.equal(weightOf(LAYERS), "time_ns");
  assert.equal(weightOf(LAYERS.map((l) => ({ ...l, time_ns: null }))), "flops");
  assert.equal(weightOf([{ name: "x" }]), null);
});

test("slices are ordered and their shares add up to one", () => {
  const slices = slicesOf(LAYERS, "time_ns");
  assert.deepEqual(
    slices.map((s) => s.name),
    ["/a/MatMul", "/c/MatMul", "/b/Add"],
  );
  assert.ok(Math.abs(slices.reduce((n, s) => n + s.share, 0) - 1) < 1e-12);
});

test("sums by group and by operator, and the rest as one", () => {
  const slices = slicesOf(LAYERS, "time_ns");
  assert.deepEqual(
    sumBy(slices, "group").map((s) => [s.name, s.value, s.count]),
    [
      ["mlp", 70, 2],
      ["attention", 30, 1],
    ],
  );
  assert.deepEqual(
    sumBy(slices, "op").map((s) => [s.name, s.value]),
    [
      ["MatMul", 90],
      ["Add", 10],
    ],
  );
  const many = Array.from({ length: 30 }, (_, i) => ({ name: `l${i}`, op: "X", group: "g", time_ns: 30 - i }));
  const short = withRest(slicesOf(many, "time_ns"), 5);
  assert.equal(short.length, 6);
  assert.equal(short[5]!.name, "25 others");
  assert.equal(
    short.reduce((n, s) => n + s.value, 0),
    (30 * 31) / 2,
  );
  assert.equal(withRest(short, 5).length, 6); // one more is not worth a rest
});

const area = (r: Rect) => r.w * r.h;
const overlap = (a: Rect, b: Rect) =>
  Math.max(0, Math.min(a.x + a.w, b.x + b.w) - Math.max(a.x, b.x)) *
  Math.max(0, Math.min(a.y + a.h, b.y + b.h) - Math.max(a.y, b.y));

test("rectangles have the areas asked for, inside the box, apart from each other", () => {
  const values = Array.from({ length: 40 }, (_, i) => 1 / (i + 1));
  const total = values.reduce((a, b) => a + b, 0);
  const rects = squarify(values, { x: 10, y: 20, w: 300, h: 170 });
  rects.forEach((r, i) => {
    assert.ok(Math.abs(area(r) - (values[i]! / total) * 300 * 170) < 1e-6);
    assert.ok(r.x >= 10 - 1e-9 && r.y >= 20 - 1e-9 && r.x + r.w <= 310 + 1e-6 && r.y + r.h <= 190 + 1e-6);
    for (const other of rects.slice(i + 1)) assert.ok(overlap(r, other) < 1e-6);
  });
  const slim = rects.slice(0, 10).map((r) => Math.max(r.w / r.h, r.h / r.w));
  assert.ok(Math.max(...slim) < 4, "the large ones are near squares");
});

test("a tree-map has every layer in its group's box, and none without room", () => {
  const blocks = treemap(slicesOf(LAYERS, "time_ns"), 400, 200);
  assert.deepEqual(
    blocks.map((b) => [b.name, b.tiles.length]),
    [
      ["mlp", 2],
      ["attention", 1],
    ],
  );
  for (const b of blocks)
    for (const t of b.tiles)
      assert.ok(t.x >= b.x && t.y >= b.y && t.x + t.w <= b.x + b.w + 1e-6 && t.y + t.h <= b.y + b.h + 1e-6);
  assert.deepEqual(treemap([], 400, 200), []);
  assert.deepEqual(treemap(slicesOf(LAYERS, "time_ns"), 0, 0), []);
  assert.ok(treemap(slicesOf(LAYERS, "time_ns"), 3, 3).every((b) => b.tiles.every((t) => t.w >= 0 && t.h >= 0)));
});

test("a layer is named by what tells it from its siblings", () => {
  assert.equal(shortName("/encoder/layer.1/dense/MatMul", "MatMul"), "encoder/layer.1/dense");
  assert.equal(shortName("MatMul", "MatMul"), "MatMul");
  assert.equal(shortName("(runtime)", ""), "(runtime)");
});

test("a profiled pass that was not slower is not made -9 % slower", () => {
  const slower = profileText({ runs: 5, overhead: 0.2, node_ns: 1500 } as never).replaceAll("\u00a0", " ");
  assert.equal(slower, "Layers were timed in 5 profiled runs of their own, which the profiler made 20 % slower, 1.5 µs of it are taken off each node.");
  const faster = profileText({ runs: 5, overhead: -0.09, node_ns: 0 } as never);
  assert.equal(faster, "Layers were timed in 5 profiled runs of their own, which were not slower than the others, so that what the profiler adds is below their spread.");
});

test("repeated blocks are one row with their number; a name of its own stays", () => {
  const layer = (name: string, op: string, flops: number) => ({ name, op, group: "mlp", flops });
  const list = [0, 1, 2].map((i) => layer(`/encoder/layer.${i}/dense/MatMul`, "MatMul", 10));
  const all = slicesOf([...list, layer("/encoder/layer.0/dense/Add", "Add", 4), layer("/conv2d/Conv", "Conv", 6)], "flops");
  const folded = foldRepeats(all).map((s) => [s.name, s.op, s.value, s.count]);
  assert.deepEqual(folded, [
    ["/encoder/layer.*/dense/MatMul", "MatMul", 30, 3],
    ["/conv2d/Conv", "Conv", 6, 1],
    ["/encoder/layer.0/dense/Add", "Add", 4, 1],
  ]);
  const share = foldRepeats(all).reduce((sum, s) => sum + s.share, 0);
  assert.ok(Math.abs(share - 1) < 1e-12);
});
