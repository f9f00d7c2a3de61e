// SPDX-License-Identifier: MIT
// pareto.ts - accuracy against speed over all cases of all runs of a page, and those that no other beats in both. Pure.
import type { Case, Estimate, Item, RunItem } from "./page";

export interface ParetoPoint {
  run: string;
  case: string;
  speed: Estimate & { value: number };
  unit: string;
  accuracy: Estimate & { value: number };
  /** No other case is at least as fast and as accurate, and better in one. */
  best: boolean;
}

export interface Pareto {
  metric: string;
  points: ParetoPoint[];
  /** Cases whose accuracy was not measured. */
  without: number;
}

const hasValue = <E extends Estimate>(e: E | null | undefined): e is E & { value: number } =>
  typeof e?.value === "number" && Number.isFinite(e.value);

function pointOf(run: string, c: Case): ParetoPoint | null {
  if (!hasValue(c.accuracy) || !hasValue(c.throughput)) return null;
  return { run, case: c.name, speed: c.throughput, unit: c.throughput.unit ?? "/s", accuracy: c.accuracy, best: false };
}

const beats = (a: ParetoPoint, b: ParetoPoint): boolean =>
  a.speed.value >= b.speed.value &&
  a.accuracy.value >= b.accuracy.value &&
  (a.speed.value > b.speed.value || a.accuracy.value > b.accuracy.value);

/** null: no accuracy is known anywhere. */
export function paretoOf(items: Item[]): Pareto | null {
  const runs = items.filter((i): i is RunItem => i.kind === "run");
  const cases = runs.flatMap((r) => (r.document.cases ?? []).map((c) => ({ run: r.name ?? r.document.subject?.name ?? "", c })));
  const points = cases.map(({ run, c }) => pointOf(run, c)).filter((p): p is ParetoPoint => p !== null);
  if (!points.length) return null;
  for (const p of points) p.best = !points.some((other) => beats(other, p));
  points.sort((a, b) => a.speed.value - b.speed.value);
  const metric = cases.find(({ c }) => c.accuracy?.metric)?.c.accuracy?.metric ?? "accuracy";
  return { metric, points, without: cases.length - points.length };
}
