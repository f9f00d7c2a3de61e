// SPDX-License-Identifier: MIT
// A service over its window: gaps where nothing is known, shares of what was due, no division by nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Case } from "../src/data/page";
import { hasOverTime, overTimeOf } from "../src/data/requests";

const made = {
  name: "rate=10",
  http: {
    over_time: [
      { start_ns: 0, due: 10, failed: 0, p50_ns: 5e6, max_ns: 9e6 },
      { start_ns: 2e9, due: 20, failed: 15, p50_ns: null, max_ns: 30e6 },
      { start_ns: 4e9, due: 0, failed: 0 },
    ],
  },
} as unknown as Case;

test("stretches as series", () => {
  const o = overTimeOf(made);
  assert.deepEqual(o.start, [0, 2e9, 4e9]);
  assert.deepEqual(o.median, [5e6, null, null]);
  assert.deepEqual(o.longest, [9e6, 30e6, null]);
  assert.deepEqual(o.failed, [0, 0.75, null], "of nothing nothing can fail");
  assert.deepEqual(o.due, [5, 10, 0]);
});

test("one stretch is no course, and no service has none", () => {
  assert.ok(hasOverTime(made));
  assert.ok(!hasOverTime({ name: "x" } as Case));
  const one = { name: "x", http: { over_time: [{ start_ns: 0, due: 3 }] } } as unknown as Case;
  assert.ok(!hasOverTime(one));
  assert.deepEqual(overTimeOf(one).due, [null]);
});
