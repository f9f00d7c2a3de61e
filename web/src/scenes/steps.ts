// SPDX-License-Identifier: MIT
// steps.ts - one upright bar for each step of a program, in the parts its time went to. Where there are more steps than
// pixels, those of one pixel share a bar: their mean.
import type { TimePart } from "../data/gpu";
import { linearScale } from "../data/scale";
import { count, duration } from "../ui/format";
import type { Pen } from "../ui/pen";
import type { Colours } from "../ui/theme";
import { axisBelow, axisLeft, box, type Frame, type Scene, type SceneOf } from "./scene";

export interface StepBar {
  /** Number of the first step of it, from 1, and how many. */
  from: number;
  many: number;
  parts: TimePart[];
}

const HEIGHT = 230;
const WIDEST = 26;

/** Steps put together until they fit. */
export function joinSteps(steps: TimePart[][], room: number): StepBar[] {
  const many = Math.max(1, Math.ceil(steps.length / Math.max(1, room)));
  const out: StepBar[] = [];
  for (let i = 0; i < steps.length; i += many) {
    const some = steps.slice(i, i + many);
    const parts = some[0]!.map((p, k) => ({ cause: p.cause, ns: some.reduce((sum, s) => sum + s[k]!.ns, 0) / some.length }));
    out.push({ from: i + 1, many: some.length, parts });
  }
  return out;
}

const total = (b: StepBar): number => b.parts.reduce((sum, p) => sum + p.ns, 0);

function textOf(b: StepBar): string {
  const which = b.many > 1 ? `steps ${count(b.from)} to ${count(b.from + b.many - 1)}, mean` : `step ${count(b.from)}`;
  const parts = b.parts.filter((p) => p.ns > 0).map((p) => `${p.cause} ${duration(p.ns)}`);
  return `${which}: ${duration(total(b))} (${parts.join(", ")})`;
}

export function stepsScene(steps: TimePart[][], paint: (cause: string, c: Colours) => [string, number]): SceneOf {
  return (width, c): Scene => {
    const f: Frame = { left: 78, top: 8, right: width - 10, bottom: HEIGHT - 44 };
    const bars = joinSteps(steps, Math.floor((f.right - f.left) / 3));
    const each = Math.min(WIDEST, (f.right - f.left) / bars.length);
    const most = bars.reduce((m, b) => Math.max(m, total(b)), 1);
    const x = linearScale(1, steps.length + 1, f.left, f.left + each * bars.length, 6);
    const y = linearScale(0, most, f.bottom, f.top, 4);
    const draw = (pen: Pen) => {
      axisLeft(pen, f, y, (v) => duration(v, 4), "time of a step", c);
      axisBelow(pen, f, { ...x, ticks: x.ticks.filter((t) => Number.isInteger(t)) }, count, "step", c);
      bars.forEach((b, i) => {
        let sum = 0;
        for (const p of b.parts) {
          const [colour, alpha] = paint(p.cause, c);
          const [low, high] = [y.at(sum), y.at((sum += p.ns))];
          if (low - high > 0.1) pen.fill(box(f.left + i * each, high, Math.max(1, each - (each > 4 ? 1 : 0.2)), low - high), colour, alpha);
        }
      });
    };
    const targets = bars.map((b, i) => ({ x: f.left + i * each, y: f.top, w: each, h: f.bottom - f.top, text: textOf(b) }));
    return { height: HEIGHT, draw, targets };
  };
}
