// SPDX-License-Identifier: MIT
// pareto.tsx - accuracy against speed: which cases no other beats in both.
import { useMemo } from "preact/hooks";
import type { Grid } from "../data/grid";
import type { Item, Page } from "../data/page";
import { type Pareto, paretoOf, type ParetoPoint } from "../data/pareto";
import { extent, linearScale, padded } from "../data/scale";
import { scatterScene, type Spot } from "../scenes/scatter";
import type { Section, SectionProps } from "../sections";
import { Drawing, Key } from "../ui/Drawing";
import { count, interval, number, rate, shown } from "../ui/format";
import { useColours } from "../ui/theme";

const score = (v: number): string => number(v, 4);
const nameOf = (p: ParetoPoint, several: boolean): string =>
  (several ? `${shown(p.run, 40)} ${shown(p.case, 60)}` : shown(p.case, 80)).trim();

function spotOf(p: ParetoPoint, several: boolean): Spot {
  return {
    x: p.speed.value,
    y: p.accuracy.value,
    radius: p.best ? 6 : 5,
    colour: p.best ? 0 : "soft",
    ring: !p.best,
    name: nameOf(p, several),
    xLo: p.speed.lo,
    xHi: p.speed.hi,
    yLo: p.accuracy.lo,
    yHi: p.accuracy.hi,
    text: `${nameOf(p, several)}: ${interval(p.speed, rate(p.unit))}, ${interval(p.accuracy, score)}${p.best ? ", beaten by none" : ""}`,
  };
}

function sceneOf(p: Pareto, several: boolean) {
  const xs = extent(p.points.flatMap((q) => [q.speed.value, q.speed.lo, q.speed.hi]))!;
  const ys = extent(p.points.flatMap((q) => [q.accuracy.value, q.accuracy.lo, q.accuracy.hi]))!;
  const front = p.points.filter((q) => q.best).map((q): [number, number] => [q.speed.value, q.accuracy.value]);
  const [yLo, yHi] = padded(ys, 0.15);
  return scatterScene({
    x: {
      label: `speed (${p.points[0]!.unit})`,
      format: (v) => number(v, 4),
      scale: (a, b) => linearScale(0, xs[1] * 1.08, a, b),
    },
    y: { label: p.metric, format: score, scale: (a, b) => linearScale(yLo, yHi, a, b) },
    spots: [...p.points].sort((a, b) => Number(b.best) - Number(a.best)).map((q) => spotOf(q, several)),
    lines: front.length > 1 ? [{ points: front, colour: 0, dash: true }] : [],
    height: 320,
  });
}

const gridOf = (p: Pareto): Grid => ({
  columns: [
    { title: "run", text: true },
    { title: "case", text: true },
    { title: `speed (${p.points[0]!.unit})`, format: (v) => number(v, 4) },
    { title: p.metric, format: score },
    { title: "beaten by none", text: true },
  ],
  rows: p.points.map((q) => [q.run, q.case, q.speed.value, q.accuracy.value, q.best ? "yes" : "no"]),
});

function summaryOf(p: Pareto, several: boolean): string {
  const best = p.points.filter((q) => q.best).map((q) => nameOf(q, several));
  const without = p.without ? ` ${count(p.without)} cases have no accuracy and are not shown.` : "";
  return `Beaten by no other in both: ${best.slice(0, 6).join("; ")}${best.length > 6 ? `; and ${best.length - 6} more` : ""}.${without}`;
}

function ParetoPart(props: SectionProps) {
  const colours = useColours();
  const p = useMemo(() => paretoOf(props.page.items)!, [props.page]);
  const several = new Set(p.points.map((q) => q.run)).size > 1;
  const scene = useMemo(() => sceneOf(p, several), [p]);
  const legend = (
    <>
      <Key colour={colours.series[0]!}>beaten by none</Key>
      <Key colour={colours.soft} ring>
        another is at least as fast and as accurate
      </Key>
    </>
  );
  return (
    <Drawing
      id="pareto"
      title="Accuracy against speed"
      summary={summaryOf(p, several)}
      grid={() => gridOf(p)}
      scene={scene}
      legend={legend}
    />
  );
}

const hasAccuracy = (item: Item): boolean => paretoOf([item]) !== null;

export const pareto: Section = {
  id: "pareto",
  title: "Accuracy and speed",
  applies: (item: Item, _page: Page) => item.kind === "run" && hasAccuracy(item),
  Component: ParetoPart,
};
