// SPDX-License-Identifier: MIT
// calltree.ts - questions about call paths: what each function costs over all of them, who calls it and what it calls,
// and how two trees differ. Pure; never recursive, because a stack may be a hundred thousand frames deep.
import { baseName, type CallTree, type Frames } from "./profile";

export interface Kids {
  /** First child of each node and next sibling, -1: none; `root` starts the outermost. */
  first: Int32Array;
  next: Int32Array;
  root: number;
}

export function kidsOf(tree: CallTree): Kids {
  const first = new Int32Array(tree.n).fill(-1);
  const next = new Int32Array(tree.n).fill(-1);
  let root = -1;
  for (let i = tree.n - 1; i >= 0; i--) {
    const p = tree.parent[i]!;
    next[i] = p < 0 ? root : first[p]!;
    if (p < 0) root = i;
    else first[p] = i;
  }
  return { first, next, root };
}

/** 1 where no caller up the path is the same function: adding up only those counts recursion once. */
export function outermost(tree: CallTree, kids: Kids, nFrames: number): Uint8Array {
  const open = new Int32Array(nFrames);
  const out = new Uint8Array(tree.n);
  let i = kids.root;
  while (i >= 0) {
    out[i] = open[tree.frame[i]!]!++ === 0 ? 1 : 0;
    if (kids.first[i]! >= 0) {
      i = kids.first[i]!;
      continue;
    }
    open[tree.frame[i]!]!--;
    while (i >= 0 && kids.next[i]! < 0) {
      i = tree.parent[i]!;
      if (i >= 0) open[tree.frame[i]!]!--;
    }
    if (i >= 0) i = kids.next[i]!;
  }
  return out;
}

export interface Flat {
  self: Float64Array;
  total: Float64Array;
  calls: Float64Array;
  /** Paths that end in the function; 0: it is in the table only. */
  paths: Int32Array;
}

const known = (v: number): number => (v > 0 ? v : 0);

/** What each function cost by itself, over all its paths. */
export function selvesOf(tree: CallTree, nFrames: number): Float64Array {
  const self = new Float64Array(nFrames);
  for (let i = 0; i < tree.n; i++) self[tree.frame[i]!]! += known(tree.self[i]!);
  return self;
}

/** Each function over all its paths. */
export function flatten(tree: CallTree, outer: Uint8Array, nFrames: number): Flat {
  const flat: Flat = { self: selvesOf(tree, nFrames), total: new Float64Array(nFrames), calls: new Float64Array(nFrames), paths: new Int32Array(nFrames) };
  for (let i = 0; i < tree.n; i++) {
    const f = tree.frame[i]!;
    flat.calls[f]! += tree.calls[i]!;
    flat.paths[f]!++;
    if (outer[i]) flat.total[f]! += known(tree.total[i]!);
  }
  return flat;
}

/** Functions that occur, the costliest by `by` first. */
export function ranked(flat: Flat, by: Float64Array): number[] {
  const out: number[] = [];
  for (let f = 0; f < by.length; f++) if (flat.paths[f]! > 0) out.push(f);
  return out.sort((a, b) => by[b]! - by[a]! || a - b);
}

/** What the outermost paths add up to. */
export function sumOfRoots(kids: Kids, values: Float64Array): number {
  let sum = 0;
  for (let i = kids.root; i >= 0; i = kids.next[i]!) sum += known(values[i]!);
  return sum;
}

/** Cost of the whole: what the outermost paths add up to. */
export function wholeOf(tree: CallTree): number {
  let sum = 0;
  for (let i = 0; i < tree.n; i++) if (tree.parent[i]! < 0) sum += known(tree.total[i]!);
  return sum;
}

// ---- waiting ----

const BUILT_IN = /^<(?:built-in method|method) '?([\w.]+)'?(?: of '([\w.]+)' objects)?>$/;
const WAITS = new RegExp(
  "^(?:" +
    [
      "_thread\\.(?:lock|RLock)\\.(?:acquire|__enter__)|_thread\\._ThreadHandle\\.join|time\\.sleep|_queue\\.SimpleQueue\\.get",
      "select\\.(?:select|e?poll\\.poll|kqueue\\.control)|posix\\.wait(?:pid|id|[34])?|_socket\\.socket\\.(?:accept|recv(?:_into|from|from_into|msg)?|connect)|_socket\\.(?:accept|recv)",
      "_*pthread_(?:cond_(?:timed|clock)?wait|mutex_(?:timed|clock)?lock|join|rwlock_[rw][dr]lock|barrier_wait)|_*futex_\\w*wait\\w*|futex|do_futex_wait\\w*|sem_(?:timed|clock)?wait",
      "_*(?:p?poll|p?select|epoll_p?wait2?)|(?:clock_)?nanosleep|u?sleep|accept4?|recv(?:from|m?msg)?|wait(?:pid|id|[34])|sig(?:timed)?wait(?:info)?",
    ].join("|") +
    ")$",
);

