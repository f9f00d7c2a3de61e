// SPDX-License-Identifier: MIT
// Plot.tsx - a plot of a description: uPlot in a Figure, with a legend that shows the values under the cursor, arrow keys
// that move it, and the zoomed stretch in the address.
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { Figure } from "./Figure";
import { isKnown, shown, UNKNOWN } from "./format";
import { readView, writeView } from "./hash";
import { colourOf, svgOf } from "./plotdraw";
import { optionsOf } from "./plotopts";
import { gridOf, type PlotSeries, type PlotSpec } from "./plotspec";
import { type Colours, useColours } from "./theme";

const zoomKey = (spec: PlotSpec): string => `zoom.${spec.sync ?? spec.id}`;

/** The stretch in the address, if it is one. */
function savedZoom(spec: PlotSpec): { min: number; max: number } | null {
  const [min, max] = (readView(zoomKey(spec)) ?? "").split("~").map(Number);
  return isKnown(min) && isKnown(max) && min < max ? { min, max } : null;
}

const dataOf = (spec: PlotSpec): uPlot.AlignedData =>
  [spec.x.values, ...spec.series.map((s) => s.values)] as unknown as uPlot.AlignedData;

function valueText(spec: PlotSpec, s: PlotSeries, i: number): string {
  const format = (s.axis === "right" && spec.right ? spec.right : spec.y).format;
  const v = s.values[i];
  if (!isKnown(v)) return UNKNOWN;
  const [lo, hi] = [s.lo?.[i], s.hi?.[i]];
  const range =
    isKnown(lo) || isKnown(hi) ? ` (${isKnown(lo) ? format(lo) : "?"} to ${isKnown(hi) ? format(hi) : "?"})` : "";
  return format(v) + range;
}

const placeText = (spec: PlotSpec, i: number): string =>
  shown(spec.x.names ? (spec.x.names[i] ?? "") : spec.x.format(spec.x.values[i]!), 60);

/** The values under the cursor. It lies over the legend and takes no room: nothing moves when it comes and goes. */
function Readout(props: { spec: PlotSpec; at: number; colours: Colours }) {
  const { spec, at, colours } = props;
  return (
    <div class="readout" aria-hidden="true">
      {spec.series.map((s, i) => (
        <span>
          <i style={{ background: colourOf(s, i, colours) }} class={s.dash ? "dash" : ""} />
          {shown(s.label, 60)} <b>{valueText(spec, s, at)}</b>
        </span>
      ))}
      <span class="place">{`${spec.x.label}: ${placeText(spec, at)}`}</span>
    </div>
  );
}

function Legend(props: {
  spec: PlotSpec;
  at: number | null;
  colours: Colours;
  hidden: Set<number>;
  onToggle: (i: number) => void;
}) {
  const { spec, at, colours } = props;
  return (
    <div class="legend">
      {spec.series.map((s, i) => (
        <button type="button" aria-pressed={!props.hidden.has(i)} onClick={() => props.onToggle(i)}>
          <i style={{ background: colourOf(s, i, colours) }} class={s.dash ? "dash" : ""} />
          {shown(s.label, 60)}
        </button>
      ))}
      {at !== null && <Readout spec={spec} at={at} colours={colours} />}
    </div>
  );
}

/** The uPlot of a description, made again when the description or the colours change, resized with its box. */
function usePlot(
  box: RefObject<HTMLDivElement | null>,
  spec: PlotSpec,
  colours: Colours,
  onCursor: (i: number | null) => void,
) {
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const el = box.current!;
    const onZoom = (min: number, max: number) =>
      writeView(zoomKey(spec), `${+min.toPrecision(6)}~${+max.toPrecision(6)}`);
    const u = new uPlot(optionsOf(spec, colours, el.clientWidth || 600, { onCursor, onZoom }), dataOf(spec), el);
    const zoom = savedZoom(spec);
    if (zoom) u.setScale("x", zoom);
    u.over.addEventListener("dblclick", () => writeView(zoomKey(spec), undefined));
    plot.current = u;
    const watch = new ResizeObserver(
      () => el.clientWidth && el.clientWidth !== u.width && u.setSize({ width: el.clientWidth, height: u.height }),
    );
    watch.observe(el);
    return () => {
      watch.disconnect();
      u.destroy();
      plot.current = null;
    };
  }, [spec, colours]);
  return plot;
}

