// SPDX-License-Identifier: MIT
// serving.tsx - throughput over p95: what one pays in waiting for what is served, with the limit as a line.
import { useMemo } from "preact/hooks";
import { type Serving, servingOf, type ServingPoint } from "../data/curves";
import type { Grid } from "../data/grid";
import type { RunDocument } from "../data/page";
import { extent, linearScale, logScale, type Scale } from "../data/scale";
import { scatterScene, type Spot } from "../scenes/scatter";
import { Drawing } from "../ui/Drawing";
import { count, duration, interval, number, rate, shown } from "../ui/format";

const WIDE = 20; // a greater range is read on a logarithmic axis

const isWithin = (s: Serving, p: ServingPoint): boolean => s.limit === null || p.latency.value <= s.limit;

const textOf = (s: Serving, p: ServingPoint): string =>
  `${shown(p.case, 80)}: ${interval(p.throughput, rate(s.unit))}, ${s.by} ${interval(p.latency, duration)}`;

function spotOf(s: Serving, p: ServingPoint): Spot {
  return {
    x: p.latency.value,
    y: p.throughput.value,
    radius: p === s.best ? 7 : 5,
    colour: isWithin(s, p) ? 0 : "bad",
    ring: !isWithin(s, p),
    name: shown(p.case, 80),
    xLo: p.latency.lo,
    xHi: p.latency.hi,
    yLo: p.throughput.lo,
    yHi: p.throughput.hi,
    text: textOf(s, p) + (isWithin(s, p) ? "" : ", over the limit"),
  };
}

function latencyScale(s: Serving): (from: number, to: number) => Scale {
  const seen = extent([...s.points.flatMap((p) => [p.latency.value, p.latency.lo, p.latency.hi]), s.limit])!;
  const wide = seen[0] > 0 && seen[1] / seen[0] > WIDE;
  return (a, b) => (wide ? logScale(seen[0] * 0.9, seen[1] * 1.1, a, b) : linearScale(0, seen[1] * 1.08, a, b));
}

function sceneOf(s: Serving) {
  const top = extent(s.points.flatMap((p) => [p.throughput.value, p.throughput.hi]))![1] * 1.08;
  const path = s.points.map((p): [number, number] => [p.latency.value, p.throughput.value]);
  const curve = { points: path, colour: "line" as const };
  const limit = s.limit === null ? [] : [{ points: [[s.limit, 0], [s.limit, top]] as [number, number][], colour: "bad" as const, dash: true }];
  return scatterScene({
    x: { label: `${s.by} of the latency`, format: (v) => duration(v), scale: latencyScale(s) },
    y: { label: s.unit, format: (v) => number(v, 4), scale: (a, b) => linearScale(0, top, a, b) },
    spots: s.points.map((p) => spotOf(s, p)),
    lines: [curve, ...limit],
    height: 320,
  });
}

const gridOf = (s: Serving): Grid => ({
  columns: [
    { title: "case", text: true },
    { title: `${s.by} (ns)`, format: duration },
    { title: "low (ns)", format: duration },
    { title: "high (ns)", format: duration },
    { title: s.unit, format: (v) => number(v, 4) },
    ...(s.limit === null ? [] : [{ title: "within the limit", text: true }]),
  ],
  rows: s.points.map((p) => [
    p.case,
    p.latency.value,
    p.latency.lo,
    p.latency.hi,
    p.throughput.value,
    ...(s.limit === null ? [] : [isWithin(s, p) ? "yes" : "no"]),
  ]),
});

function summaryOf(s: Serving): string {
  const left = s.without ? ` ${count(s.without)} without ${s.by === "p95" ? "a p95 (too few runs)" : "a median"} are not shown.` : "";
  if (s.by === "p50") return `By the median: p95 is known of too few cases (measure longer, or ask for --percentile p95).${left}`;
  if (s.limit === null) return `Further right waits longer, higher serves more.${left}`;
  const limit = `Limit: p95 <= ${duration(s.limit)}.`;
  const best = s.best ? `Most within it, surely: ${textOf(s, s.best)}.` : "No case is shown to keep it.";
  return `${limit} ${best}${left}`;
}

export function ServingPlot(props: { run: RunDocument }) {
  const s = useMemo(() => servingOf(props.run), [props.run]);
  const scene = useMemo(() => s && sceneOf(s), [s]);
  if (!s || !scene) return null;
  return (
    <Drawing id="serving" title={`Throughput over ${s.by}`} summary={summaryOf(s)} grid={() => gridOf(s)} scene={scene} />
  );
}
