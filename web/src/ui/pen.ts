// SPDX-License-Identifier: MIT
// pen.ts - the few strokes plots are drawn with, on a canvas or as SVG text, so that what is exported is what is seen.
import { xml } from "./download";

export interface Stroke {
  colour: string;
  width?: number;
  dash?: number[];
}

export interface Pen {
  path(points: readonly (readonly [number, number])[], stroke: Stroke): void;
  fill(points: readonly (readonly [number, number])[], colour: string, alpha: number): void;
  spot(x: number, y: number, radius: number, colour: string): void;
  text(x: number, y: number, text: string, colour: string, align?: "start" | "middle" | "end", turn?: boolean): void;
}

const FONT = "system-ui, sans-serif";
const SIZE = 12;
/** As a canvas names it. */
export const PEN_FONT = `${SIZE}px ${FONT}`;

function trace(ctx: CanvasRenderingContext2D, points: readonly (readonly [number, number])[]): void {
  ctx.beginPath();
  points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
}

/** Draws in CSS pixels; the caller saved the context. */
export function canvasPen(ctx: CanvasRenderingContext2D): Pen {
  return {
    path(points, s) {
      ctx.strokeStyle = s.colour;
      ctx.lineWidth = s.width ?? 1;
      ctx.setLineDash(s.dash ?? []);
      trace(ctx, points);
      ctx.stroke();
    },
    fill(points, colour, alpha) {
      ctx.globalAlpha = alpha;
      ctx.fillStyle = colour;
      trace(ctx, points);
      ctx.fill();
      ctx.globalAlpha = 1;
    },
    spot(x, y, radius, colour) {
      ctx.fillStyle = colour;
      ctx.beginPath();
      ctx.arc(x, y, radius, 0, 2 * Math.PI);
      ctx.fill();
    },
    text(x, y, text, colour, align = "start", turn = false) {
      ctx.save();
      ctx.translate(x, y);
      if (turn) ctx.rotate(-Math.PI / 2);
      ctx.fillStyle = colour;
      ctx.font = PEN_FONT;
      ctx.textAlign = align === "middle" ? "center" : align;
      ctx.textBaseline = "alphabetic";
      ctx.fillText(text, 0, 0);
      ctx.restore();
    },
  };
}

const fixed = (v: number): string => (Math.round(v * 100) / 100).toString();
const pointList = (points: readonly (readonly [number, number])[]): string =>
  points.map(([x, y]) => `${fixed(x)},${fixed(y)}`).join(" ");

export class SvgPen implements Pen {
  private parts: string[] = [];

  constructor(
    private readonly width: number,
    private readonly height: number,
    private readonly paper: string,
    /** How far from the corner the picture's own 0, 0 is. */
    private readonly inset = 0,
  ) {}

  path(points: readonly (readonly [number, number])[], s: Stroke): void {
    const dash = s.dash?.length ? ` stroke-dasharray="${s.dash.join(" ")}"` : "";
    this.parts.push(
      `<polyline points="${pointList(points)}" fill="none" stroke="${xml(s.colour)}" stroke-width="${s.width ?? 1}"${dash}/>`,
    );
  }

  fill(points: readonly (readonly [number, number])[], colour: string, alpha: number): void {
    this.parts.push(`<polygon points="${pointList(points)}" fill="${xml(colour)}" fill-opacity="${alpha}"/>`);
  }

  spot(x: number, y: number, radius: number, colour: string): void {
    this.parts.push(`<circle cx="${fixed(x)}" cy="${fixed(y)}" r="${radius}" fill="${xml(colour)}"/>`);
  }

  text(x: number, y: number, text: string, colour: string, align = "start", turn = false): void {
    const rotate = turn ? ` transform="rotate(-90 ${fixed(x)} ${fixed(y)})"` : "";
    this.parts.push(
      `<text x="${fixed(x)}" y="${fixed(y)}" fill="${xml(colour)}" text-anchor="${align}"${rotate}>${xml(text)}</text>`,
    );
  }

  private moved(inner: string): string {
    return this.inset ? `<g transform="translate(${this.inset} ${this.inset})">${inner}</g>` : inner;
  }

  /** The whole picture, with its title for readers that cannot see it. */
  finish(title: string): string {
    const size = `width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}"`;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${FONT}" font-size="${SIZE}" role="img"><title>${xml(title)}</title>` +
      `<rect width="100%" height="100%" fill="${xml(this.paper)}"/>${this.moved(this.parts.join(""))}</svg>\n`
    );
  }
}
