// SPDX-License-Identifier: MIT
// scene.ts - a picture that is not a plot over x: what to draw at a given width, and which spots of it answer when pointed
// at or walked to with the arrow keys. A scene draws with a pen, so that canvas, SVG and PNG are the same picture.
import { linearScale, type Scale } from "../data/scale";
import type { Format } from "../ui/format";
import type { Pen } from "../ui/pen";
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

export interface Frame {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const CHAR = 6.6; // of 12 px system fonts, on the safe side
const WIDE = /[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]/g;

export const textWidth = (text: string): number => CHAR * (text.length + (text.match(WIDE)?.length ?? 0));

/** The text as far as it fits; of a path the end says more than the beginning. */
export function fit(text: string, width: number, keep: "start" | "end" = "start"): string {
  if (textWidth(text) <= width) return text;
  const n = Math.floor(width / CHAR) - 1;
  if (n < 1) return "";
  return keep === "start" ? `${text.slice(0, n)}\u2026` : `\u2026${text.slice(-n)}`;
}

export const box = (x: number, y: number, w: number, h: number): [number, number][] => [[x, y], [x + w, y], [x + w, y + h], [x, y + h]];

/** Names and lines of an axis below the frame. */
export function axisBelow(pen: Pen, f: Frame, scale: Scale, format: Format, label: string, c: Colours): void {
  let free = -Infinity;
  for (const v of scale.ticks) {
    const x = scale.at(v);
    const text = format(v);
    const half = textWidth(text) / 2;
    pen.path([[x, f.top], [x, f.bottom]], { colour: c.line });
    if (x - half < free || x + half > f.right + 24) continue;
    pen.text(x, f.bottom + 16, text, c.soft, "middle");
    free = x + half + 8;
  }
  pen.text((f.left + f.right) / 2, f.bottom + 34, fit(label, f.right - f.left), c.soft, "middle");
}

/** Names and lines of an axis left of the frame. */
export function axisLeft(pen: Pen, f: Frame, scale: Scale, format: Format, label: string, c: Colours): void {
  for (const v of scale.ticks) {
    const y = scale.at(v);
    pen.path([[f.left, y], [f.right, y]], { colour: c.line });
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
