// SPDX-License-Identifier: MIT
// flame.ts - where the frames of a flame graph lie, and which of them a window shows. A row is sorted from left to right,
// so what is in sight is found by halving, and of frames thinner than a pixel one per pixel is handed out: drawing costs
// what the window has room for, whatever the profile holds.
import { type Kids, kidsOf } from "./calltree";
import type { CallTree } from "./profile";

export interface Layout {
  kids: Kids;
  rows: number;
  /** Places rowStart[r] .. rowStart[r + 1] - 1 are row r, from left to right. */
  rowStart: Int32Array;
  /** Node at each place, and the place of each node. */
  node: Int32Array;
  place: Int32Array;
  /** Left and right edge by place, 0 to 1 over the whole. */
  x0: Float64Array;
  x1: Float64Array;
  row: Int32Array;
  /** What the full width stands for. */
  whole: number;
}

/** A frame is as wide as its weight, or as what lies inside it where noise made that more. */
function widths(tree: CallTree, weight: Float64Array): Float64Array {
  const inside = new Float64Array(tree.n);
  const out = new Float64Array(tree.n);
  for (let i = tree.n - 1; i >= 0; i--) {
    const w = weight[i]!;
    out[i] = w > inside[i]! ? w : inside[i]!;
    const p = tree.parent[i]!;
    if (p >= 0) inside[p]! += out[i]!;
  }
  return out;
}

/** The places of one row being filled: nodes from `start` on, widest first. Most writers sort them already, and most
 * lists are short, so they are put in order by insertion as long as that is cheap. */
function sortPlaces(node: Int32Array, start: number, end: number, width: Float64Array): void {
  if (end - start > 32) {
    node.subarray(start, end).sort((a, b) => width[b]! - width[a]! || a - b);
    return;
  }
  for (let k = start + 1; k < end; k++) {
    const i = node[k]!;
    let at = k;
    for (; at > start && width[node[at - 1]!]! < width[i]!; at--) node[at] = node[at - 1]!;
    node[at] = i;
  }
}

/** Lay out a tree with a weight for each node (by default its total). */
export function layoutOf(tree: CallTree, weight: Float64Array = tree.total): Layout {
  const kids = kidsOf(tree);
  const width = widths(tree, weight);
  const n = tree.n;
  const node = new Int32Array(n);
  const place = new Int32Array(n);
  const row = new Int32Array(n);
  const x0 = new Float64Array(n);
  const x1 = new Float64Array(n);
  const starts = [0];
  let end = 0;
  const put = (first: number, left: number, depth: number) => {
    const start = end;
    let sorted = true;
    for (let i = first; i >= 0; i = kids.next[i]!) {
      if (end > start && width[node[end - 1]!]! < width[i]!) sorted = false;
      node[end++] = i;
    }
    if (!sorted) sortPlaces(node, start, end, width);
    for (let p = start; p < end; p++) {
      const i = node[p]!;
      place[i] = p;
      row[i] = depth;
      x0[p] = left;
      x1[p] = left += width[i]!;
    }
  };
  put(kids.root, 0, 0);
  const whole = end ? x1[end - 1]! : 0;
  for (let from = 0, depth = 1; from < end; depth++) {
    const to = end;
    starts.push(to);
    for (; from < to; from++) if (kids.first[node[from]!]! >= 0) put(kids.first[node[from]!]!, x0[from]!, depth);
  }
  if (whole > 0) for (let p = 0; p < n; p++) (x0[p]! /= whole), (x1[p]! /= whole);
  return { kids, rows: n ? starts.length - 1 : 0, rowStart: Int32Array.from(starts), node, place, x0, x1, row, whole };
}

/** A window on a layout, in pixels: what part of the width and which rows it shows. */
export interface Camera {
  /** Part of the whole width in sight, 0 to 1. */
  from: number;
  to: number;
  width: number;
  height: number;
  /** Pixels scrolled past above. */
  top: number;
  rowHeight: number;
  /** Outermost row at the bottom: a flame graph; else an icicle. */
  flame: boolean;
}

/** First place of [low, high) whose right edge lies beyond x. */
function beyond(layout: Layout, x: number, low: number, high: number): number {
  while (low < high) {
    const mid = (low + high) >> 1;
    if (layout.x1[mid]! > x) high = mid;
    else low = mid + 1;
  }
  return low;
}

/** Height of all rows; a flame graph that is lower than its window stands on the ground. */
export const heightOf = (layout: Layout, rowHeight: number): number => layout.rows * rowHeight;

