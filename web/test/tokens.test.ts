// SPDX-License-Identifier: MIT
// Times to tokens: read off the histogram at fixed shares, unknown where there is too little or nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Case } from "../src/data/page";
import { goodputOf, isStreamed, PLACES, SHARES, spreadOf, timeOf, tokensOf } from "../src/data/tokens";

const histogram = { scale: 0, offset: 10, zero: 0, counts: [50, 45, 5] }; // (1024, 2048] (2048, 4096] (4096, 8192]
const made = {
  name: "rate=4",
  stream: {
    ttft_ns: { p50: { value: 1500, lo: 1400, hi: 1600 }, histogram },
    tokens_per_s: { value: 80, lo: 75, hi: 85, unit: "tokens/s" },
  },
} as unknown as Case;

test("shares are read off the histogram, as far as it tells them", () => {
  const at = spreadOf(made, "ttft_ns");
  assert.equal(at.length, SHARES.length);
  assert.equal(PLACES.length, SHARES.length);
  assert.equal(at[SHARES.indexOf(0.25)], 2048);
  assert.equal(at[SHARES.indexOf(0.9)], 4096);
  assert.equal(at[SHARES.indexOf(0.999)], null, "of a hundred none is one in a thousand");
});

test("what is not there is null, not zero", () => {
  assert.ok(spreadOf(made, "gap_ns").every((v) => v === null));
  assert.equal(timeOf("ttft_ns", "p50")(made)!.value, 1500);
  assert.equal(timeOf("ttft_ns", "p99")(made), null);
  assert.equal(tokensOf(made)!.value, 80);
  assert.equal(goodputOf(made), null);
  assert.ok(isStreamed(made) && !isStreamed({ name: "x" } as Case));
});
