// SPDX-License-Identifier: MIT
// gpu.ts - the tables of a tare.gpu/1 document, and its steps, as data. Pure.
import type { Bars, Course } from "./bars";
import type { GpuCall, GpuCard, GpuCopy, GpuKernel, GpuOrigin, GpuRange } from "./document.gen";
import type { Cell, Grid } from "./grid";
import { bytes, count, duration, percent } from "../ui/format";

const text = (title: string) => ({ title, text: true });
const ns = (title: string) => ({ title, format: (v: number) => duration(v, 4) });
const n = (title: string) => ({ title, format: count });

const per = (total: number | null | undefined, of: number | null | undefined): number | null =>
  typeof total === "number" && typeof of === "number" && of > 0 ? total / of : null;

export function kernelGrid(bars: Bars): Grid {
  const row = (k: GpuKernel): Cell[] => [k.name, k.group, k.count, k.total_ns, k.share, per(k.total_ns, k.count), k.p50_ns, k.p95_ns, k.max_ns, k.blocks || null, k.threads || null, k.registers || null, k.shared_bytes, k.full ?? k.name];
  return {
    columns: [text("kernel"), text("group"), n("runs"), ns("total, ns"), { title: "share of kernels", format: percent }, ns("mean, ns"), ns("p50, ns"), ns("p95, ns"), ns("longest, ns"), n("blocks"), n("threads per block"), n("registers"), { title: "shared, B", format: bytes }, text("full name")],
    rows: (bars.gpu?.kernels ?? []).map(row),
  };
}

export const copyGrid = (copies: GpuCopy[]): Grid => ({
  columns: [text("direction"), text("host memory"), n("count"), { title: "bytes, B", format: bytes }, ns("total, ns"), ns("mean, ns"), { title: "while they ran, B/s", format: (v) => `${bytes(v)}/s` }],
  rows: copies.map((c) => [c.direction, c.host_memory ?? "device", c.count, c.bytes, c.total_ns, per(c.total_ns, c.count), c.bandwidth]),
});

export const callGrid = (calls: GpuCall[]): Grid => ({
  columns: [text("call"), n("count"), ns("total, ns"), ns("mean, ns"), ns("longest, ns"), n("failed")],
  rows: calls.map((c) => [c.name, c.count, c.total_ns, per(c.total_ns, c.count), c.max_ns, c.failed]),
});

export const rangeGrid = (ranges: GpuRange[]): Grid => ({
  columns: [text("range"), text("domain"), n("count"), ns("on the host, ns"), ns("on the GPU, ns"), n("operations")],
  rows: ranges.map((r) => [r.name, r.domain ?? "default", r.count, r.total_ns, r.gpu_ns, r.operations]),
});

export const originGrid = (origins: GpuOrigin[]): Grid => ({
  columns: [text("module"), text("operator"), text("phase"), text("kernel"), text("group"), n("runs"), ns("total, ns"), { title: "share of kernels", format: percent }],
  rows: origins.map((o) => [o.module ?? "none", o.operator ?? "none", o.phase ?? "other", o.kernel, o.group, o.count, o.total_ns, o.share]),
});

/** Rows whose first two cells hold the words. */
export function searched(grid: Grid, words: string): Grid {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return grid;
  return { ...grid, rows: grid.rows.filter((r) => r.slice(0, 2).some((c) => String(c).toLowerCase().includes(wanted))) };
}

/** Parts of a time: what ran, then what was waited for, in a fixed order. */
export interface TimePart {
  cause: string;
  ns: number;
}

export const CAUSES = ["sync", "copy", "communication", "launch", "allocation", "loading", "host-running", "host-waiting", "host-sleeping", "host", "unknown"];
/** Where records are missing: neither busy nor idle. */
export const NOT_RECORDED = "not recorded";
const place = (cause: string): number => (CAUSES.includes(cause) ? CAUSES.indexOf(cause) : CAUSES.length);

export function partsOf(d: GpuCard): TimePart[] {
  const idle = (d.idle ?? []).map((i) => ({ cause: i.cause, ns: i.ns ?? 0 }));
  idle.sort((a, b) => place(a.cause) - place(b.cause));
  const missing = d.unrecorded_ns ? [{ cause: NOT_RECORDED, ns: d.unrecorded_ns }] : [];
  return [{ cause: "busy", ns: d.busy_ns ?? (d.wall_ns ?? 0) - (d.unrecorded_ns ?? 0) }, ...idle, ...missing];
}

/** A step in parts, the same order. */
export function stepParts(course: Course, i: number): TimePart[] {
  const s = course.steps!;
  const idle = s.idle.map((c) => ({ cause: c.cause, ns: c.ns[i]! }));
  idle.sort((a, b) => place(a.cause) - place(b.cause));
  return [{ cause: "busy", ns: s.busy[i]! }, ...idle];
}

export function stepGrid(course: Course): Grid {
  const s = course.steps!;
  const causes = [...s.idle].sort((a, b) => place(a.cause) - place(b.cause));
  return {
    columns: [n("step"), ns("start, ns"), ns("length, ns"), ns("busy, ns"), ...causes.map((c) => ns(`idle: ${c.cause}, ns`))],
    rows: Array.from(s.start, (at, i) => [i + 1, at, s.length[i]!, s.busy[i]!, ...causes.map((c) => c.ns[i]!)]),
  };
}
