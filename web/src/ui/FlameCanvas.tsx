// SPDX-License-Identifier: MIT
// FlameCanvas.tsx - a flame graph one can look at, point at and walk through with keys. The canvas is as large as the
// window on it, never as the graph: the box scrolls over a spacer, and what is in sight is drawn again.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Camera, heightOf, type Layout, nodeAt, type Step, stepFrom, zoomTo } from "../data/flame";
import type { CallTree } from "../data/profile";
import { type Look, paintFlame, type Pane, ROW_HEIGHT } from "./flamepaint";
import type { TipAt } from "./Tip";
import { useWidth } from "./width";

/** Part of the width in sight. */
export type Range = [number, number];
export const WHOLE: Range = [0, 1];

export interface FlameCanvasProps {
  tree: CallTree;
  layout: Layout;
  look: Look;
  /** Outermost at the bottom. */
  flame: boolean;
  range: Range;
  onRange: (range: Range) => void;
  /** The node with the keyboard; -1: none. */
  at: number;
  onAt: (node: number) => void;
  /** The node under the pointer. */
  onOver: (node: number, at: TipAt | null) => void;
  /** Keys beyond those of the graph itself: true when it was one. */
  onKey?: (key: string) => boolean;
  label: string;
  /** At most so many rows are in sight at once. */
  rows: number;
  /** Kept at what is in sight, for whoever saves it. */
  pane: RefObject<Pane | null>;
}

const LEAST_RANGE = 1e-9;

/** A range within the whole, not thinner than can be drawn. */
export function boundRange(from: number, to: number): Range {
  const width = Math.min(1, Math.max(LEAST_RANGE, to - from));
  const start = Math.min(Math.max(0, from), 1 - width);
  return [start, start + width];
}

export function zoomAround(range: Range, middle: number, factor: number): Range {
  return boundRange(middle - (middle - range[0]) * factor, middle + (range[1] - middle) * factor);
}

/** Bring the row of a node into the box. */
function reveal(el: HTMLElement, layout: Layout, node: number, flame: boolean): void {
  if (node < 0 || node >= layout.row.length) return;
  const row = layout.row[node]!;
  const y = (flame ? layout.rows - 1 - row : row) * ROW_HEIGHT;
  if (y < el.scrollTop) el.scrollTop = y;
  else if (y + ROW_HEIGHT > el.scrollTop + el.clientHeight) el.scrollTop = y + ROW_HEIGHT - el.clientHeight;
}

/** Keep a node in sight sideways: a range that shows it, as wide as before where that is enough. */
function rangeWith(layout: Layout, range: Range, node: number): Range {
  const [x0, x1] = zoomTo(layout, node);
  if (x0 < range[1] && x1 > range[0]) return range;
  const half = (range[1] - range[0]) / 2;
  const middle = (x0 + x1) / 2;
  return boundRange(middle - half, middle + half);
}

const STEPS: Record<string, (flame: boolean) => Step> = {
  ArrowDown: (flame) => (flame ? "out" : "in"),
  ArrowUp: (flame) => (flame ? "in" : "out"),
  ArrowLeft: () => "left",
  ArrowRight: () => "right",
};

function pressed(p: FlameCanvasProps, key: string): boolean {
  const go = (node: number) => {
    p.onRange(rangeWith(p.layout, p.range, node));
    p.onAt(node);
  };
  const middle = p.at >= 0 ? (zoomTo(p.layout, p.at)[0] + zoomTo(p.layout, p.at)[1]) / 2 : (p.range[0] + p.range[1]) / 2;
  if (STEPS[key]) go(stepFrom(p.tree, p.layout, p.at, STEPS[key]!(p.flame)));
  else if (key === "Home") go(p.layout.node[0] ?? -1);
  else if (key === "Enter" || key === " ") p.onRange(zoomTo(p.layout, p.at));
  else if (key === "+" || key === "=") p.onRange(zoomAround(p.range, middle, 0.5));
  else if (key === "-") p.onRange(zoomAround(p.range, middle, 2));
  else if (key === "0" || key === "Escape") p.onRange(WHOLE);
  else return p.onKey?.(key) ?? false;
  return true;
}