/** "_thread.lock.acquire" of "<method 'acquire' of '_thread.lock' objects>"; other names as they are. */
export function plainName(name: string): string {
  const b = BUILT_IN.exec(name);
  return b ? (b[2] ? `${b[2]}.${b[1]}` : b[1]!) : name;
}

/** Is a function one in which a thread waits: for a lock, the clock, a socket, another process? */
export function waits(name: string): boolean {
  return WAITS.test(plainName(name).replace(/@.*$/, ""));
}

/** The tree without calls in which threads waited, and without their time in whoever called them; null: there are none. */
export function withoutWaiting(tree: CallTree, frames: Frames): CallTree | null {
  const waiting = frames.name.map(waits);
  const gone = new Uint8Array(tree.n);
  const less = new Float64Array(tree.n);
  let some = false;
  for (let i = 0; i < tree.n; i++) {
    const p = tree.parent[i]!;
    const inside = p >= 0 && gone[p] === 1;
    if (!inside && !waiting[tree.frame[i]!]) continue;
    gone[i] = 1;
    some = true;
    if (!inside) less[i] = known(tree.total[i]!);
  }
  if (!some) return null;
  for (let i = tree.n - 1; i >= 0; i--) if (tree.parent[i]! >= 0) less[tree.parent[i]!]! += less[i]!;
  const kept: number[] = [];
  const place = new Int32Array(tree.n).fill(-1);
  for (let i = 0; i < tree.n; i++) if (!gone[i]) place[i] = kept.push(i) - 1;
  const pick = (of: Float64Array) => Float64Array.from(kept, (i) => of[i]!);
  return {
    n: kept.length,
    parent: Int32Array.from(kept, (i) => (tree.parent[i]! < 0 ? -1 : place[tree.parent[i]!]!)),
    frame: Int32Array.from(kept, (i) => tree.frame[i]!),
    self: pick(tree.self),
    total: Float64Array.from(kept, (i) => (less[i] ? Math.max(0, tree.total[i]! - less[i]!) : tree.total[i]!)),
    error: pick(tree.error),
    calls: pick(tree.calls),
    hidden: tree.hidden,
  };
}

// ---- merging ----

/** A tree that grows: one node for each path. */
class Trie {
  parent: number[] = [];
  frame: number[] = [];
  self: number[] = [];
  total: number[] = [];
  calls: number[] = [];
  private at = new Map<number, number>();
  constructor(private nFrames: number) {}

  child(parent: number, frame: number): number {
    const key = (parent + 1) * this.nFrames + frame;
    const found = this.at.get(key);
    if (found !== undefined) return found;
    const id = this.parent.length;
    this.at.set(key, id);
    this.parent.push(parent);
    this.frame.push(frame);
    this.self.push(0);
    this.total.push(0);
    this.calls.push(0);
    return id;
  }

  add(id: number, self: number, total: number, calls: number): void {
    this.self[id]! += self;
    this.total[id]! += total;
    this.calls[id]! += calls;
  }

  tree(): CallTree {
    const n = this.parent.length;
    return {
      n, parent: Int32Array.from(this.parent), frame: Int32Array.from(this.frame), self: Float64Array.from(this.self), total: Float64Array.from(this.total),
      calls: Float64Array.from(this.calls), error: new Float64Array(n).fill(NaN), hidden: 0,
    };
  }
}

/** What a function calls, its paths laid over one another. Its own recursion stays below it. */
export function calleesOf(tree: CallTree, outer: Uint8Array, frame: number, nFrames: number): CallTree {
  const trie = new Trie(nFrames);
  const at = new Int32Array(tree.n).fill(-1);
  for (let i = 0; i < tree.n; i++) {
    const p = tree.parent[i]!;
    const inside = p >= 0 && at[p]! >= 0;
    if (!inside && !(outer[i] && tree.frame[i] === frame)) continue;
    at[i] = trie.child(inside ? at[p]! : -1, tree.frame[i]!);
    trie.add(at[i]!, known(tree.self[i]!), known(tree.total[i]!), tree.calls[i]!);
  }
  return trie.tree();
}

