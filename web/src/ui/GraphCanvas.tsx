// SPDX-License-Identifier: MIT
// GraphCanvas.tsx - a window on the graph of a model: dragged, zoomed, walked through with keys. Only what is in sight is
// drawn, so that thousands of nodes move as easily as ten.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { NODE_HEIGHT, NODE_WIDTH, type Placed } from "../data/graphlayout";
import type { ModelGraph } from "../data/modelgraph";
import { deviceRatio } from "./download";
import { boundView, drawGraph, firstView, frameUnder, type GraphLook, type GraphView, nodeUnder, PAD, type Size, viewWith, wholeView, zoomView } from "./graphpaint";
import { canvasPen } from "./pen";
import type { TipAt } from "./Tip";
import { useWidth } from "./width";

const TALLEST = 620;
const LEAST = 96;
const STEP = 1.4;
const MOVED = 4; // pixels: less is a click

export interface GraphCanvasProps {
  graph: ModelGraph;
  placed: Placed;
  look: GraphLook;
  /** The node with the keyboard; -1: none. */
  at: number;
  onAt: (node: number) => void;
  /** The node under the pointer. */
  onOver: (node: number, at: TipAt | null) => void;
  onUnfold: (node: number) => void;
  /** The name of an unfolded block was clicked on. */
  onFold: (key: string) => void;
  onKey: (key: string) => boolean;
  label: string;
  /** Filled with what buttons outside do to the view. */
  acts: RefObject<GraphActs | null>;
}

export interface GraphActs {
  zoom: (factor: number) => void;
  whole: () => void;
}

/** The layer that the first of several nodes is made of stays where it was on the screen when they fold or unfold. */
interface Anchor {
  layer: number;
  x: number;
  y: number;
}

