// SPDX-License-Identifier: MIT
// format.ts - numbers, units and times as people read them. Unknown is a word, never 0.
import type { Estimate } from "../data/page";

export type Format = (v: number) => string;
type Maybe = number | null | undefined;

export const UNKNOWN = "unknown";

export const isKnown = (v: unknown): v is number => typeof v === "number" && Number.isFinite(v);

/** 12,345.67 of 12345.67. By hand: the browser's own formatter takes ten milliseconds to start and is slow in tables. */
function grouped(fixed: string): string {
  const [whole, part] = fixed.split(".");
  const tail = part?.replace(/0+$/, "");
  return whole!.replace(/\B(?=(\d{3})+$)/g, ",") + (tail ? `.${tail}` : "");
}

const LEAST_SHOWN = 1e-9; // nobody counts more zeros

/** Three or four significant digits, thousands apart, no power of ten. */
export function number(v: number, digits = 3): string {
  if (!Number.isFinite(v)) return UNKNOWN;
  const size = Math.abs(v);
  if (size >= 1e21) return v.toExponential(digits - 1);
  if (size !== 0 && size < LEAST_SHOWN) return v < 0 ? "> \u22120.000000001" : "< 0.000000001";
  const whole = size < 1 ? 0 : Math.floor(Math.log10(size)) + 1;
  const places = size === 0 ? 0 : size < 1 ? digits - 1 - Math.floor(Math.log10(size)) : Math.max(0, digits - whole);
  return (v < 0 ? "\u2212" : "") + grouped(size.toFixed(Math.min(places, 12)));
}

function scaled(v: number, steps: readonly [number, string][], digits: number): string {
  const size = Math.abs(v);
  const step = steps.find(([factor]) => size >= factor) ?? steps[steps.length - 1]!;
  return `${number(v / step[0], digits)}\u00a0${step[1]}`;
}

const TIMES: readonly [number, string][] = [
  [3.6e12, "h"],
  [6e10, "min"],
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];
const BINARY: readonly [number, string][] = [
  [2 ** 50, "PiB"],
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
  [1, "B"],
];
const SI: readonly [number, string][] = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
];

export const duration = (ns: number, digits = 3): string => (ns === 0 ? "0\u00a0ns" : scaled(ns, TIMES, digits));
export const bytes = (v: number, digits = 3): string => (v === 0 ? "0\u00a0B" : scaled(v, BINARY, digits));
/** 1.34 G, 12 k: with a unit behind it "1.34 GFLOP". */
export function si(v: number, unit = "", digits = 3): string {
  const step = SI.find(([factor]) => Math.abs(v) >= factor) ?? SI[SI.length - 1]!;
  const tail = step[1] + unit;
  return number(v / step[0], digits) + (tail ? `\u00a0${tail}` : "");
}
export const percent = (share: number, digits = 3): string => `${number(share * 100, digits)}\u00a0%`;
/** How sure something is: never all the way. */
export const surety = (share: number): string => (share > 0.9999 ? "> 99.99\u00a0%" : percent(share, 4));
export const count = (v: number): string => number(v, 15);
export const ratio = (v: number): string => `${number(v, 4)}\u00d7`;
/** A change from a ratio, by the rule of fmt_change in core/fmt.h: +3.2 %, −12 %; above 10 the factor, 935x, below 0.01 the fraction, 1/935. */
export function change(r: number): string {
  if (r > 10) return `${number(r)}x`;
  if (r > 0 && r < 0.01) return `1/${number(1 / r)}`;
  return (r > 1 ? "+" : "") + percent(r - 1);
}
export const rate =
  (unit?: string | null): Format =>
  (v) =>
    `${number(v)}\u00a0${unit || "/s"}`;

const UNITS: Record<string, Format> = {
  ns: (v) => duration(v),
  bytes: (v) => bytes(v),
  B: (v) => bytes(v),
  share: (v) => percent(v),
  "%": (v) => `${number(v)}\u00a0%`,
  count,
  calls: count,
  samples: count,
  "": (v) => number(v, 4),
};
/** A row of a table by a key that comes from a document: "constructor" is in none. */
export const rowOf = <T>(table: Record<string, T>, key: unknown): T | undefined =>
  typeof key === "string" && Object.prototype.hasOwnProperty.call(table, key) ? table[key] : undefined;

/** The format of a unit as documents name it; one nobody listed is written behind the number. */
export const ofUnit = (unit?: string | null): Format =>
  rowOf(UNITS, unit ?? "") ?? ((v) => `${number(v, 4)}\u00a0${shown(unit, 20)}`);

/** A known number formatted, or "unknown" with the reason where there is one. */
export function known(v: Maybe, format: Format, why?: string | null): string {
  if (isKnown(v)) return format(v);
  return why ? `${UNKNOWN}: ${why}` : UNKNOWN;
}

/** "12.3 ms (12.1 ms to 12.6 ms)"; an open end is said. */
export function interval(e: Estimate | null | undefined, format: Format, why?: string | null): string {
  if (!e || !isKnown(e.value)) return known(null, format, why);
  if (!isKnown(e.lo) && !isKnown(e.hi)) return format(e.value);
  const lo = isKnown(e.lo) ? format(e.lo) : "no lower bound";
  const hi = isKnown(e.hi) ? format(e.hi) : "no upper bound";
  return `${format(e.value)} (${lo} to ${hi})`;
}

/** 2026-11-15 07:55:21 UTC: always UTC, always said. */
export function instant(text?: string | null): string {
  const at = text ? Date.parse(text) : NaN;
  if (Number.isNaN(at)) return UNKNOWN;
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

const LONGEST = 300;
// Marks that turn the direction of text around, and control characters: shown as what they are.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Text of unknown origin for display: bounded, and nothing in it can act on what stands around it. */
export function shown(text: unknown, longest = LONGEST): string {
  const all = typeof text === "string" ? text : text === null || text === undefined ? UNKNOWN : String(text);
  const cut = all.length > longest ? `${all.slice(0, longest)}\u2026 (${count(all.length)} characters)` : all;
  return cut.replace(UNSEEN, "\ufffd");
}
