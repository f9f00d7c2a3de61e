// SPDX-License-Identifier: MIT
// The window on a graph: where it looks, what is under a point, what nodes say, where the words beside the pointer stand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutGraph, NODE_HEIGHT, NODE_WIDTH } from "../src/data/graphlayout";
import type { GraphNode } from "../src/data/modelgraph";
import { boundView, firstView, frameUnder, heatOf, nodeUnder, nodeWords, viewWith, wholeView, zoomView } from "../src/ui/graphpaint";
import { walk } from "../src/ui/GraphCanvas";
import { tipPlace } from "../src/ui/Tip";

const node = (more: Partial<GraphNode>): GraphNode => ({ key: "n0", kind: "layer", name: "/a/b/Relu", op: "Relu", makes: "float32[2]", layers: [0], times: 1, value: 1, within: null, ...more });
const size = { width: 800, height: 400 };

test("a node says its operator and where it is, a block how much is in it", () => {
  assert.deepEqual(nodeWords(node({})), ["Relu", "a/b"]);
  assert.deepEqual(nodeWords(node({ name: "/Relu_3" })), ["Relu", "float32[2]"]);
  assert.deepEqual(nodeWords(node({ op: "", name: "x", makes: null })), ["x", ""]);
  assert.deepEqual(nodeWords(node({ kind: "repeat", name: "layer.*", layers: [1, 2, 3, 4], times: 2 })), ["layer.* ×2", "2 nodes each"]);
  assert.deepEqual(nodeWords(node({ kind: "block", name: "layer.1", layers: [1, 2] })), ["layer.1", "2 nodes"]);
});

test("colour grows with cost, and nothing is no colour", () => {
  assert.equal(heatOf(null, 10), 0);
  assert.equal(heatOf(0, 10), 0);
  assert.ok(heatOf(1, 100) > 0 && heatOf(1, 100) < heatOf(50, 100) && heatOf(50, 100) < heatOf(100, 100));
});

test("a small graph is in the middle, a large one begins at its top and never leaves the window", () => {
  const small = { width: 200, height: 100 };
  assert.equal(firstView(small, size).k, 1);
  assert.equal(firstView(small, size).x, -300);
  const large = { width: 4000, height: 90000 };
  const first = firstView(large, size);
  assert.equal(first.k, 0.5);
  assert.ok(first.y < 0);
  const away = boundView({ k: 1, x: 1e9, y: 1e9 }, large, size);
  assert.ok(away.x < large.width && away.y < large.height);
  const whole = wholeView(large, size);
  assert.ok(whole.k * large.height <= size.height || whole.k === 0.02);
  for (const v of [first, away, whole]) assert.ok(Object.values(v).every(Number.isFinite));
});

test("zooming keeps the point under the pointer", () => {
  const v = { k: 1, x: 100, y: 200 };
  const z = zoomView(v, 50, 60, 2);
  assert.equal(z.k, 2);
  assert.equal(z.x + 50 / z.k, 150);
  assert.equal(z.y + 60 / z.k, 260);
  assert.equal(zoomView(v, 0, 0, 1e9).k, 3);
});

test("what is under a point, what moves into sight, where arrows lead", () => {
  const edges: [number, number][] = [[0, 1], [0, 2], [1, 3], [2, 3]];
  const placed = layoutGraph(4, edges);
  const v = { k: 2, x: 0, y: 0 };
  placed.boxes.forEach((b, i) => assert.equal(nodeUnder(placed, v, 2 * (b.x + NODE_WIDTH / 2), 2 * (b.y + NODE_HEIGHT / 2)), i));
  assert.equal(nodeUnder(placed, v, -10, -10), -1);
  const b = { x: 5000, y: 6000 };
  const seen = viewWith(v, b, size);
  assert.ok(seen.x <= b.x && seen.x + size.width / v.k >= b.x + NODE_WIDTH && seen.y <= b.y && seen.y + size.height / v.k >= b.y + NODE_HEIGHT);
  const g = { nodes: [0, 1, 2, 3].map((i) => node({ key: `n${i}` })), edges };
  assert.equal(walk(g, placed, -1, "ArrowDown"), 0);
  assert.equal(walk(g, placed, 0, "ArrowDown"), 1);
  assert.equal(walk(g, placed, 3, "ArrowUp"), 1);
  const [left, right] = placed.rows[1]!;
  assert.equal(walk(g, placed, left!, "ArrowRight"), right);
  assert.equal(walk(g, placed, right!, "ArrowRight"), right);
  assert.equal(walk(g, placed, 3, "ArrowDown"), 3);
  const inside = { ...g, nodes: g.nodes.map((n, i) => (i ? { ...n, within: "b1" } : n)) };
  const top = Math.min(...placed.boxes.slice(1).map((p) => p.y));
  assert.equal(frameUnder(inside, placed, v, 2 * placed.boxes[left!]!.x, 2 * (top - 10)), "b1");
  assert.equal(frameUnder(inside, placed, v, 0, -900), null);
});

test("the words beside the pointer are where there is room", () => {
  assert.deepEqual(tipPlace({ x: 10, y: 10 }, 1000, 500), { left: "24px", top: "24px", maxWidth: "440px" });
  assert.deepEqual(tipPlace({ x: 300, y: 490 }, 375, 500), { right: "89px", bottom: "24px", maxWidth: "272px" });
});
