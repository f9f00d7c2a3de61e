// SPDX-License-Identifier: MIT
// curves.tsx - throughput and latency over batch, length, threads: what a sweep was made for.
import { useMemo } from "preact/hooks";
import { align, type Aligned, hasKnees, kneeOf, limitOf, type Sweep, sweepsOf, wantsLog } from "../data/curves";
import type { Case, Estimate, Item, RunDocument } from "../data/page";
import { extent } from "../data/scale";
import type { Section, SectionProps } from "../sections";
import { duration, number, rate, shown } from "../ui/format";
import { Plot } from "../ui/Plot";
import { ServingPlot } from "./serving";
import type { PlotMark, PlotSeries, PlotSpec, PlotX } from "../ui/plotspec";

const CURVES_MAX = 8; // as many as there are colours
const WIDE = 20; // a greater range is read on a logarithmic axis

const throughputOf = (c: Case): Estimate | null => c.throughput ?? null;
const medianOf = (c: Case): Estimate | null => c.latency_ns?.p50 ?? null;
const tailOf =
  (key: "p95" | "p99") =>
  (c: Case): Estimate | null =>
    c.latency_ns?.[key] ?? null;

const seriesOf = (a: Aligned, name: string): PlotSeries[] =>
  a.curves.map((c) => ({ label: c.label || name, values: c.value, lo: c.lo, hi: c.hi }));

const LEAST_GAP = 0.08; // of the axis; closer ticks would cover each other

function xOf(param: string, x: number[]): PlotX {
  const gaps = x.slice(1).map((v, i) => v - x[i]!);
  const apart = x.length <= 12 && Math.min(...gaps) >= (x[x.length - 1]! - x[0]!) * LEAST_GAP;
  return { label: param, format: (v) => number(v, 6), values: x, log: wantsLog(x) ? 2 : undefined, ticks: apart ? x : undefined };
}

function best(sweeps: Sweep[]): string {
  const points = sweeps.flatMap((s) => s.points).filter((p) => typeof p.case.throughput?.value === "number");
  if (!points.length) return "Throughput is unknown.";
  const top = points.reduce((a, b) => (b.case.throughput!.value! > a.case.throughput!.value! ? b : a));
  return `Most: ${rate(top.case.throughput!.unit)(top.case.throughput!.value!)} at ${shown(top.case.name, 80)}.`;
}

interface Knees {
  marks: PlotMark[];
  words: string;
}

function knees(sweeps: Sweep[], run: RunDocument): Knees {
  const found = sweeps.map((s) => ({ s, knee: kneeOf(s, run) })).filter((f) => f.knee);
  const marks = found.map(({ s, knee }): PlotMark => ({
    x: knee!.x,
    y: s.points.find((p) => p.x === knee!.x)?.case.throughput?.value ?? undefined,
    label: "knee",
    tone: "accent",
  }));
  const several = found.map(({ s, knee }) => `${shown(s.fixed, 60)} at ${knee!.x}`).join("; ");
  const words =
    found.length > 1
      ? `Knees, from where on a doubling gains less than 10 %: ${several}.`
      : found.map(({ knee }) => `Knee: ${shown(knee!.why, 200)}.`).join("");
  return { marks, words: words || "No knee: nowhere does the gain surely stay below 10 % per doubling." };
}

function throughputSpec(param: string, sweeps: Sweep[], run: RunDocument): PlotSpec {
  const a = align(sweeps, throughputOf);
  const unit = sweeps[0]!.points[0]!.case.throughput?.unit;
  const { marks, words } = hasKnees(param) ? knees(sweeps, run) : { marks: [], words: "" };
  return {
    id: `throughput-${param}`,
    title: `Throughput over ${param}`,
    summary: `${best(sweeps)} ${words}`.trim(),
    x: xOf(param, a.x),
    y: { label: unit || "per second", format: (v) => number(v, 4), zero: true },
    series: seriesOf(a, "throughput"),
    marks,
  };
}

function latencySeries(sweeps: Sweep[]): PlotSeries[] {
  const median = seriesOf(align(sweeps, medianOf), "p50");
  if (sweeps.length > 1) return median;
  const tails = (["p95", "p99"] as const).map((key, i): PlotSeries => ({
    ...seriesOf(align(sweeps, tailOf(key)), key)[0]!,
    label: key,
    dash: true,
    colour: i + 1,
    lo: undefined,
    hi: undefined,
  }));
  return [...median, ...tails.filter((t) => Array.from(t.values).some((v) => v !== null))];
}

function latencySpec(param: string, sweeps: Sweep[], run: RunDocument): PlotSpec {
  const a = align(sweeps, medianOf);
  const series = latencySeries(sweeps);
  const seen = extent(a.curves.flatMap((c) => c.value));
  const limit = limitOf(run);
  const range = seen ? `Medians from ${duration(seen[0])} to ${duration(seen[1])}.` : "Medians are unknown.";
  const wide = seen !== null && seen[0] > 0 && seen[1] / seen[0] > WIDE;
  return {
    id: `latency-${param}`,
    title: `Latency over ${param}`,
    summary: `${range} Bars are the intervals of the medians${sweeps.length === 1 ? "; a percentile with too few samples is left out" : ""}.`,
    x: xOf(param, a.x),
    y: { label: "time of one run", format: (v) => duration(v), zero: !wide, log: wide ? 10 : undefined },
    series,
    marks: limit === null ? [] : [{ y: limit, label: "limit on p95", tone: "bad" }],
  };
}

const confidenceOf = (sweeps: Sweep[]): string => {
  const level = sweeps[0]?.points[0]?.case.confidence;
  return typeof level === "number"
    ? `Intervals are at ${number(level * 100)} % confidence.`
    : "The level of the intervals is unknown.";
};

function Sweeps(props: { param: string; sweeps: Sweep[]; run: RunDocument }) {
  const { param, run } = props;
  const shownSweeps = useMemo(() => props.sweeps.slice(0, CURVES_MAX), [props.sweeps]);
  const throughput = useMemo(() => throughputSpec(param, shownSweeps, run), [param, shownSweeps, run]);
  const latency = useMemo(() => latencySpec(param, shownSweeps, run), [param, shownSweeps, run]);
  const left = props.sweeps.length - shownSweeps.length;
  const note =
    confidenceOf(shownSweeps) +
    (left > 0 ? ` ${left} more curves are not drawn; all cases are in the table of the headline.` : "");
  return (
    <div class="pair">
      <Plot spec={throughput} note={note} />
      <Plot spec={latency} />
    </div>
  );
}

const casesOf = (item: Item): Case[] => (item.kind === "run" ? (item.document.cases ?? []) : []);

function Curves(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const all = useMemo(() => [...sweepsOf(run.cases ?? [])], [run]);
  return (
    <>
      {all.map(([param, sweeps]) => (
        <Sweeps key={param} param={param} sweeps={sweeps} run={run} />
      ))}
      <ServingPlot run={run} />
    </>
  );
}

export const curves: Section = {
  id: "curves",
  title: "Curves",
  applies: (item) => sweepsOf(casesOf(item).filter((c) => c.latency_ns || c.throughput)).size > 0,
  Component: Curves,
};
