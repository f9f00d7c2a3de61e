// SPDX-License-Identifier: MIT
// plotdraw.ts - what uPlot does not draw (intervals, marks), and a whole plot as SVG from the scales uPlot chose.
import type uPlot from "uplot";
import { shown } from "./format";
import { type Pen, SvgPen } from "./pen";
import type { PlotMark, PlotSeries, PlotSpec } from "./plotspec";
import type { Colours } from "./theme";

const FEW = 64;
const WHISKER = 4;

export const scaleOf = (s: PlotSeries): string => (s.axis === "right" ? "right" : "y");

export function colourOf(s: PlotSeries, i: number, colours: Colours): string {
  if (typeof s.colour === "string") return s.colour;
  return colours.series[(s.colour ?? i) % colours.series.length]!;
}

/** Where values are in the picture, in CSS pixels. */
interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
  x(v: number): number;
  y(v: number, scale: string): number;
}

export function frameOf(u: uPlot): Frame {
  const ratio = devicePixelRatio || 1;
  const left = u.bbox.left / ratio;
  const top = u.bbox.top / ratio;
  return {
    left,
    top,
    width: u.bbox.width / ratio,
    height: u.bbox.height / ratio,
    x: (v) => left + u.valToPos(v, "x"),
    y: (v, scale) => top + u.valToPos(v, scale),
  };
}

const within = (v: number, low: number, size: number): number => Math.min(Math.max(v, low), low + size);

/** Indexes of values in sight, so that nothing is drawn outside the frame. */
function visible(u: uPlot, spec: PlotSpec): [number, number] {
  const { min, max } = u.scales.x!;
  let from = 0;
  let to = spec.x.values.length;
  while (from < to && spec.x.values[from]! < (min ?? -Infinity)) from++;
  while (to > from && spec.x.values[to - 1]! > (max ?? Infinity)) to--;
  return [from, to];
}

/** From the value to each end that is known; an end that is not has no stroke across it. */
function drawWhisker(pen: Pen, f: Frame, x: number, middle: number, ends: (number | null)[], colour: string): void {
  const stroke = { colour, width: 1.25 };
  for (const end of ends) {
    if (end === null) continue;
    const y = within(end, f.top, f.height);
    pen.path(
      [
        [x, within(middle, f.top, f.height)],
        [x, y],
      ],
      stroke,
    );
    if (y !== end) continue; // cut off: it goes on
    pen.path(
      [
        [x - WHISKER, y],
        [x + WHISKER, y],
      ],
      stroke,
    );
  }
}

function drawInterval(pen: Pen, u: uPlot, spec: PlotSpec, s: PlotSeries, colour: string): void {
  const f = frameOf(u);
  const [from, to] = visible(u, spec);
  const scale = scaleOf(s);
  const upper: [number, number][] = [];
  const lower: [number, number][] = [];
  for (let i = from; i < to; i++) {
    const v = s.values[i];
    if (v === null || v === undefined) continue;
    const x = f.x(spec.x.values[i]!);
    const middle = f.y(v, scale);
    const ends = [s.lo?.[i], s.hi?.[i]].map((end) => (end === null || end === undefined ? null : f.y(end, scale)));
    if (to - from <= FEW) drawWhisker(pen, f, x, middle, ends, colour);
    upper.push([x, within(ends[1] ?? middle, f.top, f.height)]);
    lower.push([x, within(ends[0] ?? middle, f.top, f.height)]);
  }
  if (to - from > FEW && upper.length) pen.fill([...upper, ...lower.reverse()], colour, 0.18);
}

export function drawIntervals(pen: Pen, u: uPlot, spec: PlotSpec, colours: Colours): void {
  spec.series.forEach((s, i) => {
    if ((s.lo || s.hi) && u.series[i + 1]!.show !== false) drawInterval(pen, u, spec, s, colourOf(s, i, colours));
  });
}

const inFrame = (f: Frame, x: number): boolean => x >= f.left - 1 && x <= f.left + f.width + 1;

const NAME_PX = 7; // a character of a name, about

/** The first row, the uppermost above the plot, in which a name from `from` to `to` covers no other. */
function freeRow(rows: [number, number][][], from: number, to: number): number {
  const row = rows.findIndex((taken) => taken.every(([a, b]) => to < a || from > b));
  rows[row < 0 ? 0 : row]!.push([from, to]);
  return Math.max(0, row);
}

function drawUpright(pen: Pen, f: Frame, m: PlotMark, colour: string, rows: [number, number][][]): void {
  const x = f.x(m.x!);
  const end = m.to === undefined ? x : f.x(m.to);
  const bottom = f.top + f.height;
  if (m.to !== undefined) {
    const [a, b] = [within(x, f.left, f.width), within(end, f.left, f.width)];
    pen.fill(
      [
        [a, f.top],
        [b, f.top],
        [b, bottom],
        [a, bottom],
      ],
      colour,
      0.12,
    );
  }
  if (!inFrame(f, x)) return;
  if (m.to === undefined || m.tone !== "soft")
    pen.path(
      [
        [x, f.top],
        [x, bottom],
      ],
      { colour, dash: [4, 3] },
    );
  const text = shown(m.label, 60);
  const late = x + 5 + text.length * NAME_PX > f.left + f.width;
  const from = late ? x - 5 - text.length * NAME_PX : x + 5;
  const row = freeRow(rows, from, from + text.length * NAME_PX);
  if (row > 0 && m.tone === "soft") return; // phases are in a table too; a name over the data helps nobody
  pen.text(x + (late ? -5 : 5), f.top - 3 + row * 14, text, colour, late ? "end" : "start");
}

