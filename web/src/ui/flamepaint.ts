// SPDX-License-Identifier: MIT
// flamepaint.ts - windows on flame graphs as strokes: on a canvas, and as SVG text of the same. Names become text, cut to
// the room there is; nothing of them is ever markup.
import { type Camera, eachVisible, type Layout, placeOf, rowTop } from "../data/flame";
import { deviceRatio, xml } from "./download";

/** How the frames of one graph look; asked only for those in sight. */
export interface Look {
  fill(node: number): string;
  /** Left, and right where there is room for both. */
  name(node: number): string;
  value(node: number): string;
  quiet(node: number): boolean;
  ink: string;
  soft: string;
}

/** A window on a flame graph, and how what it shows looks. */
export interface Pane {
  layout: Layout;
  camera: Camera;
  look: Look;
}

export const ROW_HEIGHT = 19;
const BAND_HEIGHT = 27;
const GAP = 1;
const PAD = 4;
const LEAST_TEXT = 22;
const LEAST_VALUE = 150;
const FONT = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
export const FLAME_FONT = `11px ${FONT}`;

/** Far-eastern and other wide characters take two columns. */
const columnsOf = (c: number): number => (c >= 0x1100 && (c <= 0x115f || (c >= 0x2e80 && c <= 0xd7ff) || (c >= 0xf900 && c <= 0xfaff) || (c >= 0xff00 && c <= 0xff60) || c > 0xffff) ? 2 : 1);

/** The text, or its beginning with an ellipsis, in at most so many columns. */
export function fitText(text: string, columns: number): string {
  let used = 0;
  let cut = 0;
  for (const c of text) {
    used += columnsOf(c.codePointAt(0)!);
    if (used > columns) return cut > 0 ? `${text.slice(0, cut)}…` : "";
    if (used < columns) cut += c.length;
  }
  return text;
}

export interface Strokes {
  rect(x: number, y: number, width: number, height: number, fill: string): void;
  text(x: number, y: number, text: string, ink: string, right: boolean): void;
}

/** What stands in a box: a name to the left, and a value to the right where there is room for both. */
interface Words {
  name: string;
  value: string;
  ink: string;
  soft: string;
}

function label(to: Strokes, words: Words, box: { x: number; y: number; width: number }, columnWidth: number): void {
  const room = Math.floor((box.width - 2 * PAD) / columnWidth);
  const baseline = box.y + ROW_HEIGHT - 6;
  const both = words.value !== "" && words.name.length + words.value.length + 3 <= room;
  const text = fitText(words.name, room);
  if (text) to.text(box.x + PAD, baseline, text, words.ink, false);
  if (both) to.text(box.x + box.width - PAD, baseline, words.value, words.soft, true);
}

function wordsOf(look: Look, node: number, width: number): Words {
  return { name: look.name(node), value: width >= LEAST_VALUE ? look.value(node) : "", ink: look.quiet(node) ? look.soft : look.ink, soft: look.soft };
}

/** Everything in sight, through `to`. */
export function strokeFlame(to: Strokes, { layout, camera, look }: Pane, columnWidth: number): void {
  eachVisible(layout, camera, (node, x, y, width) => {
    const left = Math.max(x, 0);
    const right = Math.min(x + width, camera.width);
    const shown = right - left > 2 ? right - left - GAP : Math.max(right - left, 0.5);
    to.rect(left, y, shown, ROW_HEIGHT - GAP, look.fill(node));
    if (shown >= LEAST_TEXT) label(to, wordsOf(look, node, shown), { x: left, y, width: shown }, columnWidth);
  });
}

// ---- pictures, for files ----

export interface Picture {
  width: number;
  height: number;
  paper: string;
  stroke(to: Strokes, columnWidth: number): void;
}

export function flamePicture(pane: Pane, paper: string): Picture {
  return { width: pane.camera.width, height: pane.camera.height, paper, stroke: (to, columnWidth) => strokeFlame(to, pane, columnWidth) };
}

function lowered(to: Strokes, by: number): Strokes {
  return {
    rect: (x, y, width, height, fill) => to.rect(x, y + by, width, height, fill),
    text: (x, y, text, ink, right) => to.text(x, y + by, text, ink, right),
  };
}

/** Callers above, callees below, the name of their function between. A half that was scrolled may begin or end with part of
 * a row; the rest of it would show beside the half, so the band with the name, higher than a row, is drawn over it. */
