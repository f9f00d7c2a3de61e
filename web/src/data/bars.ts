// SPDX-License-Identifier: MIT
// bars.ts - tare.bars/1: everything a trace has on a time axis, as typed columns. A document comes from anywhere, so all
// that is used as an index is checked here, once. Pure.
import type { GpuDocument } from "./document.gen";
import { GPU_PROFILE } from "./document.gen";
import { unpack } from "./packed";
import type { JsonObject } from "./page";
import { shaped } from "./shape";

export type LaneKind = "stream" | "calls" | "ranges" | "scopes" | "tasks";
const LANE_KINDS = ["stream", "ranges", "scopes", "tasks", "calls"]; // in the order in which they are shown

export interface BarName {
  text: string;
  kind: string;
  full: string | null;
  group: string | null;
  file: string | null;
  line: number | null;
}

/** Bars of a lane at one height, one after the other: none overlaps the next. */
export interface Row {
  /** Height within the lane, from 0. */
  y: number;
  n: number;
  /** Index in the lane of each; null: they are all of the lane. */
  at: Int32Array | null;
  start: Float64Array;
  end: Float64Array;
  /** Time covered by those before each. */
  busy: Float64Array;
  /** The longest of every 2, 4, 8.. bars. */
  tops: Int32Array[];
}

export interface Lane {
  kind: LaneKind;
  pid: number;
  thread: number | null;
  label: string;
  /** Number of its first bar among all of the document. */
  first: number;
  n: number;
  start: Float64Array;
  length: Float64Array;
  what: Int32Array;
  /** Number of the bar that is the call; -1: none. Of streams. */
  call: Int32Array | null;
  /** Shape of a kernel, bytes of a copy, flags of a scope. */
  more: Float64Array | null;
  /** How many lie around each; null: nothing does. */
  depth: Uint16Array | null;
  /** Rows of bars, the lowest first; made when asked for. */
  rows: () => Row[];
  height: number;
}

export interface Course {
  number: number;
  pid: number;
  steps: Steps | null;
}

export interface Steps {
  /** Of the program; fewer are here where there were many. */
  n: number;
  start: Float64Array;
  length: Float64Array;
  busy: Float64Array;
  idle: { cause: string; ns: Float64Array }[];
}

export interface Bars {
  file: string;
  seen: number;
  shown: number;
  dropped: number;
  /** Of the earliest bar, and end of the latest. */
  from: number;
  end: number;
  names: BarName[];
  /** Ten numbers each: grid, block, registers, static, dynamic and local memory. */
  shapes: Float64Array;
  /** In the order of the document, by which bars are numbered. */
  lanes: Lane[];
  /** In the order in which they are shown. */
  order: Lane[];
  gpu: GpuDocument | null;
  courses: Course[];
  commands: Map<number, string>;
}

export class BarsError extends Error {}

type Loose = Record<string, unknown>;
const isObject = (v: unknown): v is Loose => typeof v === "object" && v !== null && !Array.isArray(v);
const text = (v: unknown): string => (typeof v === "string" ? v : "");
const textOrNull = (v: unknown): string | null => (typeof v === "string" && v ? v : null);
const numberOr = (v: unknown, otherwise: number): number => (typeof v === "number" && Number.isFinite(v) ? v : otherwise);
const objects = (v: unknown): Loose[] => (Array.isArray(v) ? v.filter(isObject) : []);

// ---- columns ----

function column(of: Loose, key: string, n: number): Float64Array {
  const list = typeof of[key] === "string" ? unpack(of[key] as string) : null;
  if (!list || list.length !== n) throw new BarsError(`"${key}" is no column of ${n} numbers`);
  return list;
}

/** From differences to values, each at least the one before. */
function times(of: Loose, key: string, n: number): Float64Array {
  const list = column(of, key, n);
  let at = 0;
  for (let i = 0; i < n; i++) {
    const by = list[i]!;
    if (!(by >= 0)) throw new BarsError(`"${key}" goes back in time`);
    list[i] = at += by;
  }
  return list;
}

