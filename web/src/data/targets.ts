// SPDX-License-Identifier: MIT
// targets.ts - how far each target was met: as a share of the limit, turned so that 1 and above is good. Pure.
import { bytes, duration, isKnown, number, percent, rowOf } from "../ui/format";
import type { Target } from "./page";

export interface TargetRow {
  /** "latency.p95 ≤ 100 ms" */
  name: string;
  case: string;
  limit: number;
  unit: string;
  achieved: number | null;
  /** Of the limit, 1 is just met, more is better; null: not measured. */
  met: number | null;
  verdict: string;
  confidence: number | null;
  text: string;
  achievedText: string;
}

const SIGNS: Record<string, string> = { "<=": "≤", ">=": "≥", "<": "<", ">": ">", "==": "=" };

/** A value in the unit the document gives; families of metrics without one have their own. */
export function targetValue(t: Target, v: number): string {
  const unit = t.unit ?? "";
  if (unit === "ns" || (!unit && t.metric.startsWith("latency"))) return duration(v);
  if (unit === "bytes" || unit === "B" || (!unit && t.metric.startsWith("memory"))) return bytes(v);
  if (unit === "share") return percent(v);
  return unit ? `${number(v, 4)}\u00a0${unit}` : number(v, 4);
}

/** Met by how much: a limit from above turns the ratio around. */
export function metBy(t: Target): number | null {
  if (!isKnown(t.achieved) || !isKnown(t.value)) return null;
  const under = t.op.startsWith("<");
  if (t.value === 0) return (under ? t.achieved <= 0 : t.achieved >= 0) ? 1 : 0;
  if (under) return t.achieved === 0 ? null : t.value / t.achieved;
  return t.achieved / t.value;
}

export interface TargetGroup {
  name: string;
  rows: TargetRow[];
  passed: number;
  failed: number;
  /** Of the whole: failed where any case failed. */
  verdict: string;
}

/** The cases of each target together, in the order the targets were given. */
export function targetGroups(rows: readonly TargetRow[]): TargetGroup[] {
  const groups = new Map<string, TargetRow[]>();
  for (const r of rows) groups.set(r.name, [...(groups.get(r.name) ?? []), r]);
  return [...groups].map(([name, list]) => {
    const passed = list.filter((r) => r.verdict === "pass").length;
    const failed = list.filter((r) => r.verdict === "fail").length;
    return {
      name,
      rows: list,
      passed,
      failed,
      verdict: failed ? "fail" : passed === list.length ? "pass" : "inconclusive",
    };
  });
}

const MISSED: Record<string, string> = { "<=": ">", "<": "≥", ">=": "<", ">": "≤" };

/** Counted, though too few for a value: on which side of the limit it is, is known. */
function sideOf(t: Target): string {
  if (t.verdict !== "pass" && t.verdict !== "fail") return "unknown";
  const side = rowOf(t.verdict === "pass" ? SIGNS : MISSED, t.op);
  return side ? `${side} ${targetValue(t, t.value)}` : "unknown";
}

export function targetRows(targets: readonly Target[]): TargetRow[] {
  return targets.map((t) => {
    const name = `${t.metric} ${rowOf(SIGNS, t.op) ?? t.op} ${targetValue(t, t.value)}`;
    const achievedText = isKnown(t.achieved) ? targetValue(t, t.achieved) : sideOf(t);
    const of = t.case ? ` in ${t.case}` : "";
    return {
      name,
      case: t.case ?? "",
      limit: t.value,
      unit: t.unit ?? "",
      achieved: isKnown(t.achieved) ? t.achieved : null,
      met: metBy(t),
      verdict: t.verdict ?? "unknown",
      confidence: isKnown(t.confidence) ? t.confidence : null,
      achievedText,
      text: `${name}: ${achievedText}${of}, ${t.verdict ?? "no verdict"}`,
    };
  });
}
