// SPDX-License-Identifier: MIT
// What the pages of the server make of its answers: lists as rows, runs that are chosen, comparisons side by side,
// changes of a trend, addresses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { query } from "../src/app/api";
import { auditGrid, tokensGrid } from "../src/app/pages/admin";
import { alertsGrid, amount, silencesGrid } from "../src/app/pages/alerts";
import { hostsGrid, regressionsGrid } from "../src/app/pages/overview";
import { selfFacts } from "../src/app/pages/self";
import { COMPARED_MOST, idsOf, nextPage, runsGrid, toggled } from "../src/app/runs";
import { changesOf, namesOf } from "../src/app/series";
import { sideBySide, worstOf } from "../src/app/sidebyside";
import { readComparison } from "../src/data/comparison";
import { thinned } from "../src/ui/plotopts";

const id = (n: number): string => `01KA3QZ4M6S1V7W8X9Y${String(n).padStart(7, "0")}`;

test("what is unknown of a run is unknown in its row", () => {
  const { columns, rows } = runsGrid([
    { id: id(1), created: "2026-11-15T07:55:21.337Z", kind: "bench", subject: "minilm" },
    { id: id(2), created: "", kind: "bench", subject: "b", hostname: "h", commit: "0123456789abcdef", cases: 3, tags: ["x", "y"] },
  ]);
  assert.equal(columns.length, rows[0]!.length);
  assert.deepEqual(rows[0], [id(1), "2026-11-15 07:55:21", "minilm", "bench", null, null, null, null, ""]);
  assert.deepEqual(rows[1], [id(2), "unknown", "b", "bench", "h", "0123456789", null, 3, "x, y"]);
});

test("chosen runs: each once, in their order, at most eight, and nothing that is no id", () => {
  assert.deepEqual(idsOf(`${id(2)},${id(1)},${id(2)},,<script>,${id(3).toLowerCase()}`), [id(2), id(1), id(3)]);
  assert.deepEqual(idsOf("../../x,01KA"), []);
  const nine = Array.from({ length: 9 }, (_, i) => id(i)).join(",");
  assert.equal(idsOf(nine).length, COMPARED_MOST);
  assert.equal(toggled("", id(1)), id(1));
  assert.equal(toggled(`${id(1)},${id(2)}`, id(1)), id(2));
  assert.equal(idsOf(toggled(nine, id(20))).includes(id(20)), false);
});

test("a full page has a next one, a short one has none", () => {
  const list = [1, 2].map((n) => ({ id: id(n), created: "", kind: "", subject: "" }));
  assert.equal(nextPage(list, 2), id(2));
  assert.equal(nextPage(list, 3), undefined);
  assert.equal(nextPage([], 3), undefined);
});

test("an address is made of what was given, escaped", () => {
  assert.equal(query("/a", {}), "/a");
  assert.equal(query("/a", { b: "x&y=z #", c: "", d: undefined, e: 0 }), "/a?b=x%26y%3Dz%20%23&e=0");
});

const metric = (name: string, more: object) => ({ metric: name, unit: "ns", better: "less", role: "gate", verdict: "same", ...more });
const comparison = (metrics: object[], verdict = "same") =>
  readComparison({ verdict, cases: [{ name: "batch=1", metrics }] } as never);

test("side by side: a row for each metric of any of them, unknown where one has none", () => {
  const first = comparison([
    metric("latency.p50", {
      base: { value: 1e6, lo: 9e5, hi: 1.1e6 },
      new: { value: 2e6, lo: 1.9e6, hi: 2.1e6 },
      ratio: { value: 2, lo: 1.9, hi: 2.1 },
      verdict: "regressed",
    }),
  ]);
  const second = comparison([metric("latency.p50", { base: { value: 1e6 }, new: { value: 1e6 } }), metric("cpu.time", { new: { value: 5 } })]);
  const { columns, rows } = sideBySide("A", [
    { name: "B", comparison: first },
    { name: "C", comparison: second },
  ]);
  assert.deepEqual(
    columns.map((c) => c.title),
    ["case", "metric", "A", "B", "B against the first", "B verdict", "C", "C against the first", "C verdict"],
  );
  const plain = (cells: unknown[]) => cells.map((c) => (typeof c === "string" ? c.replaceAll("\u00a0", " ") : c));
  assert.deepEqual(plain(rows[0]!), [
    "batch=1",
    "latency.p50",
    "1 ms (900 µs to 1.1 ms)",
    "2 ms (1.9 ms to 2.1 ms)",
    "+100 % (+90 % to +110 %)",
    "regressed",
    "1 ms",
    null,
    "same",
  ]);
  assert.deepEqual(plain(rows[1]!), ["batch=1", "cpu.time", null, null, null, null, "5 ns", null, "same"]);
});

test("the worst verdict is the one that is told", () => {
  assert.equal(worstOf(["same", "improved", "regressed"]), "regressed");
  assert.equal(worstOf(["same", "improved"]), "improved");
  assert.equal(worstOf([]), undefined);
});

