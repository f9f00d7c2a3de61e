// SPDX-License-Identifier: MIT
// flame.ts - where the frames of a flame graph lie, and which of them a window shows. A row is sorted from left to right,
// so what is in sight is found by halving, and of frames thinner than a pixel one per pixel is handed out: drawing costs
// what the window has room for, whatever the profile holds.
import { type Kids, kidsOf, sumOfRoots } from "./calltree";
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
  /** Nodes, places and edges are there up to and with this row after it was asked for; at first only row 0. */
  reach(row: number): void;
}

/** A frame is as wide as its weight, or as what lies inside it where noise made that more. */
function widths(tree: CallTree, weight: Float64Array): Float64Array {
  const out = new Float64Array(tree.n);
  for (let i = tree.n - 1; i >= 0; i--) {
    const w = weight[i]! > out[i]! ? weight[i]! : out[i]!;
    out[i] = w;
    const p = tree.parent[i]!;
    if (p >= 0) out[p]! += w;
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

/** The row of each node, and where each row starts when they lie one after another. */
function rowsOf(tree: CallTree): { row: Int32Array; rowStart: Int32Array } {
  const row = new Int32Array(tree.n);
  const counts: number[] = [];
  for (let i = 0; i < tree.n; i++) {
    const p = tree.parent[i]!;
    const r = p < 0 ? 0 : row[p]! + 1;
    row[i] = r;
    if (r === counts.length) counts.push(1);
    else counts[r]!++;
  }
  const rowStart = new Int32Array(counts.length + 1);
  counts.forEach((n, r) => (rowStart[r + 1] = rowStart[r]! + n));
  return { row, rowStart };
}

/** Lay out a tree with a weight for each node (by default its total). A row is laid out when somebody looks at it or below:
 * a deep profile is on the screen before most of it has a place. */
export function layoutOf(tree: CallTree, weight: Float64Array = tree.total): Layout {
  const kids = kidsOf(tree);
  const width = widths(tree, weight);
  const whole = sumOfRoots(kids, width);
  const unit = whole > 0 ? whole : 1;
  const { row, rowStart } = rowsOf(tree);
  const node = new Int32Array(tree.n);
  const place = new Int32Array(tree.n);
  const x0 = new Float64Array(tree.n);
  const x1 = new Float64Array(tree.n);
  let end = 0;
  let done = 0;
  const put = (first: number, left: number) => {
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
      x0[p] = left;
      x1[p] = left += width[i]! / unit;
    }
  };
  const rows = rowStart.length - 1;
  const reach = (to: number) => {
    for (; done <= to && done < rows; done++) {
      if (!done) put(kids.root, 0);
      else for (let p = rowStart[done - 1]!; p < rowStart[done]!; p++) put(kids.first[node[p]!]!, x0[p]!);
    }
  };
  reach(0);
  return { kids, rows, rowStart, node, place, x0, x1, row, whole, reach };
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
  layout.reach(row);
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
    const pixel = Math.floor(x + ROUNDING);
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
  layout.reach(row);
  const at = camera.from + (x / camera.width) * (camera.to - camera.from);
  const end = layout.rowStart[row + 1]!;
  const p = beyond(layout, at, layout.rowStart[row]!, end);
  return p < end && layout.x0[p]! <= at ? layout.node[p]! : -1;
}

/** Where a node lies in its row; -1: there is no such node. */
export function placeOf(layout: Layout, node: number): number {
  if (!(node >= 0 && node < layout.place.length)) return -1;
  layout.reach(layout.row[node]!);
  return layout.place[node]!;
}

/** The window on one node and all inside it; -1: on everything. */
export function zoomTo(layout: Layout, node: number): [number, number] {
  const p = placeOf(layout, node);
  return p < 0 || !(layout.x1[p]! > layout.x0[p]!) ? [0, 1] : [layout.x0[p]!, layout.x1[p]!];
}

export type Step = "in" | "out" | "left" | "right";

/** Where a key leads: to the widest child, to the parent, along the row. -1 stays at the outermost. */
export function stepFrom(tree: CallTree, layout: Layout, node: number, step: Step): number {
  if (tree.n === 0) return -1;
  if (node < 0) return layout.node[0]!;
  const p = placeOf(layout, node);
  const row = layout.row[node]!;
  if (step === "out") return tree.parent[node]! >= 0 ? tree.parent[node]! : node;
  if (step === "left") return p > layout.rowStart[row]! ? layout.node[p - 1]! : node;
  if (step === "right") return p + 1 < layout.rowStart[row + 1]! ? layout.node[p + 1]! : node;
  return widestChild(layout, node);
}

function widestChild(layout: Layout, node: number): number {
  layout.reach(layout.row[node]! + 1);
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
  layout.reach(layout.rows);
  let p = node < 0 ? (back ? 0 : n - 1) : layout.place[node]!;
  for (let tried = 0; tried < n; tried++) {
    p = (p + (back ? n - 1 : 1)) % n;
    if (match[tree.frame[layout.node[p]!]!]) return layout.node[p]!;
  }
  return -1;
}
