// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SlaDocument } from "../src/data/document.gen";
import { clock, estimates, heatGrid, heatOf } from "../src/data/sla";

const span = (at: number, offset?: number, counts?: number[]) => ({
  from_ms: at,
  to_ms: at + 1000,
  latency_ns: counts ? { histogram: { scale: 2, offset: offset!, zero: 0, counts }, p50: { value: at } } : null,
});

test("the heat map brings steps to one scale, and steps without requests stay empty", () => {
  const d = { steps: [span(0, 40, [1, 2]), span(1000), span(2000, 43, [5])] } as unknown as SlaDocument;
  const heat = heatOf(d)!;
  assert.deepEqual(heat.edges, [2 ** 10.25, 2 ** 10.5, 2 ** 10.75, 2 ** 11]);
  assert.deepEqual(heat.cells, [
    [1, 2, 0, 0],
    [0, 0, 0, 0],
    [0, 0, 0, 5],
  ]);
  assert.equal(heat.most, 5);
  assert.deepEqual(heatGrid(heat, String).rows, [
    ["1970-01-01 00:00", 2 ** 10.25, 1],
    ["1970-01-01 00:00", 2 ** 10.5, 2],
    ["1970-01-01 00:00", 2 ** 11, 5],
  ]);
  assert.deepEqual(
    estimates(d, "p50").map((e) => e?.value ?? null),
    [0, null, 2000],
  );
});

test("without requests there is no heat map", () => {
  assert.equal(heatOf({}), null);
  assert.equal(heatOf({ steps: [span(0)] } as unknown as SlaDocument), null);
});

test("times are UTC, and what is no time is empty", () => {
  assert.equal(clock(1794837600000), "2026-11-16 14:00");
  assert.equal(clock(null), "");
});