/** Who calls a function: the function outermost, its callers below it, each with the part of its cost that came that way. */
export function callersOf(tree: CallTree, outer: Uint8Array, frame: number, nFrames: number): CallTree {
  const trie = new Trie(nFrames);
  for (let i = 0; i < tree.n; i++) {
    if (tree.frame[i] !== frame || !outer[i]) continue;
    let at = -1;
    for (let p = i; p >= 0; p = tree.parent[p]!) {
      at = trie.child(at, tree.frame[p]!);
      trie.add(at, NaN, known(tree.total[i]!), tree.calls[i]!);
    }
  }
  return trie.tree();
}

// ---- differences ----

export interface Diff {
  /** Totals and selves of the new side; a path that is gone has 0. Its errors are those of the difference. */
  tree: CallTree;
  baseTotal: Float64Array;
  baseSelf: Float64Array;
}

/** For each frame the first one that is the same function: lines move and folders differ between two builds, so the name
 * and the name of the file decide. */
export function sameFunctions(frames: Frames): Int32Array {
  const first = new Map<string, number>();
  return Int32Array.from(frames.name, (name, i) => {
    const key = `${name}\0${baseName(frames.file[i]!)}`;
    const at = first.get(key);
    if (at === undefined) first.set(key, i);
    return at ?? i;
  });
}

function pour(trie: Trie, tree: CallTree, same: Int32Array, add: (id: number, i: number) => void): void {
  const at = new Int32Array(tree.n);
  for (let i = 0; i < tree.n; i++) {
    const p = tree.parent[i]!;
    at[i] = trie.child(p < 0 ? -1 : at[p]!, same[tree.frame[i]!]!);
    add(at[i]!, i);
  }
}

/** Both trees as one; the base is multiplied by `scale` (1: compare amounts; whole of new / whole of base: compare shares). */
export function diffTrees(of: CallTree, base: CallTree, same: Int32Array, scale: number): Diff {
  const trie = new Trie(same.length);
  const total: number[] = [];
  const self: number[] = [];
  const errors: [number[], number[]] = [[], []];
  const more = (to: number[], id: number, v: number) => (to[id] = (to[id] ?? 0) + v);
  pour(trie, of, same, (id, i) => {
    trie.add(id, known(of.self[i]!), known(of.total[i]!), of.calls[i]!);
    more(errors[0], id, of.error[i]!);
  });
  pour(trie, base, same, (id, i) => {
    more(total, id, known(base.total[i]!) * scale);
    more(self, id, known(base.self[i]!) * scale);
    more(errors[1], id, base.error[i]! * scale);
  });
  const tree = trie.tree();
  tree.hidden = of.hidden + base.hidden;
  tree.error = tree.error.map((_, i) => Math.hypot(errors[0][i] ?? 0, errors[1][i] ?? 0));
  const filled = (from: number[]) => Float64Array.from({ length: tree.n }, (_, i) => from[i] ?? 0);
  return { tree, baseTotal: filled(total), baseSelf: filled(self) };
}

/** Is a difference larger than what is known to be uncertain about it? Unknown errors hide nothing. */
export const isTold = (now: number, before: number, error: number): boolean => !(Math.abs(now - before) <= error);

/** -1 (gone) over 0 (the same) to 1 (new): growth and shrinkage by the same factor are as far from 0. */
export function changeOf(now: number, before: number): number {
  if (!(now > 0) && !(before > 0)) return 0;
  return (now - before) / Math.max(now, before);
}

// ---- search ----

export interface Found {
  /** 1 for each frame that matches. */
  frame: Uint8Array;
  /** Functions, paths, and the share of the whole that lies in matching paths, each moment counted once. */
  functions: number;
  paths: number;
  share: number;
}

export function searchTree(tree: CallTree, frames: Frames, words: string): Found | null {
  const want = words.trim().toLowerCase();
  if (!want) return null;
  const frame = Uint8Array.from(frames.name, (name, i) => +(name.toLowerCase().includes(want) || baseName(frames.file[i]!).toLowerCase().includes(want)));
  const inside = new Uint8Array(tree.n);
  const seen = new Set<number>();
  let paths = 0;
  let sum = 0;
  for (let i = 0; i < tree.n; i++) {
    const p = tree.parent[i]!;
    const hit = frame[tree.frame[i]!]!;
    const above = p >= 0 ? inside[p]! : 0;
    if (hit) {
      paths++;
      seen.add(tree.frame[i]!);
      if (!above) sum += known(tree.total[i]!);
    }
    inside[i] = hit | above;
  }
  const whole = wholeOf(tree);
  return { frame, functions: seen.size, paths, share: whole > 0 ? sum / whole : NaN };
}
