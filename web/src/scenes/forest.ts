// SPDX-License-Identifier: MIT
// forest.ts - a comparison at a glance: one row per metric, the ratio of the two sides as a spot with its interval, on a
// logarithmic axis around "no change". Verdicts differ by colour, by the shape of the spot and by a word.
import { type ComparedRow, ratioReach, type Verdict } from "../data/comparison";
import { logScale, type Scale } from "../data/scale";
import { change, isKnown, ofUnit, shown, UNKNOWN } from "../ui/format";
import type { Pen } from "../ui/pen";
import type { Colours } from "../ui/theme";
import { axisBelow, box, fit, type Frame, type Scene, type SceneOf, line, textWidth } from "./scene";

const ROW = 30;
const NARROW = 620;
const LEAST_PLOT = 220; // less of a picture says nothing

export const VERDICT_TONE: Record<Verdict, "bad" | "good" | "soft" | "warn"> = {
  regressed: "bad",
  improved: "good",
  same: "soft",
  inconclusive: "warn",
  unverified: "warn",
};

const usable = (v: number | null | undefined): v is number => typeof v === "number" && v > 0 && Number.isFinite(v);

/** "−58 % (−60 % to −56 %)", or that nothing is known. */
export function ratioText(r: ComparedRow): string {
  if (!usable(r.ratio?.value)) return "unknown";
  const { lo, hi } = r.ratio;
  return change(r.ratio.value) + (usable(lo) && usable(hi) ? ` (${change(lo)} to ${change(hi)})` : " (no interval)");
}

/** The value of one side with its unit; null where it is unknown. */
export const side = (r: ComparedRow, which: "base" | "new"): string | null =>
  isKnown(r[which]?.value) ? shown(ofUnit(r.unit)(r[which]!.value!), 40) : null;

/** "24 ms → 35.2 ms"; nothing where neither is known. */
export function sidesText(r: ComparedRow): string {
  const [base, now] = [side(r, "base"), side(r, "new")];
  return base === null && now === null ? "" : `${base ?? UNKNOWN} \u2192 ${now ?? UNKNOWN}`;
}

function ticksOf(reach: number): number[] {
  const steps = reach > 3 ? [2, 4, 8] : reach > 1.6 ? [1.5, 2, 3] : reach > 1.25 ? [1.1, 1.25, 1.5] : [1.05, 1.1, 1.2];
  return [1, ...steps.filter((s) => s <= reach).flatMap((s) => [s, 1 / s])].sort((a, b) => a - b);
}

interface Rows {
  f: Frame;
  x: Scale;
  c: Colours;
  narrow: boolean;
  several: boolean;
  reach: number;
  /** Where the verdicts begin, behind the values of both sides. */
  tail: number;
}

function drawSpan(pen: Pen, row: ComparedRow, y: number, { x, c, reach }: Rows): void {
  const { value, lo, hi } = row.ratio ?? {};
  if (!usable(value)) return;
  const colour = c[VERDICT_TONE[row.verdict]];
  const clamp = (v: number) => x.at(Math.min(reach, Math.max(1 / reach, v)));
  if (usable(lo) && usable(hi)) pen.path(line(clamp(lo), y, clamp(hi), y), { colour, width: 2.5 });
  pen.spot(clamp(value), y, 5, colour);
  if (row.verdict === "inconclusive" || row.verdict === "unverified") pen.spot(clamp(value), y, 3, c.paper);
}

function drawRow(pen: Pen, row: ComparedRow, top: number, r: Rows): void {
  const { f, c } = r;
  const middle = top + (r.narrow ? ROW + 8 : ROW / 2);
  const name = r.several ? `${shown(row.case, 60)}  ${shown(row.metric, 40)}` : shown(row.metric, 40);
  const tail = `${ratioText(row)}  ${row.verdict}`;
  const colour = c[VERDICT_TONE[row.verdict]];
  drawSpan(pen, row, middle, r);
  if (r.narrow) {
    const values = sidesText(row);
    pen.text(f.left, top + 12, fit(name, f.right - f.left - textWidth(values) - 8, "end"), c.ink);
    pen.text(f.right, top + 12, values, c.soft, "end");
    pen.text(f.left, top + 27, fit(tail, f.right - f.left), colour);
    return;
  }
  pen.text(f.left - 12, middle + 4, fit(name, f.left - 16, "end"), row.role === "gate" ? c.ink : c.soft, "end");
  pen.text(f.right + 14, middle + 4, sidesText(row), c.soft);
  pen.text(r.tail, middle + 4, tail, colour);
}

function drawWithin(pen: Pen, rows: ComparedRow[], { f, x, c }: Rows): void {
  const effect = rows.find((r) => r.role === "gate" && usable(r.min_effect))?.min_effect ?? 0;
  if (effect > 0)
    pen.fill(box(x.at(1 / (1 + effect)), f.top, x.at(1 + effect) - x.at(1 / (1 + effect)), f.bottom - f.top), c.soft, 0.14);
  pen.path(line(x.at(1), f.top, x.at(1), f.bottom), { colour: c.soft, width: 1.25 });
}

export function forestScene(rows: ComparedRow[]): SceneOf {
  const several = new Set(rows.map((r) => r.case)).size > 1;
  return (width, c): Scene => {
    const values = rows.reduce((w, r) => Math.max(w, textWidth(sidesText(r))), 0);
    const tails = 14 + Math.max(...rows.map((r) => textWidth(`${ratioText(r)}  ${r.verdict}`)), 0);
    const narrow = width < NARROW || width - 130 - values - tails < LEAST_PLOT;
    const height = narrow ? ROW + 22 : ROW;
    const names = several ? Math.min(280, width * 0.3) : 130;
    const f: Frame = {
      left: narrow ? 10 : names,
      top: 6,
      right: narrow ? width - 16 : width - values - tails - (values ? 30 : 14),
      bottom: 6 + rows.length * height,
    };
    const reach = ratioReach(rows);
    const x = { ...logScale(1 / reach, reach, f.left, f.right), ticks: ticksOf(reach) };
    const all: Rows = { f, x, c, narrow, several, reach, tail: width - tails };
    const draw = (pen: Pen) => {
      axisBelow(pen, f, x, (v) => (Math.abs(v - 1) < 1e-9 ? "no change" : change(v)), "new against base", c);
      drawWithin(pen, rows, all);
      rows.forEach((row, i) => drawRow(pen, row, f.top + i * height, all));
    };
    const targets = rows.map((row, i) => ({
      x: 0,
      y: f.top + i * height,
      w: width,
      h: height,
      text: `${shown(row.case, 80)}, ${shown(row.metric, 40)}: ${[sidesText(row), ratioText(row)].filter(Boolean).join(", ")}, ${row.verdict}${row.why ? `: ${shown(row.why, 200)}` : ""}`,
    }));
    return { height: f.bottom + 42, draw, targets };
  };
}