export function sandwichPicture(callers: Pane, callees: Pane, name: string, paper: string): Picture {
  const { width, height } = callers.camera;
  const { ink, soft } = callers.look;
  const below = height + BAND_HEIGHT;
  const stroke = (to: Strokes, columnWidth: number) => {
    strokeFlame(to, callers, columnWidth);
    strokeFlame(lowered(to, below), callees, columnWidth);
    to.rect(0, height, width, BAND_HEIGHT, paper);
    label(to, { name, value: "callers above, callees below", ink, soft }, { x: 0, y: height + (BAND_HEIGHT - ROW_HEIGHT) / 2, width }, columnWidth);
  };
  return { width, height: below + callees.camera.height, paper, stroke };
}

// ---- on a canvas ----

function canvasStrokes(ctx: CanvasRenderingContext2D): Strokes {
  let fill = "";
  return {
    rect(x, y, width, height, colour) {
      if (colour !== fill) ctx.fillStyle = fill = colour;
      ctx.fillRect(x, y, width, height);
    },
    text(x, y, text, ink, right) {
      ctx.fillStyle = fill = ink;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(text, x, y);
    },
  };
}

/** The frame of one node in the window, if it is in sight. */
function boxOf(layout: Layout, camera: Camera, node: number) {
  const p = placeOf(layout, node);
  if (p < 0) return null;
  const scale = camera.width / (camera.to - camera.from);
  const left = Math.max(0, (layout.x0[p]! - camera.from) * scale);
  const right = Math.min(camera.width, (layout.x1[p]! - camera.from) * scale);
  const y = rowTop(layout, camera, layout.row[node]!);
  return right < 0 || left > camera.width || y + camera.rowHeight < 0 || y > camera.height ? null : { left, y, width: Math.max(right - left, 2) };
}

function outline(ctx: CanvasRenderingContext2D, layout: Layout, camera: Camera, node: number, look: Look, width: number): void {
  const box = boxOf(layout, camera, node);
  if (!box) return;
  ctx.strokeStyle = look.ink;
  ctx.lineWidth = width;
  ctx.strokeRect(box.left + width / 2, box.y + width / 2, Math.max(box.width - width - GAP, 1), ROW_HEIGHT - GAP - width);
}

/** An empty canvas of that size, in device pixels. */
function cleared(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = deviceRatio();
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const ctx = canvas.getContext("2d")!;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.font = FLAME_FONT;
  ctx.textBaseline = "alphabetic";
  return ctx;
}

const columnOf = (ctx: CanvasRenderingContext2D): number => ctx.measureText("M").width;

/** Draw what is in sight; `at` has the keyboard, `over` the pointer. */
export function paintFlame(canvas: HTMLCanvasElement, pane: Pane, at: number, over: number): void {
  const { layout, camera, look } = pane;
  const ctx = cleared(canvas, camera.width, camera.height);
  strokeFlame(canvasStrokes(ctx), pane, columnOf(ctx));
  outline(ctx, layout, camera, over, look, 1);
  outline(ctx, layout, camera, at, look, 2);
}

/** A picture as a canvas of its own, outside the page. */
export function canvasOfPicture(picture: Picture): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  const ctx = cleared(canvas, picture.width, picture.height);
  picture.stroke(canvasStrokes(ctx), columnOf(ctx));
  return canvas;
}

// ---- as SVG ----

const fixed = (v: number): string => (Math.round(v * 100) / 100).toString();

/** A picture as an SVG document. */
export function svgOfPicture(picture: Picture, title: string): string {
  const parts: string[] = [];
  const to: Strokes = {
    rect: (x, y, width, height, fill) => parts.push(`<rect x="${fixed(x)}" y="${fixed(y)}" width="${fixed(width)}" height="${fixed(height)}" fill="${xml(fill)}"/>`),
    text: (x, y, text, ink, right) => parts.push(`<text x="${fixed(x)}" y="${fixed(y)}" fill="${xml(ink)}"${right ? ' text-anchor="end"' : ""}>${xml(text)}</text>`),
  };
  const { width, height } = picture;
  picture.stroke(to, 6.62);
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${xml(FONT)}" font-size="11" role="img"><title>${xml(title)}</title>` +
    `<rect width="100%" height="100%" fill="${xml(picture.paper)}"/>${parts.join("")}</svg>\n`;
}
