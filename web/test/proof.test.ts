// SPDX-License-Identifier: MIT
// The proof of a recommendation: both cases, pairs, ratios with intervals; what is unknown is no row.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Recommendation } from "../src/data/page";
import { proofRows } from "../src/data/proof";

const advice = {
  objective: "throughput",
  case: "batch=8",
  proof: {
    against: "batch=1",
    metric: "throughput",
    ratio: 4,
    ratio_lo: 3.8,
    ratio_hi: 4.2,
    confidence: 0.95,
    verdict: "pass",
    found: "confirmed",
    pairs: 8,
    cpu: { value: 1.1, lo: 1, hi: 1.2 },
    memory: null,
    command: "tare tune m.onnx",
  },
} as unknown as Recommendation;

test("proof: baseline, candidate, pairs, ratio, verdict and the command; unknown memory is no row", () => {
  const rows = new Map(proofRows(advice).map((r) => [r.name, r.value]));
  assert.equal(rows.get("baseline"), "batch=1");
  assert.equal(rows.get("candidate"), "batch=8");
  assert.equal(rows.get("pairs"), "8");
  assert.match(rows.get("throughput, candidate / baseline")!, /4.*3\.8.*4\.2/);
  assert.match(rows.get("processor time")!, /1\.1/);
  assert.equal(rows.has("peak memory"), false);
  assert.equal(rows.get("found"), "confirmed");
  assert.equal(rows.get("again"), "tare tune m.onnx");
});

test("proof: of what was left, the candidate is the one that was compared; without a proof there are no rows", () => {
  const left = { ...advice, proof: { ...advice.proof, of: "batch=4", found: "no gain", verdict: "fail" } } as Recommendation;
  assert.equal(proofRows(left)[1]!.value, "batch=4");
  assert.deepEqual(proofRows({ ...advice, proof: null } as Recommendation), []);
  assert.deepEqual(proofRows(null), []);
});
