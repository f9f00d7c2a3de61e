// SPDX-License-Identifier: MIT
// BarsCanvas.tsx - lanes of bars to look at, move, zoom and walk through. The canvas is as large as the window on it. A
// gesture moves a camera outside the state of the page and is painted in the next frame; what is in sight is told when it
// has come to rest.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Bars, barOf, launchedBy, type Lane, type Row, rowsOf, type Spot, spotOf } from "../data/bars";
import { AXIS, boxOf, type Camera, labelAt, layoutOf, type Layout, lookOf, paintBars, type Scenery, spotAt, walk } from "./barspaint";
import { useWidth } from "./width";
import { currentTheme, useColours } from "./theme";
import { Tip } from "./Tip";

/** From and to, ns of the trace. */
export type Stretch = [number, number];

export interface BarsCanvasProps {
  bars: Bars;
  stretch: Stretch;
  /** When the window has come to rest elsewhere. */
  onStretch: (s: Stretch) => void;
  /** Number of the chosen bar; -1: none. */
  at: number;
  onAt: (bar: number) => void;
  matches: Uint8Array | null;
  tip: (s: Spot) => { name: string; parts: string[] };
  onKey: (key: string) => boolean;
  label: string;
}

const HEIGHT_MOST = 560;
const LEAST_NS = 50; // in sight
const ARROWS_MOST = 200;

export const whole = (bars: Bars): Stretch => [bars.from, Math.max(bars.end, bars.from + LEAST_NS)];

/** Within the trace, with some air, not thinner than can be told apart. */
export function bound(bars: Bars, from: number, to: number): Stretch {
  const [lo, hi] = whole(bars);
  const air = (hi - lo) * 0.02;
  const length = Math.min(Math.max(to - from, LEAST_NS), hi - lo + 2 * air);
  const start = Math.min(Math.max(from, lo - air), hi + air - length);
  return [start, start + length];
}

/** A stretch around a bar in which it can be seen well. */
export function stretchTo(bars: Bars, s: Spot): Stretch {
  const length = Math.max(s.lane.length[s.i]!, LEAST_NS);
  const middle = s.lane.start[s.i]! + s.lane.length[s.i]! / 2;
  return bound(bars, middle - length * 1.5, middle + length * 1.5);
}

function arrowsOf(bars: Bars, s: Spot | null): [Spot, Spot][] {
  if (!s) return [];
  const pairs = (ops: Int32Array): [Spot, Spot][] =>
    Array.from(ops.subarray(0, ARROWS_MOST), (op): [Spot, Spot] => [s, spotOf(bars, op)!]);
  if (s.lane.kind === "calls") return pairs(launchedBy(bars, barOf(s)));
  const call = s.lane.call && s.lane.call[s.i]! >= 0 ? spotOf(bars, s.lane.call[s.i]!) : null;
  return call ? [[call, s]] : [];
}

function foundRows(bars: Bars, matches: Uint8Array | null): Map<Lane, Row[]> | null {
  if (!matches) return null;
  return new Map(bars.order.map((l) => [l, rowsOf(l, bars.names, (i) => matches[l.what[i]!] === 1)]));
}

/** The camera, and what moves it. Lives as long as the canvas. */
class Window {
  camera: Camera = { from: 0, perPx: 1, width: 0, height: 100, top: 0 };
  scenery!: Scenery;
  canvas: HTMLCanvasElement | null = null;
  rest: (s: Stretch) => void = () => {};
  /** ms that each of the latest frames took to paint. */
  frames: number[] = [];
  private asked = 0;
  private timer = 0;

  get stretch(): Stretch {
    return [this.camera.from, this.camera.from + this.camera.perPx * this.camera.width];
  }

  paint = (): void => {
    this.asked ||= requestAnimationFrame(() => {
      this.asked = 0;
      if (!this.canvas || !this.camera.width) return;
      this.frames.push(paintBars(this.canvas, this.camera, this.scenery));
      if (this.frames.length > 600) this.frames.splice(0, 300);
    });
  };

  show([from, to]: Stretch): void {
    this.camera.from = from;
    this.camera.perPx = (to - from) / Math.max(1, this.camera.width);
    this.paint();
  }

