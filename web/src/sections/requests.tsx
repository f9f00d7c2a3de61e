// SPDX-License-Identifier: MIT
// requests.tsx - a service over the window of load: how long requests took, how many failed, how many were due.
import { useMemo } from "preact/hooks";
import type { Case, Item, RunDocument } from "../data/page";
import { hasOverTime, type OverTime, overTimeOf } from "../data/requests";
import type { Section, SectionProps } from "../sections";
import { count, duration, number, percent, shown } from "../ui/format";
import { useCase } from "../ui/Pick";
import { Plot } from "../ui/Plot";
import type { PlotSpec, PlotX } from "../ui/plotspec";

const xOf = (o: OverTime): PlotX => ({ label: "since the beginning of the window", format: (v) => duration(v, 4), values: o.start });

function faultsOf(c: Case): string {
  const all = Object.entries(c.http?.faults ?? {}).map(([word, n]) => `${shown(word, 40)} ${count(Number(n))}`);
  return all.length ? ` By kind: ${all.join(", ")}.` : "";
}

function latencySpec(o: OverTime): PlotSpec {
  const worst = Math.max(...o.longest.map((v) => v ?? 0));
  return {
    id: "requests-latency",
    title: "Latency over time",
    summary: `From when a request was due. Longest of an answered one: ${duration(worst)}. Where the median has a gap, it falls on a request without an answer.`,
    x: xOf(o),
    y: { label: "latency", format: (v) => duration(v, 4), log: 10 },
    series: [
      { label: "median", values: o.median, kind: "line" },
      { label: "longest", values: o.longest, kind: "line", dash: true },
    ],
    sync: "requests",
  };
}

function loadSpec(c: Case, o: OverTime): PlotSpec {
  const h = c.http!;
  return {
    id: "requests-load",
    title: "Requests and failures over time",
    summary: `${count(h.due ?? 0)} were due, ${count(h.answered ?? 0)} answered, ${count((h.failed ?? 0) + (h.open ?? 0))} without a good answer.${faultsOf(c)}`,
    x: xOf(o),
    y: { label: "due a second", format: (v) => number(v, 4), zero: true },
    right: { label: "without a good answer", format: (v) => percent(v), zero: true },
    series: [
      { label: "due a second", values: o.due, kind: "steps" },
      { label: "without a good answer", values: o.failed, kind: "steps", colour: 1, axis: "right" },
    ],
    sync: "requests",
  };
}

function Requests(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const cases = useMemo(() => (run.cases ?? []).filter(hasOverTime), [run]);
  const [c, pick] = useCase("requests-case", cases, cases.length - 1);
  const over = useMemo(() => overTimeOf(c), [c]);
  return (
    <>
      <div class="picks">{pick}</div>
      <div class="pair">
        <Plot spec={latencySpec(over)} />
        <Plot spec={loadSpec(c, over)} />
      </div>
    </>
  );
}

export const requests: Section = {
  id: "requests",
  title: "Requests over time",
  applies: (item: Item) => item.kind === "run" && (item.document.cases ?? []).some(hasOverTime),
  Component: Requests,
};
