// SPDX-License-Identifier: MIT
// timeline.ts - what probes saw over time (tare.timeline/1, docs/timeline-format.md) and the summary that a run document
// keeps of it (`watch`), as panels of plots. Pure. A quantity that was never seen is in no panel.
import type { Alert, Metric, Phase, Watch as WatchDocument } from "./document.gen";
import type { Item, JsonObject } from "./page";

export type { Alert, Phase, Metric as WatchMetric };

export interface TimelineSeries {
  metric: string;
  label: string;
  unit: string;
  values?: (number | null)[];
  /** Greatest of the moments joined into each point. */
  peaks?: (number | null)[];
  /** In place of values: it never moved. */
  constant?: number;
}

export interface Timeline {
  start: string | null;
  closed: boolean;
  moments: number;
  joined: number;
  at: number[];
  series: TimelineSeries[];
  phases: Phase[];
  alerts: Alert[];
  notes: { at_s: number; text: string }[];
}

export interface Watch {
  interval_s: number | null;
  samples: number | null;
  lost: number | null;
  metrics: Metric[];
  phases: Phase[];
  alerts: Alert[];
  peak: number | null;
  peakAt: number | null;
}

export interface Panel {
  id: string;
  title: string;
  unit: string;
  series: TimelineSeries[];
}

interface PanelRow {
  id: string;
  title: string;
  unit: string;
  /** Names of metrics; those that end with a dot stand for all that begin so. */
  metrics: string[];
  labels?: boolean;
}

// What a person looks at first, in this order; everything else is in the table and can be picked.
const PANELS: PanelRow[] = [
  {
    id: "cpu",
    title: "Processors",
    unit: "1",
    metrics: ["cpu", "process.cpu.share", "cpu.steal.share", "cpu.iowait.share", "throttled"],
  },
  {
    id: "memory",
    title: "Memory of the program",
    unit: "B",
    metrics: ["process.memory.rss", "process.memory.pss", "process.memory.swap"],
  },
  { id: "machine", title: "Memory of the machine", unit: "B", metrics: ["memory.available", "cgroup.memory", "swap.used"] },
  {
    id: "gpu",
    title: "GPU",
    unit: "1",
    metrics: ["gpu.utilization", "gpu.memory.utilization", "gpu.sm.active", "gpu.tensor.active", "gpu.dram.active"],
    labels: true,
  },
  { id: "gpumemory", title: "GPU memory", unit: "B", metrics: ["gpu.memory.used", "gpu.memory.process"], labels: true },
  { id: "power", title: "Power", unit: "W", metrics: ["gpu.power", "energy", "gpu.power.limit"], labels: true },
  {
    id: "temperature",
    title: "Temperature",
    unit: "C",
    metrics: ["temperature", "gpu.temperature", "gpu.temperature.memory"],
    labels: true,
  },
  { id: "clock", title: "Clocks", unit: "Hz", metrics: ["cpu.frequency", "gpu.clock.sm", "gpu.clock.memory"], labels: true },
  { id: "io", title: "Storage", unit: "B/s", metrics: ["disk.throughput", "process.io.read", "process.io.write"] },
  { id: "net", title: "Network", unit: "B/s", metrics: ["net.rx", "net.tx"] },
  { id: "waiting", title: "Waiting", unit: "1", metrics: ["process.waiting", "pressure.cpu", "pressure.memory", "pressure.io"] },
];
const LINES_MAX = 8;

const text = (v: unknown): string => (typeof v === "string" ? v : "");
const list = <T>(v: unknown): T[] => (Array.isArray(v) ? (v.filter((x) => x !== null && typeof x === "object") as T[]) : []);
const numberOr = <T>(v: unknown, otherwise: T): number | T => (typeof v === "number" && Number.isFinite(v) ? v : otherwise);

function isSeries(s: TimelineSeries, n: number): boolean {
  return typeof s.metric === "string" && (typeof s.constant === "number" || (Array.isArray(s.values) && s.values.length === n));
}

/** null: no times, so nothing that could be drawn. */
export function readTimeline(doc: JsonObject): Timeline | null {
  const at = Array.isArray(doc.at_s) ? doc.at_s.filter((v): v is number => typeof v === "number") : [];
  if (!at.length) return null;
  const series = list<TimelineSeries>(doc.series).filter((s) => isSeries(s, at.length));
  return {
    start: typeof doc.start === "string" ? doc.start : null,
    closed: doc.closed !== false,
    moments: numberOr(doc.moments, at.length),
    joined: numberOr(doc.joined, 1),
    at,
    series: series.map((s) => ({ ...s, label: text(s.label), unit: text(s.unit) })),
    phases: list<Phase>(doc.phases),
    alerts: list<Alert>(doc.alerts),
    notes: list<{ at_s: number; text: string }>(doc.notes),
  };
}

export function readWatch(doc: WatchDocument | null | undefined): Watch | null {
  if (!doc) return null;
  return {
    interval_s: numberOr(doc.interval_s, null),
    samples: numberOr(doc.samples, null),
    lost: numberOr(doc.lost, null),
    metrics: list<Metric>(doc.metrics).filter((m) => typeof m.metric === "string"),
    phases: list<Phase>(doc.phases),
    alerts: list<Alert>(doc.alerts),
    peak: numberOr(doc.tree_rss_peak, null),
    peakAt: numberOr(doc.rss_peak_at_s, null),
  };
}

export const seriesName = (s: { metric: string; label?: string | null }): string =>
  s.label ? `${s.metric} ${s.label}` : s.metric;

const moves = (s: TimelineSeries): boolean => s.values !== undefined || (s.constant ?? 0) !== 0;

function panelOf(row: PanelRow, all: TimelineSeries[]): Panel {
  const fits = (s: TimelineSeries) => s.unit === row.unit && (row.labels || !s.label) && moves(s);
  const series = row.metrics.flatMap((m) => all.filter((s) => s.metric === m && fits(s)));
  return { id: row.id, title: row.title, unit: row.unit, series: series.slice(0, LINES_MAX) };
}

/** The panels that have anything to show: those with a quantity that was seen and not always 0. */
export function panelsOf(t: Timeline): Panel[] {
  return PANELS.map((row) => panelOf(row, t.series)).filter((p) => p.series.length > 0);
}

export const panelById = (t: Timeline, id: string): Panel | undefined => panelsOf(t).find((p) => p.id === id);

/** One number per point, also for what never moved. */
export const column = (s: TimelineSeries, n: number): (number | null)[] =>
  s.values ?? new Array<number | null>(n).fill(s.constant ?? null);

/** The timeline of a run among the items of its page. */
export function timelineFor(items: Item[], run: string | null | undefined): JsonObject | null {
  if (!run) return null;
  const found = items.find((i) => i.kind === "timeline" && i.document.run === run);
  return found ? (found.document as JsonObject) : null;
}
