// SPDX-License-Identifier: MIT
// barspaint.ts - a window on lanes of bars, drawn on a canvas. What is thinner than a pixel is not drawn bar by bar: all
// bars of one column of pixels are one stroke, as strong as the part of the time they cover, in the colour of the longest.
// So the work of a frame goes with the width of the window, not with the number of bars.
import { type BarName, type Bars, firstFrom, type Lane, longest, type Row, type Spot, visible } from "../data/bars";
import { cssOf, hashOf, inkOf, moduleTone, quietTone, softInkOf, type Tone } from "../data/flamecolour";
import { linearTicks } from "../data/scale";
import { deviceRatio } from "./download";
import { FLAME_FONT, fitText } from "./flamepaint";
import { duration } from "./format";
import type { Colours } from "./theme";

export const AXIS = 22;
const BAR = 17;
const ROW = 18;
const LABEL = 17;
const SPACE = 5;
const LEAST = 1.5; // px: thinner ones share a column
const LEAST_TEXT = 26;
const SHADES = 6;
const STRIPS_MOST = 80; // rows of columns in a window: it is not as high as that

/** ns at the left edge, and ns a pixel; `top`: px scrolled down. */
export interface Camera {
  from: number;
  perPx: number;
  width: number;
  height: number;
  top: number;
}

export interface LaneBox {
  lane: Lane;
  top: number;
  rows: number;
}

export interface Layout {
  boxes: LaneBox[];
  height: number;
}

export const ROWS_MOST = 60;

export function layoutOf(bars: Bars, folded: ReadonlySet<number>): Layout {
  let top = AXIS;
  const boxes = bars.order.map((lane): LaneBox => {
    const rows = folded.has(lane.first) ? 1 : Math.min(lane.height, ROWS_MOST);
    const box = { lane, top, rows };
    top += LABEL + rows * ROW + SPACE;
    return box;
  });
  return { boxes, height: top };
}

// ---- colours ----

export interface Look {
  fill: string[];
  /** The same on the paper in each strength, as pixels; behind the last name the colour of what was not searched for. */
  shades: Uint32Array;
  quiet: string;
  ink: string;
  soft: string;
  accent: string;
  line: string;
  paper: string;
}

const GROUPS = ["matmul", "elementwise", "attention", "normalisation", "reduction", "communication"];
const KINDS: Record<string, number> = { copy: 3, fill: 3, graph: 1, range: 2, mark: 5 };
const CALLS: [RegExp, number, string][] = [
  [/Launch/, 1, "launching call"],
  [/Synchronize/, 0, "waiting call"],
  [/Memcpy|Memset/, 3, "copying call"],
  [/Malloc|Free|Alloc|Register/, 4, "memory call"],
];

/** Kernels by what they do, calls by what the program does in them, scopes by name. */
export function hueOf(n: BarName): number {
  if (n.kind === "kernel") return GROUPS.indexOf(n.group ?? "");
  if (n.kind === "call") return CALLS.find(([part]) => part.test(n.text))?.[1] ?? -1;
  return Object.prototype.hasOwnProperty.call(KINDS, n.kind) ? KINDS[n.kind]! : hashOf(n.text) % 7;
}

/** What a colour stands for; "": the name itself. */
export function meaningOf(n: BarName): string {
  if (n.kind === "kernel") return hueOf(n) < 0 ? "other kernel" : (n.group ?? "");
  if (n.kind === "call") return CALLS.find(([part]) => part.test(n.text))?.[2] ?? "other call";
  return { copy: "copy or fill", fill: "copy or fill", graph: "CUDA graph", range: "NVTX range" }[n.kind] ?? "";
}

/** Stronger than the frames of a flame graph, which lie close; what is only waiting is a tint of the same. */
function toneOf(n: BarName, dark: boolean, plain = false): Tone {
  const t = moduleTone(hueOf(n), dark, plain ? 0 : ((hashOf(n.text) % 5) - 2) / 2);
  if (n.kind === "task") return { ...t, light: dark ? 20 : 92 };
  return { ...t, light: t.light + (dark ? 8 : -12) };
}

