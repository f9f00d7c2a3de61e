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

/** What is served, over how long it takes: a case each. */
export interface ServingPoint {
  case: string;
  latency: Estimate & { value: number };
  throughput: Estimate & { value: number };
}

export interface Serving {
  /** The percentile that cases are placed by: p95 where it is known of two or more. */
  by: "p95" | "p50";
  unit: string;
  points: ServingPoint[];
  /** Cases that lack one of both. */
  without: number;
  /** The limit on p95 in nanoseconds, and the most throughput of what surely keeps it. */
  limit: number | null;
  best: ServingPoint | null;
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

/* ---- what is served, over how long it takes ---- */

const isEstimate = (e: Estimate | null | undefined): e is Estimate & { value: number } =>
  typeof e?.value === "number" && Number.isFinite(e.value);

/** The limit on p95 that the run was asked to keep, in nanoseconds: of --latency-limit, else the strictest target. */
export function limitOf(run: RunDocument): number | null {
  const asked = run.config?.latency_limit_s;
  if (typeof asked === "number" && asked > 0) return asked * 1e9;
  const targets = (run.targets ?? []).filter((t) => t.metric === "latency.p95" && (t.op === "<=" || t.op === "<"));
  const values = targets.map((t) => t.value).filter((v): v is number => typeof v === "number" && v > 0);
  return values.length ? Math.min(...values) : null;
}

const pointsBy = (cases: Case[], by: "p95" | "p50"): ServingPoint[] =>
  cases.flatMap((c) => {
    const latency = c.latency_ns?.[by];
    return isEstimate(latency) && isEstimate(c.throughput) ? [{ case: c.name, latency, throughput: c.throughput }] : [];
  });

/** The best case among those whose whole interval of p95 lies within the limit. */
function bestWithin(points: ServingPoint[], limit: number | null): ServingPoint | null {
  const within = points.filter((p) => limit !== null && typeof p.latency.hi === "number" && p.latency.hi <= limit);
  return within.reduce<ServingPoint | null>((b, p) => (b === null || p.throughput.value > b.throughput.value ? p : b), null);
}

/** null: there are not two cases to be weighed against each other. */
export function servingOf(run: RunDocument): Serving | null {
  const cases = (run.cases ?? []).filter((c) => c.throughput || c.latency_ns);
  const tails = pointsBy(cases, "p95");
  const by = tails.length > 1 ? "p95" : "p50";
  const points = by === "p95" ? tails : pointsBy(cases, "p50");
  if (points.length < 2) return null;
  const limit = by === "p95" ? limitOf(run) : null;
  const unit = cases.find((c) => c.throughput?.unit)?.throughput?.unit ?? "/s";
  points.sort((a, b) => a.latency.value - b.latency.value);
  return { by, unit, points, without: cases.length - points.length, limit, best: bestWithin(points, limit) };
}
