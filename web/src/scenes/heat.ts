// SPDX-License-Identifier: MIT
// heat.ts - how many requests took how long, and when: columns are times, rows latencies, the darker the more.
import { clock, type Heat } from "../data/sla";
import { count, duration } from "../ui/format";
import type { Pen } from "../ui/pen";
import { box, fit, type Frame, line, type Scene, type SceneOf, type Target } from "./scene";

const ROW = 9;
const LABEL_ROWS = 4; // one name for each octave: four rows of scale 2
const LABEL_PX = 130;

function drawAxes(pen: Pen, heat: Heat, f: Frame, colours: { line: string; soft: string }): void {
  const rows = heat.edges.length;
  for (let y = 0; y <= rows; y += LABEL_ROWS) {
    const at = f.bottom - y * ROW;
    pen.path(line(f.left, at, f.right, at), { colour: colours.line });
    if (y) pen.text(f.left - 6, at + 4, duration(heat.edges[y - 1]!, 2), colours.soft, "end");
  }
  const wide = (f.right - f.left) / heat.at.length;
  const every = Math.max(1, Math.ceil(LABEL_PX / wide));
  for (let x = 0; x < heat.at.length; x += every)
    pen.text(f.left + x * wide, f.bottom + 16, fit(clock(heat.at[x]).slice(5), f.right - f.left - x * wide), colours.soft);
}

/** Of one column and row. */
function targetOf(heat: Heat, x: number, y: number, f: Frame): Target {
  const wide = (f.right - f.left) / heat.at.length;
  const below = y ? `${duration(heat.edges[y - 1]!)} to ` : "up to ";
  const text = `${clock(heat.at[x])} UTC, ${below}${duration(heat.edges[y]!)}: ${count(heat.cells[x]![y]!)} requests`;
  return { x: f.left + x * wide, y: f.bottom - (y + 1) * ROW, w: wide, h: ROW, text };
}

export function heatScene(heat: Heat): SceneOf {
  return (width, colours): Scene => {
    const f: Frame = { left: 64, top: 6, right: width - 4, bottom: 6 + heat.edges.length * ROW };
    const spots = heat.cells.flatMap((column, x) =>
      column.flatMap((n, y) => (n ? [{ n, target: targetOf(heat, x, y, f) }] : [])),
    );
    const draw = (pen: Pen) => {
      drawAxes(pen, heat, f, colours);
      for (const { n, target: t } of spots)
        pen.fill(box(t.x, t.y, t.w, t.h), colours.accent, 0.15 + 0.85 * (Math.log1p(n) / Math.log1p(heat.most)));
    };
    return { height: f.bottom + 24, draw, targets: spots.map((s) => s.target) };
  };
}
