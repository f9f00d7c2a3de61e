// SPDX-License-Identifier: MIT
// tokens.ts - times to tokens and between them as curves: how each is spread in one case, and how they go over what was
// swept. Pure. What falls on a request that was not answered is unknown, and so is left out.
import { histogramBars, nines, quantilesOfBars } from "./distribution";
import type { Case, Estimate } from "./page";

export type TimeKey = "ttft_ns" | "gap_ns" | "gap_max_ns" | "tpot_ns";
export const TIMES: readonly { key: TimeKey; label: string }[] = [
  { key: "ttft_ns", label: "to the first token" },
  { key: "gap_ns", label: "between events" },
  { key: "gap_max_ns", label: "longest gap of an answer" },
  { key: "tpot_ns", label: "per output token" },
];

/** Shares at which all curves are read, and the place of each on an axis that gives every nine the same room. */
export const SHARES: readonly number[] = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];
export const PLACES: readonly number[] = SHARES.map(nines);

/** The times (ns) that these shares did not exceed; null where there are too few to tell. */
export function spreadOf(c: Case, key: TimeKey): (number | null)[] {
  const q = quantilesOfBars(histogramBars(c.stream?.[key]?.histogram));
  const most = q.share[q.share.length - 1] ?? -1;
  return SHARES.map((s) => {
    if (s > most) return null;
    const i = q.share.findIndex((v) => v >= s - 1e-9);
    return i < 0 ? null : q.value[i]!;
  });
}

export const timeOf =
  (key: TimeKey, q: "p50" | "p95" | "p99") =>
  (c: Case): Estimate | null =>
    c.stream?.[key]?.[q] ?? null;

export const tokensOf = (c: Case): Estimate | null => c.stream?.tokens_per_s ?? null;
export const goodputOf = (c: Case): Estimate | null => c.stream?.goodput ?? null;
export const isStreamed = (c: Case): boolean => !!c.stream;
