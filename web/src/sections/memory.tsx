// SPDX-License-Identifier: MIT
// memory.tsx - what each case needed, and how memory went over time where a trace of the same run is in the page.
import { useMemo } from "preact/hooks";
import type { Grid } from "../data/grid";
import { watchedCase } from "../data/headline";
import { type MemoryRow, memoryRows } from "../data/memory";
import type { AllocSite, Case, Item, Page, RunDocument } from "../data/page";
import { panelById, readTimeline, timelineFor } from "../data/timeline";
import { type BarRow, barsScene } from "../scenes/bars";
import type { Section, SectionProps } from "../sections";
import { Drawing, Key } from "../ui/Drawing";
import { bytes, count, interval, isKnown, known, number, percent, shown } from "../ui/format";
import { Plot } from "../ui/Plot";
import { Table } from "../ui/Table";
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

// ---- what a run allocates (tare bench --memory) ----

const STAGES = [["each", "a run"], ["first", "the first run"], ["load", "loading"]] as const;

function allocationGrid(cases: Case[]): Grid {
  const columns: Grid["columns"] = [
    { title: "case", text: true },
    { title: "when", text: true },
    { title: "blocks", format: (v) => number(v, 4) },
    { title: "allocated (B)", format: bytes },
    { title: "largest block (B)", format: bytes },
    { title: "most held at once (B)", format: bytes },
    { title: "kept at its end (B)", format: bytes },
  ];
  const rows = cases.flatMap((c) =>
    STAGES.flatMap(([key, when]) => {
      const s = c.allocations?.[key];
      return s ? [[c.name, when, s.blocks, s.bytes, s.largest, s.peak, s.kept]] : [];
    }),
  );
  return { columns, rows };
}

/** A function, else the line, else where in which library. */
function siteName(s: AllocSite): string {
  const file = (s.file ?? s.library ?? "").split("/").pop() ?? "";
  if (s.function) return file ? `${s.function} (${file}${isKnown(s.line) ? `:${s.line}` : ""})` : s.function;
  return `${file || "unknown"}${isKnown(s.line) ? `:${s.line}` : isKnown(s.offset) ? ` +0x${s.offset.toString(16)}` : ""}`;
}

function siteGrid(cases: Case[]): Grid {
  const columns: Grid["columns"] = [
    { title: "where", text: true },
    { title: "case", text: true },
    { title: "blocks a run", format: (v) => number(v, 4) },
    { title: "bytes a run (B)", format: bytes },
    { title: "largest block (B)", format: bytes },
    { title: "freed within 1 ms", format: percent },
  ];
  const rows = cases.flatMap((c) => (c.allocations?.sites ?? []).map((s) => [siteName(s), c.name, s.blocks, s.bytes, s.largest, s.short_lived]));
  return { columns, rows };
}

function Allocations(props: { cases: Case[] }) {
  const stages = useMemo(() => allocationGrid(props.cases), [props.cases]);
  const sites = useMemo(() => siteGrid(props.cases), [props.cases]);
  if (!stages.rows.length) return null;
  const lost = props.cases.reduce((sum, c) => sum + (c.allocations?.lost ?? 0), 0);
  return (
    <>
      <h3>Allocations</h3>
      <Table grid={stages} caption="Allocations" />
      {sites.rows.length > 0 && (
        <details class="more">
          <summary>Where a run allocates: {count(sites.rows.length)} places</summary>
          <Table grid={sites} caption="Where a run allocates" />
        </details>
      )}
      <p class="note">Recorded in a process of its own: nothing of it is in what is timed.{lost ? ` ${count(lost)} records were lost.` : ""}</p>
    </>
  );
}

function Memory(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const rows = useMemo(() => memoryRows(run.cases ?? []), [run]);
  return (
    <>
      {rows.length > 0 && <PerCase rows={rows} />}
      <OverTime page={props.page} run={run} />
      <Allocations cases={run.cases ?? []} />
    </>
  );
}

export const memory: Section = {
  id: "memory",
  title: "Memory",
  // Of a watched program the peak stands in the headline and the curve in the timeline.
  applies: (item: Item) =>
    item.kind === "run" && !watchedCase(item.document) && (memoryRows(item.document.cases ?? []).length > 0 || (item.document.cases ?? []).some((c) => c.allocations)),
  Component: Memory,
};