  /** Move to, and tell it a moment later. */
  go(from: number, to: number): void {
    this.show(bound(this.scenery.bars, from, to));
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.rest(this.stretch), 160);
  }

  pan(px: number): void {
    const [from, to] = this.stretch;
    this.go(from + px * this.camera.perPx, to + px * this.camera.perPx);
  }

  zoom(x: number, factor: number): void {
    const [from, to] = this.stretch;
    const middle = from + x * this.camera.perPx;
    this.go(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  stop(): void {
    cancelAnimationFrame(this.asked);
    clearTimeout(this.timer);
  }
}

declare global {
  interface HTMLCanvasElement {
    /** For whoever measures: ms of the latest frames. */
    tareFrames?: number[];
  }
}

/** Sideways, or with Shift, the wheel moves; with Ctrl, or where the timeline has the keyboard, it zooms; else the page scrolls. */
function onWheel(w: Window, e: WheelEvent, focused: boolean): void {
  const sideways = e.shiftKey ? e.deltaY || e.deltaX : e.deltaX;
  if (e.ctrlKey || e.metaKey || (focused && !e.shiftKey && Math.abs(e.deltaY) >= Math.abs(e.deltaX))) {
    w.zoom(e.clientX - w.canvas!.getBoundingClientRect().left, Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.008));
  } else if (Math.abs(sideways) > Math.abs(e.shiftKey ? 0 : e.deltaY)) w.pan(sideways);
  else return;
  e.preventDefault();
}

/** One finger or the mouse moves sideways, two zoom. */
function useGestures(w: Window, box: RefObject<HTMLDivElement | null>): void {
  useEffect(() => {
    const el = w.canvas!;
    const points = new Map<number, number>();
    let begun = 0;
    const apart = () => Math.abs([...points.values()][0]! - [...points.values()][1]!);
    const wheel = (e: WheelEvent) => onWheel(w, e, box.current!.contains(document.activeElement));
    const down = (e: PointerEvent) => {
      points.set(e.pointerId, e.clientX);
      begun = e.clientX;
      el.dataset.moved = "";
    };
    const move = (e: PointerEvent) => {
      const last = points.get(e.pointerId);
      if (last === undefined) return;
      const before = points.size === 2 ? apart() : 0;
      points.set(e.pointerId, e.clientX);
      if (points.size === 2) {
        const middle = [...points.values()].reduce((a, b) => a + b, 0) / 2 - el.getBoundingClientRect().left;
        w.zoom(middle, Math.max(before, 8) / Math.max(apart(), 8));
      } else w.pan(last - e.clientX);
      if (Math.abs(e.clientX - begun) > 3 && !el.dataset.moved) {
        el.dataset.moved = "1";
        el.setPointerCapture(e.pointerId);
      }
    };
    const up = (e: PointerEvent) => void points.delete(e.pointerId);
    el.addEventListener("wheel", wheel, { passive: false });
    el.addEventListener("pointerdown", down);
    el.addEventListener("pointermove", move);
    for (const end of ["pointerup", "pointercancel"] as const) el.addEventListener(end, up);
    return () => {
      el.removeEventListener("wheel", wheel);
      el.removeEventListener("pointerdown", down);
      el.removeEventListener("pointermove", move);
      for (const end of ["pointerup", "pointercancel"] as const) el.removeEventListener(end, up);
    };
  }, [w]);
}

const WALKS: Record<string, "left" | "right" | "up" | "down"> = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };

/** The bar to begin with: the first of the first lane in sight. */
function firstIn(w: Window, layout: Layout): Spot | null {
  for (const b of layout.boxes) {
    const i = b.lane.start.findIndex((t) => t >= w.camera.from);
    if (i >= 0) return { lane: b.lane, i };
  }
  return null;
}

/** Bring a bar into the window: sideways, and (by scrolling) up and down. */
function reveal(w: Window, box: HTMLElement, s: Spot): void {
  const place = boxOf(w.scenery.layout, w.camera, s);
  if (!place) return;
  if (place.x + place.width < 0 || place.x > w.camera.width) {
    const half = (w.camera.perPx * w.camera.width) / 2;
    const middle = s.lane.start[s.i]! + s.lane.length[s.i]! / 2;
    w.go(middle - half, middle + half);
  }
  if (place.y < AXIS) box.scrollTop += place.y - AXIS - 20;
  else if (place.y + place.height > w.camera.height) box.scrollTop += place.y + place.height - w.camera.height + 4;
}

