// SPDX-License-Identifier: MIT
// Reading tare.profile/1: what is checked, what is unknown, what is worked out.
import assert from "node:assert/strict";
import { test } from "node:test";
import { unpack } from "../src/data/packed";
import { ProfileError, readProfile } from "../src/data/profile";
import { documentOf } from "./trees";

const good = () => documentOf(["main 1", "main;load 2", "main;step 3"]) as Record<string, any>;

test("columns become numbers", () => {
  const p = readProfile({ ...good(), notes: ["one", 2], hidden: 7 });
  assert.deepEqual([...p.tree.parent], [-1, 0, 0]);
  assert.deepEqual([...p.tree.total], [6, 2, 3]);
  assert.deepEqual(p.notes, ["one"]);
  assert.equal(p.tree.hidden, 7);
  assert.equal(p.base, null);
  assert.ok(Number.isNaN(p.tree.error[0]));
});

test("what is not known stays unknown", () => {
  const d = good();
  d.nodes.total[1] = null;
  d.nodes.calls[2] = "many";
  delete d.frames.file;
  const p = readProfile(d);
  assert.ok(Number.isNaN(p.tree.total[1]));
  assert.ok(Number.isNaN(p.tree.calls[2]));
  assert.equal(p.frames.file[0], null);
});

test("packed columns are read like lists", () => {
  const nodes = { parent: "CCCIC", frame: "ACCEC", self: "w-BJB49Cof", total: "g0Pw1Nw7Fg9Dof", calls: "CUKGE" };
  const { tree } = readProfile({ schema: "tare.profile/1", frames: { name: ["main", "step", "odd"] }, nodes });
  assert.deepEqual([...tree.parent], [-1, 0, 1, -1, 3]);
  assert.deepEqual([...tree.frame], [0, 1, 1, 2, 1]);
  assert.deepEqual([...tree.self], [1000, -4, NaN, 1500, 500]);
  assert.deepEqual([...tree.total], [8000, 7000, 3000, 2000, 500]);
  assert.deepEqual([...tree.calls], [1, 10, 5, 3, 2]);
  assert.ok(tree.error.every(Number.isNaN));
});

test("a packed number is as large as a document's", () => {
  assert.deepEqual([...unpack("-__p_q-8y_P-_________PhgggggggC")!], [9e15 - 1, 2 ** 53 - 1, -(2 ** 40)]);
  assert.deepEqual([...unpack("")!], []);
});

test("packed text that is cut or spoilt is refused, or unknown where it only adds", () => {
  for (const text of ["g", "w-B<", "\u00e9", "C C"]) assert.equal(unpack(text), null);
  const nodes = { parent: "CCC", frame: "AAA", self: "CCC", calls: "C", total_error: "ggg" };
  const read = (more: object) => readProfile({ schema: "tare.profile/1", frames: { name: ["main"] }, nodes: { ...nodes, ...more } });
  assert.ok(read({}).tree.calls.every(Number.isNaN));
  assert.ok(read({}).tree.error.every(Number.isNaN));
  assert.throws(() => read({ parent: "CAC" }), /"parent" of node 1 is 1/);
  assert.throws(() => read({ parent: "CGC" }), /"parent" of node 1 is -2/);
  assert.throws(() => read({ parent: "BCC" }), /"parent" of node 0 is NaN/);
  assert.throws(() => read({ frame: "AA" }), /"frame" has 2 values where 3 belong/);
  assert.throws(() => read({ self: "g" }), /"self" is no list/);
});

test("selves give totals and totals give selves", () => {
  const a = good();
  delete a.nodes.total;
  assert.deepEqual([...readProfile(a).tree.total], [6, 2, 3]);
  const b = good();
  delete b.nodes.self;
  assert.deepEqual([...readProfile(b).tree.self], [1, 2, 3]);
});

test("threads and a base are read when asked for", () => {
  const d = good();
  d.threads = [{ name: "worker", nodes: d.nodes }, { nodes: { parent: [5], frame: [0], self: [1] } }, "no thread"];
  d.base = { name: "old", nodes: d.nodes };
  const p = readProfile(d);
  assert.deepEqual(p.threads.map((t) => t.name), ["worker", "thread 2"]);
  assert.equal(p.threads[0]!.tree().n, 3);
  assert.equal(p.threads[0]!.tree(), p.threads[0]!.tree());
  assert.throws(() => p.threads[1]!.tree(), ProfileError);
  assert.equal(p.base!.name, "old");
});

const bad: [string, (d: Record<string, any>) => void, RegExp][] = [
  ["another schema", (d) => (d.schema = "tare.run/1"), /tare\.run\/1/],
  ["no frames", (d) => delete d.frames, /"frames"/],
  ["a frame that is not there", (d) => (d.nodes.frame[2] = 99), /"frame" of node 2 is 99/],
  ["a parent after its child", (d) => (d.nodes.parent[1] = 1), /"parent" of node 1 is 1/],
  ["a parent below -1", (d) => (d.nodes.parent[1] = -2), /"parent" of node 1/],
  ["half a parent", (d) => (d.nodes.parent[1] = 0.5), /"parent" of node 1/],
  ["a text for a parent", (d) => (d.nodes.parent[1] = "x".repeat(9999)), /"parent" of node 1 is x{20}$/],
  ["columns of two lengths", (d) => d.nodes.total.pop(), /"total" has 2 values where 3 belong/],
  ["a column that is no list", (d) => (d.nodes.calls = 3), /"calls" is no list/],
  ["no times", (d) => { delete d.nodes.self; delete d.nodes.total; }, /neither/],
];
for (const [what, spoil, why] of bad) {
  test(`refused: ${what}`, () => {
    const d = good();
    spoil(d);
    assert.throws(() => readProfile(d), (e) => e instanceof ProfileError && why.test(e.message));
  });
}

test("refused: no object", () => {
  for (const d of [null, 3, "x", []]) assert.throws(() => readProfile(d), ProfileError);
});
