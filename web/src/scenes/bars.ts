// SPDX-License-Identifier: MIT
// bars.ts - rows of bars with a name on the left and numbers on the right: layers, memory of cases.
import { linearScale, type Scale } from "../data/scale";
import { type Format, shown } from "../ui/format";
import type { Pen } from "../ui/pen";
import type { Colours } from "../ui/theme";
import { axisBelow, box, byteScale, fit, type Frame, type Scene, type SceneOf, textWidth } from "./scene";

export interface BarPart {
  /** Where it ends, from 0. Later parts lie on earlier ones. */
  to: number;
  colour: keyof Omit<Colours, "series"> | number;
  alpha?: number;
}

export interface BarRow {
  name: string;
  parts: BarPart[];
  /** A thin stroke across the bar. */
  mark?: number | null;
  /** Behind the bar. */
  value: string;
  /** When pointed at. */
  text: string;
}

export interface BarsSpec {
  rows: BarRow[];
  label: string;
  format: Format;
  bytes?: boolean;
}

const ROW = 24;
const BAR = 14;

export const colourBy = (c: Colours, key: BarPart["colour"]): string => (typeof key === "number" ? c.series[key % c.series.length]! : c[key]);

function frameOf(width: number, rows: number, names: number, values: number): Frame {
  return { left: Math.min(names, width * 0.4), top: 6, right: width - Math.min(values, width * 0.36), bottom: 6 + rows * ROW };
}

function drawRow(pen: Pen, row: BarRow, y: number, f: Frame, scale: Scale, c: Colours): void {
  pen.text(f.left - 8, y + ROW / 2 + 4, fit(shown(row.name), f.left - 12, "end"), c.ink, "end");
  for (const p of row.parts) {
    const w = Math.max(1, scale.at(p.to) - f.left);
    pen.fill(box(f.left, y + (ROW - BAR) / 2, w, BAR), colourBy(c, p.colour), p.alpha ?? 1);
  }
  if (typeof row.mark === "number") {
    const x = scale.at(row.mark);
    pen.path([[x, y + 2], [x, y + ROW - 2]], { colour: c.ink, width: 1.5 });
  }
  const end = row.parts.reduce((most, p) => Math.max(most, scale.at(p.to)), f.left);
  pen.text(end + 6, y + ROW / 2 + 4, row.value, c.soft);
}

export function barsScene(spec: BarsSpec): SceneOf {
  return (width, c): Scene => {
    const names = spec.rows.reduce((w, r) => Math.max(w, textWidth(shown(r.name))), 0);
    const values = spec.rows.reduce((w, r) => Math.max(w, textWidth(r.value)), 0);
    const f = frameOf(width, spec.rows.length, names + 14, values + 14);
    const most = spec.rows.reduce((m, r) => r.parts.reduce((k, p) => Math.max(k, p.to), m), 0) || 1;
    const want = Math.max(2, Math.round((f.right - f.left) / 90));
    const scale = spec.bytes ? byteScale(most, f.left, f.right, want) : linearScale(0, most, f.left, f.right, want);
    const draw = (pen: Pen) => {
      axisBelow(pen, f, scale, spec.format, spec.label, c);
      spec.rows.forEach((row, i) => drawRow(pen, row, f.top + i * ROW, f, scale, c));
      pen.path([[f.left, f.top], [f.left, f.bottom]], { colour: c.soft });
    };
    const targets = spec.rows.map((row, i) => ({ x: 0, y: f.top + i * ROW, w: width, h: ROW, text: row.text }));
    return { height: f.bottom + 42, draw, targets };
  };
}
