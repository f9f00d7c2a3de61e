// SPDX-License-Identifier: MIT
// Numbers as people read them: units, intervals, unknowns, and text that must not act.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, change, duration, instant, interval, known, number, ofUnit, shown, si } from "../src/ui/format";

const plain = (text: string): string => text.replace(/\u00a0/g, " ");

test("numbers keep three digits and put thousands apart", () => {
  assert.equal(number(0), "0");
  assert.equal(number(1234567), "1,234,567");
  assert.equal(number(12.345), "12.3");
  assert.equal(number(0.012345), "0.0123");
  assert.equal(number(-2.5), "\u22122.5");
  assert.equal(number(NaN), "unknown");
});

test("durations and sizes choose their unit", () => {
  assert.equal(plain(duration(16_295_587)), "16.3 ms");
  assert.equal(plain(duration(649)), "649 ns");
  assert.equal(plain(duration(7.2e12)), "2 h");
  assert.equal(plain(bytes(180731904)), "172 MiB");
  assert.equal(plain(bytes(0)), "0 B");
  assert.equal(plain(si(2.71e9, "FLOP")), "2.71 GFLOP");
  assert.equal(plain(ofUnit("texts/s")(64.53)), "64.53 texts/s");
});

test("unknown is a word with its reason, never 0", () => {
  assert.equal(known(null, duration), "unknown");
  assert.equal(known(undefined, duration, "no powercap"), "unknown: no powercap");
  assert.equal(plain(known(0, duration)), "0 ns");
  assert.equal(plain(interval({ value: 2e6, lo: 1e6, hi: null }, duration)), "2 ms (1 ms to no upper bound)");
  assert.equal(interval(null, duration), "unknown");
});

test("a change has its sign, a time its zone", () => {
  assert.equal(plain(change(1.032)), "+3.2 %");
  assert.equal(plain(change(0.88)), "\u221212 %");
  assert.equal(plain(change(935.5)), "936x");
  assert.equal(plain(change(1070)), "1,070x");
  assert.equal(plain(change(0.00107)), "1/935");
  assert.equal(plain(change(1.06e-5)), "1/94,340");
  assert.equal(instant("2026-11-15T07:55:21.337Z"), "2026-11-15 07:55:21 UTC");
  assert.equal(instant("yesterday"), "unknown");
});

test("text from outside is bounded and cannot turn what stands beside it", () => {
  assert.equal(shown("a\u202eb\u0000c"), "a\ufffdb\ufffdc");
  const long = shown("x".repeat(10_000_000));
  assert.ok(long.length < 400 && long.includes("10,000,000 characters"));
  assert.equal(shown(null), "unknown");
});
