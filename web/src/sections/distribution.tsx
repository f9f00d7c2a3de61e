// SPDX-License-Identifier: MIT
// distribution.tsx - the single times of one case: histogram, percentiles, and the series as it was taken.
import { useMemo } from "preact/hooks";
import { bound } from "../data/cases";
import {
  type Bar,
  histogramBars,
  nines,
  outlierText,
  quantilesOfBars,
  quantilesOfSamples,
  sampleSeries,
  shareOfNines,
} from "../data/distribution";
import type { Grid } from "../data/grid";
import type { Case, Item, RunDocument } from "../data/page";
import { type HistogramLine, histogramScene } from "../scenes/histogram";
import type { Section, SectionProps } from "../sections";
import { Drawing } from "../ui/Drawing";
import { Empty } from "../ui/Facts";
import { count, duration, interval, isKnown, number, shown } from "../ui/format";
import { useCase } from "../ui/Pick";
import { Plot } from "../ui/Plot";
import type { PlotMark, PlotSpec } from "../ui/plotspec";

const PERCENTILES = [
  ["p50", "ink"],
  ["p90", "ink"],
  ["p95", "ink"],
  ["p99", "ink"],
  ["p999", "ink"],
] as const;
const NAMES: Record<string, string> = { p50: "median", p90: "p90", p95: "p95", p99: "p99", p999: "p99.9" };
const why = (c: Case, key: string): string | undefined => c.unknown?.[`latency_ns.${key}`] ?? c.unknown?.latency_ns;

const hasTimes = (c: Case): boolean => !!c.samples_ns?.length || histogramBars(c.latency_ns?.histogram).length > 0;

function linesOf(c: Case): HistogramLine[] {
  const lines: HistogramLine[] = [];
  for (const [key, tone] of PERCENTILES) {
    const v = c.latency_ns?.[key]?.value;
    if (isKnown(v)) lines.push({ at: v, label: NAMES[key]!, tone });
  }
  return lines;
}

function barGrid(bars: Bar[]): Grid {
  const time = (v: number) => duration(v, 4);
  return {
    columns: [
      { title: "from (ns)", format: time },
      { title: "to (ns)", format: time },
      { title: "runs", format: count },
    ],
    rows: bars.map((b) => [b.lo, b.hi, b.count]),
  };
}

function spreadText(c: Case): string {
  const l = c.latency_ns;
  const parts = [`Median ${bound(c, "p50") ?? interval(l?.p50, (v) => duration(v, 4), why(c, "p50"))}`];
  if (isKnown(l?.min) && isKnown(l?.max)) parts.push(`from ${duration(l.min, 4)} to ${duration(l.max, 4)}`);
  if (isKnown(c.samples)) parts.push(`${count(c.samples)} runs`);
  return `${parts.join(", ")}.`;
}

function Times(props: { of: Case }) {
  const c = props.of;
  const bars = useMemo(() => histogramBars(c.latency_ns?.histogram), [c]);
  const scene = useMemo(() => histogramScene(bars, linesOf(c)), [bars, c]);
  if (!bars.length)
    return <Empty>The histogram of this case is unknown{why(c, "histogram") ? `: ${why(c, "histogram")}` : "."}</Empty>;
  return (
    <Drawing
      id="histogram"
      title="Latency histogram"
      summary={spreadText(c)}
      grid={() => barGrid(bars)}
      scene={scene}
    />
  );
}

const TICKS = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];
const whole = (v: number): string => (Number.isInteger(v) ? count(v) : "");
const shareText = (x: number): string => `${number(shareOfNines(x) * 100, 6)}\u00a0%`;

function percentileMarks(c: Case): PlotMark[] {
  const limit = c.outliers?.limit_ns;
  return isKnown(limit) && (c.outliers?.count ?? 0) > 0 ? [{ y: limit, label: "slow from here on", tone: "warn" }] : [];
}

