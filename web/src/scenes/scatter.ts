// SPDX-License-Identifier: MIT
// scatter.ts - spots on two axes with lines behind them: the roofline, accuracy against speed.
import { type Scale } from "../data/scale";
import { type Format, shown } from "../ui/format";
import type { Pen } from "../ui/pen";
import type { Colours } from "../ui/theme";
import { axisBelow, axisLeft, colourOf, fit, type Frame, type Scene, type SceneOf, textWidth, type Tone, line } from "./scene";

export interface Spot {
  x: number;
  y: number;
  radius: number;
  colour: Tone;
  /** A ring: another kind of spot than the filled ones, whatever its colour. */
  ring?: boolean;
  /** Intervals, where known. */
  xLo?: number | null;
  xHi?: number | null;
  yLo?: number | null;
  yHi?: number | null;
  name?: string;
  text: string;
}

export interface Line {
  points: [number, number][];
  colour: Tone;
  dash?: boolean;
  label?: string;
  /** Below the line, where the space above it belongs to something else. */
  below?: boolean;
}

export interface ScatterAxis {
  label: string;
  format: Format;
  scale: (from: number, to: number) => Scale;
}

export interface ScatterSpec {
  x: ScatterAxis;
  y: ScatterAxis;
  spots: Spot[];
  lines: Line[];
  height?: number;
}

interface Drawn {
  pen: Pen;
  f: Frame;
  x: Scale;
  y: Scale;
  c: Colours;
}

function drawLine({ pen, f, x, y, c }: Drawn, line: Line): void {
  const points = line.points.map(([a, b]): [number, number] => [x.at(a), y.at(b)]);
  pen.path(points, { colour: colourOf(c, line.colour), width: 1.5, dash: line.dash ? [5, 4] : [] });
  const end = points[points.length - 1];
  if (line.label && end)
    pen.text(
      Math.min(end[0], f.right) - 4,
      end[1] + (line.below ? 15 : -6),
      fit(shown(line.label), f.right - f.left),
      c.soft,
      "end",
    );
}

function drawSpread({ pen, x, y, c }: Drawn, s: Spot): void {
  const stroke = { colour: colourOf(c, s.colour), width: 1 };
  if (typeof s.xLo === "number" && typeof s.xHi === "number")
    pen.path(line(x.at(s.xLo), y.at(s.y), x.at(s.xHi), y.at(s.y)), stroke);
  if (typeof s.yLo === "number" && typeof s.yHi === "number")
    pen.path(line(x.at(s.x), y.at(s.yLo), x.at(s.x), y.at(s.yHi)), stroke);
}

function drawSpot(d: Drawn, s: Spot): void {
  drawSpread(d, s);
  d.pen.spot(d.x.at(s.x), d.y.at(s.y), s.radius, colourOf(d.c, s.colour));
  if (s.ring) d.pen.spot(d.x.at(s.x), d.y.at(s.y), s.radius - 1.75, d.c.paper);
}

const LINE = 14; // height of a name

interface Area {
  x: number;
  y: number;
  w: number;
  h: number;
}

const touch = (a: Area, b: Area): boolean => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

/** Right, left, above and below a spot. */
function places(d: Drawn, s: Spot, w: number): Area[] {
  const [x, y] = [d.x.at(s.x), d.y.at(s.y)];
  const gap = s.radius + 4;
  const at = ([left, top]: [number, number]): Area => ({ x: left, y: top, w, h: LINE });
  return (
    [
      [x + gap, y - LINE / 2],
      [x - gap - w, y - LINE / 2],
      [x - w / 2, y - gap - LINE],
      [x - w / 2, y + gap],
    ] as [number, number][]
  ).map(at);
}

const inside = (f: Frame, a: Area): boolean => a.x >= f.left && a.x + a.w <= f.right && a.y >= f.top - 4 && a.y + a.h <= f.bottom;

/** A spot, and the stroke of its interval across it. */
function occupied(d: Drawn, s: Spot): Area[] {
  const [x, y] = [d.x.at(s.x), d.y.at(s.y)];
  const [from, to] = [d.x.at(s.xLo ?? s.x), d.x.at(s.xHi ?? s.x)];
  return [
    { x: x - s.radius, y: y - s.radius, w: 2 * s.radius, h: 2 * s.radius },
    { x: from, y: y - 1, w: to - from, h: 2 },
  ];
}

/** Names stand beside their spots where nothing else is; the others are found by pointing. */
function drawNames(d: Drawn, spots: Spot[]): void {
  const taken = spots.flatMap((s) => occupied(d, s));
  for (const s of spots) {
    const text = fit(shown(s.name ?? ""), 180, "end");
    const place = text && places(d, s, textWidth(text)).find((a) => inside(d.f, a) && !taken.some((t) => touch(a, t)));
    if (!place) continue;
    taken.push(place);
    d.pen.text(place.x, place.y + 11, text, d.c.ink);
  }
}

export function scatterScene(spec: ScatterSpec): SceneOf {
  return (width, c): Scene => {
    const height = spec.height ?? 360;
    const f: Frame = { left: width < 500 ? 66 : 78, top: 12, right: width - 14, bottom: height - 44 };
    const x = spec.x.scale(f.left, f.right);
    const y = spec.y.scale(f.bottom, f.top);
    const draw = (pen: Pen) => {
      const d: Drawn = { pen, f, x, y, c };
      axisBelow(pen, f, x, spec.x.format, spec.x.label, c);
      axisLeft(pen, f, y, spec.y.format, spec.y.label, c);
      spec.lines.forEach((line) => drawLine(d, line));
      [...spec.spots].sort((a, b) => b.radius - a.radius).forEach((s) => drawSpot(d, s));
      drawNames(d, spec.spots);
    };
    const targets = spec.spots.map((s) => {
      const r = Math.max(7, s.radius + 2);
      return { x: x.at(s.x) - r, y: y.at(s.y) - r, w: 2 * r, h: 2 * r, text: s.text };
    });
    return { height, draw, targets };
  };
}
