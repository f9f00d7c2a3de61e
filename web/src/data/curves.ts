// SPDX-License-Identifier: MIT
// curves.ts - the cases of a run as curves over one parameter: batch, length, threads. Pure. The same rules as the C
// side: cases belong to one curve when they differ in that parameter only, and a parameter that merely repeats it
// (the model's own name for the batch dimension) does not count.
import type { Case, Estimate, Finding, Json, RunDocument } from "./page";

export interface SweepPoint {
  x: number;
  case: Case;
}

export interface Sweep {
  param: string;
  /** What else was set, as far as it differs between curves: "seq=128, threads=2". */
  fixed: string;
  /** Ascending, each x once, at least two. */
  points: SweepPoint[];
}

/** The curves over one parameter on common places; null where a curve has none. */
export interface Aligned {
  x: number[];
  curves: { label: string; value: (number | null)[]; lo: (number | null)[]; hi: (number | null)[] }[];
}

export interface Knee {
  x: number;
  case: string;
  why: string;
}

const FIRST = ["batch", "seq", "length", "threads", "concurrency"];
const FOUND_OUT = new Set(["nan_outputs"]); // results, not settings
const GAIN_PER_DOUBLING = 0.1; // less than this is not worth a doubling
const GAINS = new Set(["batch", "threads", "concurrency"]); // more of these is meant to gain; a longer text is not

const isSetting = (key: string, v: Json | undefined): boolean => !FOUND_OUT.has(key) && (v === null || typeof v !== "object");
const paramOf = (c: Case, key: string): Json | undefined => c.params?.[key];

function settingsOf(cases: Case[]): string[] {
  const keys = new Set<string>();
  for (const c of cases) for (const [key, v] of Object.entries(c.params ?? {})) if (isSetting(key, v)) keys.add(key);
  return [...keys];
}

function varies(cases: Case[], key: string): boolean {
  return new Set(cases.map((c) => JSON.stringify(paramOf(c, key) ?? null))).size > 1;
}

const sameEverywhere = (cases: Case[], a: string, b: string): boolean => cases.every((c) => paramOf(c, a) === paramOf(c, b));
const rank = (key: string): number => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);

/** Numeric parameters that take several values, the usual ones first, each quantity under one name. */
function sweptParams(cases: Case[], keys: string[]): string[] {
  const numeric = keys.filter(
    (k) => varies(cases, k) && cases.every((c) => ["number", "undefined"].includes(typeof paramOf(c, k))),
  );
  const ordered = numeric.sort((a, b) => rank(a) - rank(b));
  return ordered.filter((k, i) => !ordered.slice(0, i).some((before) => sameEverywhere(cases, before, k)));
}

function fixedText(c: Case, others: string[]): string {
  return others
    .filter((k) => paramOf(c, k) !== undefined)
    .map((k) => `${k}=${String(paramOf(c, k))}`)
    .join(", ");
}

function sweepsOver(cases: Case[], keys: string[], param: string): Sweep[] {
  const others = keys.filter((k) => k !== param && varies(cases, k) && !sameEverywhere(cases, k, param));
  const groups = new Map<string, Map<number, Case>>();
  for (const c of cases) {
    const x = paramOf(c, param);
    if (typeof x !== "number" || !Number.isFinite(x)) continue;
    const fixed = fixedText(c, others);
    const group = groups.get(fixed) ?? new Map<number, Case>();
    groups.set(fixed, group.set(x, c));
  }
  const sweeps = [...groups].map(([fixed, group]) => ({
    param,
    fixed,
    points: [...group].map(([x, c]) => ({ x, case: c })).sort((a, b) => a.x - b.x),
  }));
  return sweeps.filter((s) => s.points.length > 1);
}

/** All sweeps of a run, by parameter. */
export function sweepsOf(cases: Case[]): Map<string, Sweep[]> {
  const keys = settingsOf(cases);
  const found = sweptParams(cases, keys).map((p): [string, Sweep[]] => [p, sweepsOver(cases, keys, p)]);
  return new Map(found.filter(([, sweeps]) => sweeps.length > 0));
}

export function align(sweeps: Sweep[], pick: (c: Case) => Estimate | null | undefined): Aligned {
  const x = [...new Set(sweeps.flatMap((s) => s.points.map((p) => p.x)))].sort((a, b) => a - b);
  const curves = sweeps.map((s) => {
    const at = new Map(s.points.map((p) => [p.x, pick(p.case)]));
    const column = (key: keyof Estimate) => x.map((v) => at.get(v)?.[key] ?? null);
    return { label: s.fixed, value: column("value"), lo: column("lo"), hi: column("hi") };
  });
  return { x, curves };
}

/** Places that double, or nearly, are read on a logarithmic axis. */
export function wantsLog(x: number[]): boolean {
  const first = x[0];
  const last = x[x.length - 1];
  return x.length > 2 && first !== undefined && last !== undefined && first > 0 && last / first >= 8;
}

/** The most that a doubling from a to b can gain, by the bounds of both; NaN: not known. */
function gainAtMost(a: SweepPoint, b: SweepPoint): number {
  const lo = a.case.throughput?.lo;
  const hi = b.case.throughput?.hi;
  const doublings = Math.log2(b.x / a.x);
  if (typeof lo !== "number" || typeof hi !== "number" || !(lo > 0) || !(doublings > 0)) return NaN;
  return (hi / lo) ** (1 / doublings);
}

function kneeByBounds(sweep: Sweep): Knee | null {
  const p = sweep.points;
  for (let i = 0; i + 1 < p.length; i++) {
    const flat = p.slice(i, -1).every((a, k) => gainAtMost(a, p[i + k + 1]!) < 1 + GAIN_PER_DOUBLING);
    if (flat)
      return { x: p[i]!.x, case: p[i]!.case.name, why: `from ${sweep.param} ${p[i]!.x} on, a doubling gains less than 10 %` };
  }
  return null;
}

function kneeFound(sweep: Sweep, findings: Finding[]): Knee | null {
  const f = findings.find(
    (one) => one.id === `${sweep.param}.diminishing-returns` && sweep.points.some((p) => p.case.name === one.case),
  );
  const point = f && sweep.points.find((p) => p.case.name === f.case);
  return f && point ? { x: point.x, case: point.case.name, why: f.title ?? "" } : null;
}

/** Is more of this parameter meant to gain throughput, so that one asks where it stops? */
export const hasKnees = (param: string): boolean => GAINS.has(param);

/** Where throughput stops growing: the finding of the run, or else what the bounds show by the same rule. */
export function kneeOf(sweep: Sweep, run: RunDocument): Knee | null {
  if (run.config?.load === "open" || !hasKnees(sweep.param)) return null; // open: throughput is what was asked for
  return kneeFound(sweep, run.findings ?? []) ?? kneeByBounds(sweep);
}
