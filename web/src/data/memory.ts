// SPDX-License-Identifier: MIT
// memory.ts - what each case needed, as rows. Pure.
import type { Case, Estimate } from "./page";

export interface MemoryRow {
  name: string;
  before: number | null;
  mean: number | null;
  peak: number | null;
  perUnit: number | null;
  unit: string;
  /** The runtime's own allocator: most in use, and what it took from the system. */
  arenaUsed: number | null;
  arenaTaken: number | null;
  fragmentation: number | null;
  growth: Estimate | null;
  /** Surely above 0: a leak. */
  leaks: boolean;
}

const num = (v: unknown): number | null => (typeof v === "number" && Number.isFinite(v) ? v : null);

function rowOf(c: Case): MemoryRow {
  const m = c.memory ?? {};
  const growth = m.growth ?? null;
  return {
    name: c.name,
    before: num(m.rss_before),
    mean: num(m.rss_mean),
    peak: num(m.rss_peak),
    perUnit: num(m.per_unit),
    unit: c.unit ?? "run",
    arenaUsed: num(m.arena?.MaxInUse),
    arenaTaken: num(m.arena?.TotalAllocated),
    fragmentation: num(m.fragmentation),
    growth,
    leaks: (num(growth?.lo) ?? 0) > 0,
  };
}

/** Cases of which anything about memory is known. */
export function memoryRows(cases: Case[]): MemoryRow[] {
  return cases.map(rowOf).filter((r) => r.peak !== null || r.mean !== null || r.before !== null);
}