function pressed(w: Window, p: BarsCanvasProps, key: string): boolean {
  const at = w.scenery.at;
  const middle = w.camera.width / 2;
  if (WALKS[key]) {
    const to = at ? walk(w.scenery.layout, at, WALKS[key]!) : firstIn(w, w.scenery.layout);
    if (to) p.onAt(barOf(to));
  } else if (key === "+" || key === "=" || key === "w") w.zoom(middle, 0.6);
  else if (key === "-" || key === "s") w.zoom(middle, 1 / 0.6);
  else if (key === "a") w.pan(-w.camera.width / 5);
  else if (key === "d") w.pan(w.camera.width / 5);
  else if (key === "0") w.go(...whole(p.bars));
  else if ((key === "Enter" || key === " ") && at) w.go(...stretchTo(p.bars, at));
  else if (key === "Escape" && p.at >= 0) p.onAt(-1);
  else return p.onKey(key);
  return true;
}

export function BarsCanvas(props: BarsCanvasProps) {
  const { bars } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const w = useMemo(() => new Window(), []);
  const width = useWidth(box);
  const [folded, setFolded] = useState<ReadonlySet<number>>(new Set());
  const [over, setOver] = useState<{ spot: Spot; x: number; y: number } | null>(null);
  const colours = useColours();
  const layout = useMemo(() => layoutOf(bars, folded), [bars, folded]);
  const look = useMemo(() => lookOf(bars.names, colours, currentTheme() === "dark"), [bars, colours]);
  const found = useMemo(() => foundRows(bars, props.matches), [bars, props.matches]);
  const at = useMemo(() => spotOf(bars, props.at), [bars, props.at]);
  const arrows = useMemo(() => arrowsOf(bars, at), [bars, at]);
  const height = Math.min(layout.height, HEIGHT_MOST);
  w.scenery = { bars, layout, look, found, folded, at, over: over?.spot ?? null, arrows };
  w.rest = props.onStretch;
  useLayoutEffect(() => {
    w.canvas = canvas.current;
    canvas.current!.tareFrames = w.frames;
    return () => w.stop();
  }, []);
  useLayoutEffect(() => {
    w.camera.width = width;
    w.camera.height = height;
    w.show(props.stretch);
  }, [width, height, props.stretch[0], props.stretch[1]]);
  useLayoutEffect(() => w.paint(), [layout, look, found, at, over?.spot.lane, over?.spot.i]);
  useLayoutEffect(() => void (at && width > 0 && reveal(w, box.current!, at)), [at, width > 0]);
  useGestures(w, box);
  const onMove = (e: PointerEvent) => {
    const r = canvas.current!.getBoundingClientRect();
    const [x, y] = [e.clientX - r.left, e.clientY - r.top];
    const spot = e.buttons ? null : spotAt(layout, w.camera, x, y);
    if (spot || over) setOver(spot && { spot, x: e.clientX, y: e.clientY });
  };
  const onClick = (e: MouseEvent) => {
    if (canvas.current!.dataset.moved) return;
    const r = canvas.current!.getBoundingClientRect();
    const lane = labelAt(layout, w.camera, e.clientY - r.top);
    if (lane && lane.height > 1) return setFolded((f) => (f.has(lane.first) ? new Set([...f].filter((k) => k !== lane.first)) : new Set([...f, lane.first])));
    const spot = spotAt(layout, w.camera, e.clientX - r.left, e.clientY - r.top);
    props.onAt(spot ? barOf(spot) : -1);
  };
  const onDouble = () => w.scenery.at && w.go(...stretchTo(bars, w.scenery.at));
  const onKeyDown = (e: KeyboardEvent) => {
    if (!e.ctrlKey && !e.metaKey && !e.altKey && pressed(w, props, e.key)) e.preventDefault();
  };
  const buttons: [string, string, () => void][] = [
    ["−", "Zoom out", () => w.zoom(w.camera.width / 2, 2)],
    ["+", "Zoom in", () => w.zoom(w.camera.width / 2, 0.5)],
    ["All", "Show all", () => w.go(...whole(bars))],
  ];
  return (
    <div class="barswrap">
      <div class="barsbuttons" role="group" aria-label="Zoom">
        {buttons.map(([sign, title, act]) => <button type="button" aria-label={title} title={title} onClick={act}>{sign}</button>)}
      </div>
      <div class="barsbox" ref={box} style={{ height: `${height}px` }} tabIndex={0} role="group" aria-roledescription="timeline" aria-label={props.label}
        onKeyDown={onKeyDown} onScroll={() => { w.camera.top = box.current!.scrollTop; w.paint(); }}>
        <div style={{ height: `${layout.height}px` }}>
          <canvas ref={canvas} style={{ height: `${height}px` }} onPointerMove={onMove} onPointerLeave={() => setOver(null)} onClick={onClick} onDblClick={onDouble} />
        </div>
      </div>
      <Tip at={over} {...(over ? props.tip(over.spot) : { name: "", parts: [] })} />
    </div>
  );
}
