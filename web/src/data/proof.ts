// SPDX-License-Identifier: MIT
// proof.ts - what a recommendation was measured against, row by row: both cases, pairs, ratios with their intervals. Pure.
import { count, interval, isKnown, ratio, surety } from "../ui/format";
import type { Recommendation } from "./page";

export interface ProofRow {
  name: string;
  value: string;
}

/** Empty: it was not proved. The case that was compared is the recommended one, unless the proof names another. */
export function proofRows(advice: Recommendation | null | undefined): ProofRow[] {
  const p = advice?.proof;
  if (!advice || !p) return [];
  const all = { value: p.ratio ?? null, lo: p.ratio_lo, hi: p.ratio_hi };
  const rows: (ProofRow | null)[] = [
    { name: "baseline", value: p.against ?? "" },
    { name: "candidate", value: p.of ?? advice.case ?? "" },
    isKnown(p.pairs) ? { name: "pairs", value: count(p.pairs) } : null,
    { name: `${p.metric ?? "ratio"}, candidate / baseline`, value: interval(all, ratio) },
    isKnown(p.confidence) ? { name: "confidence", value: surety(p.confidence) } : null,
    isKnown(p.cpu?.value) ? { name: "processor time", value: interval(p.cpu!, ratio) } : null,
    isKnown(p.memory?.value) ? { name: "peak memory", value: interval(p.memory!, ratio) } : null,
    { name: "found", value: p.found ?? p.verdict ?? "" },
    p.command ? { name: "again", value: p.command } : null,
  ];
  return rows.filter((r): r is ProofRow => r !== null && r.value !== "");
}
