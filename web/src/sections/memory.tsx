// SPDX-License-Identifier: MIT
// memory.tsx - what each case needed, and how memory went over time where a trace of the same run is in the page.
import { useMemo } from "preact/hooks";
import type { Grid } from "../data/grid";
import { watchedCase } from "../data/headline";
import { type MemoryRow, memoryRows } from "../data/memory";
import type { Item, Page, RunDocument } from "../data/page";
import { panelById, readTimeline, timelineFor } from "../data/timeline";
import { type BarRow, barsScene } from "../scenes/bars";
import type { Section, SectionProps } from "../sections";
import { Drawing, Key } from "../ui/Drawing";
import { bytes, interval, known, percent, shown } from "../ui/format";
import { Plot } from "../ui/Plot";
import { useColours } from "../ui/theme";
import { panelSpec } from "./timeline";

function barOf(r: MemoryRow): BarRow {
  const parts: BarRow["parts"] = [];
  if (r.peak !== null) parts.push({ to: r.peak, colour: 0, alpha: 0.35 });
  if (r.before !== null) parts.push({ to: r.before, colour: 0, alpha: 0.9 });
  const text = `${shown(r.name || "the run", 80)}: before loading ${known(r.before, bytes)}, mean ${known(r.mean, bytes)}, peak ${known(r.peak, bytes)}`;
  return { name: r.name || "the run", parts, mark: r.mean, value: known(r.peak ?? r.mean, bytes), text };
}

const COLUMNS: Grid["columns"] = [
  { title: "case", text: true },
  { title: "before loading (B)", format: bytes },
  { title: "mean (B)", format: bytes },
  { title: "peak (B)", format: bytes },
  { title: "per unit (B)", format: bytes },
  { title: "allocator, most in use (B)", format: bytes },
  { title: "allocator, taken (B)", format: bytes },
  { title: "not in use", format: percent },
  { title: "growth per run (B)", format: bytes },
];

const gridOf = (rows: MemoryRow[]): Grid => ({
  columns: COLUMNS,
  rows: rows.map((r) => [
    r.name,
    r.before,
    r.mean,
    r.peak,
    r.perUnit,
    r.arenaUsed,
    r.arenaTaken,
    r.fragmentation,
    r.growth?.value,
  ]),
});

function peakText(rows: MemoryRow[]): string {
  const peaks = rows.filter((r) => r.peak !== null).sort((a, b) => b.peak! - a.peak!);
  const top = peaks[0];
  if (!top) return "Peaks are unknown.";
  const of = top.name ? ` (${shown(top.name, 80)})` : "";
  const least = peaks.length > 1 ? `, the lowest ${bytes(peaks[peaks.length - 1]!.peak!)}` : "";
  return `The highest peak is ${bytes(top.peak!)}${of}${least}.`;
}

function summaryOf(rows: MemoryRow[]): string {
  const leaks = rows
    .filter((r) => r.leaks)
    .map((r) => `${shown(r.name || "the run", 60)} grows by ${interval(r.growth, bytes)} per run`);
  const growth = rows.some((r) => r.growth) ? " No memory growth detected." : "";
  return `${peakText(rows)}${leaks.length ? ` A leak: ${leaks.join("; ")}.` : growth}`;
}

function PerCase(props: { rows: MemoryRow[] }) {
  const { rows } = props;
  const colours = useColours();
  const scene = useMemo(
    () => barsScene({ rows: rows.map(barOf), label: "memory of the process in RAM", format: bytes, bytes: true }),
    [rows],
  );
  const legend = (
    <>
      <Key colour={colours.series[0]!}>before loading</Key>
      <Key colour={`${colours.series[0]!}59`}>up to the peak</Key>
      <span class="key">
        <i class="stroke" />
        mean
      </span>
    </>
  );
  return (
    <Drawing
      id="memory"
      title="Memory per case"
      summary={summaryOf(rows)}
      grid={() => gridOf(rows)}
      scene={scene}
      legend={legend}
    />
  );
}

function OverTime(props: { page: Page; run: RunDocument }) {
  const spec = useMemo(() => {
    const doc = timelineFor(props.page.items, props.run.id);
    const timeline = doc && readTimeline(doc);
    const panel = timeline && panelById(timeline, "memory");
    return panel ? { ...panelSpec(timeline, panel), id: "memory-time", title: "Memory over time" } : null;
  }, [props.page, props.run]);
  return spec ? <Plot spec={spec} /> : null;
}

function Memory(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const rows = useMemo(() => memoryRows(run.cases ?? []), [run]);
  return (
    <>
      <PerCase rows={rows} />
      <OverTime page={props.page} run={run} />
    </>
  );
}

export const memory: Section = {
  id: "memory",
  title: "Memory",
  // Of a watched program the peak stands in the headline and the curve in the timeline.
  applies: (item: Item) =>
    item.kind === "run" && !watchedCase(item.document) && memoryRows(item.document.cases ?? []).length > 0,
  Component: Memory,
};
