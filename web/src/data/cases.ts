// SPDX-License-Identifier: MIT
// cases.ts - every case of a run as one row of numbers: what a reader of single values, or a spreadsheet, wants. Pure.
import type { Grid } from "./grid";
import type { Case } from "./page";
import { bytes, count, duration, isKnown, number, percent } from "../ui/format";

const time = (v: number): string => duration(v, 4);

/** Was the case run at all? One that was only looked at has no row worth reading. */
export const isMeasured = (c: Case): boolean => !!(c.samples || c.latency_ns || c.throughput || c.memory);

/** "> 1.7 s": what a percentile exceeds that falls on a run which was due and not served, or failed. */
export function bound(c: Case, key: "p50" | "p90" | "p95" | "p99" | "p999"): string | undefined {
  const least = c.latency_ns?.at_least?.[key];
  return isKnown(least) ? `> ${time(least)}` : undefined;
}

/** A throughput's unit may differ from case to case; then each row says its own. */
export function gridOfCases(cases: readonly Case[]): Grid {
  const units = [...new Set(cases.map((c) => c.throughput?.unit).filter((u) => typeof u === "string"))];
  const columns: Grid["columns"] = [
    { title: "case", text: true },
    { title: "runs", format: count },
    { title: "median (ns)", format: time },
    { title: "from (ns)", format: time },
    { title: "to (ns)", format: time },
    { title: "p95 (ns)", format: time },
    { title: "p99 (ns)", format: time },
    { title: `throughput${units.length === 1 ? ` (${units[0]})` : ""}`, format: (v) => number(v, 4) },
    { title: "peak memory (B)", format: bytes },
    { title: "load (ns)", format: time },
    { title: "tare itself", format: percent },
  ];
  if (units.length > 1) columns.push({ title: "unit", text: true });
  const rows = cases.map((c) => [
    c.name,
    c.samples,
    c.latency_ns?.p50?.value ?? bound(c, "p50"),
    c.latency_ns?.p50?.lo,
    c.latency_ns?.p50?.hi,
    c.latency_ns?.p95?.value ?? bound(c, "p95"),
    c.latency_ns?.p99?.value ?? bound(c, "p99"),
    c.throughput?.value,
    c.memory?.rss_peak,
    c.load_ns,
    c.self?.share,
    ...(units.length > 1 ? [c.throughput?.unit] : []),
  ]);
  return { columns, rows };
}
