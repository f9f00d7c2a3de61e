// SPDX-License-Identifier: MIT
// layers.tsx - where one run's time goes, layer by layer: the heaviest as bars, all as a tree-map, every one in a table.
// Without times the arithmetic takes their place, and that is said.
import { useMemo } from "preact/hooks";
import type { Cell, Grid } from "../data/grid";
import { foldRepeats, profileText, type Slice, slicesOf, sumBy, type Weight, weightOf } from "../data/layers";
import type { Case, Item, Layer, RunDocument } from "../data/page";
import { type BarRow, barsScene } from "../scenes/bars";
import { shortName, treemapScene } from "../scenes/treemap";
import type { Section, SectionProps } from "../sections";
import { Drawing } from "../ui/Drawing";
import { bytes, count, duration, type Format, percent, shown, si } from "../ui/format";
import { Pick, useCase, usePick } from "../ui/Pick";

const BARS = 20;
const WORDS: Record<Weight, { what: string; format: Format; axis: string }> = {
  time_ns: { what: "the time of a run", format: (v) => duration(v), axis: "time in one run" },
  flops: { what: "the arithmetic", format: (v) => si(v, "FLOP"), axis: "operations in one run (not timed)" },
};
const BY = [
  { value: "block", name: "layer, repeats together" },
  { value: "layer", name: "layer" },
  { value: "op", name: "operator" },
  { value: "group", name: "group" },
];

const hasLayers = (c: Case): boolean => weightOf(c.layers ?? []) !== null;

/** A layer, or one that stands for several: its name and how often. */
const titleOf = (s: Slice): string => shortName(s.name, s.op) + (s.layer === null && s.op && s.count > 1 ? ` \u00d7${count(s.count)}` : "");

function barOf(s: Slice, format: Format, what: string): BarRow {
  const of = s.count > 1 ? `, ${count(s.count)} nodes` : "";
  const bound = s.bound ? `, bound by ${shown(s.bound, 20)}` : "";
  return {
    name: titleOf(s),
    parts: [{ to: s.value, colour: s.bound === "memory" ? 1 : 0, alpha: 0.8 }],
    value: `${format(s.value)} · ${percent(s.share, 2)}`,
    text: `${shown(s.name, 160)}: ${format(s.value)}, ${percent(s.share)} of ${what}${of}${bound}`,
  };
}

const GRID: [string, keyof Layer, Format?][] = [
  ["layer", "name"],
  ["operator", "op"],
  ["group", "group"],
  ["time (ns)", "time_ns", (v) => duration(v)],
  ["share", "share", percent],
  ["FLOP", "flops", (v) => si(v)],
  ["bytes", "bytes", bytes],
  ["parameters", "parameters", (v) => si(v)],
  ["FLOP/B", "intensity", (v) => si(v)],
  ["FLOP/s", "rate", (v) => si(v)],
  ["bound", "bound"],
  ["of the roof", "roof_share", percent],
  ["speed-up if free", "speedup_if_free", (v) => `${v.toFixed(2)}×`],
  ["output", "output"],
  ["provider", "provider"],
];

/** Of an estimate the value: an interval has no cell of its own here. */
const cellOf = (v: Layer[keyof Layer]): Cell => (typeof v === "object" && v !== null ? v.value : v);

function gridOf(layers: Layer[]): Grid {
  const columns = GRID.map(([title, , format]) => (format ? { title, format } : { title, text: true }));
  return { columns, rows: layers.map((l) => GRID.map(([, key]) => cellOf(l[key]))) };
}

function sliceGrid(slices: Slice[], format: Format): Grid {
  const columns = [
    { title: "name", text: true },
    { title: "operator", text: true },
    { title: "value", format },
    { title: "share", format: percent },
    { title: "nodes", format: count },
  ];
  return { columns, rows: slices.map((s) => [s.name, s.op, s.value, s.share, s.count]) };
}

function rowsBy(slices: Slice[], by: string): Slice[] {
  if (by === "block") return foldRepeats(slices);
  return by === "layer" ? slices : sumBy(slices, by as "op" | "group");
}

function LayerBars(props: { slices: Slice[]; weight: Weight; note: string }) {
  const { slices, weight } = props;
  const [by, setBy] = usePick("layers.by", BY, "block");
  const { format, what, axis } = WORDS[weight];
  const rows = useMemo(() => rowsBy(slices, by), [slices, by]);
  const scene = useMemo(
    () => barsScene({ rows: rows.slice(0, BARS).map((s) => barOf(s, format, what)), label: axis, format }),
    [rows, weight],
  );
  const rest = rows.slice(BARS).reduce((sum, s) => sum + s.share, 0);
  const others = rows.length > BARS ? ` The ${count(rows.length - BARS)} others together take ${percent(rest)} of ${what}.` : "";
  const top = rows.slice(0, 3).map((s) => `${shown(titleOf(s), 60)} ${percent(s.share)}`);
  return (
    <Drawing
      id="layers"
      title={weight === "time_ns" ? "Where the time goes" : "Where the arithmetic is"}
      summary={`First: ${top.join(", ")}.${others}`}
      grid={() => sliceGrid(rows, format)}
      scene={scene}
      note={props.note}
      tools={<Pick label="By" choices={BY} value={by} onPick={setBy} />}
    />
  );
}

function LayerMap(props: { slices: Slice[]; layers: Layer[]; weight: Weight }) {
  const { slices, weight } = props;
  const { format, what } = WORDS[weight];
  const scene = useMemo(() => treemapScene(slices, format, what), [slices, weight]);
  const groups = sumBy(slices, "group")
    .slice(0, 4)
    .map((g) => `${shown(g.name, 40)} ${percent(g.share)}`);
  return (
    <Drawing
      id="treemap"
      title="All layers as areas"
      summary={`Areas are ${what}; boxes are groups: ${groups.join(", ")}.`}
      grid={() => gridOf(props.layers)}
      scene={scene}
    />
  );
}

function Layers(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const cases = useMemo(() => (run.cases ?? []).filter(hasLayers), [run]);
  const [c, pick] = useCase("layers.case", cases);
  const weight = weightOf(c.layers!)!;
  const slices = useMemo(() => slicesOf(c.layers!, weight), [c]);
  const note =
    weight === "time_ns"
      ? profileText(c.profile)
      : "No layer was timed: this is arithmetic by the graph, not time (tare bench --layers times them).";
  return (
    <>
      <div class="picks">{pick}</div>
      <LayerBars slices={slices} weight={weight} note={note} />
      <LayerMap slices={slices} layers={c.layers!} weight={weight} />
    </>
  );
}

export const layers: Section = {
  id: "layers",
  title: "Layers",
  applies: (item: Item) => item.kind === "run" && (item.document.cases ?? []).some(hasLayers),
  Component: Layers,
};
