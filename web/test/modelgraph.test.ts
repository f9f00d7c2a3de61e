// SPDX-License-Identifier: MIT
// The graph of a model: order, blocks by names and by operators, folding; and where nodes stand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutGraph, NODE_HEIGHT, NODE_WIDTH, rowsOf, spread } from "../src/data/graphlayout";
import { allKeys, blockName, foldKey, folded, graphSource, graphWeights, longestRepeat, topological } from "../src/data/modelgraph";
import type { Case, Layer } from "../src/data/page";

const layer = (name: string, op: string, more: Partial<Layer> = {}): Layer => ({ name, op, output: "float32[1,8]", ...more });

/** A chain of a head, `times` blocks of four layers with a residual, and a tail. */
function chain(times: number, name: (block: number, part: string) => string, macs = 1): Case {
  const layers = [layer("/head", "Gather", { macs: 0 })];
  const from: number[] = [];
  const to: number[] = [];
  for (let b = 0; b < times; b++) {
    const first = layers.length;
    ["MatMul", "Relu", "MatMul", "Add"].forEach((op, k) => layers.push(layer(name(b, `${op}_${k}`), op, { macs: op === "MatMul" ? macs : 0 })));
    for (let k = 0; k < 4; k++) {
      from.push(first + k - 1);
      to.push(first + k);
    }
    from.push(first - 1);
    to.push(first + 3);
  }
  layers.push(layer("/tail", "Softmax"));
  from.push(layers.length - 2);
  to.push(layers.length - 1);
  return { name: "", layers, graph: { from, to } } as unknown as Case;
}
const named = (b: number, part: string) => `/encoder/layer.${b}/${part}`;

test("the block of a name is up to its first numbered part, never the operator itself", () => {
  assert.equal(blockName("/encoder/layer.3/attention/0/MatMul"), "encoder/layer.3");
  assert.equal(blockName("/layer1.0/conv1/Conv"), "layer1.0");
  assert.equal(blockName("model.layers.11.mlp.gate"), "model.layers.11");
  assert.equal(blockName("/conv1/Conv_2"), "");
  assert.equal(blockName("MatMul_12"), "");
  assert.equal(blockName(""), "");
});

test("repeated blocks are one node, that unfolds into blocks, and each of these into its layers", () => {
  const source = graphSource(chain(6, named))!;
  const closed = folded(source, new Set(), "macs");
  assert.deepEqual(closed.nodes.map((n) => [n.kind, n.name, n.times, n.value]), [
    ["layer", "/head", 1, 0],
    ["repeat", "encoder/layer.*", 6, 12],
    ["layer", "/tail", 1, null],
  ]);
  assert.deepEqual(closed.edges, [[0, 1], [1, 2]]);
  const run = closed.nodes[1]!.key;
  const blocks = folded(source, new Set([run]), "macs");
  assert.deepEqual(blocks.nodes.map((n) => n.name), ["/head", ...Array.from({ length: 6 }, (_, i) => `encoder/layer.${i}`), "/tail"]);
  assert.equal(blocks.edges.length, 7);
  const block = blocks.nodes[2]!.key;
  const open = new Set([run, block]);
  const inside = folded(source, open, "macs");
  assert.equal(inside.nodes.length, 8 - 1 + 4);
  const inner = inside.nodes.filter((n) => n.within === block);
  assert.deepEqual(inner.map((n) => n.op), ["MatMul", "Relu", "MatMul", "Add"]);
  assert.equal(foldKey(source, inner[0]!, open), block);
  assert.equal(foldKey(source, inside.nodes[1]!, open), run);
  assert.equal(foldKey(source, inside.nodes[0]!, open), null);
  const all = folded(source, new Set(allKeys(source)), "macs");
  assert.equal(all.nodes.length, 26);
  assert.equal(all.edges.length, source.edges.length);
});

test("blocks that are not alike are not one", () => {
  const c = chain(4, named);
  c.layers![9]!.op = "Sigmoid"; // in the third
  const { nodes } = folded(graphSource(c)!, new Set(), "macs");
  assert.deepEqual(nodes.map((n) => [n.name, n.times]), [["/head", 1], ["encoder/layer.*", 2], ["encoder/layer.2", 1], ["encoder/layer.3", 1], ["/tail", 1]]);
});

test("without names that tell, the operators in their order do", () => {
  const source = graphSource(chain(5, (b, part) => `${part}_${b}`))!;
  const { nodes } = folded(source, new Set(), "macs");
  assert.deepEqual(nodes.map((n) => n.times), [1, 5, 1]);
  assert.equal(nodes[1]!.layers.length, 20);
  assert.deepEqual(longestRepeat([9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8]), { start: 1, piece: 3, times: 3 });
  assert.deepEqual(longestRepeat([1, 2, 3, 1, 2, 3]), { start: 0, piece: 3, times: 2 });
  assert.equal(longestRepeat([1, 2, 3, 4, 1, 2, 3]), null);
});

