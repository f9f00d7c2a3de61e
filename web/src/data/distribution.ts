// SPDX-License-Identifier: MIT
// distribution.ts - how single times are spread: bars of a histogram, the curve of percentiles, the series in the order
// it was taken. Pure; written for a hundred thousand samples, so no spreading of arrays into arguments.
import type { Case, Histogram } from "./page";

export interface Bar {
  lo: number;
  hi: number;
  count: number;
}

/** Times (ns) that a share of all runs did not exceed. */
export interface Quantiles {
  share: number[];
  value: number[];
}

export interface SampleSeries {
  index: number[];
  value: number[];
  /** The same where a sample is slower than the limit, else null. */
  outlier: (number | null)[];
  outliers: number;
}

const BARS_MAX = 64;

/** Lower edge of bucket i, ns. */
const edge = (h: Histogram, i: number): number => 2 ** ((h.offset + i) * 2 ** -h.scale);

function merged(h: Histogram, from: number, to: number, join: number): Bar[] {
  const bars: Bar[] = [];
  for (let i = from; i < to; i += join) {
    const end = Math.min(i + join, to);
    let count = 0;
    for (let k = i; k < end; k++) count += h.counts[k] ?? 0;
    bars.push({ lo: edge(h, i), hi: edge(h, i + join), count });
  }
  return bars;
}

/** Buckets from the first to the last that counts anything, joined until there are at most BARS_MAX. */
export function histogramBars(h: Histogram | null | undefined): Bar[] {
  if (!h || !Array.isArray(h.counts)) return [];
  const from = h.counts.findIndex((n) => n > 0);
  if (from < 0) return h.zero ? [{ lo: 0, hi: 1, count: h.zero }] : [];
  let to = h.counts.length;
  while (to > from && !((h.counts[to - 1] ?? 0) > 0)) to--;
  const bars = merged(h, from, to, Math.ceil((to - from) / BARS_MAX));
  return h.zero ? [{ lo: 0, hi: bars[0]!.lo, count: h.zero }, ...bars] : bars;
}

/** Shares to read a sorted list of n at: dense towards 1, each only where n samples can tell it. */
function shares(n: number): number[] {
  const all: number[] = [];
  for (let i = 0; i <= 40; i++) all.push(i / 50);
  for (let nines = 0.2; 1 / nines <= n && nines > 1e-9; nines *= 0.85) all.push(1 - nines);
  all.push(1 - 1 / n);
  return [...new Set(all.filter((s) => s >= 0 && s < 1 && (1 - s) * n >= 0.999))].sort((a, b) => a - b);
}

export function quantilesOfSamples(samples: ArrayLike<number>): Quantiles {
  const sorted = Float64Array.from(samples).sort();
  if (sorted.length === 0) return { share: [], value: [] };
  const share = shares(sorted.length);
  return { share, value: share.map((s) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(s * sorted.length) - 1))]!) };
}

export function quantilesOfBars(bars: Bar[]): Quantiles {
  let total = 0;
  for (const b of bars) total += b.count;
  if (!total) return { share: [], value: [] };
  const share = shares(total);
  let i = 0;
  let below = 0;
  const value = share.map((s) => {
    while (i + 1 < bars.length && below + bars[i]!.count < s * total) below += bars[i++]!.count;
    return bars[i]!.hi;
  });
  return { share, value };
}

/** Where a share stands on an axis that gives every nine the same room: 0.9 is 1, 0.99 is 2. */
export const nines = (share: number): number => -Math.log10(1 - share);
export const shareOfNines = (x: number): number => 1 - 10 ** -x;

export function sampleSeries(samples: ArrayLike<number>, limit: number | null | undefined): SampleSeries {
  const n = samples.length;
  const index = new Array<number>(n);
  const value = new Array<number>(n);
  const outlier = new Array<number | null>(n);
  let outliers = 0;
  for (let i = 0; i < n; i++) {
    const v = samples[i]!;
    const out = typeof limit === "number" && v > limit;
    index[i] = i + 1;
    value[i] = v;
    outlier[i] = out ? v : null;
    if (out) outliers++;
  }
  return { index, value, outlier, outliers };
}

const plural = (n: number, one: string): string => `${n.toLocaleString("en-US")} ${one}${n === 1 ? "" : "s"}`;

function explainedText(count: number, explained: number): string {
  const which = explained === count ? "All" : explained === 0 ? "None" : explained.toLocaleString("en-US");
  const rest = explained && explained < count ? `; for ${plural(count - explained, "run")} there is no explanation` : "";
  return ` ${which} of them coincide with a context switch, steal or throttling${rest}.`;
}

/** What is to be said of slow runs; empty: nothing is known of them. */
export function outlierText(c: Case, time: (ns: number) => string): string {
  const { count, explained, limit_ns: limit } = c.outliers ?? {};
  if (typeof count !== "number") return "";
  const slower = typeof limit === "number" ? ` slower than ${time(limit)}` : " far slower than the others";
  if (count === 0) return `No run was${slower}.`;
  return `${plural(count, "run")}${slower}.${typeof explained === "number" ? explainedText(count, explained) : ""}`;
}