function drawLevel(pen: Pen, f: Frame, m: PlotMark, colour: string): void {
  const y = f.y(m.y!, "y");
  if (y < f.top || y > f.top + f.height) return;
  pen.path(
    [
      [f.left, y],
      [f.left + f.width, y],
    ],
    { colour, dash: [4, 3] },
  );
  pen.text(f.left + f.width - 4, y - 4, shown(m.label, 60), colour, "end");
}

function drawSpot(pen: Pen, f: Frame, m: PlotMark, colour: string): void {
  const [x, y] = [f.x(m.x!), f.y(m.y!, "y")];
  if (!inFrame(f, x)) return;
  const late = x > f.left + f.width * 0.7;
  pen.path(
    [
      [x, y + 6],
      [x, f.top + f.height],
    ],
    { colour, dash: [3, 3] },
  );
  pen.spot(x, y, 5.5, colour);
  pen.text(x + (late ? -9 : 9), y - 8, shown(m.label, 60), colour, late ? "end" : "start");
}

export function drawMarks(pen: Pen, u: uPlot, spec: PlotSpec, colours: Colours): void {
  const f = frameOf(u);
  const rows: [number, number][][] = [[], [], [], []];
  for (const m of spec.marks ?? []) {
    const colour = colours[m.tone ?? "soft"];
    if (m.x !== undefined && m.y !== undefined) drawSpot(pen, f, m, colour);
    else if (m.x !== undefined) drawUpright(pen, f, m, colour, rows);
    else if (m.y !== undefined) drawLevel(pen, f, m, colour);
  }
}

// ---- the whole plot as SVG ----

/** Unbroken stretches of a series. Steps turn at the later value. */
function stretches(f: Frame, u: uPlot, spec: PlotSpec, s: PlotSeries): [number, number][][] {
  const out: [number, number][][] = [[]];
  const [from, to] = visible(u, spec);
  for (let i = from; i < to; i++) {
    const v = s.values[i];
    const now = out[out.length - 1]!;
    if (v === null || v === undefined) {
      if (now.length) out.push([]);
      continue;
    }
    const at: [number, number] = [f.x(spec.x.values[i]!), within(f.y(v, scaleOf(s)), f.top, f.height)];
    const last = now[now.length - 1];
    if (s.kind === "steps" && last) now.push([at[0], last[1]]);
    now.push(at);
  }
  return out.filter((points) => points.length);
}

function svgBars(pen: Pen, f: Frame, points: [number, number][], colour: string): void {
  const gap = points.length > 1 ? Math.abs(points[1]![0] - points[0]![0]) : f.width;
  const half = Math.max(0.5, Math.min(gap * 0.45, 40));
  const bottom = f.top + f.height;
  for (const [x, y] of points)
    pen.fill(
      [
        [x - half, y],
        [x + half, y],
        [x + half, bottom],
        [x - half, bottom],
      ],
      colour,
      0.75,
    );
}

function svgSeries(pen: Pen, u: uPlot, spec: PlotSpec, s: PlotSeries, colour: string): void {
  const f = frameOf(u);
  for (const points of stretches(f, u, spec, s)) {
    if (s.kind === "bars") svgBars(pen, f, points, colour);
    else if (s.kind === "points") points.forEach(([x, y]) => pen.spot(x, y, 2, colour));
    else {
      pen.path(points, { colour, width: 1.75, dash: s.dash ? [6, 4] : [] });
      if (points.length <= FEW && s.kind !== "steps") points.forEach(([x, y]) => pen.spot(x, y, 2.5, colour));
    }
  }
}

interface DrawnAxis {
  _splits?: number[];
  _values?: (string | null)[];
}

function svgTicks(pen: Pen, u: uPlot, colours: Colours): void {
  const f = frameOf(u);
  u.axes.forEach((axis, i) => {
    const drawn = axis as unknown as DrawnAxis;
    (drawn._splits ?? []).forEach((v, k) => {
      const text = drawn._values?.[k];
      if (!text) return;
      if (i === 0) return pen.text(f.x(v), f.top + f.height + 18, text, colours.soft, "middle");
      const scale = i === 1 ? "y" : "right";
      const y = f.y(v, scale);
      if (i === 1)
        pen.path(
          [
            [f.left, y],
            [f.left + f.width, y],
          ],
          { colour: colours.line },
        );
      pen.text(i === 1 ? f.left - 8 : f.left + f.width + 8, y + 4, text, colours.soft, i === 1 ? "end" : "start");
    });
  });
}

function svgLegend(pen: Pen, spec: PlotSpec, colours: Colours, top: number): void {
  let x = 12;
  spec.series.forEach((s, i) => {
    const colour = colourOf(s, i, colours);
    pen.path(
      [
        [x, top],
        [x + 16, top],
      ],
      { colour, width: 3 },
    );
    pen.text(x + 22, top + 4, shown(s.label, 40), colours.ink);
    x += 40 + 7 * Math.min(s.label.length, 40);
  });
}

/** The plot as it stands, zoom included. */
export function svgOf(u: uPlot, spec: PlotSpec, colours: Colours): string {
  const pen = new SvgPen(u.width, u.height + 24, colours.paper);
  const f = frameOf(u);
  svgTicks(pen, u, colours);
  pen.text(f.left + f.width / 2, u.height - 4, spec.x.label, colours.soft, "middle");
  pen.text(13, f.top + f.height / 2, spec.y.label, colours.soft, "middle", true);
  if (spec.right) pen.text(u.width - 6, f.top + f.height / 2, spec.right.label, colours.soft, "middle", true);
  drawMarks(pen, u, spec, colours);
  spec.series.forEach((s, i) => svgSeries(pen, u, spec, s, colourOf(s, i, colours)));
  drawIntervals(pen, u, spec, colours);
  svgLegend(pen, spec, colours, u.height + 10);
  return pen.finish(shown(spec.title));
}