test("layers sorted by time are put in order again", () => {
  const c = chain(3, named);
  const n = c.layers!.length;
  const back = { ...c, layers: [...c.layers!].reverse(), graph: { from: c.graph!.from!.map((v) => n - 1 - v), to: c.graph!.to!.map((v) => n - 1 - v) } } as Case;
  const { nodes } = folded(graphSource(back)!, new Set(), null);
  assert.deepEqual(nodes.map((x) => [x.name, x.times]), [["/head", 1], ["encoder/layer.*", 3], ["/tail", 1]]);
});

test("a model of one node is one node; no edges of several are no graph; edges to nowhere are left out", () => {
  const one = graphSource({ layers: [layer("/only", "Relu")] } as Case)!;
  assert.equal(folded(one, new Set(), null).nodes.length, 1);
  assert.equal(graphSource({ layers: [layer("a", "Relu"), layer("b", "Relu")] } as Case), null);
  assert.equal(graphSource({ layers: [] } as unknown as Case), null);
  const odd = { layers: [layer("a", "Relu"), layer("b", "Relu")], graph: { from: [0, 7, 1, -1, 0.5], to: [1, 0, 1, 0, 1] } } as Case;
  assert.deepEqual(graphSource(odd)!.edges, [[0, 1]]);
});

test("what no edge joins and no operator names, the runtime's own time, is no node", () => {
  const c = chain(2, named);
  c.layers!.push({ name: "(runtime)" } as Layer);
  assert.ok(!folded(graphSource(c)!, new Set(), null).nodes.some((n) => n.name === "(runtime)"));
});

test("weights are those that some layer has", () => {
  assert.deepEqual(graphWeights(chain(2, named).layers!), ["macs"]);
  assert.deepEqual(graphWeights([layer("a", "Relu", { time_ns: 3, bytes: 5 })]), ["time_ns", "bytes"]);
});

test("a circle, which no model has, ends all the same", () => {
  assert.equal(topological(3, [[0, 1], [1, 2], [2, 0]]).length, 3);
  const placed = layoutGraph(3, [[0, 1], [1, 2], [2, 0]]);
  assert.equal(placed.boxes.length, 3);
  assert.equal(placed.routes.length, 3);
});

test("rows: below all that is read; what reads nothing stands above its first reader", () => {
  assert.deepEqual(rowsOf(5, [[0, 1], [1, 2], [3, 2], [0, 4]]), [0, 1, 2, 1, 1]);
});

test("places in a row never overlap and stay where they can", () => {
  assert.deepEqual(spread([0, 0], [10, 10], 2), [-6, 6]);
  assert.deepEqual(spread([0, 100], [10, 10], 2), [0, 100]);
  assert.deepEqual(spread([], [], 2), []);
});

/** Pairs of boxes that overlap. */
function overlaps(boxes: { x: number; y: number }[]): number {
  const rows = new Map<number, number[]>();
  for (const b of boxes) rows.set(b.y, [...(rows.get(b.y) ?? []), b.x]);
  let n = 0;
  for (const xs of rows.values()) xs.sort((a, b) => a - b).forEach((x, i) => i > 0 && x - xs[i - 1]! < NODE_WIDTH - 1e-6 && n++);
  return n;
}

test("2,000 nodes and a value that is read everywhere: no overlap, all edges, within the picture", () => {
  const c = chain(500, (b, part) => `${part}x${b}`);
  const edges = graphSource(c)!.edges;
  for (let b = 0; b < 500; b++) edges.push([0, 1 + 4 * b]);
  const n = c.layers!.length;
  const placed = layoutGraph(n, edges);
  assert.equal(placed.boxes.length, 2002);
  assert.equal(placed.routes.length, edges.length);
  assert.equal(overlaps(placed.boxes), 0);
  assert.ok(placed.boxes.every((b) => b.x >= 0 && b.x + NODE_WIDTH <= placed.width + 1e-6 && b.y + NODE_HEIGHT <= placed.height));
  assert.ok(placed.routes.some((r) => r.far) && placed.routes.every((r) => r.points.every(([x]) => x >= 0)));
});

test("parallel branches stand beside each other, in an order in which they do not cross", () => {
  const { boxes, rows } = layoutGraph(6, [[0, 1], [0, 2], [1, 3], [2, 4], [3, 5], [4, 5]]);
  assert.equal(rows[1]!.length, 2);
  assert.equal(boxes[1]!.x < boxes[2]!.x, boxes[3]!.x < boxes[4]!.x);
  assert.equal(boxes[0]!.x, boxes[5]!.x);
});
