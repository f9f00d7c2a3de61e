// SPDX-License-Identifier: MIT
// graphpaint.ts - the graph of a model as strokes: the part of it that is in sight on a canvas, all of it as SVG. The same
// colour is stronger the more a node costs; its share stands in it as a number too.
import { type Box, NODE_HEIGHT, NODE_WIDTH, type Placed } from "../data/graphlayout";
import type { GraphNode, ModelGraph } from "../data/modelgraph";
import { box, fit, textWidth } from "../scenes/scene";
import { shortName } from "../scenes/treemap";
import { count, percent, shown } from "./format";
import type { Pen } from "./pen";
import type { Colours } from "./theme";

/** The point of the graph in the upper left corner, and pixels per unit of it. */
export interface GraphView {
  x: number;
  y: number;
  k: number;
}

export interface GraphLook {
  colours: Colours;
  /** Sum over the whole graph; 0: unknown. */
  whole: number;
  /** Nodes that a search left; null: nothing is searched. */
  found: ReadonlySet<number> | null;
  /** Names of unfolded blocks. */
  titles: Map<string, string>;
}

const LEAST_TEXT = 0.42; // below, text is not readable
const STRONGEST = 0.52; // text stays readable on it
const HEAT = 1; // of the series colours
export const PAD = 14;
const TITLE = 16;

/** How strong the colour of a node is: by the root, so that small costs are seen. */
export const heatOf = (value: number | null, most: number): number => (value && most > 0 ? STRONGEST * Math.sqrt(value / most) : 0);

/** What a node says of itself: its operator or what is folded in it, and where it is. */
export function nodeWords(n: GraphNode): [string, string] {
  if (n.kind === "layer") {
    const name = shortName(n.name, n.op).split("/").slice(-2).join("/");
    const second = name.replace(/_\d+$/, "") === n.op && n.makes ? n.makes : name; // what repeats the operator tells nothing
    return n.op ? [shown(n.op, 60), shown(second, 80)] : [shown(name, 80), shown(n.makes ?? "", 80)];
  }
  const inside = `${count(n.layers.length / n.times)} nodes`;
  return n.kind === "repeat" ? [`${shown(n.name, 80)} ×${count(n.times)}`, `${inside} each`] : [shown(n.name, 80), inside];
}

function drawNode(pen: Pen, n: GraphNode, at: Box, heat: number, look: GraphLook, small: boolean, dim: boolean): void {
  const { colours: c } = look;
  const edge = { colour: dim ? c.line : c.soft, width: n.kind === "layer" ? 1 : 1.4 };
  const outline = (dx: number, dy: number) => {
    const shape = box(at.x + dx, at.y + dy, NODE_WIDTH, NODE_HEIGHT);
    pen.fill(shape, c.paper, 1);
    pen.path([...shape, shape[0]!], edge);
  };
  if (n.kind === "repeat") outline(5, 5);
  if (n.kind !== "layer") outline(n.kind === "repeat" ? 2.5 : 3, n.kind === "repeat" ? 2.5 : 3);
  outline(0, 0);
  if (heat > 0 && !dim) pen.fill(box(at.x, at.y, NODE_WIDTH, NODE_HEIGHT), c.series[HEAT]!, heat);
  if (small) return;
  const [first, second] = nodeWords(n);
  const share = n.value !== null && look.whole > 0 && n.value / look.whole >= 0.0005 ? percent(n.value / look.whole, 2) : "";
  const room = NODE_WIDTH - 14 - (share ? textWidth(share) + 8 : 0);
  const ink = dim ? c.faint : c.ink;
  pen.text(at.x + 7, at.y + 16, fit(first, room, n.kind === "layer" ? "start" : "end"), ink);
  if (share) pen.text(at.x + NODE_WIDTH - 7, at.y + 16, share, ink, "end");
  pen.text(at.x + 7, at.y + 32, fit(second, NODE_WIDTH - 14, "end"), dim ? c.faint : heat > 0 ? c.ink : c.soft);
}

/** Frames around the layers of unfolded blocks. */
export function frames(g: ModelGraph, placed: Placed): Map<string, { x: number; y: number; w: number; h: number }> {
  const ends = new Map<string, [number, number, number, number]>();
  g.nodes.forEach((n, i) => {
    if (!n.within) return;
    const b = placed.boxes[i]!;
    const e = ends.get(n.within) ?? [Infinity, Infinity, -Infinity, -Infinity];
    ends.set(n.within, [Math.min(e[0], b.x), Math.min(e[1], b.y), Math.max(e[2], b.x + NODE_WIDTH), Math.max(e[3], b.y + NODE_HEIGHT)]);
  });
  return new Map([...ends].map(([key, [x0, y0, x1, y1]]) => [key, { x: x0 - 7, y: y0 - 7 - TITLE / 2, w: x1 - x0 + 14, h: y1 - y0 + 14 + TITLE / 2 }]));
}

