// SPDX-License-Identifier: MIT
// tokens.tsx - answers of a language model: how times to tokens and between them are spread, and how they, tokens per
// second and goodput go over the rate.
import { useMemo } from "preact/hooks";
import { align, type Sweep, sweepsOf } from "../data/curves";
import { shareOfNines } from "../data/distribution";
import type { Case, Estimate, Item, RunDocument } from "../data/page";
import { goodputOf, isStreamed, PLACES, spreadOf, type TimeKey, timeOf, TIMES, tokensOf } from "../data/tokens";
import type { Section, SectionProps } from "../sections";
import { duration, interval, isKnown, number, shown } from "../ui/format";
import { useCase } from "../ui/Pick";
import { Plot } from "../ui/Plot";
import type { PlotAxis, PlotSeries, PlotSpec, PlotX } from "../ui/plotspec";

const TICKS = [0, 0.5, 0.9, 0.99, 0.999].map((s) => -Math.log10(1 - s));
const shareText = (x: number): string => `${number(shareOfNines(x) * 100, 6)}\u00a0%`;
const time: PlotAxis = { label: "time", format: (v) => duration(v, 4), log: 10 };

function median(c: Case, key: TimeKey, label: string): string {
  return `${label}: ${interval(c.stream?.[key]?.p50, (v) => duration(v, 4), c.unknown?.[`stream.${key}`])}`;
}

function spreadSpec(c: Case): PlotSpec {
  const series = TIMES.map(({ key, label }, i): PlotSeries => ({ label, values: spreadOf(c, key), kind: "line", colour: i }));
  return {
    id: "tokens-spread",
    title: "Times to tokens and between them",
    summary: `Medians: ${TIMES.map((t) => median(c, t.key, t.label)).join("; ")}.`,
    x: { label: "share of requests, or of gaps, that took no longer", format: shareText, values: [...PLACES], ticks: TICKS },
    y: time,
    series: series.filter((s) => Array.from(s.values).some(isKnown)),
  };
}

const xOf = (param: string, x: number[]): PlotX => ({ label: param, format: (v) => number(v, 6), values: x });

function curve(sweep: Sweep, label: string, pick: (c: Case) => Estimate | null, dash = false): PlotSeries {
  const one = align([sweep], pick).curves[0]!;
  return { label, values: one.value, lo: dash ? undefined : one.lo, hi: dash ? undefined : one.hi, dash };
}

function timesSpec(param: string, sweep: Sweep): PlotSpec {
  const series = [
    curve(sweep, "first token p50", timeOf("ttft_ns", "p50")),
    curve(sweep, "first token p95", timeOf("ttft_ns", "p95"), true),
    curve(sweep, "per token p50", timeOf("tpot_ns", "p50")),
    curve(sweep, "gap p99", timeOf("gap_ns", "p99"), true),
  ];
  return {
    id: `tokens-times-${param}`,
    title: `Times to tokens over ${param}`,
    summary: "Where times to the first token begin to climb, requests queue up. Bars are the intervals of medians.",
    x: xOf(param, align([sweep], tokensOf).x),
    y: time,
    series: series.filter((s) => Array.from(s.values).some(isKnown)),
  };
}

function goodputSpec(param: string, sweep: Sweep): PlotSpec {
  const good = curve(sweep, "goodput", goodputOf);
  const known = Array.from(good.values).some(isKnown);
  const slo = sweep.points[0]?.case.stream?.goodput?.slo;
  return {
    id: `tokens-rate-${param}`,
    title: `Tokens per second over ${param}`,
    summary: known
      ? `Goodput: requests that kept ${shown(slo ?? "every limit", 120)}, of those that were due.`
      : "Goodput is unknown: no limits were given (--slo).",
    x: xOf(param, align([sweep], tokensOf).x),
    y: { label: "tokens/s", format: (v) => number(v, 4), zero: true },
    right: known ? { label: "goodput", format: (v) => number(v, 3), zero: true } : undefined,
    series: [curve(sweep, "tokens/s", tokensOf), ...(known ? [{ ...good, axis: "right" as const }] : [])],
  };
}

function Sweeps(props: { cases: Case[] }) {
  const all = useMemo(() => [...sweepsOf(props.cases)].filter(([, s]) => s.length === 1), [props.cases]);
  return (
    <>
      {all.map(([param, [sweep]]) => (
        <div class="pair" key={param}>
          <Plot spec={timesSpec(param, sweep!)} />
          <Plot spec={goodputSpec(param, sweep!)} />
        </div>
      ))}
    </>
  );
}

function Tokens(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const cases = useMemo(() => (run.cases ?? []).filter(isStreamed), [run]);
  const [c, pick] = useCase("case", cases, 0);
  const spec = useMemo(() => spreadSpec(c), [c]);
  return (
    <>
      <Sweeps cases={cases} />
      <div class="picks">{pick}</div>
      <Plot spec={spec} />
    </>
  );
}

export const tokens: Section = {
  id: "tokens",
  title: "Tokens",
  applies: (item: Item) => item.kind === "run" && (item.document.cases ?? []).some(isStreamed),
  Component: Tokens,
};