function lengths(of: Loose, key: string, n: number): Float64Array {
  const list = column(of, key, n);
  for (let i = 0; i < n; i++) if (!(list[i]! >= 0)) throw new BarsError(`"${key}" is below zero`);
  return list;
}

function indices(of: Loose, key: string, n: number, below: number): Int32Array {
  const list = column(of, key, n);
  const out = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    const v = list[i]!;
    if (!(v >= 0 && v < below)) throw new BarsError(`"${key}" is out of range`);
    out[i] = v;
  }
  return out;
}

/** Differences; unknown is none. */
function calls(of: Loose, n: number, below: number): Int32Array {
  const list = column(of, "call", n);
  const out = new Int32Array(n);
  let at = 0;
  for (let i = 0; i < n; i++) {
    const by = list[i]!;
    if (by === by) at += by;
    if (!(at >= 0 && at < below)) throw new BarsError('"call" is out of range');
    out[i] = by === by ? at : -1;
  }
  return out;
}

/** Differences to the bar of the same name before. */
function mores(of: Loose, n: number, what: Int32Array, names: number): Float64Array {
  const list = column(of, "more", n);
  const last = new Float64Array(names);
  for (let i = 0; i < n; i++) list[i] = last[what[i]!] = last[what[i]!]! + list[i]!;
  return list;
}

// ---- rows ----

const DEEPEST = 500;

/** How many bars lie around each. What overlaps in part, as damage may, lies higher too. */
export function depthsOf(start: Float64Array, length: Float64Array): Uint16Array | null {
  const n = start.length;
  const out = new Uint16Array(n);
  const ends = new Float64Array(DEEPEST + 1);
  let open = 0;
  let any = 0;
  for (let i = 0; i < n; i++) {
    while (open && ends[open - 1]! <= start[i]!) open--;
    any |= out[i] = open;
    if (open < DEEPEST) ends[open++] = start[i]! + length[i]!;
  }
  return any ? out : null;
}

/** The longest of 2, 4, 8.. bars each. */
function topsOf(start: Float64Array, end: Float64Array): Int32Array[] {
  const levels: Int32Array[] = [];
  const longer = (a: number, b: number) => (end[b]! - start[b]! > end[a]! - start[a]! ? b : a);
  let below: Int32Array | null = null;
  for (let size = start.length >> 1; size > 0; size >>= 1) {
    const level = new Int32Array(size);
    for (let i = 0; i < size; i++) level[i] = below ? longer(below[2 * i]!, below[2 * i + 1]!) : longer(2 * i, 2 * i + 1);
    levels.push((below = level));
  }
  return levels;
}

/** `start` and `end` become its own: an end is cut where the next begins. */
export function makeRow(y: number, at: Int32Array | null, start: Float64Array, end: Float64Array): Row {
  const n = start.length;
  const busy = new Float64Array(n + 1);
  for (let i = 0; i < n; i++) {
    if (i + 1 < n && end[i]! > start[i + 1]!) end[i] = start[i + 1]!;
    busy[i + 1] = busy[i]! + end[i]! - start[i]!;
  }
  return { y, n, at, start, end, busy, tops: topsOf(start, end) };
}

/** Where each bar stands: its height, and within that a second place for the running parts of tasks. */
const placeOf = (lane: Lane, names: BarName[], i: number): number =>
  (lane.depth ? lane.depth[i]! : 0) * 2 + (lane.kind === "tasks" && names[lane.what[i]!]!.kind !== "task" ? 1 : 0);

