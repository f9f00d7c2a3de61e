// SPDX-License-Identifier: MIT
// comparison.ts - a tare.comparison/1 document as rows: one metric of one case on both sides, its ratio with the interval
// and the verdict. Pure. Whether up is good depends on the metric, so rows carry it.
import type {
  ComparisonCase,
  ComparisonDifference,
  ComparisonMetric,
  ComparisonNote,
  ComparisonUnmatched,
} from "./document.gen";
import { number } from "../ui/format";
import type { JsonObject } from "./page";

export type Verdict = "regressed" | "improved" | "same" | "inconclusive" | "unverified";
export const VERDICTS: readonly Verdict[] = ["regressed", "improved", "same", "inconclusive", "unverified"];

const SENTENCES: Record<Verdict, string> = {
  regressed: "new is worse than base",
  improved: "new is better than base",
  same: "no change between base and new",
  inconclusive: "it cannot be told yet whether new differs from base",
  unverified: "not judged: how much runs differ by themselves is unknown",
};

export interface ComparedRow extends ComparisonMetric {
  case: string;
  verdict: Verdict;
}

export interface Comparison {
  verdict: Verdict;
  method: string;
  base: string;
  new: string;
  rows: ComparedRow[];
  differences: ComparisonDifference[];
  unmatched: ComparisonUnmatched[];
  notes: { severity: string; text: string; case?: string }[];
  reproduce: string | null;
}

const asList = <T>(v: unknown): T[] => (Array.isArray(v) ? (v as T[]) : []);
const verdictOf = (v: unknown): Verdict => VERDICTS.find((known) => known === v) ?? "unverified";
const nameOf = (side: unknown): string => String((side as { name?: string } | null)?.name ?? "unknown");

export function readComparison(doc: JsonObject): Comparison {
  const cases = asList<ComparisonCase>(doc.cases);
  return {
    verdict: verdictOf(doc.verdict),
    method: String(doc.method ?? "unknown"),
    base: nameOf(doc.base),
    new: nameOf(doc.new),
    rows: cases.flatMap((c) =>
      asList<ComparisonMetric>(c.metrics).map((m) => ({ ...m, case: c.name, verdict: verdictOf(m.verdict) })),
    ),
    differences: asList(doc.differences),
    unmatched: asList(doc.unmatched),
    notes: [
      ...asList<ComparisonNote>(doc.notes),
      ...cases.flatMap((c) => asList<ComparisonNote>(c.notes).map((n) => ({ ...n, case: c.name }))),
    ],
    reproduce: typeof doc.reproduce === "string" ? doc.reproduce : null,
  };
}

const isRatio = (v: number | null | undefined): v is number => typeof v === "number" && v > 0 && Number.isFinite(v);

/** Ratios from 1/r to r that show all rows, and no further than a factor that keeps small changes readable. */
export function ratioReach(rows: ComparedRow[]): number {
  let reach = 1.1;
  for (const row of rows)
    for (const v of [row.ratio?.value, row.ratio?.lo, row.ratio?.hi]) if (isRatio(v)) reach = Math.max(reach, v, 1 / v);
  return Math.min(reach * 1.05, 8);
}

const weight = (r: ComparedRow): number => VERDICTS.indexOf(r.verdict) + (r.role === "gate" ? 0 : 0.5);

/** Case by case, the one that decides first; in a case the rows that decide first, then by how far they moved. */
export function ordered(rows: ComparedRow[]): ComparedRow[] {
  const moved = (r: ComparedRow) => (isRatio(r.ratio?.value) ? Math.abs(Math.log(r.ratio.value)) : -1);
  const byWeight = (a: ComparedRow, b: ComparedRow) => weight(a) - weight(b) || moved(b) - moved(a);
  const cases = new Map<string, ComparedRow[]>();
  for (const r of [...rows].sort(byWeight)) cases.set(r.case, [...(cases.get(r.case) ?? []), r]);
  return [...cases.values()].flat();
}

const times = (v: number): string => `${number(v)}x`;

/** As people say it: "new is 1.62x as fast as base (1.58x to 1.7x)"; else the verdict as a sentence. The text of
 * `tare compare` begins with the same words. */
export function answerOf(c: Comparison): string {
  // "latency": documents of before 0.1 had no other
  const medians = c.rows.filter((r) => /^latency(\.p50)?$/.test(r.metric) && isRatio(r.ratio?.value));
  const told = medians.find((r) => r.verdict === c.verdict) ?? null;
  const { value, lo, hi } = told?.ratio ?? {};
  const where = told && new Set(c.rows.map((r) => r.case)).size > 1 ? ` at ${told.case}` : "";
  if (c.verdict === "improved" && isRatio(value) && isRatio(lo) && isRatio(hi))
    return `new is ${times(1 / value)} as fast as base (${times(1 / hi)} to ${times(1 / lo)})${where}`;
  if (c.verdict === "regressed" && isRatio(value) && isRatio(lo) && isRatio(hi))
    return `new takes ${times(value)} as long as base (${times(lo)} to ${times(hi)})${where}`;
  return SENTENCES[c.verdict];
}

export function countVerdicts(rows: ComparedRow[]): [Verdict, number][] {
  return VERDICTS.map((v): [Verdict, number] => [v, rows.filter((r) => r.verdict === v).length]).filter(([, n]) => n > 0);
}
