// SPDX-License-Identifier: MIT
// history.ts - a metric over many runs, its levels and where they changed (tare.trend/1, as `tare trend --json` gives it).
// Pure.
import type { JsonObject } from "./page";
import { type Shape, shaped } from "./shape";

const SERIES: Shape = {
  case: "text",
  host: "text",
  hostname: "text",
  anchor: "text",
  noise: "number",
  smallest_step: "number",
  creep: { ratio: "number" },
  baseline: { run: "text", ratio: "number", ratio_lo: "number", ratio_hi: "number" },
  levels: [{ from: "number", to: "number", median: "number" }],
  changes: [{ at: "number", commit: "text", ratio: "number", ratio_lo: "number", ratio_hi: "number" }],
  points: [{ run: "text", created: "text", commit: "text", branch: "text", value: "number", lo: "number", hi: "number" }],
};

export interface HistoryPoint {
  run?: string;
  created?: string;
  commit?: string | null;
  branch?: string | null;
  value: number | null;
  lo?: number | null;
  hi?: number | null;
}

export interface HistoryChange {
  /** First point of the new level. */
  at: number;
  commit?: string | null;
  worse?: boolean;
  recent?: boolean;
  ratio?: number | null;
  ratio_lo?: number | null;
  ratio_hi?: number | null;
}

export interface HistorySeries {
  case: string;
  host: string;
  anchor: string | null;
  noise: number | null;
  smallestStep: number | null;
  points: HistoryPoint[];
  /** The level at each point. */
  level: (number | null)[];
  changes: HistoryChange[];
  creep: number | null;
  /** The accepted run among the points, and the level now against its level. */
  baseline: (Omit<HistoryChange, "recent"> & { run: string }) | null;
}

export interface History {
  subject: string;
  metric: string;
  unit: string;
  moreIsBetter: boolean;
  series: HistorySeries[];
}

interface RawSeries {
  case?: string;
  host?: string;
  hostname?: string | null;
  anchor?: string | null;
  noise?: number | null;
  smallest_step?: number | null;
  creep?: { worse?: boolean; ratio?: number | null };
  baseline?: Omit<HistoryChange, "at"> & { run?: string | null };
  levels?: { from: number; to: number; median: number | null }[];
  changes?: HistoryChange[];
  points?: HistoryPoint[];
}

function levelAt(raw: RawSeries, n: number): (number | null)[] {
  const out = new Array<number | null>(n).fill(null);
  for (const l of raw.levels ?? []) out.fill(l.median ?? null, Math.max(0, l.from), Math.min(n, l.to));
  return out;
}

function baselineOf(raw: RawSeries, points: HistoryPoint[]): HistorySeries["baseline"] {
  const run = raw.baseline?.run;
  const at = run ? points.findIndex((p) => p.run === run) : -1;
  return run && at >= 0 ? { ...raw.baseline, run, at } : null;
}

function seriesOf(raw: RawSeries): HistorySeries {
  const points = raw.points ?? [];
  const changes = (raw.changes ?? []).filter((c) => Number.isInteger(c.at) && c.at >= 0 && c.at < points.length);
  return {
    case: raw.case ?? "",
    host: raw.hostname || raw.host || "unknown",
    anchor: raw.anchor ?? null,
    noise: raw.noise ?? null,
    smallestStep: raw.smallest_step ?? null,
    points,
    level: levelAt(raw, points.length),
    changes,
    creep: raw.creep?.worse ? (raw.creep.ratio ?? null) : null,
    baseline: baselineOf(raw, points),
  };
}

export function readHistory(doc: JsonObject): History {
  const raw = (shaped(doc.series, [SERIES]) ?? []) as RawSeries[];
  return {
    subject: String(doc.subject ?? "unknown"),
    metric: String(doc.metric ?? "unknown"),
    unit: typeof doc.unit === "string" ? doc.unit : "",
    moreIsBetter: doc.more_is_better === true,
    series: raw.map(seriesOf).filter((s) => s.points.length > 0),
  };
}

/** "2026-11-15 07:53, 16846bb58d": a point by when and what. */
export function pointName(p: HistoryPoint): string {
  const when = p.created ? p.created.slice(0, 16).replace("T", " ") : "unknown time";
  return p.commit ? `${when}, ${p.commit.slice(0, 10)}` : when;
}
