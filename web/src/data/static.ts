// SPDX-License-Identifier: MIT
// static.ts - what a graph costs by its arithmetic, before any clock. Pure. A total that leaves out nodes whose cost is
// unknown is a lower bound and says so.
import { bytes, count, isKnown, si } from "../ui/format";
import type { Grid } from "./grid";
import type { Cost, Static } from "./page";

interface Row {
  name: string;
  format: (v: number) => string;
  get(s: Static): number | null | undefined;
}

const cost = (s: Static): Cost => s.cost_per_run ?? s.cost ?? {};
const moved = (s: Static): number | null => {
  const { bytes_read: r, bytes_written: w } = cost(s);
  return isKnown(r) && isKnown(w) ? r + w : null;
};

const ROWS: Row[] = [
  { name: "parameters", format: (v) => si(v), get: (s) => s.parameters },
  { name: "size of the parameters", format: bytes, get: (s) => s.parameter_bytes },
  { name: "nodes", format: count, get: (s) => s.nodes },
  { name: "nodes of unknown cost", format: count, get: (s) => s.unknown_nodes },
  { name: "multiply-accumulates per run", format: (v) => si(v, "MAC"), get: (s) => cost(s).macs },
  { name: "integer multiply-accumulates per run", format: (v) => si(v, "MAC"), get: (s) => cost(s).int_macs },
  { name: "floating-point operations per run", format: (v) => si(v, "FLOP"), get: (s) => cost(s).flops },
  { name: "bytes that have to move per run", format: bytes, get: moved },
  { name: "activations, sum", format: bytes, get: (s) => s.activation_sum },
  { name: "activations, peak", format: bytes, get: (s) => s.activation_peak },
  { name: "activations, arena", format: bytes, get: (s) => s.activation_arena },
];

export interface StaticLine {
  name: string;
  file: string | null;
  optimized: string | null;
}

/** One line per quantity that either graph has; null is unknown. */
export function staticLines(file: Static | null | undefined, optimized: Static | null | undefined): StaticLine[] {
  const show = (r: Row, s: Static | null | undefined): string | null => {
    const v = s ? r.get(s) : null;
    return isKnown(v) ? r.format(v) : null;
  };
  return ROWS.map((r) => ({ name: r.name, file: show(r, file), optimized: show(r, optimized) })).filter(
    (l) => l.file !== null || l.optimized !== null,
  );
}

export const isLowerBound = (s: Static | null | undefined): boolean => !!s && cost(s).complete === false;
export const isUpperBound = (s: Static | null | undefined): boolean => !!s && cost(s).at_most === true;

export interface OpRow {
  op: string;
  nodes: number;
  unknown: number;
}

/** Nodes per operator, most first. */
export function opRows(s: Static): OpRow[] {
  const unknown = s.unknown_ops ?? {};
  const rows = Object.entries(s.ops ?? {}).filter((e): e is [string, number] => isKnown(e[1]));
  return rows
    .map(([op, nodes]) => ({ op, nodes, unknown: isKnown(unknown[op]) ? (unknown[op] as number) : 0 }))
    .sort((a, b) => b.nodes - a.nodes || a.op.localeCompare(b.op));
}

export const opGrid = (rows: OpRow[]): Grid => ({
  columns: [
    { title: "operator", text: true },
    { title: "nodes", format: count },
    { title: "of unknown cost", format: count },
  ],
  rows: rows.map((r) => [r.op, r.nodes, r.unknown]),
});