export function rowTop(layout: Layout, camera: Camera, row: number): number {
  if (!camera.flame) return row * camera.rowHeight - camera.top;
  const ground = Math.max(heightOf(layout, camera.rowHeight), camera.height);
  return ground - (row + 1) * camera.rowHeight - camera.top;
}

/** Of a pixel: edges that meet differ by less, and no more is lost by it than nobody can see. */
const ROUNDING = 1e-6;

export type Draw = (node: number, x: number, y: number, width: number) => void;

function drawRow(layout: Layout, camera: Camera, row: number, draw: Draw): void {
  const y = rowTop(layout, camera, row);
  const end = layout.rowStart[row + 1]!;
  const scale = camera.width / (camera.to - camera.from);
  let p = beyond(layout, camera.from, layout.rowStart[row]!, end);
  while (p < end && layout.x0[p]! < camera.to) {
    const x = (layout.x0[p]! - camera.from) * scale;
    const width = (layout.x1[p]! - layout.x0[p]!) * scale;
    if (width >= 1) {
      draw(layout.node[p]!, x, y, width);
      p++;
      continue;
    }
    const pixel = Math.floor(x);
    if (width > 0) draw(layout.node[p]!, pixel, y, 1);
    p = beyond(layout, camera.from + (pixel + 1 + ROUNDING) / scale, p + 1, end);
  }
}

/** Hand out what is in sight, row by row. Left edges and widths may reach out of the window. */
export function eachVisible(layout: Layout, camera: Camera, draw: Draw): void {
  for (let row = 0; row < layout.rows; row++) {
    const y = rowTop(layout, camera, row);
    if (y + camera.rowHeight > 0 && y < camera.height) drawRow(layout, camera, row, draw);
  }
}

/** The node under a point of the window, or -1. */
export function nodeAt(layout: Layout, camera: Camera, x: number, y: number): number {
  const ground = Math.max(heightOf(layout, camera.rowHeight), camera.height);
  const fromTop = camera.flame ? ground - (y + camera.top) : y + camera.top;
  const row = Math.floor(fromTop / camera.rowHeight);
  if (row < 0 || row >= layout.rows || x < 0 || x >= camera.width) return -1;
  const at = camera.from + (x / camera.width) * (camera.to - camera.from);
  const end = layout.rowStart[row + 1]!;
  const p = beyond(layout, at, layout.rowStart[row]!, end);
  return p < end && layout.x0[p]! <= at ? layout.node[p]! : -1;
}

/** The window on one node and all inside it; -1: on everything. */
export function zoomTo(layout: Layout, node: number): [number, number] {
  const p = node < 0 || node >= layout.place.length ? -1 : layout.place[node]!;
  return p < 0 || !(layout.x1[p]! > layout.x0[p]!) ? [0, 1] : [layout.x0[p]!, layout.x1[p]!];
}

export type Step = "in" | "out" | "left" | "right";

/** Where a key leads: to the widest child, to the parent, along the row. -1 stays at the outermost. */
export function stepFrom(tree: CallTree, layout: Layout, node: number, step: Step): number {
  if (tree.n === 0) return -1;
  if (node < 0) return layout.node[0]!;
  const p = layout.place[node]!;
  const row = layout.row[node]!;
  if (step === "out") return tree.parent[node]! >= 0 ? tree.parent[node]! : node;
  if (step === "left") return p > layout.rowStart[row]! ? layout.node[p - 1]! : node;
  if (step === "right") return p + 1 < layout.rowStart[row + 1]! ? layout.node[p + 1]! : node;
  return widestChild(layout, node);
}

function widestChild(layout: Layout, node: number): number {
  let best = node;
  let width = -1;
  for (let i = layout.kids.first[node]!; i >= 0; i = layout.kids.next[i]!) {
    const w = layout.x1[layout.place[i]!]! - layout.x0[layout.place[i]!]!;
    if (w > width) (best = i), (width = w);
  }
  return best;
}

/** The next matching place after a node, row by row and around; -1: none matches. */
export function nextMatch(tree: CallTree, layout: Layout, match: Uint8Array, node: number, back: boolean): number {
  const n = layout.node.length;
  let p = node < 0 ? (back ? 0 : n - 1) : layout.place[node]!;
  for (let tried = 0; tried < n; tried++) {
    p = (p + (back ? n - 1 : 1)) % n;
    if (match[tree.frame[layout.node[p]!]!]) return layout.node[p]!;
  }
  return -1;
}
