// SPDX-License-Identifier: MIT
// Metrics of a host as they come: rates, gaps, what is kept and what goes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf, liveOf, shownNames, specOf, take, unitOf } from "../src/app/live";

const kept = (kind: string) => ({ name: "m", unit: "B", kind, step: 1000, series: [{ label: "a", at: [1000, 2000], mean: [5, 7] }] });
const sample = (at: number, value: number, label = "a") => ({ name: "m", label, at, value });

test("a gauge goes on where the server's answer ends, without a moment twice, and what is old goes", () => {
  const live = liveOf(kept("gauge"));
  assert.equal(take(live, sample(2000, 9), 0), false);
  assert.equal(take(live, sample(3000, 9), 0), true);
  assert.equal(take(live, sample(3000, 9), 0), false);
  assert.deepEqual(columnsOf(live, 3000), { at: [-2, -1, 0], lines: [{ label: "a", values: [5, 7, 9] }] });
  take(live, sample(4000, 1), 2000);
  assert.deepEqual(columnsOf(live, 4000).lines[0]!.values, [7, 9, 1]);
});

test("a counter is a rate; none after a restart or a gap", () => {
  const live = liveOf(kept("counter"));
  assert.equal(take(live, sample(3000, 100), 0), false); // the first to count from
  assert.equal(take(live, sample(5000, 140), 0), true);
  assert.equal(take(live, sample(6000, 3), 0), false);
  assert.equal(take(live, sample(7000, 4), 0), true);
  assert.equal(take(live, sample(70_000, 500), 0), false);
  assert.deepEqual(
    live.lines.get("a")!.map((p) => p.value),
    [5, 7, 20, 1],
  );
});

test("nothing is drawn across a gap, and a line without a value there has none", () => {
  const live = liveOf(kept("gauge"));
  take(live, sample(20_000, 1), 0);
  take(live, sample(20_000, 2, "b"), 0);
  const { at, lines } = columnsOf(live, 20_000);
  assert.deepEqual(at, [-19, -18, -9, 0]);
  assert.deepEqual(lines, [
    { label: "a", values: [5, 7, null, 1] },
    { label: "b", values: [null, null, null, 2] },
  ]);
});

test("the whole is shown where there is one, else the parts; the words say the newest", () => {
  const live = liveOf({ ...kept("gauge"), series: [...kept("gauge").series, { label: "", at: [2000], mean: [2048] }] });
  const spec = specOf("m", "B", live, 2000);
  assert.deepEqual(
    spec.series.map((s) => s.label),
    ["m"],
  );
  assert.match(spec.summary, /^Newest: 2\sKiB\.$/);
  assert.match(specOf("m", "B", liveOf({ ...kept("gauge"), series: [] }), 0).summary, /Nothing came/);
});

test("what is shown first, and units", () => {
  const named = (...names: string[]) => names.map((name) => ({ name, label: "", unit: null, kind: "gauge" }));
  assert.deepEqual(shownNames(named("x", "net.rx", "load.1m"), ""), ["load.1m", "net.rx"]);
  assert.deepEqual(shownNames(named("x", "y"), ""), ["x", "y"]);
  assert.deepEqual(shownNames(named("x", "y"), "y"), ["y"]);
  assert.deepEqual(shownNames(named("x"), "constructor"), []);
  assert.deepEqual([unitOf("B", true), unitOf("s", true), unitOf("1", true), unitOf("W", false), unitOf("1", false)], ["B/s", "", "/s", "W", ""]);
});
