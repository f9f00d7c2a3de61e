// SPDX-License-Identifier: MIT
// plotopts.ts - a plot's description as uPlot's options. Colours come in, nothing is read from the page.
import uPlot from "uplot";
import { logTicks } from "../data/scale";
import { shown } from "./format";
import { canvasPen } from "./pen";
import { colourOf, drawIntervals, drawMarks, scaleOf } from "./plotdraw";
import { extent, type PlotAxis, type PlotSeries, type PlotSpec } from "./plotspec";
import type { Colours } from "./theme";

const FONT = "12px system-ui, sans-serif";
const POINTS_UP_TO = 64;
const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);

/** A span around the data with a little air; zero stays in sight when asked. */
function padded(low: number, high: number, axis: PlotAxis): [number, number] {
  if (axis.log) return [low * 0.8, high * 1.25];
  const bottom = axis.zero ? Math.min(0, low) : low;
  const top = axis.zero ? Math.max(0, high) : high;
  // Values that differ in their last bit are one value: an axis between them would have no number that differs.
  const span = top - bottom > Math.abs(top) * 1e-9 ? top - bottom : 0;
  const air = (span || Math.abs(top) || 1) * 0.06;
  return [axis.zero && bottom === 0 ? 0 : bottom - air, axis.zero && top === 0 ? 0 : top + air];
}

function yScale(spec: PlotSpec, side: "left" | "right", axis: PlotAxis): uPlot.Scale {
  const seen = extent(spec, side) ?? [0, 1];
  const [low, high] = axis.log ? [seen[0] > 0 ? seen[0] : seen[1] / 1000 || 1e-3, seen[1] || 1] : seen;
  return { distr: axis.log ? 3 : 1, log: axis.log ?? 10, range: () => padded(low, high, axis) };
}

function xScale(spec: PlotSpec): uPlot.Scale {
  const values = spec.x.values;
  const air = spec.x.air || spec.x.names || spec.series.some((s) => s.kind === "bars");
  const ends = (low: number, high: number): [number, number] => {
    if (spec.x.log) return low === high ? [low / 2, high * 2] : [low / 1.15, high * 1.15];
    if (low === high) return [low - 0.5, high + 0.5];
    const step = air ? (spec.x.names ? 0.5 : (high - low) / Math.max(1, values.length - 1) / 2) : 0;
    return [low - step, high + step];
  };
  const whole: [number, number] = values.length ? [values[0]!, values[values.length - 1]!] : [0, 1];
  return {
    time: false,
    distr: spec.x.log ? 3 : 1,
    log: spec.x.log ?? 10,
    range: (_u, low, high) =>
      low === whole[0] && high === whole[1] ? ends(low, high) : [low ?? whole[0], high ?? whole[1]],
  };
}

function labelSpace(values: string[] | null): number {
  const longest = (values ?? []).reduce((most, v) => Math.max(most, v ? v.length : 0), 0);
  return 16 + Math.ceil(longest * 6.6);
}

function axisOf(axis: PlotAxis, colours: Colours, more: uPlot.Axis): uPlot.Axis {
  return {
    stroke: colours.soft,
    font: FONT,
    labelFont: FONT,
    label: shown(axis.label, 80),
    labelSize: 20,
    labelGap: 2,
    grid: { stroke: colours.line, width: 1 },
    ticks: { stroke: colours.line, width: 1, size: 4 },
    values: (_u, splits) => splits.map((v) => (v === null ? null : axis.format(v)) as string),
    ...(axis.binary ? { incrs: POWERS } : {}),
    // uPlot counts from the lower end, which is no round number here; and it hides what it did not choose itself.
    ...(axis.log
      ? {
          splits: (_u: uPlot, _i: number, lo: number, hi: number) => logTicks(lo, hi),
          filter: (_u: uPlot, list: number[]) => list,
        }
      : {}),
    ...more,
  };
}

const TICK_PX = 90;

/** Every second, third .. tick, as far as their words have room beside each other. */
export function thinned(ticks: number[], width: number): number[] {
  const step = Math.ceil(ticks.length / Math.max(1, Math.floor(width / TICK_PX)));
  return step > 1 ? ticks.filter((_, i) => i % step === 0) : ticks;
}

