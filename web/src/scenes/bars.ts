// SPDX-License-Identifier: MIT
// bars.ts - rows of bars with a name on the left and numbers on the right: layers, memory of cases.
import { linearScale, type Scale } from "../data/scale";
import { type Format, shown } from "../ui/format";
import type { Pen } from "../ui/pen";
import type { Colours } from "../ui/theme";
import {
  axisBelow,
  box,
  byteScale,
  colourOf,
  fit,
  type Frame,
  type Scene,
  type SceneOf,
  textWidth,
  type Tone,
  line,
} from "./scene";

export interface BarPart {
  /** Where it ends, from 0. Later parts lie on earlier ones. */
  to: number;
  colour: Tone;
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
const NARROW = 520; // below it names stand above their bars
const NAME = 17;

const isNarrow = (width: number): boolean => width < NARROW;
const rowHeight = (width: number): number => ROW + (isNarrow(width) ? NAME : 0);

function frameOf(width: number, rows: number, names: number, values: number): Frame {
  const left = isNarrow(width) ? 1 : Math.min(names, width * 0.4);
  return { left, top: 6, right: width - Math.min(values, width * 0.36), bottom: 6 + rows * rowHeight(width) };
}

function drawName(pen: Pen, name: string, y: number, f: Frame, width: number, c: Colours): void {
  if (isNarrow(width)) pen.text(f.left, y - 3, fit(shown(name), width - 8, "end"), c.ink);
  else pen.text(f.left - 8, y + ROW / 2 + 4, fit(shown(name), f.left - 12, "end"), c.ink, "end");
}

function drawRow(pen: Pen, row: BarRow, y: number, f: Frame, scale: Scale, c: Colours): void {
  for (const p of row.parts) {
    const w = Math.max(1, scale.at(p.to) - f.left);
    pen.fill(box(f.left, y + (ROW - BAR) / 2, w, BAR), colourOf(c, p.colour), p.alpha ?? 1);
  }
  if (typeof row.mark === "number") {
    const x = scale.at(row.mark);
    pen.path(line(x, y + 2, x, y + ROW - 2), { colour: c.ink, width: 1.5 });
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
      spec.rows.forEach((row, i) => {
        const y = f.top + (i + 1) * rowHeight(width) - ROW;
        drawRow(pen, row, y, f, scale, c);
        drawName(pen, row.name, y, f, width, c);
      });
      pen.path(line(f.left, f.top, f.left, f.bottom), { colour: c.soft });
    };
    const targets = spec.rows.map((row, i) => ({
      x: 0,
      y: f.top + i * rowHeight(width),
      w: width,
      h: rowHeight(width),
      text: row.text,
    }));
    return { height: f.bottom + 42, draw, targets };
  };
}