function percentileSpec(c: Case): PlotSpec {
  const samples = c.samples_ns ?? [];
  const q = samples.length ? quantilesOfSamples(samples) : quantilesOfBars(histogramBars(c.latency_ns?.histogram));
  const said = (key: (typeof PERCENTILES)[number][0]) =>
    isKnown(c.latency_ns?.[key]?.value) ? interval(c.latency_ns?.[key], (v) => duration(v, 4)) : bound(c, key);
  const sure = PERCENTILES.filter(([key]) => said(key)).map(([key]) => `${NAMES[key]} ${said(key)}`);
  const first = PERCENTILES.find(([key]) => !said(key))?.[0];
  const told = first ? [...sure, `${NAMES[first]} and above unknown${why(c, first) ? `: ${why(c, first)}` : ""}`] : sure;
  return {
    id: "percentiles",
    title: "Percentiles",
    summary: `${told.join("; ")}.`,
    x: {
      label: "percentile: share of runs that were at least as fast",
      format: shareText,
      values: q.share.map(nines),
      ticks: TICKS.map(nines),
    },
    y: { label: "time of one run", format: (v) => duration(v, 4) },
    series: [{ label: "time", values: q.value, kind: "steps" }],
    marks: percentileMarks(c),
  };
}

function orderSpec(c: Case): PlotSpec {
  const s = sampleSeries(c.samples_ns ?? [], c.outliers?.limit_ns);
  const limit = c.outliers?.limit_ns;
  const many = s.index.length > 2000;
  return {
    id: "order",
    title: "Runs in the order they were taken",
    summary:
      outlierText(c, (v) => duration(v, 4)) ||
      `Which runs were unusually slow is unknown${c.unknown?.outliers ? `: ${c.unknown.outliers}` : ""}.`,
    x: { label: "run", format: whole, values: s.index },
    y: { label: "time of one run", format: (v) => duration(v, 4) },
    series: [
      { label: "time", values: s.value, kind: many ? "line" : "points" },
      ...(s.outliers ? [{ label: "slow runs", values: s.outlier, kind: "points" as const }] : []),
    ],
    marks: isKnown(limit) && s.outliers ? [{ y: limit, label: "slow from here on", tone: "warn" }] : [],
  };
}

function keptText(c: Case): string | undefined {
  const n = c.samples_ns?.length ?? 0;
  if (!isKnown(c.samples) || n >= c.samples) return undefined;
  const kept = c.samples_kept && c.samples_kept !== "all" ? ` (${shown(c.samples_kept, 20)})` : "";
  return `${count(n)} of ${count(c.samples)} single times are in this page${kept}; the histogram counts all of them.`;
}

function Order(props: { of: Case }) {
  const c = props.of;
  const spec = useMemo(() => orderSpec(c), [c]);
  if (!c.samples_ns?.length)
    return (
      <Empty>
        The single times of this case are unknown
        {c.unknown?.samples_raw ? `: ${c.unknown.samples_raw}` : ": they are not in this page."}
      </Empty>
    );
  return <Plot spec={spec} note={keptText(c)} />;
}

function Percentiles(props: { of: Case }) {
  const spec = useMemo(() => percentileSpec(props.of), [props.of]);
  return <Plot spec={spec} />;
}

function Distribution(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const cases = useMemo(() => (run.cases ?? []).filter(hasTimes), [run]);
  const advised = cases.findIndex((c) => c.name === run.recommendation?.case);
  const [c, pick] = useCase("case", cases, Math.max(0, advised));
  return (
    <>
      <div class="picks">{pick}</div>
      <div class="pair">
        <Times of={c} />
        <Percentiles of={c} />
      </div>
      <Order of={c} />
    </>
  );
}

export const distribution: Section = {
  id: "distribution",
  title: "Latency distribution",
  applies: (item: Item) => item.kind === "run" && (item.document.cases ?? []).some(hasTimes),
  Component: Distribution,
};
