// SPDX-License-Identifier: MIT
// roofline.tsx - each layer by its arithmetic per byte, under what this machine was measured to reach.
import { useMemo } from "preact/hooks";
import type { Grid } from "../data/grid";
import type { Case, Item, Roof, RunDocument } from "../data/page";
import { allowed, roofFor, type Roofline, rooflineOf, type RoofPoint } from "../data/roofline";
import { extent, logScale } from "../data/scale";
import { type Line, scatterScene, type Spot } from "../scenes/scatter";
import { shortName } from "../scenes/treemap";
import type { Section, SectionProps } from "../sections";
import { Drawing, Key } from "../ui/Drawing";
import { count, instant, number, percent, shown, si } from "../ui/format";
import { useCase } from "../ui/Pick";
import { useColours } from "../ui/theme";

const NAMED = 8;
const roofOf = (run: RunDocument, c: Case): Roof | null => roofFor(c.layers ?? [], run.roof, run.gpu_roof);
const isPlaced = (run: RunDocument, c: Case): boolean => rooflineOf(c.layers ?? [], roofOf(run, c)) !== null;
const flops = (v: number): string => si(v, "FLOP/s");

function spotOf(p: RoofPoint, i: number): Spot {
  const of = p.roofShare === null ? "" : `, ${percent(p.roofShare)} of what the roof allows`;
  return {
    x: p.intensity,
    y: p.rate,
    radius: 3 + 16 * Math.sqrt(Math.min(1, p.share)),
    colour: p.bound === "memory" ? 1 : 0,
    ring: p.bound === "memory",
    name: i < NAMED ? shown(shortName(p.name, p.op), 60) : undefined,
    text: `${shown(p.name, 120)} (${shown(p.op, 30)}): ${flops(p.rate)} at ${number(p.intensity)} FLOP/B, ${percent(p.share)} of the time${of}`,
  };
}

function linesOf(r: Roofline, from: number, to: number): Line[] {
  return r.ceilings.map((c, i) => ({
    points: [
      [from, allowed(c, r.bandwidth, from)],
      [Math.min(to, Math.max(from, c.ridge)), allowed(c, r.bandwidth, c.ridge)],
      [to, allowed(c, r.bandwidth, to)],
    ],
    colour: "soft",
    dash: i > 0,
    label: `${c.label}: ${flops(c.peak)}`,
  }));
}

function sceneOf(r: Roofline) {
  const [lo, hi] = extent([...r.points.map((p) => p.intensity), ...r.ceilings.map((c) => c.ridge)])!;
  const [from, to] = [lo / 2, hi * 3];
  const [least] = extent(r.points.map((p) => p.rate))!;
  const top = Math.max(...r.ceilings.map((c) => c.peak));
  return scatterScene({
    x: { label: "arithmetic per byte moved (FLOP/B)", format: (v) => number(v, 3), scale: (a, b) => logScale(from, to, a, b) },
    y: {
      label: "reached (FLOP/s)",
      format: (v) => si(v),
      scale: (a, b) => logScale(Math.min(least / 2, allowed(r.ceilings[0]!, r.bandwidth, from)), top * 2, a, b),
    },
    spots: r.points.map(spotOf),
    lines: linesOf(r, from, to),
  });
}

const gridOf = (r: Roofline): Grid => ({
  columns: [
    { title: "layer", text: true },
    { title: "operator", text: true },
    { title: "FLOP/B", format: (v) => number(v) },
    { title: "FLOP/s", format: flops },
    { title: "share of time", format: percent },
    { title: "of the roof", format: percent },
    { title: "bound", text: true },
  ],
  rows: r.points.map((p) => [p.name, p.op, p.intensity, p.rate, p.share, p.roofShare, p.bound]),
});

function summaryOf(r: Roofline): string {
  const by = (bound: string) => r.points.filter((p) => p.bound === bound);
  const share = (list: RoofPoint[]) => percent(list.reduce((sum, p) => sum + p.share, 0));
  const [compute, mem] = [by("compute"), by("memory")];
  return (
    `${count(compute.length)} layers with ${share(compute)} of the time are bound by arithmetic, ` +
    `${count(mem.length)} with ${share(mem)} by memory. The ridge is at ${number(r.ceilings[0]!.ridge)} FLOP/B.` +
    (r.unplaced ? ` ${count(r.unplaced)} timed layers have no known arithmetic and are not shown.` : "")
  );
}

function noteOf(roof: Roof): string {
  const threads = roof.threads ? ` with ${count(roof.threads)} threads` : "";
  const when = roof.measured ? ` at ${instant(roof.measured)}` : "";
  return (
    `The roof was measured on this machine${threads}${when}. Areas are shares of the time. ` +
    "Bytes are the least that has to be moved: caches can put a layer above the slope."
  );
}

function RooflinePart(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const colours = useColours();
  const cases = useMemo(() => (run.cases ?? []).filter((c) => isPlaced(run, c)), [run]);
  const [c, pick] = useCase("roofline.case", cases);
  const r = useMemo(() => rooflineOf(c.layers!, roofOf(run, c))!, [c]);
  const scene = useMemo(() => sceneOf(r), [r]);
  const legend = (
    <>
      <Key colour={colours.series[0]!}>bound by arithmetic</Key>
      <Key colour={colours.series[1]!} ring>
        bound by memory
      </Key>
    </>
  );
  return (
    <Drawing
      id="roofline"
      title="Layers under the roof of this machine"
      summary={summaryOf(r)}
      grid={() => gridOf(r)}
      scene={scene}
      legend={legend}
      note={noteOf(roofOf(run, c)!)}
      tools={pick}
    />
  );
}

export const roofline: Section = {
  id: "roofline",
  title: "Roofline",
  applies: (item: Item) =>
    item.kind === "run" && (item.document.cases ?? []).some((c) => isPlaced(item.document as RunDocument, c)),
  Component: RooflinePart,
};