function zoomBy(u: uPlot, spec: PlotSpec, factor: number): void {
  const { min, max } = u.scales.x!;
  const middle = u.cursor.idx != null ? spec.x.values[u.cursor.idx]! : (min! + max!) / 2;
  const next = { min: middle - (middle - min!) * factor, max: middle + (max! - middle) * factor };
  u.setScale("x", next);
  writeView(zoomKey(spec), `${+next.min.toPrecision(6)}~${+next.max.toPrecision(6)}`);
}

function resetZoom(u: uPlot, spec: PlotSpec): void {
  const { values } = spec.x;
  u.setScale("x", { min: values[0]!, max: values[values.length - 1]! });
  writeView(zoomKey(spec), undefined);
}

function moveTo(u: uPlot, spec: PlotSpec, i: number): void {
  const n = spec.x.values.length;
  const to = Math.min(Math.max(i, 0), n - 1);
  u.setCursor({ left: u.valToPos(spec.x.values[to]!, "x"), top: 10 });
}

const KEYS: Record<string, (u: uPlot, spec: PlotSpec, at: number) => void> = {
  ArrowLeft: (u, spec, at) => moveTo(u, spec, at - 1),
  ArrowRight: (u, spec, at) => moveTo(u, spec, at + 1),
  PageUp: (u, spec, at) => moveTo(u, spec, at - Math.ceil(spec.x.values.length / 20)),
  PageDown: (u, spec, at) => moveTo(u, spec, at + Math.ceil(spec.x.values.length / 20)),
  Home: (u, spec) => moveTo(u, spec, 0),
  End: (u, spec) => moveTo(u, spec, spec.x.values.length - 1),
  "+": (u, spec) => zoomBy(u, spec, 0.5),
  "-": (u, spec) => zoomBy(u, spec, 2),
  "0": resetZoom,
  Escape: (u) => u.setCursor({ left: -10, top: -10 }),
};

const spoken = (spec: PlotSpec, at: number): string =>
  `${placeText(spec, at)}: ${spec.series.map((s) => `${shown(s.label, 40)} ${valueText(spec, s, at)}`).join(", ")}`;

export function Plot(props: { spec: PlotSpec; note?: ComponentChildren; tools?: ComponentChildren }) {
  const { spec } = props;
  const colours = useColours();
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const [hidden, setHidden] = useState<Set<number>>(new Set());
  const plot = usePlot(box, spec, colours, setAt);
  const toggle = (i: number) => {
    const next = new Set(hidden);
    if (!next.delete(i)) next.add(i);
    setHidden(next);
    plot.current?.setSeries(i + 1, { show: !next.has(i) });
  };
  const onKey = (e: KeyboardEvent) => {
    const act = KEYS[e.key];
    if (!act || !plot.current || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    act(plot.current, spec, at ?? -1);
  };
  const words = useMemo(
    () =>
      `${shown(spec.title)}. ${shown(spec.summary, 600)} Arrow keys move along the plot, plus and minus zoom, 0 shows all.`,
    [spec],
  );
  return (
    <Figure
      id={spec.id}
      title={spec.title}
      summary={spec.summary}
      grid={() => gridOf(spec)}
      note={props.note}
      tools={props.tools}
      svg={() => (plot.current ? svgOf(plot.current, spec, colours) : "")}
    >
      <Legend spec={spec} at={at} colours={colours} hidden={hidden} onToggle={toggle} />
      <div
        class="plot"
        ref={box}
        tabIndex={0}
        role="group"
        aria-roledescription="plot"
        aria-label={words}
        onKeyDown={onKey}
      />
      <p class="hidden" aria-live="polite">
        {at === null ? "" : spoken(spec, at)}
      </p>
    </Figure>
  );
}