test("changes of a trend name the runs on both sides", () => {
  const points = [1, 2, 3, 4].map((n) => ({ run: id(n), value: n }));
  const changes = [
    { at: 1, worse: false, ratio: 0.5, ratio_lo: 0.4, ratio_hi: 0.6 },
    { at: 3, worse: true, ratio: 2, ratio_lo: null, ratio_hi: null },
    { at: 9, worse: true },
  ];
  const found = changesOf({ series: [{ case: "c", host: "f", hostname: "h", points, changes, levels: [] }] } as never);
  assert.deepEqual(
    found.map((c) => [c.host, c.worse, c.ratio, c.lo, c.before, c.run]),
    [
      ["h", true, 2, null, id(3), id(4)],
      ["h", false, 0.5, 0.4, id(1), id(2)],
    ],
  );
  assert.deepEqual(changesOf({}), []);
});

test("names come once, numbers in them in order", () => {
  const series = ["b10", "b9", "b10"].map((c) => ({ subject: "s", case: c, metric: "m", host: "h" }));
  assert.deepEqual(namesOf({ series }, "case"), ["b9", "b10"]);
});

test("ticks whose words would lie over each other are left out", () => {
  const eight = [0, 1, 2, 3, 4, 5, 6, 7];
  assert.deepEqual(thinned(eight, 1200), eight);
  assert.deepEqual(thinned(eight, 350), [0, 3, 6]);
  assert.deepEqual(thinned(eight, 10), [0]);
  assert.deepEqual(thinned([], 350), []);
});

test("a host that was not heard for two minutes is silent; a clock that is ahead makes none older", () => {
  const host = (name: string, last_heard: number) => ({ name, last_heard, metrics: 1 });
  const { rows } = hostsGrid({ now: 1e6, hosts: [host("a", 1e6 - 120_000), host("b", 1e6 - 120_001), host("c", 2e6)] });
  assert.deepEqual(
    rows.map((r) => [r[2], r[3]]),
    [
      ["heard", 120_000e6],
      ["silent", 120_001e6],
      ["heard", 0],
    ],
  );
});

test("a regression without an interval is shown without one", () => {
  const { columns, rows } = regressionsGrid([
    { subject: "s", case: "c", host: "f", run: id(2), run_before: id(1), ratio: 1.3, ratio_lo: null, ratio_hi: null },
  ]);
  assert.equal(columns.length, rows[0]!.length);
  assert.deepEqual(rows[0], ["s", "c", "f", 1.3, null, null, null, null, id(2), id(1)]);
});

test("what the server tells of itself beyond what is known here is shown, too", () => {
  const facts = selfFacts({ version: "1", requests: 3, replies: { "2xx": 2 }, new_thing: 7 });
  const value = (name: string) => facts.find((f) => f.name === name)?.value;
  assert.deepEqual([value("Requests"), value("Replies 2xx"), value("new thing"), value("Sent")], ["3", "2", "7", null]);
});

test("a token that is no longer good cannot be revoked again", () => {
  const { columns, rows } = tokensGrid([
    { id: "a", scopes: "read", state: "good", created: "2026-11-15T07:55:21Z", expires: null, used: null },
    { id: "b", scopes: "read", state: "revoked", project: "p", name: "n" },
  ]);
  assert.deepEqual(rows[0], ["a", "", "read", "all", "good", "2026-11-15 07:55:21", "never", "never", "Revoke"]);
  assert.equal(rows[1]![columns.length - 1], "");
});

test("an entry of the audit has a cell for each column", () => {
  const { columns, rows } = auditGrid([{ seq: 1, what: "POST /api/v1/tokens", status: 201, who: "x" }]);
  assert.equal(rows[0]!.length, columns.length);
  assert.deepEqual(rows[0]!.slice(0, 4), ["unknown", "x", "POST /api/v1/tokens", ""]);
});

test("what fires comes first; a rule that never changed has no value; a silence ends", () => {
  const alert = { about: "h", threshold: 0.8, unit: "1" };
  const { columns, rows } = alertsGrid([
    { ...alert, rule: "a", state: "good", since_ms: null, value: null },
    { ...alert, rule: "b", state: "firing", since_ms: 1763190000000, value: 0.91234, project: "p", run: id(1), silent_until_ms: 1763193600000 },
    { ...alert, rule: "c", state: "no data" },
  ]);
  assert.deepEqual(
    rows.map((r) => r[1]),
    ["b", "c", "a"],
  );
  assert.equal(rows[0]!.length, columns.length);
  assert.deepEqual(rows[0]!.slice(2), ["h", "p", "2025-11-15 07:00:00", "0.9123", "0.8", id(1), "2025-11-15 08:00:00"]);
  assert.deepEqual(rows[2]!.slice(4), ["never changed", "", "0.8", "", ""]);
  assert.deepEqual([amount(85, "C"), amount(14.4, "1"), amount(null, "1")], ["85 C", "14.4", "unknown"]);
  assert.deepEqual(silencesGrid([{ id: "x", who: "t", until: "2026-11-15T07:55:21Z" }]).rows, [
    ["every rule", "everything", "all", "", "t", "2026-11-15 07:55:21", "End"],
  ]);
});
