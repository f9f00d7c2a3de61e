// SPDX-License-Identifier: MIT
// Documents held against their shape: what is of another kind is left out, what is not named stays.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readPage, type RunItem } from "../src/data/page";
import { type Shape, shaped } from "../src/data/shape";

const shape: Shape = { name: "text", size: "number", many: "numbers", inner: { deep: "number" }, list: [{ id: "text" }], why: { "*": "text" } };

test("what fits stays, and so does what nobody named", () => {
  const good = { name: "a", size: 0, many: [1, 2], inner: { deep: -1, other: [] }, list: [{ id: "x" }], why: { a: "b" }, more: { a: [null] } };
  assert.deepEqual(shaped(good, shape), good);
});

test("what is of another kind is unknown, not something", () => {
  const bad = { name: 3, size: "9", many: { length: 2 }, inner: [], list: "no", why: { a: 1, b: "c" } };
  const got = shaped(bad, shape) as Record<string, unknown>;
  for (const key of ["name", "size", "many", "inner", "list"]) assert.equal(got[key], undefined, key);
  assert.deepEqual(got.why, { a: undefined, b: "c" });
  assert.equal(bad.name, 3, "the document itself is not touched");
});

test("null stays null; lists lose what is none of theirs", () => {
  const got = shaped({ name: null, many: [1, null, NaN, "2", 3], list: [null, { id: "x" }, 7, []] }, shape);
  assert.deepEqual(got, { name: null, many: [1, 3], list: [{ id: "x" }] });
});

test("no object is nothing", () => {
  for (const v of [null, 3, "x", [], true]) assert.equal(shaped(v, shape), undefined);
});

test("cases and layers of a page always have names", () => {
  const document = { schema: "tare.run/1", cases: [{ name: 7, layers: [{ time_ns: 1 }, null] }, "x"] };
  const page = readPage(JSON.stringify({ schema: "tare.page/1", items: [{ kind: "run", name: 4, document }] }));
  assert.ok(typeof page !== "string");
  const item = page.items[0] as RunItem;
  assert.equal(item.name, undefined);
  assert.deepEqual(item.document.cases!.map((c) => c.name), ["case 1"]);
  assert.deepEqual(item.document.cases![0]!.layers!.map((l) => l.name), ["(no name)"]);
});
