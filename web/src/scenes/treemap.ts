// SPDX-License-Identifier: MIT
// treemap.ts - all layers at once: areas are time, boxes are groups.
import { type Block, type Slice, type Tile, treemap } from "../data/layers";
import { type Format, percent, shown } from "../ui/format";
import type { Pen } from "../ui/pen";
import type { Colours } from "../ui/theme";
import { box, fit, type Scene, type SceneOf, textWidth } from "./scene";

/** A path without its first slash and without the operator that many exporters write behind it. */
export function shortName(name: string, op: string): string {
  const bare = name.length > 1 ? name.replace(/^\//, "") : name;
  const tail = `/${op}`;
  return op && bare.length > tail.length && bare.endsWith(tail) ? bare.slice(0, -tail.length) : bare;
}

function drawTile(pen: Pen, t: Tile, colour: string, c: Colours): void {
  if (t.w < 1 || t.h < 1) return;
  const inset = t.w > 4 && t.h > 4 ? 0.5 : 0;
  pen.fill(box(t.x + inset, t.y + inset, t.w - 2 * inset, t.h - 2 * inset), colour, 0.3);
  if (t.h < 16 || t.w < 44) return;
  pen.text(t.x + 5, t.y + 14, fit(shown(shortName(t.slice.name, t.slice.op), 80), t.w - 10, "end"), c.ink);
  if (t.h >= 32 && textWidth(percent(t.slice.share)) < t.w - 8) pen.text(t.x + 5, t.y + 28, percent(t.slice.share), c.soft);
}

function drawBlock(pen: Pen, b: Block, colour: string, c: Colours): void {
  pen.fill(box(b.x + 0.5, b.y + 0.5, Math.max(0, b.w - 1), Math.max(0, b.h - 1)), colour, 0.16);
  if (b.h > 48 && b.w > 40) pen.text(b.x + 6, b.y + 13, fit(`${shown(b.name, 60)} ${percent(b.share)}`, b.w - 10), c.ink);
  for (const t of b.tiles) drawTile(pen, t, colour, c);
}

export function treemapScene(slices: Slice[], format: Format, what: string): SceneOf {
  return (width, c): Scene => {
    const height = Math.round(Math.min(420, Math.max(280, width * 0.5)));
    const blocks = treemap(slices, width, height);
    const draw = (pen: Pen) => blocks.forEach((b, i) => drawBlock(pen, b, c.series[i % c.series.length]!, c));
    const targets = blocks.flatMap((b) =>
      b.tiles.map((t) => ({
        x: t.x,
        y: t.y,
        w: t.w,
        h: t.h,
        text: `${shown(t.slice.name, 120)} (${shown(t.slice.op || b.name, 40)}): ${format(t.slice.value)}, ${percent(t.slice.share)} of ${what}`,
      })),
    );
    return { height, draw, targets };
  };
}
