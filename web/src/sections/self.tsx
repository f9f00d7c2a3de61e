// SPDX-License-Identifier: MIT
// self.tsx - what the instrument itself cost in this measurement, beside what it measured.
import { useMemo } from "preact/hooks";
import type { Grid } from "../data/grid";
import type { Case, Item, RunDocument } from "../data/page";
import { barsScene } from "../scenes/bars";
import type { Section, SectionProps } from "../sections";
import { Drawing } from "../ui/Drawing";
import { duration, isKnown, known, number, percent, shown } from "../ui/format";

const hasSelf = (c: Case): boolean =>
  isKnown(c.self?.share) || isKnown(c.self?.ns_per_run) || isKnown(c.profile?.overhead);

const DRAWN = 12; // the worst; the table has all
const SMALLEST = 1e-6;
const share = (v: number): string => (v > 0 && v < SMALLEST ? "below 0.0001\u00a0%" : percent(v, 2));

function sceneOf(cases: Case[]) {
  const worst = cases
    .filter((c) => isKnown(c.self?.share))
    .sort((a, b) => b.self!.share! - a.self!.share!)
    .slice(0, DRAWN);
  const rows = worst.map((c) => {
    const own = c.self!.share!;
    const text = `${shown(c.name || "the run", 80)}: ${share(own)} of a run, ${known(c.self!.ns_per_run, duration)}`;
    return { name: c.name || "the run", parts: [{ to: own, colour: 0, alpha: 0.75 }], value: share(own), text };
  });
  return barsScene({ rows, label: "share of the mean run that was tare itself", format: (v) => percent(v, 2) });
}

const gridOf = (cases: Case[]): Grid => ({
  columns: [
    { title: "case", text: true },
    { title: "own time per run (ns)", format: duration },
    { title: "share of a run", format: (v) => percent(v) },
    { title: "profiled pass slower by", format: (v) => percent(v) },
    { title: "layers explain of a run", format: (v) => percent(v) },
  ],
  rows: cases.map((c) => [
    c.name || "the run",
    c.self?.ns_per_run,
    c.self?.share,
    c.profile?.overhead,
    c.profile?.covered,
  ]),
});

function summaryOf(cases: Case[]): string {
  const shares = cases.map((c) => c.self?.share).filter(isKnown);
  const most = shares.length
    ? `At most ${share(Math.max(...shares))} of a run was tare itself${shares.length > DRAWN ? `; the ${DRAWN} cases with the largest share are drawn` : ""}.`
    : "The share of tare itself is unknown.";
  const slower = cases.map((c) => c.profile?.overhead).filter(isKnown);
  const pass = slower.length
    ? ` Layers were timed in a pass of their own, ${number(Math.max(0, ...slower) * 100, 2)} % slower at most; no latency on this page comes from it.`
    : "";
  return most + pass;
}

const WORTH_A_PICTURE = 0.001;

/** Bars of less than a thousandth, or a single one, say no more than the sentence. */
const isDrawn = (cases: Case[]): boolean => cases.length > 1 && cases.some((c) => (c.self?.share ?? 0) >= WORTH_A_PICTURE);

function SelfCost(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const cases = useMemo(() => (run.cases ?? []).filter(hasSelf), [run]);
  const scene = useMemo(() => sceneOf(cases), [cases]);
  if (!isDrawn(cases)) return <p>{summaryOf(cases)}</p>;
  return (
    <Drawing id="self" title="Own cost per case" summary={summaryOf(cases)} grid={() => gridOf(cases)} scene={scene} />
  );
}

export const self: Section = {
  id: "self",
  title: "Overhead of tare",
  applies: (item: Item) => item.kind === "run" && (item.document.cases ?? []).some(hasSelf),
  Component: SelfCost,
};