/** Red, green, blue from 0 to 255. */
function rgbOf({ hue, saturation, light }: Tone): number[] {
  const [s, l] = [saturation / 100, light / 100];
  const part = (n: number) => {
    const k = (n + hue / 30) % 12;
    return 255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return [part(0), part(8), part(4)];
}

/** A canvas reads this form of a colour several times as fast as any other. */
const hexText = (t: Tone): string => `#${rgbOf(t).map((v) => Math.round(v).toString(16).padStart(2, "0")).join("")}`;
const hexOf = (css: string): number[] => [1, 3, 5].map((i) => parseInt(css.slice(i, i + 2), 16) || 0);

/** How strong a column is that is covered for such a part. */
const strength = (shade: number): number => 0.3 + (0.7 * (shade + 1)) / SHADES;

function shadesOf(tones: Tone[], paper: number[]): Uint32Array {
  const out = new Uint32Array(tones.length * SHADES);
  const bytes = new Uint8ClampedArray(out.buffer);
  tones.forEach((t, i) => {
    const rgb = rgbOf(t);
    for (let shade = 0; shade < SHADES; shade++) {
      const at = 4 * (i * SHADES + shade);
      for (let c = 0; c < 3; c++) bytes[at + c] = paper[c]! + (rgb[c]! - paper[c]!) * strength(shade);
      bytes[at + 3] = 255;
    }
  });
  return out;
}

/** What the colours of these names mean, each once. */
export function keysOf(names: BarName[], dark: boolean): [string, string][] {
  const keys = new Map<string, string>();
  for (const n of names) if (meaningOf(n)) keys.set(meaningOf(n), cssOf(toneOf(n, dark, true)));
  return [...keys];
}

export function lookOf(names: BarName[], c: Colours, dark: boolean): Look {
  const tones = names.map((n) => toneOf(n, dark));
  const quiet = quietTone(dark);
  return {
    fill: tones.map(hexText),
    shades: shadesOf([...tones, quiet], hexOf(c.paper)),
    quiet: hexText(quiet),
    ink: inkOf(dark),
    soft: softInkOf(dark),
    accent: c.accent,
    line: c.line,
    paper: c.paper,
  };
}

// ---- strokes ----

interface Painting {
  ctx: CanvasRenderingContext2D;
  camera: Camera;
  look: Look;
  names: BarName[];
  column: number;
  quiet: boolean;
  strips: Strips;
}

/** Columns of pixels: each row is one line of an image, stretched to the height of a bar. Thousands of rectangles in
 * as many colours would take ten times as long. */
class Strips {
  private tops: number[] = [];
  private line: Uint32Array | null = null;
  private readonly canvas = document.createElement("canvas");
  private readonly image: ImageData;
  private readonly pixels: Uint32Array;

  constructor(readonly width: number) {
    this.canvas.width = width;
    this.canvas.height = STRIPS_MOST;
    this.image = new ImageData(width, STRIPS_MOST);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  private static kept: Strips | null = null;

  /** Empty ones of that width: mostly the same as before. */
  static of(width: number): Strips {
    if (Strips.kept?.width !== width) Strips.kept = new Strips(width);
    Strips.kept.pixels.fill(0, 0, Strips.kept.tops.length * width);
    Strips.kept.tops = [];
    return Strips.kept;
  }

  begin(): void {
    this.line = null;
  }

  put(x: number, y: number, pixel: number): void {
    if (x < 0 || x >= this.width) return;
    if (!this.line) {
      const at = this.tops.length * this.width;
      if (at >= this.pixels.length) return;
      this.tops.push(y);
      this.line = this.pixels.subarray(at, at + this.width);
    }
    this.line[x] = pixel;
  }

  draw(ctx: CanvasRenderingContext2D): void {
    if (!this.tops.length) return;
    this.canvas.getContext("2d")!.putImageData(this.image, 0, 0, 0, 0, this.width, this.tops.length);
    ctx.imageSmoothingEnabled = false;
    this.tops.forEach((y, i) => ctx.drawImage(this.canvas, 0, i, this.width, 1, 0, y, this.width, BAR));
  }
}

function label(p: Painting, text: string, x: number, width: number, y: number): void {
  const room = Math.floor((width - 8) / p.column);
  const words = room > 0 ? fitText(text, room) : "";
  if (!words) return;
  p.ctx.fillStyle = p.quiet ? p.look.soft : p.look.ink;
  p.ctx.fillText(words, x + 4, y + BAR - 5);
}

/** A bar that is wide enough to be seen as one. */
function wide(p: Painting, what: number, x0: number, x1: number, y: number): void {
  const left = Math.max(x0, -2);
  const width = Math.max(Math.min(x1, p.camera.width + 2) - left - (x1 - x0 > 4 ? 0.75 : 0), 1);
  p.ctx.fillStyle = p.quiet ? p.look.quiet : p.look.fill[what]!;
  p.ctx.fillRect(left, y, width, BAR);
  if (width >= LEAST_TEXT) label(p, p.names[what]!.text, Math.max(left, 0), width - Math.max(0, -left), y);
}

/** The grid of columns stands still in time, so that nothing flickers while it is moved. */
function paintRow(p: Painting, lane: Lane, row: Row, y: number): void {
  const { from, perPx, width } = p.camera;
  const { shades } = p.look;
  const [first, last] = visible(row, from, from + width * perPx);
  const offset = Math.round(from / perPx);
  const what = (k: number) => lane.what[row.at ? row.at[k]! : k]!;
  p.strips.begin();
  for (let i = first; i < last; ) {
    const [start, end] = [row.start[i]!, row.end[i]!];
    if (end - start >= LEAST * perPx) {
      wide(p, what(i), (start - from) / perPx, (end - from) / perPx, y);
      i++;
      continue;
    }
    const c = Math.floor(start / perPx);
    let k = firstFrom(row.start, (c + 1) * perPx, i + 1, last);
    if (k - 1 > i && row.end[k - 1]! - row.start[k - 1]! >= LEAST * perPx) k--;
    const colour = p.quiet ? p.names.length : what(longest(row, i, k));
    const cover = Math.ceil(((row.busy[k]! - row.busy[i]!) / perPx) * SHADES) - 1;
    p.strips.put(c - offset, y, shades[colour * SHADES + Math.max(0, Math.min(SHADES - 1, cover))]!);
    i = k;
  }
}

function paintAxis(p: Painting, origin: number, colours: Look): void {
  const { ctx, camera } = p;
  const [lo, hi] = [camera.from - origin, camera.from - origin + camera.width * camera.perPx];
  const ticks = linearTicks(lo, hi, Math.max(2, Math.floor(camera.width / 130)));
  const step = ticks.length > 1 ? ticks[1]! - ticks[0]! : 1;
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, 0, camera.width, AXIS);
  ctx.fillStyle = colours.soft;
  for (const t of ticks) {
    const x = (t - lo) / camera.perPx;
    const digits = Math.max(3, Math.ceil(Math.log10(Math.abs(t) / step + 1)) + 1);
    const text = duration(Math.abs(t) < step / 2 ? 0 : t, Math.min(digits, 12));
    if (x > -2 && x + ctx.measureText(text).width + 4 < camera.width) ctx.fillText(text, x + 3, 14);
    ctx.fillRect(Math.round(x), 4, 1, AXIS - 6);
  }
}

function gridLines(p: Painting, origin: number): void {
  const { ctx, camera } = p;
  const [lo, hi] = [camera.from - origin, camera.from - origin + camera.width * camera.perPx];
  ctx.fillStyle = p.look.line;
  for (const t of linearTicks(lo, hi, Math.max(2, Math.floor(camera.width / 130))))
    ctx.fillRect(Math.round((t - lo) / camera.perPx), AXIS, 1, camera.height);
}

// ---- places ----

/** The rectangle of a bar in the window, wherever that is. */
export function boxOf(layout: Layout, camera: Camera, s: Spot): { x: number; y: number; width: number; height: number } | null {
  const box = layout.boxes.find((b) => b.lane === s.lane);
  if (!box) return null;
  const x = (s.lane.start[s.i]! - camera.from) / camera.perPx;
  const row = Math.min(s.lane.depth ? s.lane.depth[s.i]! : 0, box.rows - 1);
  const y = box.top + LABEL + row * ROW - camera.top;
  return { x, y, width: Math.max(s.lane.length[s.i]! / camera.perPx, 1), height: BAR };
}

/** The bar under a place: of several in one pixel the longest. */
export function spotAt(layout: Layout, camera: Camera, x: number, y: number): Spot | null {
  if (y < AXIS) return null;
  const down = y + camera.top;
  const box = layout.boxes.find((b) => down >= b.top + LABEL && down < b.top + LABEL + b.rows * ROW);
  if (!box) return null;
  const at = Math.floor((down - box.top - LABEL) / ROW);
  const [from, to] = [camera.from + (x - 1) * camera.perPx, camera.from + (x + 1) * camera.perPx];
  let found: Spot | null = null;
  for (const row of box.lane.rows()) {
    if (row.y !== at) continue;
    const [i, j] = visible(row, from, to);
    if (j <= i) continue;
    const k = longest(row, i, j);
    found = { lane: box.lane, i: row.at ? row.at[k]! : k };
  }
  return found;
}

/** The lane whose label is under a place. */
export function labelAt(layout: Layout, camera: Camera, y: number): Lane | null {
  const down = y + camera.top;
  return y < AXIS ? null : (layout.boxes.find((b) => down >= b.top && down < b.top + LABEL)?.lane ?? null);
}

// ---- the whole ----

export interface Scenery {
  bars: Bars;
  layout: Layout;
  look: Look;
  /** Rows of what was searched for, by lane; null: nothing was. */
  found: Map<Lane, Row[]> | null;
  folded: ReadonlySet<number>;
  at: Spot | null;
  over: Spot | null;
  /** Arrows between bars: from a call to what it launched. */
  arrows: [Spot, Spot][];
}

function outline(p: Painting, layout: Layout, s: Spot | null, width: number, colour: string): void {
  const box = s && boxOf(layout, p.camera, s);
  if (!box) return;
  const x0 = Math.max(box.x, -4);
  const x1 = Math.min(box.x + box.width, p.camera.width + 4);
  p.ctx.strokeStyle = colour;
  p.ctx.lineWidth = width;
  p.ctx.strokeRect(x0 - 0.5, box.y - 0.5, Math.max(x1 - x0 + 1, 3), box.height + 1);
}

function arrow(p: Painting, layout: Layout, from: Spot, to: Spot): void {
  const a = boxOf(layout, p.camera, from);
  const b = boxOf(layout, p.camera, to);
  if (!a || !b) return;
  const down = b.y > a.y;
  const [x0, y0, x1, y1] = [a.x, a.y + (down ? a.height : 0), b.x, b.y + (down ? 0 : b.height)];
  if (Math.max(x0, x1) < -50 || Math.min(x0, x1) > p.camera.width + 50) return;
  const { ctx } = p;
  const bend = (y1 - y0) / 2;
  ctx.strokeStyle = ctx.fillStyle = p.look.accent;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  ctx.stroke();
  const s = down ? -1 : 1;
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x1 - 4, y1 + 7 * s);
  ctx.lineTo(x1 + 4, y1 + 7 * s);
  ctx.fill();
}

