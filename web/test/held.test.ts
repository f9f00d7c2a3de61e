// SPDX-License-Identifier: MIT
// Who held memory over time: layers that add up, one moment, documents that are not what they say.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gridOfLines, heldAt, layersOf, readHeld } from "../src/data/held";
import type { JsonObject } from "../src/data/page";

const group = (name: string, line: number, values: number[]) => ({
  name, file: "/app/train.py", line, held_over_time: values, at_peak: { bytes: values[1]! }, at_peak_with_callees: { bytes: 9 }, at_end: { bytes: values[2]! }, allocated: { bytes: 100 }, churn: { bytes: 0 },
});
const document = {
  schema: "tare.memory/1",
  processes: [{
    pid: 7, from_ns: 1e9, to_ns: 4e9, held_over_time: [10, 30, 25],
    groups: [group("load", 3, [4, 20, 0]), group("cache", 9, [6, 8, 20]), { ...group("small", 1, [0, 2, 5]), held_over_time: null }],
    findings: [{ severity: "warn", title: "cache grows", action: "look" }],
  }],
} as unknown as JsonObject;

test("lines lie one on the other, and what is left is the last layer", () => {
  const p = readHeld(document)[0]!;
  assert.deepEqual(p.at, [1, 2, 3]);
  const layers = layersOf(p, 8);
  assert.deepEqual(layers.map((l) => l.name), ["load train.py:3", "cache train.py:9", "other"]);
  assert.deepEqual(layers.map((l) => l.to), [[4, 20, 0], [10, 28, 20], [10, 30, 25]]);
  assert.deepEqual(layersOf(p, 1).map((l) => l.name), ["load train.py:3", "other"]);
});

test("what was held at one moment, the largest first", () => {
  const p = readHeld(document)[0]!;
  assert.deepEqual(heldAt(p, 0).map((r) => [r.name, r.bytes, r.share]), [["cache train.py:9", 6, 0.6], ["load train.py:3", 4, 0.4]]);
  assert.deepEqual(heldAt(p, 2).map((r) => r.name), ["cache train.py:9"]);
  assert.deepEqual(heldAt(p, 99), []);
  assert.equal(gridOfLines(p, String).rows[0]![2], 9);
});

test("what is missing or of another kind is no crash", () => {
  assert.deepEqual(readHeld({}), []);
  assert.deepEqual(readHeld({ processes: [null, 3, { held_over_time: "x" }, { held_over_time: [1, 2], from_ns: 5, to_ns: 5 }] } as unknown as JsonObject), []);
  const p = readHeld({ processes: [{ held_over_time: [1, null], from_ns: 0, to_ns: 1, groups: [{ offset: 16, file: "/lib/a.so" }, {}], findings: 3 }] } as unknown as JsonObject)[0]!;
  assert.deepEqual(p.lines.map((l) => l.name), ["a.so+0x10", "unknown"]);
  assert.deepEqual(p.total, [1, 0]);
});
