// SPDX-License-Identifier: MIT
// Tables as data: order with unknown cells last, and CSV that a spreadsheet cannot take for a program.
import assert from "node:assert/strict";
import { test } from "node:test";
import { csvOf, heading, sortRows } from "../src/data/grid";
import { extent, gridOf, type PlotSpec } from "../src/ui/plotspec";

test("rows sort by number or by name, unknown last both ways", () => {
  const rows = [
    ["b10", 3],
    ["b9", null],
    ["a", 1],
    ["c", 2],
  ];
  assert.deepEqual(
    sortRows(rows, 1, false).map((r) => r[0]),
    ["a", "c", "b10", "b9"],
  );
  assert.deepEqual(
    sortRows(rows, 1, true).map((r) => r[0]),
    ["b10", "c", "a", "b9"],
  );
  assert.deepEqual(
    sortRows(rows, 0, false).map((r) => r[0]),
    ["a", "b9", "b10", "c"],
  );
});

test("a heading has no unit that its cells do not have", () => {
  const format = (v: number) => `${v / 1e6} ms`;
  assert.equal(heading({ title: "total, ns", format }), "total");
  assert.equal(heading({ title: "p95 (ns)", format }), "p95");
  assert.equal(heading({ title: "while they ran, B/s", format }), "while they ran");
  assert.equal(heading({ title: "from (s)", format }), "from");
  assert.equal(heading({ title: "total, ns" }), "total, ns");
  assert.match(csvOf({ columns: [{ title: "total, ns", format }], rows: [[1]] }), /^"total, ns"\r\n1/);
});

test("CSV quotes what needs it and keeps formulas text", () => {
  const text = csvOf({
    columns: [{ title: "name" }, { title: "ns" }],
    rows: [
      ['=cmd|"x"', 1.5],
      ["a,b", null],
      [-2, "-x"],
    ],
  });
  assert.equal(text, 'name,ns\r\n"\'=cmd|""x""",1.5\r\n"a,b",\r\n-2,\'-x\r\n');
});

const spec: PlotSpec = {
  id: "p",
  title: "t",
  summary: "s",
  x: { label: "batch", values: [1, 2], format: String },
  y: { label: "ms", format: String },
  series: [
    { label: "p50", values: [5, null], lo: [4, null], hi: [9, null] },
    { label: "rate", values: [100, 200], axis: "right" },
  ],
};

test("the table of a plot has each series with its interval", () => {
  const grid = gridOf(spec);
  assert.deepEqual(
    grid.columns.map((c) => c.title),
    ["batch", "p50", "p50, low", "p50, high", "rate"],
  );
  assert.deepEqual(grid.rows, [
    [1, 5, 4, 9, 100],
    [2, null, null, null, 200],
  ]);
});

test("the extent of an axis holds its intervals and only its series", () => {
  assert.deepEqual(extent(spec, "left"), [4, 9]);
  assert.deepEqual(extent(spec, "right"), [100, 200]);
  assert.equal(extent({ ...spec, series: [] }, "left"), null);
  const cut = { ...spec, y: { ...spec.y, cut: true }, right: undefined };
  const of = (values: number[], lo: number[], hi: number[]) => extent({ ...cut, series: [{ label: "x", values, lo, hi, kind: "points" }] }, "left");
  assert.deepEqual(of([10, 12], [9, 11], [11, 5000]), [9, 14], "one wide interval does not flatten the rest");
  assert.deepEqual(of([10, 10], [9.9, 9.9], [10.1, 1e9]), [9.9, 10.5]);
});