/** Few values each get a tick of their own; then no tick stands for something that was never measured. */
function xAxis(spec: PlotSpec, colours: Colours): uPlot.Axis {
  const { names, values } = spec.x;
  const own = spec.x.ticks ?? ((names || spec.x.log) && values.length <= 40 ? Array.from(values) : null);
  const inside = (u: uPlot): number[] => own!.filter((v) => v >= u.scales.x!.min! && v <= u.scales.x!.max!);
  const splits = own ? (u: uPlot) => (spec.x.ticks ? thinned(inside(u), u.width) : inside(u)) : undefined;
  const text = names ? (_u: uPlot, list: number[]) => list.map((v) => shown(names[v] ?? "", 24)) : undefined;
  return axisOf(spec.x, colours, {
    scale: "x",
    size: 34,
    grid: { show: false },
    ...(splits ? { splits, filter: (_u: uPlot, list: number[]) => list } : { space: 80 }),
    ...(text ? { values: text } : {}),
  });
}

function seriesOf(s: PlotSeries, i: number, spec: PlotSpec, colours: Colours): uPlot.Series {
  const colour = colourOf(s, i, colours);
  const few = spec.x.values.length <= POINTS_UP_TO;
  const bars = s.kind === "bars";
  return {
    label: shown(s.label, 60),
    scale: scaleOf(s),
    stroke: colour,
    spanGaps: false,
    width: s.kind === "points" ? 0 : bars ? 0 : 1.75,
    fill: bars ? `${colour}bf` : undefined,
    dash: s.dash ? [6, 4] : undefined,
    paths: bars
      ? uPlot.paths.bars!({ size: [0.9, 80] })
      : s.kind === "points"
        ? () => null
        : s.kind === "steps"
          ? uPlot.paths.stepped!({ align: 1 })
          : undefined,
    points: {
      show: s.kind === "points" || (few && !bars && s.kind !== "steps"),
      size: s.kind === "points" && !few ? 3 : 6,
      fill: colour,
    },
  };
}

function penHook(spec: PlotSpec, colours: Colours, draw: typeof drawMarks) {
  return (u: uPlot) => {
    u.ctx.save();
    u.ctx.scale(devicePixelRatio || 1, devicePixelRatio || 1);
    draw(canvasPen(u.ctx), u, spec, colours);
    u.ctx.restore();
  };
}

export interface PlotHandlers {
  onCursor(index: number | null): void;
  onZoom(min: number, max: number): void;
}

export function optionsOf(spec: PlotSpec, colours: Colours, width: number, on: PlotHandlers): uPlot.Options {
  const axes = [xAxis(spec, colours), axisOf(spec.y, colours, { scale: "y", size: (_u, v) => labelSpace(v) })];
  const scales: uPlot.Scales = { x: xScale(spec), y: yScale(spec, "left", spec.y) };
  if (spec.right) {
    axes.push(
      axisOf(spec.right, colours, {
        scale: "right",
        side: 1,
        grid: { show: false },
        size: (_u, v) => labelSpace(v),
      }),
    );
    scales.right = yScale(spec, "right", spec.right);
  }
  return {
    width,
    height: spec.height ?? 280,
    scales,
    axes,
    padding: [14, spec.right ? 0 : 18, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: true, y: false },
      points: { size: 8 },
      ...(spec.sync ? { sync: { key: spec.sync } } : {}),
    },
    series: [{}, ...spec.series.map((s, i) => seriesOf(s, i, spec, colours))],
    hooks: {
      drawAxes: [penHook(spec, colours, drawMarks)],
      draw: [penHook(spec, colours, drawIntervals)],
      setCursor: [
        (u) => on.onCursor(u.cursor.left !== undefined && u.cursor.left >= 0 ? (u.cursor.idx ?? null) : null),
      ],
      setSelect: [
        (u) =>
          u.select.width > 0 &&
          on.onZoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")),
      ],
    },
  };
}
