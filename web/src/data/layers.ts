// SPDX-License-Identifier: MIT
// layers.ts - where one run's time (or, untimed, its arithmetic) goes: the largest layers, groups of them, and rectangles
// of a tree-map. Pure.
import { count, duration, isKnown, percent } from "../ui/format";
import type { Layer, Profile } from "./page";

export type Weight = "time_ns" | "flops";

export interface Slice {
  name: string;
  op: string;
  group: string;
  value: number;
  /** Of the whole. */
  share: number;
  /** Layers in it. */
  count: number;
  bound: string | null;
  layer: Layer | null;
}

export interface Rect {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Tile extends Rect {
  slice: Slice;
}

export interface Block extends Rect {
  name: string;
  value: number;
  share: number;
  tiles: Tile[];
}

const OTHER = "other";

/** By time where any layer was timed, else by arithmetic; null: neither is known. */
export function weightOf(layers: Layer[]): Weight | null {
  for (const weight of ["time_ns", "flops"] as const) if (layers.some((l) => (l[weight] ?? 0) > 0)) return weight;
  return null;
}

/** Layers with a weight above 0, the heaviest first. */
export function slicesOf(layers: Layer[], weight: Weight): Slice[] {
  const some = layers.filter((l) => (l[weight] ?? 0) > 0);
  const total = some.reduce((sum, l) => sum + l[weight]!, 0);
  const slices = some.map((l) => ({
    name: l.name,
    op: l.op ?? OTHER,
    group: l.group ?? OTHER,
    value: l[weight]!,
    share: l[weight]! / total,
    count: l.nodes ?? 1,
    bound: l.bound ?? null,
    layer: l,
  }));
  return slices.sort((a, b) => b.value - a.value);
}

/** The name without the numbers of repeated blocks: "layer.*" of "layer.3". */
export const foldedName = (name: string): string => name.replace(/([./_]|^)\d+(?=[./]|$)/g, "$1*");

const SETS = { group: (s: Slice) => s.group, op: (s: Slice) => s.op } as const;

/** Sums over all layers of one group or operator. */
export function sumBy(slices: Slice[], by: keyof typeof SETS): Slice[] {
  const sums = new Map<string, Slice>();
  for (const s of slices) {
    const key = SETS[by](s);
    const sum = sums.get(key) ?? {
      ...s,
      name: key,
      op: by === "op" ? "" : s.op,
      value: 0,
      share: 0,
      count: 0,
      bound: null,
      layer: null,
    };
    sums.set(key, { ...sum, value: sum.value + s.value, share: sum.share + s.share, count: sum.count + s.count });
  }
  return [...sums.values()].sort((a, b) => b.value - a.value);
}

/** The same layer of repeated blocks as one, "layer.*" of "layer.0" to "layer.5"; the heaviest first. */
export function foldRepeats(slices: Slice[]): Slice[] {
  const same = new Map<string, Slice[]>();
  for (const s of slices) {
    const key = `${foldedName(s.name)}\n${s.op}\n${s.group}`;
    same.set(key, [...(same.get(key) ?? []), s]);
  }
  const sum = (of: Slice[], pick: (s: Slice) => number) => of.reduce((total, s) => total + pick(s), 0);
  const folded = [...same.values()].map((of): Slice => {
    const first = of[0]!;
    if (of.length === 1) return first;
    return {
      ...first,
      name: foldedName(first.name),
      value: sum(of, (s) => s.value),
      share: sum(of, (s) => s.share),
      count: sum(of, (s) => s.count),
      bound: of.every((s) => s.bound === first.bound) ? first.bound : null,
      layer: null,
    };
  });
  return folded.sort((a, b) => b.value - a.value);
}

/** The first n, and one for all the rest. */
export function withRest(slices: Slice[], n: number): Slice[] {
  if (slices.length <= n + 1) return slices;
  const rest = slices.slice(n);
  const value = rest.reduce((sum, s) => sum + s.value, 0);
  const share = rest.reduce((sum, s) => sum + s.share, 0);
  return [
    ...slices.slice(0, n),
    { name: `${rest.length} others`, op: "", group: OTHER, value, share, count: rest.length, bound: null, layer: null },
  ];
}

/* ---- tree-map: rows whose rectangles are as square as can be ---- */

/** How far the worst rectangle of a row of `sum` along `side` is from a square. */
function worst(least: number, most: number, sum: number, side: number): number {
  const area = sum * sum;
  return Math.max((side * side * most) / area, area / (side * side * least));
}

/** How many of the values from `at` on make the next row. */
function rowLength(values: number[], at: number, side: number): number {
  let sum = values[at]!;
  let n = 1;
  while (at + n < values.length) {
    const next = values[at + n]!;
    if (worst(next, values[at]!, sum + next, side) > worst(values[at + n - 1]!, values[at]!, sum, side)) break;
    sum += next;
    n++;
  }
  return n;
}

/** Rectangles with areas in proportion to `values` (descending, above 0) that fill `box`. */
export function squarify(values: number[], box: Rect): Rect[] {
  const total = values.reduce((sum, v) => sum + v, 0);
  const scale = (box.w * box.h) / total;
  const areas = values.map((v) => v * scale);
  const out: Rect[] = [];
  let { x, y, w, h } = box;
  for (let at = 0; at < areas.length;) {
    const side = Math.min(w, h);
    const n = rowLength(areas, at, side);
    const sum = areas.slice(at, at + n).reduce((s, v) => s + v, 0);
    const depth = side > 0 ? sum / side : 0;
    let along = 0;
    for (const area of areas.slice(at, at + n)) {
      const length = depth > 0 ? area / depth : 0;
      out.push(w >= h ? { x, y: y + along, w: depth, h: length } : { x: x + along, y, w: length, h: depth });
      along += length;
    }
    if (w >= h) [x, w] = [x + depth, w - depth];
    else [y, h] = [y + depth, h - depth];
    at += n;
  }
  return out;
}

const HEAD = 16; // room for the name of a group

function inside(r: Rect): Rect {
  const head = r.h > 3 * HEAD && r.w > 40 ? HEAD : 0;
  return { x: r.x + 1, y: r.y + 1 + head, w: Math.max(0, r.w - 2), h: Math.max(0, r.h - 2 - head) };
}

/** Groups, and in each its layers; layers too small to be seen are one tile. */
export function treemap(slices: Slice[], width: number, height: number, perGroup = 40): Block[] {
  const groups = sumBy(slices, "group");
  if (!groups.length || !(width > 0) || !(height > 0)) return [];
  const boxes = squarify(
    groups.map((g) => g.value),
    { x: 0, y: 0, w: width, h: height },
  );
  return groups.map((g, i) => {
    const box = boxes[i]!;
    const members = withRest(
      slices.filter((s) => s.group === g.name),
      perGroup,
    ).sort((a, b) => b.value - a.value);
    const rects = squarify(
      members.map((m) => m.value),
      inside(box),
    );
    return { ...box, name: g.name, value: g.value, share: g.share, tiles: members.map((slice, k) => ({ ...rects[k]!, slice })) };
  });
}

const NOT_SLOWER = "which were not slower than the others, so that what the profiler adds is below their spread";

/** How the layers were timed, and what the timing itself made of it. */
export function profileText(p: Profile | null | undefined): string {
  if (!p) return "";
  const parts: string[] = [];
  if (isKnown(p.runs)) parts.push(`timed in ${count(p.runs)} profiled runs of their own`);
  if (isKnown(p.overhead)) parts.push(p.overhead > 0 ? `which the profiler made ${percent(p.overhead)} slower` : NOT_SLOWER);
  if (isKnown(p.node_ns) && p.node_ns > 0) parts.push(`${duration(p.node_ns)} of it are taken off each node`);
  if (isKnown(p.covered)) parts.push(`the layers together are ${percent(p.covered)} of a run without it`);
  if ((p.dropped_events ?? 0) > 0) parts.push(`${count(p.dropped_events!)} events could not be read`);
  return parts.length ? `Layers were ${parts.join(", ")}.` : "";
}