function paint(canvas: HTMLCanvasElement, p: GraphCanvasProps, v: GraphView, size: Size, over: number): void {
  const scale = deviceRatio();
  const [w, h] = [Math.round(size.width * scale), Math.round(size.height * scale)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const ctx = canvas.getContext("2d");
  if (!ctx) return;
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.clearRect(0, 0, w, h);
  ctx.setTransform(scale * v.k, 0, 0, scale * v.k, -v.x * scale * v.k, -v.y * scale * v.k);
  const pen = canvasPen(ctx);
  drawGraph(pen, p.graph, p.placed, p.look, { x0: v.x, y0: v.y, x1: v.x + size.width / v.k, y1: v.y + size.height / v.k }, v.k);
  for (const [node, width] of [[over, 1.5], [p.at, 2.5]] as const) {
    const b = p.placed.boxes[node];
    if (!b) continue;
    const [x0, y0, x1, y1] = [b.x - 1, b.y - 1, b.x + NODE_WIDTH + 1, b.y + NODE_HEIGHT + 1];
    pen.path([[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]], { colour: p.look.colours.accent, width: width / Math.min(1, v.k) });
  }
}

/** Where an arrow key leads: to a reader, to what is read, or along the row. */
export function walk(g: ModelGraph, placed: Placed, at: number, key: string): number {
  if (at < 0) return placed.rows.flat()[0] ?? -1;
  if (key === "ArrowDown") return g.edges.find(([from]) => from === at)?.[1] ?? at;
  if (key === "ArrowUp") return g.edges.find(([, to]) => to === at)?.[0] ?? at;
  const row = placed.rows.find((r) => r.includes(at)) ?? [at];
  const i = row.indexOf(at) + (key === "ArrowRight" ? 1 : -1);
  return row[Math.min(Math.max(i, 0), row.length - 1)]!;
}

const ARROWS = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"];

const pointOf = (e: MouseEvent): [number, number] => {
  const r = (e.currentTarget as HTMLElement).getBoundingClientRect();
  return [e.clientX - r.left, e.clientY - r.top];
};

/** The window on the graph: kept within it, anew for another graph. */
function useGraphView(p: GraphCanvasProps, size: Size, anchor: { current: Anchor | null }) {
  const { placed, graph } = p;
  const [view, setRaw] = useState<GraphView | null>(null);
  const set = (v: GraphView) => setRaw(boundView(v, placed, size));
  useLayoutEffect(() => {
    if (size.width <= 0) return;
    const a = anchor.current;
    anchor.current = null;
    const node = a ? graph.nodes.findIndex((n) => n.layers.includes(a.layer)) : -1;
    const b = placed.boxes[node];
    const next = view && a && b ? { k: view.k, x: b.x - a.x / view.k, y: b.y - a.y / view.k } : !view || a ? firstView(placed, size) : view;
    const chosen = placed.boxes[p.at];
    set(chosen ? viewWith(next, chosen, size) : next);
  }, [placed, size.width]);
  return [view ?? firstView(placed, size), set] as const;
}

/** Drag, click, and the wheel: with Ctrl it zooms; while the graph has the focus it moves it, to its end, then the page. */
function usePointer(canvas: RefObject<HTMLCanvasElement | null>, view: GraphView, set: (v: GraphView) => void, p: GraphCanvasProps, size: Size) {
  const drag = useRef<{ x: number; y: number; moved: boolean } | null>(null);
  const latest = useRef({ view, set, p, size });
  latest.current = { view, set, p, size };
  useEffect(() => {
    const el = canvas.current!;
    const wheel = (e: WheelEvent) => {
      const { view: v, set: to, p: now, size: s } = latest.current;
      const r = el.getBoundingClientRect();
      if (e.ctrlKey || e.metaKey) to(zoomView(v, e.clientX - r.left, e.clientY - r.top, Math.exp(-Math.max(-60, Math.min(60, e.deltaY)) * 0.01)));
      else if (document.activeElement === el.parentElement) {
        const [dx, dy] = e.shiftKey ? [e.deltaY || e.deltaX, 0] : [e.deltaX, e.deltaY];
        const next = boundView({ k: v.k, x: v.x + dx / v.k, y: v.y + dy / v.k }, now.placed, s);
        if (next.x === v.x && next.y === v.y) return; // the page goes on
        to(next);
      } else return;
      now.onOver(-1, null);
      e.preventDefault();
    };
    el.addEventListener("wheel", wheel, { passive: false });
    return () => el.removeEventListener("wheel", wheel);
  }, []);
  const onPointerDown = (e: PointerEvent) => {
    drag.current = { x: e.clientX, y: e.clientY, moved: false };
    if (e.pointerType === "mouse") canvas.current!.setPointerCapture(e.pointerId);
  };
  const onPointerMove = (e: PointerEvent) => {
    const d = drag.current;
    if (d && (d.moved || Math.abs(e.clientX - d.x) + Math.abs(e.clientY - d.y) >= MOVED)) {
      set({ k: view.k, x: view.x - (e.clientX - d.x) / view.k, y: view.y - (e.clientY - d.y) / view.k });
      drag.current = { x: e.clientX, y: e.clientY, moved: true };
      return p.onOver(-1, null);
    }
    const node = nodeUnder(p.placed, view, ...pointOf(e));
    p.onOver(node, node >= 0 ? { x: e.clientX, y: e.clientY } : null);
  };
  const onPointerUp = (e: PointerEvent) => {
    const d = drag.current;
    drag.current = null;
    if (!d || d.moved) return;
    const node = nodeUnder(p.placed, view, ...pointOf(e));
    const frame = node < 0 ? frameUnder(p.graph, p.placed, view, ...pointOf(e)) : null;
    if (frame) return p.onFold(frame);
    p.onAt(node);
    if (node >= 0) p.onUnfold(node);
  };
  const onPointerLeave = () => p.onOver(-1, null);
  const onPointerCancel = () => void (drag.current = null);
  return { onPointerDown, onPointerMove, onPointerUp, onPointerLeave, onPointerCancel };
}

export function GraphCanvas(props: GraphCanvasProps & { over: number }) {
  const { graph, placed } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const anchor = useRef<Anchor | null>(null);
  const width = useWidth(box);
  const scale = Math.min(1, Math.max(0.5, (width - 2 * PAD) / Math.max(1, placed.width)));
  const height = Math.round(Math.min(TALLEST, Math.max(LEAST, (placed.height + 8) * scale + 2 * PAD)));
  const size = { width, height };
  const [view, set] = useGraphView(props, size, anchor);
  const hold = (node: number) => {
    const b = placed.boxes[node];
    if (b) anchor.current = { layer: graph.nodes[node]!.layers[0]!, x: (b.x - view.x) * view.k, y: (b.y - view.y) * view.k };
  };
  const unfold = (node: number) => {
    if (graph.nodes[node]!.kind !== "layer") hold(node);
    props.onUnfold(node);
  };
  const onFold = (key: string) => {
    hold(graph.nodes.findIndex((n) => n.within === key));
    props.onFold(key);
  };
  const p = { ...props, onUnfold: unfold, onFold };
  const middle = (): [number, number] => [size.width / 2, size.height / 2];
  props.acts.current = { zoom: (f) => set(zoomView(view, ...middle(), f)), whole: () => set(wholeView(placed, size)) };
  const onPointer = usePointer(canvas, view, set, p, size);
  useLayoutEffect(() => {
    const b = placed.boxes[props.at];
    if (b && width > 0) set(viewWith(view, b, size));
  }, [props.at]);
  useLayoutEffect(() => void (canvas.current && width > 0 && paint(canvas.current, props, boundView(view, placed, size), size, props.over)));
  const pressed = (key: string): boolean => {
    if (ARROWS.includes(key)) props.onAt(walk(graph, placed, props.at, key));
    else if (key === "Home" || key === "End") props.onAt(placed.rows.flat().at(key === "Home" ? 0 : -1) ?? -1);
    else if ((key === "Enter" || key === " ") && props.at >= 0) unfold(props.at);
    else if (key === "+" || key === "=") props.acts.current!.zoom(STEP);
    else if (key === "-") props.acts.current!.zoom(1 / STEP);
    else if (key === "0") props.acts.current!.whole();
    else if (key === "Escape") props.onAt(-1);
    else {
      if (key === "f") hold(props.at);
      return props.onKey(key);
    }
    return true;
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (!e.ctrlKey && !e.metaKey && !e.altKey && pressed(e.key)) e.preventDefault();
  };
  return (
    <div class="graphbox" ref={box} style={{ height: `${height}px` }} tabIndex={0} role="group" aria-roledescription="plot" aria-label={props.label} onKeyDown={onKeyDown}>
      <canvas ref={canvas} aria-hidden="true" style={{ height: `${height}px` }} {...onPointer} />
    </div>
  );
}