function drawFrames(pen: Pen, g: ModelGraph, placed: Placed, look: GraphLook, small: boolean): void {
  for (const [key, f] of frames(g, placed)) {
    pen.fill(box(f.x, f.y, f.w, f.h), look.colours.accent, 0.06);
    if (!small) pen.text(f.x + 6, f.y + 8, fit(shown(look.titles.get(key), 80), f.w - 12, "end"), look.colours.soft);
  }
}

function arrow(pen: Pen, points: [number, number][], colour: string): void {
  const [x, y] = points[points.length - 1]!;
  pen.path(points, { colour });
  pen.fill([[x, y], [x - 3.5, y - 6], [x + 3.5, y - 6]], colour, 1);
}

/** Draw what lies within `sight` of the graph's own coordinates; null: all. */
export function drawGraph(pen: Pen, g: ModelGraph, placed: Placed, look: GraphLook, sight: { x0: number; y0: number; x1: number; y1: number } | null, k: number): void {
  const small = k < LEAST_TEXT;
  const most = g.nodes.reduce((m, n) => Math.max(m, n.value ?? 0), 0);
  const { colours: c, found } = look;
  drawFrames(pen, g, placed, look, small);
  for (const r of placed.routes) {
    const [first, last] = [r.points[0]!, r.points[r.points.length - 1]!];
    if (sight && (Math.max(first[1], last[1]) < sight.y0 || Math.min(first[1], last[1]) > sight.y1)) continue;
    arrow(pen, r.points, found && !(found.has(r.from) && found.has(r.to)) ? c.line : c.faint);
  }
  g.nodes.forEach((n, i) => {
    const at = placed.boxes[i]!;
    if (sight && (at.y > sight.y1 || at.y + NODE_HEIGHT + 6 < sight.y0 || at.x > sight.x1 || at.x + NODE_WIDTH + 6 < sight.x0)) return;
    drawNode(pen, n, at, heatOf(n.value, most), look, small, !!found && !found.has(i));
  });
}

// ---- looking at it ----

export interface Size {
  width: number;
  height: number;
}

const LEAST_START = 0.5;
const ZOOM_MIN = 0.02;
const ZOOM_MAX = 3;

/** Bring a view to where the graph is: never all of it out of sight. */
export function boundView(v: GraphView, placed: Size, size: Size): GraphView {
  const k = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, v.k));
  const along = (at: number, graph: number, window: number) => {
    const pad = PAD / k;
    const seen = window / k;
    if (graph + 2 * pad <= seen) return (graph - seen) / 2; // all of it is in sight: in the middle
    return Math.min(Math.max(at, -pad), graph + pad - seen);
  };
  const y = placed.height + (2 * PAD) / k <= size.height / k ? -PAD / k : along(v.y, placed.height, size.height);
  return { k, x: along(v.x, placed.width, size.width), y };
}

/** All of the width where it can still be read, from the beginning. */
export function firstView(placed: Size, size: Size): GraphView {
  const k = Math.min(1, Math.max(LEAST_START, (size.width - 2 * PAD) / Math.max(1, placed.width)));
  return boundView({ k, x: (placed.width - size.width / k) / 2, y: -PAD / k }, placed, size);
}

/** All of it. */
export function wholeView(placed: Size, size: Size): GraphView {
  const k = Math.min(1, (size.width - 2 * PAD) / Math.max(1, placed.width), (size.height - 2 * PAD) / Math.max(1, placed.height));
  return boundView({ k, x: 0, y: 0 }, placed, size);
}

/** The same point of the graph stays under a point of the window. */
export const zoomView = (v: GraphView, x: number, y: number, factor: number): GraphView => {
  const k = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, v.k * factor));
  return { k, x: v.x + x / v.k - x / k, y: v.y + y / v.k - y / k };
};

/** The node at a point of the window; -1: none. */
export function nodeUnder(placed: Placed, v: GraphView, x: number, y: number): number {
  const [gx, gy] = [v.x + x / v.k, v.y + y / v.k];
  return placed.boxes.findIndex((b) => gx >= b.x && gx <= b.x + NODE_WIDTH && gy >= b.y && gy <= b.y + NODE_HEIGHT);
}

/** Moved as little as brings a node into sight. */
export function viewWith(v: GraphView, b: Box, size: Size): GraphView {
  const into = (at: number, from: number, to: number, seen: number) => (from < at ? from : to > at + seen ? to - seen : at);
  const pad = PAD / v.k;
  return {
    k: v.k,
    x: into(v.x, b.x - pad, b.x + NODE_WIDTH + pad, size.width / v.k),
    y: into(v.y, b.y - pad, b.y + NODE_HEIGHT + pad, size.height / v.k),
  };
}

/** The unfolded block whose name is at a point of the window; null: none. */
export function frameUnder(g: ModelGraph, placed: Placed, v: GraphView, x: number, y: number): string | null {
  const [gx, gy] = [v.x + x / v.k, v.y + y / v.k];
  for (const [key, f] of frames(g, placed)) if (gx >= f.x && gx <= f.x + f.w && gy >= f.y - 4 && gy <= f.y + TITLE) return key;
  return null;
}
