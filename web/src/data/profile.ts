// SPDX-License-Identifier: MIT
// profile.ts - tare.profile/1 as typed columns. A document comes from anywhere, so everything an index is used for is
// checked here, once; a number that is missing is NaN from here on, which every format shows as unknown.
import { unpack } from "./packed";

export interface Frames {
  name: string[];
  file: (string | null)[];
  line: (number | null)[];
}

/** Call paths: a parent comes before its children, -1 has none. */
export interface CallTree {
  n: number;
  parent: Int32Array;
  frame: Int32Array;
  self: Float64Array;
  total: Float64Array;
  /** Half of the 95 % interval of the total. */
  error: Float64Array;
  calls: Float64Array;
  /** Paths that whoever wrote the document left out. */
  hidden: number;
}

export interface NamedTree {
  name: string;
  /** Read when it is asked for: a page with many threads shows one at a time. */
  tree: () => CallTree;
}

/** How it was recorded; what is not known is null. */
export interface Measured {
  duration_ns: number | null;
  processes: number | null;
  threads: number | null;
  own_ns: number | null;
  own_share: number | null;
  lost: number | null;
}

export interface Profile {
  measured: Measured | null;
  name: string;
  /** Where it was read from; "" where nobody said. */
  file: string;
  unit: string;
  notes: string[];
  frames: Frames;
  tree: CallTree;
  threads: NamedTree[];
  base: NamedTree | null;
}

/** A path without its folders; "" for none. Bounded, because names come from anywhere. */
export function baseName(path: string | null): string {
  const end = (path ?? "").slice(-400);
  return end.slice(Math.max(end.lastIndexOf("/", end.length - 2), end.lastIndexOf("\\", end.length - 2)) + 1);
}

/** What is wrong with a document, for people. */
export class ProfileError extends Error {}

type Loose = Record<string, unknown>;

const isObject = (v: unknown): v is Loose => typeof v === "object" && v !== null && !Array.isArray(v);
const text = (v: unknown, otherwise = ""): string => (typeof v === "string" ? v : otherwise);

function objectIn(of: Loose, key: string): Loose {
  const v = of[key];
  if (!isObject(v)) throw new ProfileError(`it has no "${key}"`);
  return v;
}

type Column = ArrayLike<unknown>;

/** A list, or the same as packed text. */
function listOf(v: unknown, key: string): Column {
  const list = typeof v === "string" ? unpack(v) : Array.isArray(v) ? v : null;
  if (!list) throw new ProfileError(`"${key}" is no list`);
  return list;
}

function column(of: Loose, key: string, n: number | null): Column | null {
  const v = of[key];
  if (v === undefined || v === null) return null;
  const list = listOf(v, key);
  if (n !== null && list.length !== n) throw new ProfileError(`"${key}" has ${list.length} values where ${n} belong`);
  return list;
}

function readFrames(of: Loose): Frames {
  const name = column(of, "name", null);
  if (!name) throw new ProfileError('frames have no "name"');
  const file = column(of, "file", name.length);
  const line = column(of, "line", name.length);
  return {
    name: Array.from(name, (v) => text(v) || "(no name)"),
    file: Array.from(name, (_, i) => text(file?.[i]) || null),
    line: Array.from(name, (_, i) => (typeof line?.[i] === "number" ? (line[i] as number) : null)),
  };
}

/** Packed, a parent is so many rows above its child. */
function parentsOf(nodes: Loose): Column | null {
  const list = column(nodes, "parent", null);
  if (list instanceof Float64Array) for (let i = 0; i < list.length; i++) list[i] = i - list[i]!;
  return list;
}

/** Whole numbers from `least` up to, not including, `below`; without `below` up to their own row. */
function indices(values: Column, key: string, least: number, below?: number): Int32Array {
  const out = new Int32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const v = values[i] as number;
    if (!Number.isInteger(v) || v < least || v >= (below ?? i)) throw new ProfileError(`"${key}" of node ${i} is ${String(v).slice(0, 20)}`);
    out[i] = v;
  }
  return out;
}

function numbers(values: Column | null, n: number): Float64Array {
  if (values instanceof Float64Array) return values;
  const out = new Float64Array(n);
  if (!values) return out.fill(NaN);
  for (let i = 0; i < n; i++) {
    const v = values[i];
    out[i] = typeof v === "number" ? v : NaN;
  }
  return out;
}

