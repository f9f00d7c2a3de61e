// SPDX-License-Identifier: MIT
// histogram.ts - how often each time was seen. Bars are as wide as their buckets; lines mark percentiles.
import { linearScale, logScale, type Scale } from "../data/scale";
import type { Bar } from "../data/distribution";
import { count, duration } from "../ui/format";
import type { Pen } from "../ui/pen";
import type { Colours } from "../ui/theme";
import { axisBelow, axisLeft, box, fit, type Frame, type Scene, type SceneOf, textWidth, line } from "./scene";

export interface HistogramLine {
  at: number;
  label: string;
  tone: "ink" | "accent" | "warn" | "bad";
}

const HEIGHT = 260;
const HEAD = 34;
const FAR = 20; // a longer stretch than this many times is read better on a logarithmic axis

function scaleOf(bars: Bar[], f: Frame): Scale {
  const lo = bars[0]!.lo;
  const hi = bars[bars.length - 1]!.hi;
  return lo > 0 && hi / lo > FAR
    ? logScale(lo, hi, f.left, f.right)
    : linearScale(lo, hi, f.left, f.right, Math.max(2, Math.round((f.right - f.left) / 110)));
}

function drawLines(pen: Pen, f: Frame, x: Scale, lines: HistogramLine[], c: Colours): void {
  const rows = [-Infinity, -Infinity];
  for (const l of [...lines].sort((a, b) => a.at - b.at)) {
    const at = x.at(l.at);
    if (at < f.left - 1 || at > f.right + 1) continue;
    const w = textWidth(l.label);
    const from = Math.min(Math.max(at - w / 2, f.left), f.right - w);
    const row = rows.findIndex((end) => from > end + 8);
    pen.path(line(at, f.top - (row === 1 ? 16 : 2), at, f.bottom), { colour: c[l.tone], dash: [4, 3] });
    if (row < 0) continue;
    rows[row] = from + w;
    pen.text(from, f.top - 6 - 14 * row, fit(l.label, f.right - f.left), c[l.tone]);
  }
}

export function histogramScene(bars: Bar[], lines: HistogramLine[]): SceneOf {
  return (width, c): Scene => {
    const f: Frame = { left: 62, top: HEAD, right: width - 14, bottom: HEIGHT - 44 };
    const most = bars.reduce((m, b) => Math.max(m, b.count), 1);
    const total = bars.reduce((sum, b) => sum + b.count, 0);
    const x = scaleOf(bars, f);
    const y = linearScale(0, most, f.bottom, f.top, Math.min(4, most));
    const draw = (pen: Pen) => {
      axisBelow(pen, f, x, (v) => duration(v, 4), "time of one run", c);
      axisLeft(pen, f, y, count, "runs", c);
      for (const b of bars)
        if (b.count)
          pen.fill(
            box(x.at(b.lo), y.at(b.count), Math.max(1, x.at(b.hi) - x.at(b.lo) - 0.5), f.bottom - y.at(b.count)),
            c.series[0]!,
            0.75,
          );
      drawLines(pen, f, x, lines, c);
    };
    const targets = bars
      .filter((b) => b.count)
      .map((b) => ({
        x: x.at(b.lo),
        y: f.top,
        w: Math.max(2, x.at(b.hi) - x.at(b.lo)),
        h: f.bottom - f.top,
        text: `${duration(b.lo, 4)} to ${duration(b.hi, 4)}: ${count(b.count)} of ${count(total)} runs`,
      }));
    return { height: HEIGHT, draw, targets };
  };
}
