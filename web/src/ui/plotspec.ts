// SPDX-License-Identifier: MIT
// plotspec.ts - a plot as data. From one description come the picture, the table, the CSV and the SVG.
import type { Grid } from "../data/grid";
import type { Format } from "./format";

export type Values = ArrayLike<number | null>;

export interface PlotSeries {
  label: string;
  values: Values;
  /** Interval of each value: whiskers for few points, a band for many. */
  lo?: Values;
  hi?: Values;
  kind?: "line" | "points" | "bars" | "steps";
  /** Index into the series colours (default: its place), or a CSS colour. */
  colour?: number | string;
  dash?: boolean;
  /** Default: left, the axis `y`. */
  axis?: "left" | "right";
}

export interface PlotAxis {
  label: string;
  format: Format;
  /** Logarithmic; batch sizes and the like double from tick to tick. */
  log?: 2 | 10;
  /** Ticks at powers of two: bytes. */
  binary?: boolean;
  /** Keep zero in sight. */
  zero?: boolean;
  /** Ends of intervals that lie far beyond all values are cut off: one wide interval must not flatten the rest. */
  cut?: boolean;
}

export interface PlotX extends PlotAxis {
  /** Ascending. */
  values: ArrayLike<number>;
  /** One tick per value, named so: for few configurations. `values` are then 0, 1, 2 and so on. */
  names?: string[];
  /** Where ticks stand; by default at round numbers. */
  ticks?: number[];
  /** Half a step of room before the first value and behind the last. */
  air?: boolean;
}

export interface PlotMark {
  /** A vertical line at x, a horizontal one at y, a spot where both are given. */
  x?: number;
  y?: number;
  /** A shaded stretch from x to here. */
  to?: number;
  label: string;
  tone?: "accent" | "good" | "warn" | "bad" | "soft";
}

export interface PlotSpec {
  id: string;
  title: string;
  summary: string;
  x: PlotX;
  y: PlotAxis;
  right?: PlotAxis;
  series: PlotSeries[];
  marks?: PlotMark[];
  height?: number;
  /** Plots of the same name share the cursor and the stretch they show. */
  sync?: string;
}

const at = (v: Values | undefined, i: number): number | null => (v ? (v[i] ?? null) : null);

/** The table of a plot: x, then each series with its interval where it has one. */
export function gridOf(spec: PlotSpec): Grid {
  const columns: Grid["columns"] = [
    spec.x.names ? { title: spec.x.label, text: true } : { title: spec.x.label, format: spec.x.format },
  ];
  for (const s of spec.series) {
    const format = (s.axis === "right" && spec.right ? spec.right : spec.y).format;
    columns.push({ title: s.label, format });
    if (s.lo || s.hi) columns.push({ title: `${s.label}, low`, format }, { title: `${s.label}, high`, format });
  }
  const rows: Grid["rows"] = [];
  for (let i = 0; i < spec.x.values.length; i++) {
    const row: Grid["rows"][number] = [spec.x.names ? spec.x.names[i] : spec.x.values[i]];
    for (const s of spec.series) {
      row.push(at(s.values, i));
      if (s.lo || s.hi) row.push(at(s.lo, i), at(s.hi, i));
    }
    rows.push(row);
  }
  return { columns, rows };
}

function extentOf(lists: readonly (ArrayLike<number | null> | undefined)[]): [number, number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (const list of lists) {
    for (let i = 0; list && i < list.length; i++) {
      const v = list[i];
      if (v === null || v === undefined || !Number.isFinite(v)) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
  }
  return low <= high ? [low, high] : null;
}

const FAR = 1; // of the span of the values: how far an interval may reach beyond them where it is cut
const LEAST_SPAN = 0.05; // of the value, where all are alike

/** Least and greatest known value of all series on an axis, intervals included; null without any. */
export function extent(spec: PlotSpec, axis: "left" | "right"): [number, number] | null {
  const on = spec.series.filter((s) => (s.axis ?? "left") === axis);
  const values = extentOf(on.map((s) => s.values));
  const whole = extentOf(on.flatMap((s) => [s.values, s.lo, s.hi]));
  const cut = axis === "left" ? spec.y.cut : spec.right?.cut;
  if (!cut || !values || !whole) return whole;
  const far = FAR * Math.max(values[1] - values[0], Math.abs(values[1]) * LEAST_SPAN);
  return [Math.max(whole[0], values[0] - far), Math.min(whole[1], values[1] + far)];
}
