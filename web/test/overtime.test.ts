// SPDX-License-Identifier: MIT
// Timelines, comparisons and histories as they come from files of any version: what fits is read, the rest is unknown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, countVerdicts, ordered, ratioReach, readComparison } from "../src/data/comparison";
import { pointName, readHistory } from "../src/data/history";
import { column, panelsOf, readTimeline, readWatch, seriesName, timelineFor } from "../src/data/timeline";

const TIMELINE = {
  schema: "tare.timeline/1",
  run: "R1",
  start: "2026-11-15T11:45:48.607Z",
  closed: true,
  moments: 3,
  joined: 1,
  at_s: [0, 1, 2],
  series: [
    { metric: "cpu", label: "", unit: "1", values: [null, 0.5, 1] },
    { metric: "cpu.steal.share", label: "", unit: "1", constant: 0 },
    { metric: "gpu.utilization", label: "gpu0", unit: "1", values: [0, 1, 1] },
    { metric: "gpu.utilization", label: "gpu1", unit: "1", constant: 0.25 },
    { metric: "net.rx", label: "eth0", unit: "B/s", values: [0, 1, 2] },
    { metric: "bad", label: "", unit: "1", values: [1] },
    null,
  ],
  phases: [{ name: "load", start_s: 0, end_s: 1 }],
  alerts: [{ rule: "cpu>80%", metric: "cpu", start_s: 1, end_s: null }],
};

test("panels have what was seen, each GPU for itself, and leave out what was always 0", () => {
  const t = readTimeline(TIMELINE as never)!;
  assert.equal(t.series.length, 5); // the one of another length is none
  const panels = panelsOf(t);
  assert.deepEqual(
    panels.map((p) => [p.id, p.series.map(seriesName)]),
    [
      ["cpu", ["cpu"]],
      ["gpu", ["gpu.utilization gpu0", "gpu.utilization gpu1"]],
    ],
  );
  assert.deepEqual(column(panels[1]!.series[1]!, 3), [0.25, 0.25, 0.25]);
  assert.equal(t.alerts[0]!.end_s, null);
});

test("a timeline without times is none; missing members are unknown", () => {
  assert.equal(readTimeline({}), null);
  assert.equal(readTimeline({ at_s: "x" }), null);
  const t = readTimeline({ at_s: [0] })!;
  assert.deepEqual([t.start, t.series, t.phases, t.alerts, t.joined], [null, [], [], [], 1]);
});

test("a run finds its own timeline in the page, and no other's", () => {
  const items = [
    { kind: "run" as const, document: { id: "R1" } },
    { kind: "timeline" as const, document: TIMELINE as never },
  ];
  assert.equal(timelineFor(items, "R1")?.run, "R1");
  assert.equal(timelineFor(items, "R2"), null);
  assert.equal(timelineFor(items, undefined), null);
});

test("what was watched is read from the run", () => {
  assert.equal(readWatch(null), null);
  const w = readWatch({
    interval_s: 0.1,
    metrics: [{ metric: "cpu", mean: 0.5 }, { label: "no name" } as never],
    phases: [],
    alerts: [],
  })!;
  assert.equal(w.metrics.length, 1);
  assert.equal(w.samples, null);
});

const metric = (name: string, verdict: string, ratio: number | null, role = "gate") => ({
  metric: name,
  verdict,
  role,
  better: "less",
  ratio: ratio === null ? null : { value: ratio, lo: ratio * 0.9, hi: ratio * 1.1 },
});