/** Where a pointer is, within the canvas. */
function pointOf(e: MouseEvent): [number, number] {
  const r = (e.currentTarget as HTMLElement).getBoundingClientRect();
  return [e.clientX - r.left, e.clientY - r.top];
}

/** The wheel with Ctrl (or a pinch) zooms, sideways it moves; else it scrolls as everywhere. */
function onWheel(e: WheelEvent, p: FlameCanvasProps, width: number): void {
  const part = (p.range[1] - p.range[0]) / width;
  const sideways = e.shiftKey ? e.deltaY || e.deltaX : e.deltaX;
  if (e.ctrlKey || e.metaKey) {
    const [x] = pointOf(e);
    p.onRange(zoomAround(p.range, p.range[0] + x * part, Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.01)));
  } else if (Math.abs(sideways) > Math.abs(e.shiftKey ? 0 : e.deltaY)) p.onRange(boundRange(p.range[0] + sideways * part, p.range[1] + sideways * part));
  else return;
  e.preventDefault();
}

/** Listens once; a listener of the page's own may not keep the page from scrolling. */
function useWheel(canvas: RefObject<HTMLCanvasElement | null>, props: FlameCanvasProps): void {
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const el = canvas.current!;
    const wheel = (e: WheelEvent) => onWheel(e, latest.current, el.clientWidth);
    el.addEventListener("wheel", wheel, { passive: false });
    return () => el.removeEventListener("wheel", wheel);
  }, []);
}

/** Touch scrolls the page; a click or a tap zooms, on what already fills the width it zooms out by one. */
function clicked(p: FlameCanvasProps, node: number): void {
  if (node < 0) return;
  const [x0, x1] = zoomTo(p.layout, node);
  const filled = Math.abs(x0 - p.range[0]) < 1e-12 && Math.abs(x1 - p.range[1]) < 1e-12;
  p.onAt(node);
  p.onRange(filled ? zoomTo(p.layout, p.tree.parent[node]!) : [x0, x1]);
}

export function FlameCanvas(props: FlameCanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const over = useRef(-1);
  const [top, setTop] = useState(0);
  const width = useWidth(box);
  const { layout, flame } = props;
  const full = heightOf(layout, ROW_HEIGHT);
  const height = Math.max(ROW_HEIGHT, Math.min(full, props.rows * ROW_HEIGHT));
  const camera: Camera = { from: props.range[0], to: props.range[1], width, height, top, rowHeight: ROW_HEIGHT, flame };
  const pane: Pane = { layout, camera, look: props.look };
  props.pane.current = pane;
  const paint = () => canvas.current && width > 0 && paintFlame(canvas.current, pane, props.at, over.current);
  useLayoutEffect(() => {
    box.current!.scrollTop = flame ? full : 0;
    setTop(box.current!.scrollTop);
  }, [layout, flame]);
  useLayoutEffect(() => reveal(box.current!, layout, props.at, flame), [props.at]);
  useLayoutEffect(() => void paint());
  useWheel(canvas, props);
  const point = (node: number, at: TipAt | null) => {
    props.onOver(node, node >= 0 ? at : null);
    if (node === over.current) return;
    over.current = node;
    paint();
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (!e.ctrlKey && !e.metaKey && !e.altKey && pressed(props, e.key)) e.preventDefault();
  };
  return (
    <div class="flamebox" ref={box} style={{ height: `${height}px` }} onScroll={() => setTop(box.current!.scrollTop)} tabIndex={0} role="group"
      aria-roledescription="flame graph" aria-label={props.label} onKeyDown={onKeyDown}>
      <div style={{ height: `${full}px` }}>
        <canvas ref={canvas} style={{ height: `${height}px` }} onMouseMove={(e) => point(nodeAt(layout, camera, ...pointOf(e)), { x: e.clientX, y: e.clientY })} onMouseLeave={() => point(-1, null)}
          onClick={(e) => clicked(props, nodeAt(layout, camera, ...pointOf(e)))} />
      </div>
    </div>
  );
}
