// SPDX-License-Identifier: MIT
// history.tsx - a metric over many runs, each case on each machine for itself, with its levels and where they changed.
import { useMemo } from "preact/hooks";
import { type History, type HistoryChange, type HistorySeries, pointName, readHistory } from "../data/history";
import type { Item, JsonObject } from "../data/page";
import type { Section, SectionProps } from "../sections";
import { Badge, Empty } from "../ui/Facts";
import { change, count, duration, type Format, isKnown, number, ofUnit, percent, ratio, shown } from "../ui/format";
import { Plot } from "../ui/Plot";
import type { PlotMark, PlotSpec } from "../ui/plotspec";

const PLOTS_MAX = 24;

const formatOf = (h: History, s: HistorySeries): Format =>
  s.anchor ? ratio : h.unit === "/s" ? (v) => `${number(v, 4)}/s` : h.unit === "ns" ? (v) => duration(v, 4) : ofUnit(h.unit);

function changeText(c: Pick<HistoryChange, "ratio" | "ratio_lo" | "ratio_hi">): string {
  const by = isKnown(c.ratio) ? change(c.ratio) : "by an unknown ratio";
  const range =
    isKnown(c.ratio_lo) && isKnown(c.ratio_hi)
      ? ` (${change(c.ratio_lo)} to ${change(c.ratio_hi)})`
      : " (too few runs for an interval)";
  return `${by}${range}`;
}

function marksOf(s: HistorySeries): PlotMark[] {
  const steps = s.changes.map((c): PlotMark => ({
    x: c.at - 0.5,
    label: `${isKnown(c.ratio) ? change(c.ratio) : "changed"}, ${c.worse ? "worse" : "better"}`,
    tone: c.worse ? "bad" : "good",
  }));
  return s.baseline ? [...steps, { x: s.baseline.at, label: "baseline", tone: "accent" }] : steps;
}

function baselineText(s: HistorySeries): string {
  const b = s.baseline;
  if (!b) return "";
  const since = b.ratio === 1 ? "no change of the level since" : `the level since: ${changeText(b)}${b.worse ? ", worse" : ""}`;
  return ` The baseline is ${pointName(s.points[b.at]!)}: ${since}.`;
}

function limitText(s: HistorySeries): string {
  if (!isKnown(s.noise)) return "Too few runs to say what could be seen.";
  if (!isKnown(s.smallestStep)) return `Noise ${percent(s.noise)} a run; no step is sure to show within 8 more runs yet.`;
  return `Noise ${percent(s.noise)} a run; a step of ${percent(s.smallestStep)} or more would show within 8 runs, 9 times in 10.`;
}

function summaryOf(s: HistorySeries): string {
  const n = `${count(s.points.length)} runs on ${shown(s.host, 60)}.`;
  const told = s.changes.length
    ? `The level changed ${s.changes.length === 1 ? "once" : `${s.changes.length} times`}, last ${changeText(s.changes[s.changes.length - 1]!)}.`
    : "No change of the level.";
  const creep = isKnown(s.creep) ? ` The level is now ${change(s.creep)} from the best there was.` : "";
  return `${n} ${told}${creep}${baselineText(s)} ${limitText(s)}`;
}

/** Runs have no time between them: at most eight ticks, each at a run. */
function ticksOf(n: number): number[] {
  const step = Math.ceil(n / 8);
  return Array.from({ length: Math.ceil(n / step) }, (_, i) => i * step);
}

function specOf(h: History, s: HistorySeries, i: number): PlotSpec {
  const format = formatOf(h, s);
  const name = (v: number): string => {
    const p = s.points[v];
    return p ? pointName(p) : "";
  };
  const days = s.points.map((p) => (p.created ?? "").slice(0, 10));
  const oneDay = days.length > 0 && days[0] !== "" && days.every((d) => d === days[0]);
  return {
    id: `history-${i}`,
    title: `${shown(s.case || h.subject, 80)}: ${h.metric}${s.anchor ? ` against ${shown(s.anchor, 60)}` : ""}`,
    summary: summaryOf(s),
    x: {
      label: `run, in order of time (UTC${oneDay ? `, ${days[0]}` : ""})`,
      format: (v) => (oneDay ? name(v).slice(11, 16) : s.points.length > 8 ? name(v).slice(0, 10) : name(v).slice(5, 16)),
      values: s.points.map((_, k) => k),
      ticks: ticksOf(s.points.length),
      air: true,
    },
    y: { label: s.anchor ? "ratio to the anchor" : h.metric, format, cut: true },
    series: [
      {
        label: h.metric,
        values: s.points.map((p) => p.value),
        lo: s.points.map((p) => p.lo ?? null),
        hi: s.points.map((p) => p.hi ?? null),
        kind: "points",
      },
      { label: "level", values: s.level, kind: "steps", colour: 1 },
    ],
    marks: marksOf(s),
    height: 260,
  };
}

function Changes(props: { series: HistorySeries }) {
  const { changes, points } = props.series;
  if (!changes.length) return null;
  return (
    <ul class="notes">
      {[...changes].reverse().map((c) => (
        <li>
          <Badge word={c.worse ? "regressed" : "improved"} /> {changeText(c)} since{" "}
          <code>{shown(pointName(points[c.at]!), 60)}</code>
          {c.at > 0 && (
            <span class="note">
              ; before it <code>{shown(pointName(points[c.at - 1]!), 60)}</code>
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Series(props: { history: History; series: HistorySeries; at: number }) {
  const spec = useMemo(() => specOf(props.history, props.series, props.at), [props.history, props.series]);
  return (
    <div>
      <Plot spec={spec} />
      <Changes series={props.series} />
    </div>
  );
}

function HistoryPart(props: SectionProps) {
  const h = useMemo(() => readHistory(props.item.document as JsonObject), [props.item]);
  if (!h.series.length) return <Empty>There is no run of {shown(h.subject, 80)} in the history yet.</Empty>;
  const left = h.series.length - PLOTS_MAX;
  return (
    <>
      <p class="note intro">
        {h.moreIsBetter ? "More is better." : "Less is better."} Each case on each machine for itself; single outliers are no
        change.
      </p>
      {h.series.slice(0, PLOTS_MAX).map((s, i) => (
        <Series key={i} history={h} series={s} at={i} />
      ))}
      {left > 0 && (
        <Empty>
          {count(left)} more series are not drawn; <code>tare trend --case</code> shows one.
        </Empty>
      )}
    </>
  );
}

export const history: Section = {
  id: "history",
  title: "History",
  applies: (item: Item) => item.kind === "history",
  Component: HistoryPart,
};
