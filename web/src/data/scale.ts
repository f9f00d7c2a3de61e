// SPDX-License-Identifier: MIT
// scale.ts - from values to places and back to the few round values that an axis names. Pure.

export interface Scale {
  /** The place of a value, in the units of the range. */
  at: (v: number) => number;
  ticks: number[];
  lo: number;
  hi: number;
}

/** The round number (1, 2, 2.5 or 5 times a power of ten) at or above `rough`. */
export function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = [1, 2, 2.5, 5, 10].find((m) => m * power >= rough * (1 - 1e-9)) ?? 10;
  return lead * power;
}

export function linearTicks(lo: number, hi: number, want = 5): number[] {
  if (!(hi > lo)) return [lo];
  const step = roundStep((hi - lo) / Math.max(1, want));
  const first = Math.ceil(lo / step - 1e-9);
  const last = Math.floor(hi / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
}

/** Powers of ten; with few of them also 2 and 5 times these. */
export function logTicks(lo: number, hi: number): number[] {
  const from = Math.floor(Math.log10(lo));
  const to = Math.ceil(Math.log10(hi));
  const leads = hi / lo <= 300 ? [1, 2, 5] : [1];
  const all: number[] = [];
  for (let p = from; p <= to; p++) for (const m of leads) all.push(m * 10 ** p);
  const inside = all.filter((v) => v >= lo * (1 - 1e-9) && v <= hi * (1 + 1e-9));
  const every = Math.ceil(inside.length / 8);
  return inside.filter((_, i) => i % every === 0);
}

export function linearScale(lo: number, hi: number, from: number, to: number, want = 5): Scale {
  const span = hi > lo ? hi - lo : 1;
  return { at: (v) => from + ((v - lo) / span) * (to - from), ticks: linearTicks(lo, hi, want), lo, hi };
}

/** For values above 0. */
export function logScale(lo: number, hi: number, from: number, to: number): Scale {
  const base = Math.log(lo);
  const span = hi > lo ? Math.log(hi) - base : 1;
  return { at: (v) => from + ((Math.log(v) - base) / span) * (to - from), ticks: logTicks(lo, hi), lo, hi };
}

/** The least and greatest of what is known; null: nothing is. */
export function extent(values: Iterable<number | null | undefined>): [number, number] | null {
  let lo = Infinity;
  let hi = -Infinity;
  for (const v of values) {
    if (typeof v !== "number" || !Number.isFinite(v)) continue;
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  return lo <= hi ? [lo, hi] : null;
}

/** Wider by a share of its span on both sides. */
export function padded([lo, hi]: [number, number], share: number): [number, number] {
  const pad = (hi > lo ? hi - lo : Math.abs(hi) || 1) * share;
  return [lo - pad, hi + pad];
}
