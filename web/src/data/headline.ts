// SPDX-License-Identifier: MIT
// headline.ts - the few numbers of a run that stand first. Pure.
import { bytes, count, duration, interval, isKnown, known, percent, rate } from "../ui/format";
import type { Case, RunDocument, Target } from "./page";

export interface Tile {
  name: string;
  value: string;
  /** Interval, case, reason: what makes the number honest. */
  detail: string;
}

type Pick = (c: Case) => number | null | undefined;

/** The case where `pick` is least (or most), of those where it is known. */
export function bestCase(cases: readonly Case[], pick: Pick, most = false): Case | null {
  let best: Case | null = null;
  for (const c of cases) {
    const v = pick(c);
    if (!isKnown(v)) continue;
    const held = best ? (pick(best) as number) : null;
    if (held === null || (most ? v > held : v < held)) best = c;
  }
  return best;
}

const about = (text: string, c: Case, of: number): string => (of > 1 ? `${text}${text ? " · " : ""}${c.name}` : text);
const range = (text: string): string => text.match(/\((.*)\)$/)?.[1] ?? "no interval";

function latencyTile(cases: readonly Case[]): Tile | null {
  const c = bestCase(cases, (x) => x.latency_ns?.p50?.value);
  if (!c) return null;
  const p50 = c.latency_ns!.p50!;
  return {
    name: cases.length > 1 ? "Lowest median latency" : "Median latency",
    value: duration(p50.value!),
    detail: about(range(interval(p50, duration)), c, cases.length),
  };
}

function throughputTile(cases: readonly Case[]): Tile | null {
  const c = bestCase(cases, (x) => x.throughput?.value, true);
  if (!c) return null;
  const t = c.throughput!;
  const format = rate(t.unit);
  return {
    name: cases.length > 1 ? "Highest throughput" : "Throughput",
    value: format(t.value!),
    detail: about(range(interval(t, format)), c, cases.length),
  };
}

function memoryTile(cases: readonly Case[]): Tile | null {
  const c = bestCase(cases, (x) => x.memory?.rss_peak, true);
  return (
    c && {
      name: "Peak memory",
      value: bytes(c.memory!.rss_peak!),
      detail: about("resident, of the process", c, cases.length),
    }
  );
}

function targetTile(targets: readonly Target[]): Tile | null {
  if (!targets.length) return null;
  const passed = targets.filter((t) => t.verdict === "pass").length;
  const failed = targets.filter((t) => t.verdict === "fail").length;
  const open = targets.length - passed - failed;
  return {
    name: "Targets met",
    value: `${passed} of ${targets.length}`,
    detail: `${failed} missed, ${open} undecided`,
  };
}

function selfTile(cases: readonly Case[]): Tile | null {
  const c = bestCase(cases, (x) => x.self?.share, true);
  if (!c) return null;
  return {
    name: "Cost of tare itself",
    value: percent(c.self!.share!, 2),
    detail: `${known(c.self!.ns_per_run, duration)} per run at most`,
  };
}

function sampleTile(cases: readonly Case[]): Tile | null {
  const all = cases.map((c) => c.samples).filter(isKnown);
  if (!all.length) return null;
  const total = all.reduce((a, b) => a + b, 0);
  return {
    name: "Measured runs",
    value: count(total),
    detail: cases.length > 1 ? `in ${cases.length} cases` : "in one case",
  };
}

export function headlineNumbers(run: RunDocument): Tile[] {
  const cases = run.cases ?? [];
  const tiles = [
    latencyTile(cases),
    throughputTile(cases),
    memoryTile(cases),
    targetTile(run.targets ?? []),
    sampleTile(cases),
    selfTile(cases),
  ];
  return tiles.filter((t): t is Tile => t !== null);
}
