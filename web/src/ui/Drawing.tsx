// SPDX-License-Identifier: MIT
// Drawing.tsx - a scene in a Figure: drawn on a canvas as wide as its box; what is under the pointer, or under the arrow
// keys, is told in words beside it.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Grid } from "../data/grid";
import type { Scene, SceneOf, Target } from "../scenes/scene";
import { Figure } from "./Figure";
import { shown } from "./format";
import { canvasPen, SvgPen } from "./pen";
import { type Colours, useColours } from "./theme";
import { Tip, type TipAt } from "./Tip";
import { useWidth } from "./width";

export interface DrawingProps {
  id: string;
  title: string;
  summary: string;
  grid: () => Grid;
  /** Stable between renders: the picture is drawn again when it changes. */
  scene: SceneOf;
  /** What the colours mean, above the picture. */
  legend?: ComponentChildren;
  note?: ComponentChildren;
  tools?: ComponentChildren;
}

const FIRST_WIDTH = 600;

function paint(canvas: HTMLCanvasElement, scene: Scene, width: number): void {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(scene.height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${scene.height}px`;
  const ctx = canvas.getContext("2d");
  if (!ctx) return;
  ctx.scale(scale, scale);
  scene.draw(canvasPen(ctx));
}

function svgOf(scene: Scene, width: number, colours: Colours, title: string): string {
  const pen = new SvgPen(width, scene.height, colours.paper);
  scene.draw(pen);
  return pen.finish(shown(title));
}

/** The smallest target under a place: what lies on top of what. */
function under(targets: Target[], x: number, y: number): number | null {
  let found: number | null = null;
  targets.forEach((t, i) => {
    const inside = x >= t.x && x < t.x + t.w && y >= t.y && y < t.y + t.h;
    if (inside && (found === null || t.w * t.h < targets[found]!.w * targets[found]!.h)) found = i;
  });
  return found;
}

const STEPS: Record<string, (at: number, n: number) => number | null> = {
  ArrowRight: (at, n) => Math.min(at + 1, n - 1),
  ArrowDown: (at, n) => Math.min(at + 1, n - 1),
  ArrowLeft: (at) => Math.max(at - 1, 0),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_at, n) => n - 1,
  Escape: () => null,
};

function Ring(props: { target: Target | undefined }) {
  const t = props.target;
  return t ? <i class="ring" style={{ left: `${t.x}px`, top: `${t.y}px`, width: `${t.w}px`, height: `${t.h}px` }} /> : null;
}

/** Where a target is in the window. */
function besideOf(canvas: HTMLCanvasElement | null, t: Target | undefined): TipAt | null {
  if (!canvas || !t) return null;
  const r = canvas.getBoundingClientRect();
  return { x: r.left + t.x + Math.min(t.w, 60), y: r.top + t.y + t.h / 2 };
}

export function Drawing(props: DrawingProps) {
  const colours = useColours();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box, FIRST_WIDTH);
  const pointer = useRef<TipAt | null>(null); // null: keys lead
  const [at, setAt] = useState<number | null>(null);
  const scene = useMemo(() => (width ? props.scene(width, colours) : null), [props.scene, width, colours]);
  useEffect(() => (scene !== null && canvas.current ? paint(canvas.current, scene, width) : undefined), [scene, width]);
  useEffect(() => setAt(null), [scene]);
  const targets = scene?.targets ?? [];
  const onKey = (e: KeyboardEvent) => {
    const step = STEPS[e.key];
    if (!step || !targets.length || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    pointer.current = null;
    setAt(step(at ?? -1, targets.length));
  };
  const onMove = (e: PointerEvent) => {
    pointer.current = { x: e.clientX, y: e.clientY };
    const place = canvas.current!.getBoundingClientRect();
    setAt(under(targets, e.clientX - place.left, e.clientY - place.top));
  };
  const words = `${shown(props.title)}. ${shown(props.summary, 600)} Arrow keys move from one to the next.`;
  const answer = at === null ? "" : (targets[at]?.text ?? "");
  return (
    <Figure
      id={props.id}
      title={props.title}
      summary={props.summary}
      grid={props.grid}
      note={props.note}
      tools={props.tools}
      svg={() => (scene ? svgOf(scene, width, colours, props.title) : "")}
    >
      <div class="legend">{props.legend}</div>
      <p class="answer hidden" aria-live="polite">
        {answer}
      </p>
      <Tip at={at === null ? null : (pointer.current ?? besideOf(canvas.current, targets[at]))} name={answer} parts={[]} />
      <div
        class="drawing"
        ref={box}
        tabIndex={0}
        role="group"
        aria-roledescription="plot"
        aria-label={words}
        onKeyDown={onKey}
        onPointerMove={onMove}
        onPointerLeave={() => setAt(null)}
        onBlur={() => setAt(null)}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <Ring target={at === null ? undefined : targets[at]} />
      </div>
    </Figure>
  );
}

/** One entry of a legend: a spot of colour and what it stands for. */
export function Key(props: { colour: string; ring?: boolean; children: ComponentChildren }) {
  return (
    <span class="key">
      <i class={props.ring ? "hollow" : ""} style={props.ring ? { borderColor: props.colour } : { background: props.colour }} />
      {props.children}
    </span>
  );
}