function paintLane(p: Painting, s: Scenery, box: LaneBox): void {
  const top = box.top - p.camera.top;
  if (top > p.camera.height || top + LABEL + box.rows * ROW < 0) return;
  const folded = s.folded.has(box.lane.first);
  p.ctx.fillStyle = p.look.soft;
  const many = box.lane.height > 1 ? (folded ? "▸ " : "▾ ") : "";
  p.ctx.fillText(fitText(many + box.lane.label, Math.floor((p.camera.width - 8) / p.column)), 3, top + LABEL - 5);
  const each = (rows: Row[]) => {
    for (const row of rows) {
      const y = top + LABEL + row.y * ROW;
      if (row.y < box.rows && y < p.camera.height && y + BAR > AXIS) paintRow(p, box.lane, row, y);
    }
  };
  p.quiet = s.found !== null;
  each(box.lane.rows());
  p.quiet = false;
  if (s.found) each(s.found.get(box.lane) ?? []);
}

/** Draw what is in sight. Measures itself: ms. */
export function paintBars(canvas: HTMLCanvasElement, camera: Camera, s: Scenery): number {
  const begun = performance.now();
  const ratio = deviceRatio();
  const [w, h] = [Math.round(camera.width * ratio), Math.round(camera.height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const ctx = canvas.getContext("2d")!;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = s.look.paper;
  ctx.fillRect(0, 0, camera.width, camera.height);
  ctx.font = FLAME_FONT;
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "left";
  const p: Painting = { ctx, camera, look: s.look, names: s.bars.names, column: ctx.measureText("M").width, quiet: false, strips: Strips.of(Math.ceil(camera.width)) };
  gridLines(p, s.bars.from);
  for (const box of s.layout.boxes) paintLane(p, s, box);
  p.strips.draw(ctx);
  for (const [from, to] of s.arrows) arrow(p, s.layout, from, to);
  outline(p, s.layout, s.over, 1, s.look.ink);
  outline(p, s.layout, s.at, 2, s.look.accent);
  paintAxis(p, s.bars.from, s.look);
  return performance.now() - begun;
}

// ---- walking ----

/** The next bar of the lane at the same height, or (`up`, `down`) the nearest of the height above or below. */
export function walk(layout: Layout, s: Spot, step: "left" | "right" | "up" | "down"): Spot {
  const y = s.lane.depth ? s.lane.depth[s.i]! : 0;
  const at = s.lane.start[s.i]!;
  if (step === "left" || step === "right") {
    const row = s.lane.rows().find((r) => !r.at || r.at[firstFrom(r.start, at, 0, r.n)] === s.i);
    if (!row) return s;
    const i = firstFrom(row.start, at, 0, row.n) + (step === "left" ? -1 : 1);
    return i < 0 || i >= row.n ? s : { lane: s.lane, i: row.at ? row.at[i]! : i };
  }
  const places = layout.boxes.flatMap((b) => b.lane.rows().filter((r) => r.y < b.rows).map((row) => ({ lane: b.lane, row })));
  const here = places.findIndex((p) => p.lane === s.lane && p.row.y === y);
  const to = places[here + (step === "up" ? -1 : 1)];
  if (!to || here < 0) return s;
  const i = Math.min(firstFrom(to.row.end, at, 0, to.row.n), to.row.n - 1);
  return { lane: to.lane, i: to.row.at ? to.row.at[i]! : i };
}
