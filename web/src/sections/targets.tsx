// SPDX-License-Identifier: MIT
// targets.tsx - the limits the user set: what was reached, how far from the limit, and the verdict with its confidence.
import { useMemo } from "preact/hooks";
import type { Grid } from "../data/grid";
import type { Item, RunDocument } from "../data/page";
import { type TargetRow, targetRows } from "../data/targets";
import { type BarPart, barsScene } from "../scenes/bars";
import type { Section, SectionProps } from "../sections";
import { Drawing } from "../ui/Drawing";
import { Badge } from "../ui/Facts";
import { number, percent, shown } from "../ui/format";

const TONES: Record<string, BarPart["colour"]> = { pass: "good", fail: "bad" };
const LONGEST = 3; // a target met a hundredfold shall not make the others invisible

function sceneOf(rows: TargetRow[]) {
  const known = rows.filter((r) => r.met !== null);
  return barsScene({
    rows: known.map((r) => ({
      name: r.name, mark: 1, value: r.met! > LONGEST ? `${number(r.met!)}× ▸` : `${number(r.met!)}×`, text: r.text,
      parts: [{ to: Math.min(r.met!, LONGEST), colour: TONES[r.verdict] ?? "warn", alpha: 0.75 }],
    })),
    label: "share of the target that was reached; the stroke is the target", format: (v) => `${number(v)}×`,
  });
}

const gridOf = (rows: TargetRow[]): Grid => ({
  columns: [
    { title: "target", text: true }, { title: "case", text: true }, { title: "limit" }, { title: "achieved" },
    { title: "reached", format: (v) => `${number(v)}×` }, { title: "verdict", text: true }, { title: "confidence", format: (v) => percent(v) },
  ],
  rows: rows.map((r) => [r.name, r.case, r.limit, r.achieved, r.met, r.verdict, r.confidence]),
});

function Line(props: { row: TargetRow }) {
  const r = props.row;
  const sure = r.confidence === null ? "" : `, ${percent(r.confidence, 4)} confidence`;
  return (
    <li>
      <Badge word={r.verdict} /> <strong>{shown(r.name, 160)}</strong>: {shown(r.achievedText, 80)}
      {r.case && <> in <code>{shown(r.case, 80)}</code></>}
      {sure}
    </li>
  );
}

function Targets(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const rows = useMemo(() => targetRows(run.targets ?? []), [run]);
  const scene = useMemo(() => sceneOf(rows), [rows]);
  const passed = rows.filter((r) => r.verdict === "pass").length;
  const summary = `${passed} of ${rows.length} targets are met. To the right of the stroke is better, whichever way the limit points.`;
  return (
    <>
      <ul class="notes">{rows.map((r) => <Line row={r} />)}</ul>
      <Drawing id="targets" title="How far each target was reached" summary={summary} grid={() => gridOf(rows)} scene={scene} />
    </>
  );
}

export const targets: Section = {
  id: "targets", title: "Targets",
  applies: (item: Item) => item.kind === "run" && (item.document.targets ?? []).length > 0,
  Component: Targets,
};
