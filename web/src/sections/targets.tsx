// SPDX-License-Identifier: MIT
// targets.tsx - the limits the user set: what was reached, how far from the limit, and the verdict with its confidence.
import { useMemo } from "preact/hooks";
import type { Grid } from "../data/grid";
import type { Item, RunDocument } from "../data/page";
import { type TargetGroup, targetGroups, type TargetRow, targetRows } from "../data/targets";
import { type BarPart, barsScene } from "../scenes/bars";
import type { Section, SectionProps } from "../sections";
import { Drawing } from "../ui/Drawing";
import { Badge, Empty } from "../ui/Facts";
import { type Format, number, ofUnit, rowOf, shown, surety } from "../ui/format";
import { Table } from "../ui/Table";
import { Pick, usePick } from "../ui/Pick";

const TONES: Record<string, BarPart["colour"]> = { pass: "good", fail: "bad" };
const LONGEST = 3; // a target met a hundredfold shall not make the others invisible

const DRAWN = 30;

function sceneOf(rows: TargetRow[]) {
  const known = rows.filter((r) => r.met !== null).slice(0, DRAWN);
  return barsScene({
    rows: known.map((r) => ({
      name: r.case || r.name,
      mark: 1,
      value: `${r.achievedText}${r.met! > LONGEST ? " ▸" : ""}`,
      text: r.text,
      parts: [
        { to: 1, colour: "soft", alpha: 0.15 }, // the way to the target, so that it is in the picture
        { to: Math.min(r.met!, LONGEST), colour: rowOf(TONES, r.verdict) ?? "warn", alpha: 0.75 },
      ],
    })),
    label: "share of the target that was reached; the stroke is the target",
    format: (v) => `${number(v)}×`,
  });
}

/** Limits of one unit read as people write them; of several, each number has its unit beside it. */
function limitFormat(rows: TargetRow[]): Format {
  const units = new Set(rows.map((r) => r.unit));
  return units.size === 1 ? ofUnit(rows[0]!.unit) : (v) => number(v, 4);
}

const gridOf = (rows: TargetRow[]): Grid => ({
  columns: [
    { title: "target", text: true },
    { title: "case", text: true },
    { title: "limit", format: limitFormat(rows) },
    { title: "achieved", format: limitFormat(rows) },
    { title: "unit", text: true },
    { title: "reached", format: (v) => `${number(v)}×` },
    { title: "verdict", text: true },
    { title: "confidence", format: surety },
  ],
  rows: rows.map((r) => [r.name, r.case, r.limit, r.achieved, r.unit, r.met, r.verdict, r.confidence]),
});

/** One case is told with its numbers; of many, how many. */
function Line(props: { group: TargetGroup }) {
  const { group } = props;
  const only = group.rows.length === 1 ? group.rows[0]! : null;
  const sure = only && only.confidence !== null ? `, ${surety(only.confidence)} confidence` : "";
  const told = only
    ? `${only.achievedText}${only.case ? ` in ${only.case}` : ""}${sure}`
    : `met in ${group.passed} of ${group.rows.length} cases, missed in ${group.failed}`;
  return (
    <li>
      <Badge word={group.verdict} /> <strong>{shown(group.name, 160)}</strong>: {shown(told, 200)}
    </li>
  );
}

function Cases(props: { groups: TargetGroup[] }) {
  const { groups } = props;
  const choices = groups.map((g, i) => ({ value: String(i), name: g.name }));
  const measured = (g: TargetGroup) => g.rows.some((r) => r.met !== null);
  const failing = groups.findIndex((g) => g.verdict === "fail" && measured(g));
  const worst = failing >= 0 ? failing : Math.max(0, groups.findIndex(measured));
  const [chosen, choose] = usePick("target", choices, String(worst));
  const group = groups[Number(chosen)]!;
  const scene = useMemo(() => sceneOf(group.rows), [group]);
  const drawn = group.rows.length > DRAWN ? ` The first ${DRAWN} of ${group.rows.length} cases are drawn.` : "";
  const summary = `Met in ${group.passed} of ${group.rows.length} cases. To the right of the stroke is better, whichever way the limit points.${drawn}`;
  return (
    <>
      <div class="picks">
        <Pick label="Target" choices={choices} value={chosen} onPick={choose} />
      </div>
      {!measured(group) && (
        <>
          <Empty>
            {shown(group.name, 160)}: what was reached is unknown in every case, so there is nothing to draw. A
            percentile, for one, needs enough runs.
          </Empty>
          <Table grid={gridOf(group.rows)} caption={shown(group.name, 160)} />
        </>
      )}
      {measured(group) && (
        <Drawing
          id="targets"
          title={group.name}
          summary={summary}
          grid={() => gridOf(groups.flatMap((g) => g.rows))}
          scene={scene}
        />
      )}
    </>
  );
}

function Targets(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const groups = useMemo(() => targetGroups(targetRows(run.targets ?? [])), [run]);
  return (
    <>
      <ul class="notes">
        {groups.map((g) => (
          <Line group={g} />
        ))}
      </ul>
      <Cases groups={groups} />
    </>
  );
}

export const targets: Section = {
  id: "targets",
  title: "Targets",
  applies: (item: Item) => item.kind === "run" && (item.document.targets ?? []).length > 0,
  Component: Targets,
};
