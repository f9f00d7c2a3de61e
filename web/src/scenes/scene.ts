// SPDX-License-Identifier: MIT
// scene.ts - a picture that is not a plot over x: what to draw at a given width, and which spots of it answer when pointed
// at or walked to with the arrow keys. A scene draws with a pen, so that canvas, SVG and PNG are the same picture.
import { linearScale, type Scale } from "../data/scale";
import type { Format } from "../ui/format";
import { type Pen, PEN_FONT } from "../ui/pen";
import type { Colours } from "../ui/theme";

export interface Target {
  x: number;
  y: number;
  w: number;
  h: number;
  /** What it is and its numbers, in words. */
  text: string;
}

export interface Scene {
  height: number;
  draw: (pen: Pen) => void;
  /** In the order in which the arrow keys walk. */
  targets: Target[];
}

export type SceneOf = (width: number, colours: Colours) => Scene;

/** One of the series colours, or a colour by what it says. */
export type Tone = number | keyof Omit<Colours, "series">;

export const colourOf = (c: Colours, tone: Tone): string =>
  typeof tone === "number" ? c.series[tone % c.series.length]! : c[tone];

export interface Frame {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const CHAR = 7.2; // of a 12 px font, where there is no canvas to ask
const LONGEST = 200; // more never fits

let ruler: CanvasRenderingContext2D | null | undefined;

/** Width in pixels as a pen writes it. */
export function textWidth(text: string): number {
  if (ruler === undefined) {
    ruler = typeof document === "undefined" ? null : document.createElement("canvas").getContext("2d");
    if (ruler) ruler.font = PEN_FONT;
  }
  return ruler ? ruler.measureText(text).width : CHAR * text.length;
}

/** The text as far as it fits; of a path the end says more than the beginning. */
export function fit(text: string, width: number, keep: "start" | "end" = "start"): string {
  if (text.length <= LONGEST && textWidth(text) <= width) return text;
  const all = [...text.slice(keep === "end" ? -LONGEST : 0, keep === "end" ? undefined : LONGEST)];
  const cut = (n: number) =>
    keep === "start" ? `${all.slice(0, n).join("")}\u2026` : `\u2026${all.slice(all.length - n).join("")}`;
  let [n, over] = [0, all.length];
  while (over - n > 1) {
    const middle = (n + over) >> 1;
    if (textWidth(cut(middle)) <= width) n = middle;
    else over = middle;
  }
  return n > 1 ? cut(n) : "";
}

export const line = (x1: number, y1: number, x2: number, y2: number): [number, number][] => [
  [x1, y1],
  [x2, y2],
];

export const box = (x: number, y: number, w: number, h: number): [number, number][] => [
  [x, y],
  [x + w, y],
  [x + w, y + h],
  [x, y + h],
];

/** Names and lines of an axis below the frame. */
export function axisBelow(pen: Pen, f: Frame, scale: Scale, format: Format, label: string, c: Colours): void {
  let free = -Infinity;
  for (const v of scale.ticks) {
    const x = scale.at(v);
    const text = format(v);
    const half = textWidth(text) / 2;
    pen.path(line(x, f.top, x, f.bottom), { colour: c.line });
    if (x - half < free || x + half > f.right + 24) continue;
    pen.text(Math.max(x, half), f.bottom + 16, text, c.soft, "middle");
    free = x + half + 8;
  }
  pen.text((f.left + f.right) / 2, f.bottom + 34, fit(label, f.right - f.left), c.soft, "middle");
}

/** Names and lines of an axis left of the frame. */
export function axisLeft(pen: Pen, f: Frame, scale: Scale, format: Format, label: string, c: Colours): void {
  for (const v of scale.ticks) {
    const y = scale.at(v);
    pen.path(line(f.left, y, f.right, y), { colour: c.line });
    pen.text(f.left - 8, y + 4, format(v), c.soft, "end");
  }
  pen.text(12, (f.top + f.bottom) / 2, fit(label, f.bottom - f.top), c.soft, "middle", true);
}

/** Ticks of bytes stand at round numbers of the unit that people read. */
export function byteScale(hi: number, from: number, to: number, want: number): Scale {
  const unit = 2 ** (10 * Math.max(0, Math.floor(Math.log2(Math.max(1, hi)) / 10)));
  const inner = linearScale(0, hi / unit, from, to, want);
  return { ...inner, at: (v) => inner.at(v / unit), ticks: inner.ticks.map((t) => t * unit), lo: 0, hi };
}