/** A column that may be missing, checked now; packed text is read when it is asked for, and unknown where it is damaged. */
function numbersLater(nodes: Loose, key: string, n: number): () => Float64Array {
  const packed = nodes[key];
  if (typeof packed !== "string") {
    const list = column(nodes, key, n);
    return () => numbers(list, n);
  }
  return () => {
    const list = unpack(packed);
    return numbers(list?.length === n ? list : null, n);
  };
}

const orZero = (v: number): number => (v > 0 ? v : 0);

/** Totals from selves, where a producer knows only those. */
function addUp(self: Float64Array, parent: Int32Array): Float64Array {
  const total = self.slice();
  for (let i = total.length - 1; i >= 0; i--) {
    const p = parent[i]!;
    if (p >= 0) total[p] = orZero(total[p]!) + orZero(total[i]!);
  }
  return total;
}

/** Selves from totals. */
function takeOff(total: Float64Array, parent: Int32Array): Float64Array {
  const self = total.slice();
  for (let i = 0; i < self.length; i++) {
    const p = parent[i]!;
    if (p >= 0) self[p] = self[p]! - orZero(total[i]!);
  }
  return self;
}

/** A value in the place of the getter that made it. */
function keep<T>(of: object, key: string, value: T): T {
  Object.defineProperty(of, key, { value, enumerable: true, writable: true });
  return value;
}

export function readTree(of: Loose, nFrames: number): CallTree {
  const nodes = objectIn(of, "nodes");
  const parents = parentsOf(nodes);
  const frames = parents && column(nodes, "frame", parents.length);
  if (!parents || !frames) throw new ProfileError('nodes have no "parent" or no "frame"');
  const n = parents.length;
  const parent = indices(parents, "parent", -1);
  const selves = column(nodes, "self", n);
  const totals = column(nodes, "total", n);
  if (!selves && !totals) throw new ProfileError('nodes have neither "self" nor "total"');
  const total = totals ? numbers(totals, n) : addUp(numbers(selves, n), parent);
  const errors = numbersLater(nodes, "total_error", n);
  const calls = numbersLater(nodes, "calls", n);
  return {
    n,
    parent,
    frame: indices(frames, "frame", 0, nFrames),
    total,
    self: selves ? numbers(selves, n) : takeOff(total, parent),
    /* Nobody asks for these before a frame is pointed at. */
    get error() {
      return keep(this, "error", errors());
    },
    get calls() {
      return keep(this, "calls", calls());
    },
    hidden: typeof of.hidden === "number" && of.hidden > 0 ? of.hidden : 0,
  };
}

function later(of: Loose, nFrames: number, otherwise: string): NamedTree {
  let tree: CallTree | null = null;
  return { name: text(of.file) || text(of.name) || otherwise, tree: () => (tree ??= readTree(of, nFrames)) };
}

function readMeasured(of: unknown): Measured | null {
  if (!isObject(of)) return null;
  const at = (key: string) => (typeof of[key] === "number" && Number.isFinite(of[key]) ? (of[key] as number) : null);
  return { duration_ns: at("duration_ns"), processes: at("processes"), threads: at("threads"), own_ns: at("own_ns"), own_share: at("own_share"), lost: at("lost") };
}

/** Throws a ProfileError that says what is wrong. */
export function readProfile(document: unknown): Profile {
  if (!isObject(document)) throw new ProfileError("it is no object");
  const schema = text(document.schema);
  if (!schema.startsWith("tare.profile/1")) throw new ProfileError(`its schema is "${schema.slice(0, 40)}", this page reads tare.profile/1`);
  const frames = readFrames(objectIn(document, "frames"));
  const n = frames.name.length;
  const threads = Array.isArray(document.threads) ? document.threads.filter(isObject) : [];
  return {
    measured: readMeasured(document.measured),
    name: text(document.name),
    file: text(document.file),
    unit: text(document.unit, "ns"),
    notes: Array.isArray(document.notes) ? document.notes.filter((v): v is string => typeof v === "string") : [],
    frames,
    tree: readTree(document, n),
    threads: threads.map((t, i) => later(t, n, `thread ${i + 1}`)),
    base: isObject(document.base) ? later(document.base, n, "base") : null,
  };
}
