// SPDX-License-Identifier: MIT
// held.ts - who held memory over time (tare.memory/1, docs/cli/tare-report.md#memory). Pure. Every member may be missing
// or of another kind: then it is unknown, and a process without moments is left out.
import type { JsonObject } from "./page";
import type { Grid } from "./grid";

export interface HeldLine {
  /** "build_index train.py:42"; whatever is missing is left out. */
  name: string;
  /** Bytes at each moment. */
  values: number[];
  peak: number;
  peakBelow: number;
  end: number;
  allocated: number;
  churn: number;
}

export interface HeldProcess {
  pid: number;
  /** Seconds from its first record, one for each moment. */
  at: number[];
  total: number[];
  /** The largest at the peak first. */
  lines: HeldLine[];
  findings: { severity: string; title: string; action: string }[];
}

type Loose = Record<string, unknown>;
const isObject = (v: unknown): v is Loose => typeof v === "object" && v !== null && !Array.isArray(v);
const objects = (v: unknown): Loose[] => (Array.isArray(v) ? v.filter(isObject) : []);
const text = (v: unknown): string => (typeof v === "string" ? v : "");
const number = (v: unknown): number => (typeof v === "number" && Number.isFinite(v) ? v : 0);
const bytesIn = (v: unknown): number => (isObject(v) ? number(v.bytes) : 0);

function series(v: unknown, n: number): number[] {
  const list = Array.isArray(v) ? v : [];
  return Array.from({ length: n }, (_, i) => number(list[i]));
}

function nameOf(g: Loose): string {
  const file = text(g.file).split("/").pop() ?? "";
  const line = typeof g.line === "number" ? `:${g.line}` : "";
  const offset = !text(g.name) && typeof g.offset === "number" ? `+0x${g.offset.toString(16)}` : "";
  return [text(g.name), file && `${file}${line}${offset}`].filter(Boolean).join(" ") || "unknown";
}

function readProcess(p: Loose): HeldProcess | null {
  const n = Array.isArray(p.held_over_time) ? p.held_over_time.length : 0;
  const span = (number(p.to_ns) - number(p.from_ns)) / 1e9;
  if (n < 2 || n > 10000 || !(span > 0)) return null;
  const lines = objects(p.groups).map((g) => ({
    name: nameOf(g),
    values: series(g.held_over_time, n),
    peak: bytesIn(g.at_peak),
    peakBelow: bytesIn(g.at_peak_with_callees),
    end: bytesIn(g.at_end),
    allocated: bytesIn(g.allocated),
    churn: bytesIn(g.churn),
  }));
  return {
    pid: number(p.pid),
    at: Array.from({ length: n }, (_, i) => (span * (i + 1)) / n),
    total: series(p.held_over_time, n),
    lines,
    findings: objects(p.findings).map((f) => ({ severity: text(f.severity), title: text(f.title), action: text(f.action) })),
  };
}

export const readHeld = (document: JsonObject): HeldProcess[] =>
  objects(document.processes)
    .map(readProcess)
    .filter((p): p is HeldProcess => p !== null);

export interface Layer {
  name: string;
  from: number[];
  to: number[];
}

/** The lines that held most at any moment, one on the other; what is left is the last layer. */
export function layersOf(p: HeldProcess, most: number): Layer[] {
  const most_held = (l: HeldLine) => l.values.reduce((a, b) => Math.max(a, b), 0);
  const shown = p.lines.filter((l) => most_held(l) > 0).sort((a, b) => most_held(b) - most_held(a)).slice(0, most);
  let under = p.at.map(() => 0);
  const layers = shown.map((l) => {
    const to = under.map((v, i) => v + l.values[i]!);
    const layer = { name: l.name, from: under, to };
    under = to;
    return layer;
  });
  const rest = p.total.map((v, i) => Math.max(v, under[i]!));
  if (rest.some((v, i) => v > under[i]! * 1.001)) layers.push({ name: "other", from: under, to: rest });
  return layers;
}

/** What was held at this moment, the largest first. */
export function heldAt(p: HeldProcess, moment: number): { name: string; bytes: number; share: number }[] {
  const whole = p.total[moment] ?? 0;
  return p.lines
    .map((l) => ({ name: l.name, bytes: l.values[moment] ?? 0, share: whole > 0 ? (l.values[moment] ?? 0) / whole : 0 }))
    .filter((r) => r.bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
}

export const gridOfLines = (p: HeldProcess, bytes: (v: number) => string): Grid => ({
  columns: [
    { title: "line", text: true },
    { title: "held at the peak (B)", format: bytes },
    { title: "with callees (B)", format: bytes },
    { title: "at the end (B)", format: bytes },
    { title: "allocated (B)", format: bytes },
    { title: "freed within 1 ms (B)", format: bytes },
  ],
  rows: p.lines.map((l) => [l.name, l.peak, l.peakBelow, l.end, l.allocated, l.churn]),
});
