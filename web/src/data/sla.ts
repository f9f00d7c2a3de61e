// SPDX-License-Identifier: MIT
// sla.ts - what the page of requests computes of a document tare.sla/1: series of percentiles, the heat map. Pure.
import type { Estimate, SlaDocument, SlaLatency, SlaSpan } from "./document.gen";
import type { Cell, Grid } from "./grid";

export const PERCENTILES: readonly [keyof SlaLatency & ("p50" | "p90" | "p95" | "p99" | "p999" | "p9999"), string][] = [
  ["p50", "p50"],
  ["p90", "p90"],
  ["p95", "p95"],
  ["p99", "p99"],
  ["p999", "p99.9"],
  ["p9999", "p99.99"],
];

export const clock = (ms: number | null | undefined): string =>
  typeof ms === "number" ? new Date(ms).toISOString().slice(0, 16).replace("T", " ") : "";

const stepsOf = (d: SlaDocument): SlaSpan[] => d.steps ?? [];

export const estimates = (d: SlaDocument, key: (typeof PERCENTILES)[number][0]): (Estimate | null)[] =>
  stepsOf(d).map((s) => s.latency_ns?.[key] ?? null);

export interface Heat {
  /** Closing edge of each row in ns, the lowest first. */
  edges: number[];
  /** Begin of each column, unix ms. */
  at: number[];
  /** cells[column][row] */
  cells: number[][];
  most: number;
}

/** Requests by step and latency. Buckets of the steps begin where each has something: they are brought to one scale. */
export function heatOf(d: SlaDocument): Heat | null {
  const steps = stepsOf(d);
  const known = steps.map((s) => s.latency_ns?.histogram ?? null);
  const some = known.filter((h) => h?.counts?.length);
  if (!some.length) return null;
  const scale = some[0]!.scale;
  const first = Math.min(...some.map((h) => h!.offset));
  const last = Math.max(...some.map((h) => h!.offset + h!.counts.length - 1));
  const edges: number[] = [];
  for (let i = first; i <= last; i++) edges.push(2 ** ((i + 1) / 2 ** scale));
  const cells = known.map((h) => {
    const column = new Array<number>(edges.length).fill(0);
    h?.counts.forEach((n, i) => {
      column[h.offset - first + i] = n;
    });
    return column;
  });
  return { edges, at: steps.map((s) => s.from_ms ?? 0), cells, most: Math.max(...cells.flat()) };
}

export function heatGrid(heat: Heat, format: (ns: number) => string): Grid {
  const rows: Cell[][] = [];
  heat.cells.forEach((column, x) => {
    column.forEach((n, y) => {
      if (n) rows.push([clock(heat.at[x]), heat.edges[y], n]);
    });
  });
  return {
    columns: [{ title: "from, UTC", text: true }, { title: "took at most, ns", format }, { title: "requests" }],
    rows,
  };
}
