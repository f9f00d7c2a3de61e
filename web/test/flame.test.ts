// SPDX-License-Identifier: MIT
// Where frames lie, what a window shows, what a point and a key lead to.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Camera, eachVisible, layoutOf, nextMatch, nodeAt, rowTop, stepFrom, zoomTo } from "../src/data/flame";
import { readProfile } from "../src/data/profile";
import { pathsOf, profileOf, randomDocument } from "./trees";

const stacks = ["main;small 2", "main;large 6", "main;large;inner 2", "other 10"];
const camera: Camera = { from: 0, to: 1, width: 1000, height: 100, top: 0, rowHeight: 20, flame: false };

function small() {
  const p = profileOf(stacks);
  const layout = layoutOf(p.tree);
  const paths = pathsOf(p.tree, p.frames.name);
  return { ...p, layout, paths, at: (path: string) => paths.indexOf(path), edges: (path: string) => zoomTo(layout, paths.indexOf(path)).map((x) => Math.round(x * 20)) };
}

interface Rect {
  node: number;
  x: number;
  y: number;
  width: number;
}
function rects(layout: ReturnType<typeof layoutOf>, c: Camera): Rect[] {
  const out: Rect[] = [];
  eachVisible(layout, c, (node, x, y, width) => out.push({ node, x, y, width }));
  return out;
}

test("the widest comes first, inside its caller", () => {
  const s = small();
  assert.equal(s.layout.whole, 20);
  assert.equal(s.layout.rows, 3);
  assert.deepEqual(s.edges("main"), [0, 10]);
  assert.deepEqual(s.edges("other"), [10, 20]);
  assert.deepEqual(s.edges("main;large"), [0, 8]);
  assert.deepEqual(s.edges("main;small"), [8, 10]);
  assert.deepEqual(s.edges("main;large;inner"), [0, 2]);
});

test("noise that makes children larger than their caller widens it", () => {
  const p = readProfile({ schema: "tare.profile/1", frames: { name: ["a", "b", "c"] }, nodes: { parent: [-1, 0, 0, -1], frame: [0, 1, 2, 2], self: [-5, 6, null, 4], total: [3, 6, null, 4] } });
  const layout = layoutOf(p.tree);
  assert.equal(layout.whole, 10);
  assert.deepEqual(zoomTo(layout, 0), [0, 0.6]);
  assert.deepEqual(zoomTo(layout, 2), [0, 1]); /* unknown: nothing to zoom to */
});

test("an icicle hangs, a flame graph stands", () => {
  const s = small();
  const [first] = rects(s.layout, camera);
  assert.deepEqual(first, { node: s.at("main"), x: 0, y: 0, width: 500 });
  assert.equal(rowTop(s.layout, { ...camera, flame: true }, 0), 80);
  assert.equal(rowTop(s.layout, { ...camera, flame: true, height: 40, top: 20 }, 0), 20);
});

test("a point finds what is drawn there", () => {
  const s = small();
  for (const c of [camera, { ...camera, flame: true }, { ...camera, from: 0.1, to: 0.45, top: 5, height: 50 }, { ...camera, flame: true, height: 40, top: 9 }]) {
    const drawn = rects(s.layout, c);
    assert.ok(drawn.length > 0);
    for (const r of drawn) {
      const x = (Math.max(0, r.x) + Math.min(c.width, r.x + r.width)) / 2;
      assert.equal(nodeAt(s.layout, c, x, r.y + 10), r.node);
    }
  }
  assert.equal(nodeAt(s.layout, camera, 999, 30), -1);
  assert.equal(nodeAt(s.layout, camera, 10, 90), -1);
  assert.equal(nodeAt(s.layout, camera, -1, 10), -1);
  const gap = layoutOf(profileOf(["main 6", "main;a 4", "other;b 9"]).tree);
  assert.equal(nodeAt(gap, camera, (1000 * 7) / 19, 30), -1); /* between the last callee of main and the first of other */
});

test("keys walk the tree", () => {
  const s = small();
  const go = (path: string, step: "in" | "out" | "left" | "right") => s.paths[stepFrom(s.tree, s.layout, s.at(path), step)];
  assert.equal(go("main", "in"), "main;large");
  assert.equal(go("main;large", "right"), "main;small");
  assert.equal(go("main;small", "right"), "main;small");
  assert.equal(go("main;small", "left"), "main;large");
  assert.equal(go("main;small", "out"), "main");
  assert.equal(go("main", "out"), "main");
  assert.equal(go("main;small", "in"), "main;small");
  assert.equal(stepFrom(s.tree, s.layout, -1, "in"), s.at("main"));
});

test("the next match goes around", () => {
  const s = small();
  const match = Uint8Array.from(s.frames.name, (name) => +(name === "other" || name === "inner"));
  const first = nextMatch(s.tree, s.layout, match, -1, false);
  assert.equal(s.paths[first], "other");
  assert.equal(s.paths[nextMatch(s.tree, s.layout, match, first, false)], "main;large;inner");
  assert.equal(nextMatch(s.tree, s.layout, match, s.at("main;large;inner"), false), first);
  assert.equal(s.paths[nextMatch(s.tree, s.layout, match, first, true)], "main;large;inner");
  assert.equal(nextMatch(s.tree, s.layout, new Uint8Array(9), first, false), -1);
});

test("rows are sorted and lie within their callers", () => {
  const p = readProfile(randomDocument(20_000, 300, 3));
  const l = layoutOf(p.tree);
  l.reach(l.rows);
  for (let r = 0; r < l.rows; r++)
    for (let at = l.rowStart[r]! + 1; at < l.rowStart[r + 1]!; at++) assert.ok(l.x0[at]! >= l.x1[at - 1]! - 1e-9);
  for (let i = 0; i < p.tree.n; i++) {
    const up = p.tree.parent[i]!;
    assert.equal(l.node[l.place[i]!], i);
    if (up < 0) continue;
    assert.equal(l.row[i], l.row[up]! + 1);
    assert.ok(l.x0[l.place[i]!]! >= l.x0[l.place[up]!]! - 1e-9 && l.x1[l.place[i]!]! <= l.x1[l.place[up]!]! + 1e-9);
  }
});

test("a window hands out what fits into it, however much there is", () => {
  const n = 200_000;
  const p = readProfile({ schema: "tare.profile/1", frames: { name: ["f"] }, nodes: { parent: Array.from({ length: n }, (_, i) => (i ? 0 : -1)), frame: new Array(n).fill(0), self: new Array(n).fill(1) } });
  const l = layoutOf(p.tree);
  const drawn = rects(l, camera);
  assert.ok(drawn.length <= 1 + camera.width + 1, `${drawn.length}`);
  const covered = new Set(drawn.filter((r) => r.y === 20).map((r) => Math.floor(r.x)));
  assert.equal(covered.size, camera.width);
  const near = rects(l, { ...camera, from: 0.5, to: 0.5 + 10 / n });
  assert.equal(near.filter((r) => r.y === 20 && r.x < 999.999 && r.x + r.width > 0.001).length, 10);
});

test("nothing at all", () => {
  const p = readProfile({ schema: "tare.profile/1", frames: { name: [] }, nodes: { parent: [], frame: [], self: [] } });
  const l = layoutOf(p.tree);
  assert.equal(l.rows, 0);
  assert.deepEqual(rects(l, camera), []);
  assert.equal(nodeAt(l, camera, 5, 5), -1);
  assert.equal(stepFrom(p.tree, l, -1, "in"), -1);
  assert.deepEqual(zoomTo(l, -1), [0, 1]);
});