/** The rows of those bars that `only` keeps. */
export function rowsOf(lane: Lane, names: BarName[], only?: (i: number) => boolean): Row[] {
  const counts = new Int32Array(2 * (DEEPEST + 1));
  for (let i = 0; i < lane.n; i++) if (!only || only(i)) counts[placeOf(lane, names, i)]!++;
  const lists = Array.from(counts, (n) => (n ? new Int32Array(n) : null));
  counts.fill(0);
  for (let i = 0; i < lane.n; i++) {
    if (only && !only(i)) continue;
    const place = placeOf(lane, names, i);
    lists[place]![counts[place]!++] = i;
  }
  return lists.flatMap((at, place) => {
    if (!at) return [];
    const start = Float64Array.from(at, (i) => lane.start[i]!);
    const end = Float64Array.from(at, (i) => lane.start[i]! + lane.length[i]!);
    return [makeRow(place >> 1, at.length === lane.n ? null : at, start, end)];
  });
}

/** The first place in a sorted list from `lo` on that is not below `v`. */
export function firstFrom(list: Float64Array, v: number, lo: number, hi: number): number {
  let step = 1;
  while (lo + step < hi && list[lo + step]! < v) step *= 2; // near ones are found soon
  let from = lo;
  let to = Math.min(hi, lo + step + 1);
  while (from < to) {
    const middle = (from + to) >> 1;
    if (list[middle]! < v) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The bars of a row that reach into a stretch: from the first up to, not including, the second. */
export function visible(row: Row, from: number, to: number): [number, number] {
  const first = firstFrom(row.end, from, 0, row.n);
  return [first, firstFrom(row.start, to, first, row.n)];
}

/** The longest of the bars from i up to, not including, j. */
export function longest(row: Row, i: number, j: number): number {
  let best = i;
  while (i < j) {
    let k = 0;
    while (k < row.tops.length && (i & ((2 << k) - 1)) === 0 && i + (2 << k) <= j) k++;
    const found = k ? row.tops[k - 1]![i >> k]! : i;
    if (row.end[found]! - row.start[found]! > row.end[best]! - row.start[best]!) best = found;
    i += 1 << k;
  }
  return best;
}

// ---- reading ----

function readNames(of: Loose): BarName[] {
  const texts = Array.isArray(of.text) ? of.text : [];
  const list = (key: string): unknown[] => (Array.isArray(of[key]) ? (of[key] as unknown[]) : []);
  const [kind, full, group, file, line] = ["kind", "full", "group", "file", "line"].map(list);
  return texts.map((t, i) => ({
    text: text(t) || "(no name)",
    kind: text(kind![i]) || "scope",
    full: textOrNull(full![i]),
    group: textOrNull(group![i]),
    file: textOrNull(file![i]),
    line: typeof line![i] === "number" ? (line![i] as number) : null,
  }));
}

const LABELS: Record<string, string> = { calls: "CUDA calls", ranges: "NVTX ranges" };

function labelOf(of: Loose, kind: string): string {
  const own = text(of.name) || kind;
  const thread = textOrNull(of.thread_name) ?? (typeof of.thread === "number" ? `thread ${of.thread}` : "");
  if (kind === "stream") return own;
  if (kind === "tasks") return `${own} of ${thread}`;
  return kind === "scopes" ? `${own}${own === thread ? "" : ` (${String(of.thread)})`}` : `${LABELS[kind]} of ${thread}`;
}

interface Reading {
  names: BarName[];
  total: number;
}

function readLane(of: Loose, r: Reading, first: number): Lane {
  const kind = text(of.kind) as LaneKind;
  const n = numberOr(of.n, -1);
  if (!LANE_KINDS.includes(kind) || !Number.isInteger(n) || n < 0) throw new BarsError("a lane is of no known kind");
  const start = times(of, "start", n);
  const length = lengths(of, "length", n);
  const what = indices(of, "what", n, r.names.length);
  const depth = kind === "tasks" ? Uint16Array.from(indices(of, "depth", n, DEEPEST)) : depthsOf(start, length);
  const lane: Lane = {
    kind, first, n, start, length, what, depth,
    pid: numberOr(of.pid, 0),
    thread: typeof of.thread === "number" ? of.thread : null,
    label: labelOf(of, kind),
    call: typeof of.call === "string" ? calls(of, n, r.total) : null,
    more: typeof of.more === "string" ? mores(of, n, what, r.names.length) : null,
    rows: () => made,
    height: 1,
  };
  for (let i = 0; depth && i < n; i++) if (depth[i]! >= lane.height) lane.height = depth[i]! + 1;
  let made: Row[];
  lane.rows = () => (made ??= rowsOf(lane, r.names));
  return lane;
}

function readSteps(of: Loose): Steps {
  const start = unpack(text(of.start)) ?? new Float64Array(0);
  const n = start.length;
  const idle = isObject(of.idle) ? of.idle : {};
  return {
    n: numberOr(of.n, n),
    start: times(of, "start", n),
    length: lengths(of, "length", n),
    busy: lengths(of, "busy", n),
    idle: Object.keys(idle).slice(0, 20).map((cause) => ({ cause, ns: lengths(idle, cause, n) })),
  };
}

const readCourse = (of: Loose): Course => ({
  number: numberOr(of.number, 0),
  pid: numberOr(of.pid, 0),
  steps: isObject(of.steps) ? readSteps(of.steps) : null,
});

/** Processes, in them GPUs, then threads with all that is theirs. */
function inOrder(lanes: Lane[]): Lane[] {
  const pids = [...new Set(lanes.map((l) => l.pid))];
  const threads = [...new Set(lanes.map((l) => l.thread))];
  const place = (l: Lane) =>
    (pids.indexOf(l.pid) * (threads.length + 1) + (l.kind === "stream" ? 0 : 1 + threads.indexOf(l.thread))) * 10 +
    LANE_KINDS.indexOf(l.kind);
  return [...lanes].sort((a, b) => place(a) - place(b) || a.label.localeCompare(b.label, "en", { numeric: true }) || a.first - b.first);
}

function readLanes(list: Loose[], names: BarName[]): Lane[] {
  const total = list.reduce((sum, l) => sum + Math.max(0, numberOr(l.n, 0)), 0);
  let first = 0;
  return list.map((l) => {
    const lane = readLane(l, { names, total }, first);
    first += lane.n;
    return lane;
  });
}

/** Throws a BarsError that says what is wrong. */
export function readBars(doc: JsonObject): Bars {
  const schema = text(doc.schema);
  if (!schema.startsWith("tare.bars/1")) throw new BarsError(`its schema is "${schema.slice(0, 40)}", this page reads tare.bars/1`);
  const names = readNames(isObject(doc.names) ? doc.names : {});
  const lanes = readLanes(objects(doc.lanes), names);
  const some = lanes.filter((l) => l.n);
  return {
    file: text(doc.file),
    seen: numberOr(doc.seen, 0),
    shown: numberOr(doc.shown, 0),
    dropped: numberOr(doc.dropped, 0),
    from: some.length ? Math.min(...some.map((l) => l.start[0]!)) : 0,
    end: numberOr(doc.end_ns, 0),
    names,
    shapes: unpack(text(doc.shapes)) ?? new Float64Array(0),
    lanes,
    order: inOrder(some),
    gpu: isObject(doc.gpu) ? (shaped(doc.gpu, GPU_PROFILE) as GpuDocument) : null,
    courses: objects(doc.courses).map(readCourse),
    commands: new Map(objects(doc.processes).map((p) => [numberOr(p.pid, 0), text(p.command)])),
  };
}

const kept = new WeakMap<JsonObject, Bars | string>();

/** The bars of a document, read once for all parts that show them; a text: why there are none. */
export function barsOf(doc: JsonObject): Bars | string {
  let found = kept.get(doc);
  if (found === undefined) {
    try {
      found = readBars(doc);
    } catch (e) {
      if (!(e instanceof BarsError)) throw e;
      found = e.message;
    }
    kept.set(doc, found);
  }
  return found;
}

// ---- one bar ----

export interface Spot {
  lane: Lane;
  i: number;
}

/** The bar of a number; null: there is none. */
export function spotOf(bars: Bars, bar: number): Spot | null {
  const lane = bars.lanes.find((l) => bar >= l.first && bar < l.first + l.n);
  return lane ? { lane, i: bar - lane.first } : null;
}

export const barOf = (s: Spot): number => s.lane.first + s.i;
export const nameAt = (bars: Bars, s: Spot): BarName => bars.names[s.lane.what[s.i]!]!;

/** The innermost bar of a lane at a time. */
export function innermost(lane: Lane, at: number): Spot | null {
  let found: Spot | null = null;
  for (const row of lane.rows()) {
    const i = firstFrom(row.end, at, 0, row.n);
    if (i < row.n && row.start[i]! <= at) found = { lane, i: row.at ? row.at[i]! : i };
  }
  return found;
}

const launches = new WeakMap<Bars, { first: Int32Array; op: Int32Array }>();

/** What a call launched, as numbers of bars. */
export function launchedBy(bars: Bars, call: number): Int32Array {
  let found = launches.get(bars);
  if (!found) {
    const total = bars.lanes.reduce((sum, l) => sum + l.n, 0);
    const first = new Int32Array(total + 2);
    const each = (fn: (call: number, op: number) => void) => {
      for (const l of bars.lanes) if (l.call) for (let i = 0; i < l.n; i++) if (l.call[i]! >= 0) fn(l.call[i]!, l.first + i);
    };
    each((c) => first[c + 2]!++);
    for (let i = 1; i < first.length; i++) first[i]! += first[i - 1]!;
    const op = new Int32Array(first[total + 1]!);
    each((c, o) => (op[first[c + 1]!++] = o));
    launches.set(bars, (found = { first, op }));
  }
  return found.op.subarray(found.first[call]!, found.first[call + 1]!);
}

/** The range, and the scope of the program, that a call was made in. */
export function around(bars: Bars, call: Spot, kind: "ranges" | "scopes"): Spot | null {
  const at = call.lane.start[call.i]!;
  for (const l of bars.lanes) {
    if (l.kind !== kind || l.pid !== call.lane.pid || l.thread !== call.lane.thread) continue;
    const found = innermost(l, at);
    if (found) return found;
  }
  return null;
}

/** Bars of one name, in order of lane and time: how often, the number of the longest, and the time of all. */
export function ofName(bars: Bars, matches: Uint8Array): { count: number; total: number; longest: number } {
  let [count, total, best, most] = [0, 0, -1, -1];
  for (const l of bars.lanes)
    for (let i = 0; i < l.n; i++) {
      if (!matches[l.what[i]!]) continue;
      count++;
      total += l.length[i]!;
      if (l.length[i]! > most) [best, most] = [l.first + i, l.length[i]!];
    }
  return { count, total, longest: best };
}

/** The next bar that matches in order of time, from one on or back; -1: none. */
export function nextMatch(bars: Bars, matches: Uint8Array, from: number, back: boolean): number {
  const spot = spotOf(bars, from);
  const at = spot ? spot.lane.start[spot.i]! : back ? Infinity : -Infinity;
  let [best, when] = [-1, back ? -Infinity : Infinity];
  for (const l of bars.order) {
    let i = back ? firstFrom(l.start, at, 0, l.n) - 1 : firstFrom(l.start, at, 0, l.n);
    const step = back ? -1 : 1;
    while (i >= 0 && i < l.n && (!matches[l.what[i]!] || l.start[i] === at)) i += step;
    if (i < 0 || i >= l.n) continue;
    if (back ? l.start[i]! > when : l.start[i]! < when) [best, when] = [l.first + i, l.start[i]!];
  }
  return best;
}

/** Names that hold a text, whatever their case; null: nothing is asked for. */
export function searchNames(names: BarName[], words: string): Uint8Array | null {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return null;
  const exact = wanted.startsWith("=") ? words.trim().slice(1) : null;
  const holds = (n: BarName) =>
    exact !== null ? n.text === exact || n.full === exact : [n.text, n.full, n.group, n.file].some((t) => t?.toLowerCase().includes(wanted));
  return Uint8Array.from(names, (n) => (holds(n) ? 1 : 0));
}