test("comparisons: the worst first, what only informs behind it, unknown verdicts are no verdicts", () => {
  const c = readComparison({
    verdict: "regressed",
    method: "saved",
    base: { name: "a" },
    new: { name: "b" },
    notes: [{ severity: "info", text: "n" }],
    cases: [
      {
        name: "x",
        notes: [{ severity: "warn", text: "busy" }],
        metrics: [
          metric("same", "same", 1),
          metric("up", "regressed", 1.2),
          metric("side", "regressed", 3, "advisory"),
          metric("odd", "amazing", null),
        ],
      },
    ],
  } as never);
  assert.deepEqual(
    ordered(c.rows).map((r) => r.metric),
    ["up", "side", "same", "odd"],
  );
  assert.equal(c.rows[3]!.verdict, "unverified");
  assert.deepEqual(countVerdicts(c.rows), [
    ["regressed", 2],
    ["same", 1],
    ["unverified", 1],
  ]);
  assert.deepEqual(
    c.notes.map((n) => [n.text, n.case]),
    [
      ["n", undefined],
      ["busy", "x"],
    ],
  );
  const reach = ratioReach(c.rows);
  assert.ok(reach > 3.3 && reach < 3.6);
  assert.ok(ratioReach([]) > 1);
  assert.equal(ratioReach([{ ...c.rows[0]!, ratio: { value: 1e9, lo: 0, hi: Infinity } }]), 8);
});

test("an empty comparison is readable", () => {
  const c = readComparison({});
  assert.deepEqual([c.verdict, c.base, c.rows, c.reproduce], ["unverified", "unknown", [], null]);
});

test("histories: levels stand at each of their points, changes outside are dropped", () => {
  const points = [70, 71, 80].map((value, i) => ({
    value,
    created: `2026-01-0${i + 1}T12:00:00.000Z`,
    commit: i ? "abcdef0123456789" : null,
  }));
  const h = readHistory({
    subject: "m",
    metric: "latency.p50",
    unit: "ns",
    series: [
      {
        case: "c",
        host: "h1",
        hostname: null,
        points,
        levels: [
          { from: 0, to: 2, median: 70.5 },
          { from: 2, to: 99, median: 80 },
        ],
        changes: [{ at: 2, worse: true, ratio: 1.13 }, { at: 7 }],
        creep: { worse: true, ratio: 1.13 },
      },
      { case: "empty", points: [] },
    ],
  } as never);
  assert.equal(h.series.length, 1);
  const s = h.series[0]!;
  assert.deepEqual(s.level, [70.5, 70.5, 80]);
  assert.deepEqual(
    s.changes.map((c) => c.at),
    [2],
  );
  assert.deepEqual([s.host, s.creep, s.noise], ["h1", 1.13, null]);
  assert.equal(pointName(points[0]!), "2026-01-01 12:00");
  assert.equal(pointName(points[1]!), "2026-01-02 12:00, abcdef0123");
  assert.deepEqual(readHistory({}).series, []);
});

test("the answer of a comparison: how many times, or that nothing can be told", () => {
  const row = (name: string, verdict: string, value: number) => ({
    name,
    metrics: [{ ...metric("latency.p50", verdict, value), ratio: { value, lo: value * 0.9, hi: value * 1.1 } }],
  });
  const answer = (verdict: string, ...cases: object[]) => answerOf(readComparison({ verdict, cases } as never));
  assert.equal(answer("improved", row("a", "improved", 0.5)), "new is 2x as fast as base (1.82x to 2.22x)");
  assert.equal(answer("regressed", row("a", "same", 1), row("b", "regressed", 2)), "new takes 2x as long as base (1.8x to 2.2x) at b");
  assert.equal(answer("same", row("a", "same", 1)), "no change between base and new");
  assert.equal(answer("regressed"), "new is worse than base", "a metric other than time decided");
  assert.match(answer("inconclusive", row("a", "inconclusive", 2)), /cannot be told/);
});

test("rows stand by case, the case that decides first", () => {
  const of = (name: string, ...metrics: object[]) => ({ name, metrics });
  const c = readComparison({
    cases: [of("calm", metric("p", "same", 1)), of("worse", metric("p", "same", 1), metric("q", "regressed", 2))],
  } as never);
  assert.deepEqual(
    ordered(c.rows).map((r) => [r.case, r.metric]),
    [
      ["worse", "q"],
      ["worse", "p"],
      ["calm", "p"],
    ],
  );
});
