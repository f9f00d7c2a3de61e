// SPDX-License-Identifier: MIT
// requests.ts - what a service did over a window of load, in its equal stretches. Pure. A median that falls on a
// request without an answer is unknown: there is a gap in its line, and the share of failures says why.
import type { Case } from "./page";

export interface OverTime {
  /** When each stretch began, ns from the beginning of the window. */
  start: number[];
  median: (number | null)[];
  longest: (number | null)[];
  /** Of the requests that were due in it, those without a good answer; null: none was due. */
  failed: (number | null)[];
  /** Requests a second that were due in it; null: it is not known how long it was. */
  due: (number | null)[];
}

export const hasOverTime = (c: Case): boolean => (c.http?.over_time?.length ?? 0) > 1;

export function overTimeOf(c: Case): OverTime {
  const all = (c.http?.over_time ?? []).filter((m) => typeof m.start_ns === "number");
  const start = all.map((m) => m.start_ns!);
  const each = start.length > 1 ? start[1]! - start[0]! : 0; // all are as long
  return {
    start,
    median: all.map((m) => m.p50_ns ?? null),
    longest: all.map((m) => m.max_ns ?? null),
    failed: all.map((m) => (m.due ? (m.failed ?? 0) / m.due : null)),
    due: all.map((m) => (each > 0 ? ((m.due ?? 0) * 1e9) / each : null)),
  };
}
