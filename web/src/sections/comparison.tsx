// SPDX-License-Identifier: MIT
// comparison.tsx - two sides, metric by metric: the ratio with its interval, the verdict, and what else differs.
import { useMemo } from "preact/hooks";
import { type ComparedRow, type Comparison, countVerdicts, ordered, readComparison } from "../data/comparison";
import type { Grid } from "../data/grid";
import type { Item, JsonObject } from "../data/page";
import { forestScene, side, VERDICT_TONE } from "../scenes/forest";
import type { Section, SectionProps } from "../sections";
import { Drawing, Key } from "../ui/Drawing";
import { Badge } from "../ui/Facts";
import { change, count, isKnown, number, percent, rowOf, shown } from "../ui/format";
import { Table } from "../ui/Table";
import { useColours } from "../ui/theme";

const MEANING: Record<string, string> = {
  regressed: "Surely worse by more than the smallest effect that counts.",
  improved: "Surely better by more than the smallest effect that counts.",
  same: "No change that would have to be told.",
  inconclusive: "It cannot be told yet: measure longer or more often.",
  unverified: "There is no evidence of how much runs differ by themselves, so no verdict.",
};


function gridOf(rows: ComparedRow[]): Grid {
  const columns: Grid["columns"] = [
    { title: "case", text: true },
    { title: "metric", text: true },
    { title: "base" },
    { title: "new" },
    { title: "new / base", format: (v) => number(v, 4) },
    { title: "low", format: (v) => number(v, 4) },
    { title: "high", format: (v) => number(v, 4) },
    { title: "verdict", text: true },
    { title: "may fail", text: true },
    { title: "would see", format: change },
    { title: "samples", format: count },
    { title: "needed", format: count },
    { title: "why", text: true },
  ];
  return {
    columns,
    rows: rows.map((r) => [
      r.case,
      r.metric,
      side(r, "base"),
      side(r, "new"),
      r.ratio?.value,
      r.ratio?.lo,
      r.ratio?.hi,
      r.verdict,
      r.role === "gate" ? "yes" : "no",
      isKnown(r.mde) ? 1 + r.mde : null,
      r.samples,
      r.needed,
      r.why ?? "",
    ]),
  };
}

function Verdict(props: { of: Comparison }) {
  const c = props.of;
  return (
    <div class="verdict">
      <Badge word={c.verdict} />
      <p class="lead">
        <code>{shown(c.new, 120)}</code> against <code>{shown(c.base, 120)}</code>
      </p>
      <p class="note">
        {rowOf(MEANING, c.verdict)}{" "}
        {c.method === "interleaved"
          ? "Both sides were measured in turn."
          : c.method === "saved"
            ? "From saved runs, judged by how much runs differ by themselves."
            : `Method: ${shown(c.method, 40)}.`}
      </p>
    </div>
  );
}

function summaryOf(rows: ComparedRow[]): string {
  const told = countVerdicts(rows).map(([v, n]) => `${count(n)} ${v}`);
  const level = rows.find((r) => isKnown(r.confidence))?.confidence;
  return `${told.join(", ") || "Nothing was compared"}. ${isKnown(level) ? `Intervals of the ratio at ${percent(level)} confidence.` : ""}`.trim();
}

function noteOf(rows: ComparedRow[]): string {
  const shaded = rows.some((r) => r.role === "gate" && isKnown(r.min_effect) && r.min_effect > 0);
  const grey = rows.some((r) => r.role !== "gate");
  return [shaded && "Shaded: changes that count as none.", grey && "Metrics in grey are shown only; they cannot fail the comparison."]
    .filter(Boolean)
    .join(" ");
}

function Differences(props: { of: Comparison }) {
  const { differences, unmatched } = props.of;
  const grid: Grid = {
    columns: [
      { title: "what", text: true },
      { title: "base", text: true },
      { title: "new", text: true },
      { title: "matters", text: true },
    ],
    rows: differences.map((d) => [d.what, d.base, d.new, d.severity ?? ""]),
  };
  return (
    <>
      <h3 class="sub">What else differs</h3>
      {differences.length ? (
        <Table grid={grid} caption="Differences of the surroundings" />
      ) : (
        <p class="empty">Nothing that was recorded of the surroundings.</p>
      )}
      {unmatched.length > 0 && (
        <p class="note">
          Only one side has:{" "}
          {unmatched
            .slice(0, 20)
            .map((u) => `${shown(u.name, 60)} (${shown(u.side, 10)})`)
            .join("; ")}
          {unmatched.length > 20 ? `; and ${unmatched.length - 20} more` : ""}.
        </p>
      )}
    </>
  );
}

function Notes(props: { of: Comparison }) {
  if (!props.of.notes.length) return null;
  return (
    <>
      <h3 class="sub">Notes</h3>
      <ul class="notes">
        {props.of.notes.map((n) => (
          <li>
            <Badge word={n.severity} /> {n.case ? <code>{shown(n.case, 60)} </code> : null}
            {shown(n.text, 600)}
          </li>
        ))}
      </ul>
    </>
  );
}

function Legend(props: { rows: ComparedRow[] }) {
  const colours = useColours();
  return (
    <>
      {countVerdicts(props.rows).map(([v]) => (
        <Key colour={colours[VERDICT_TONE[v]]} ring={v === "inconclusive" || v === "unverified"}>
          {v}
        </Key>
      ))}
    </>
  );
}

function ComparisonPart(props: SectionProps) {
  const c = useMemo(() => readComparison(props.item.document as JsonObject), [props.item]);
  const rows = useMemo(() => ordered(c.rows), [c]);
  const scene = useMemo(() => forestScene(rows), [rows]);
  return (
    <>
      <Verdict of={c} />
      {rows.length > 0 && (
        <Drawing
          id="comparison"
          title="New against base"
          summary={summaryOf(rows)}
          grid={() => gridOf(rows)}
          scene={scene}
          legend={<Legend rows={rows} />}
          note={noteOf(rows)}
        />
      )}
      <Differences of={c} />
      <Notes of={c} />
      {c.reproduce && (
        <p class="note">
          Again: <code>{shown(c.reproduce, 600)}</code>
        </p>
      )}
    </>
  );
}

export const comparison: Section = {
  id: "comparison",
  title: "Comparison",
  applies: (item: Item) => item.kind === "comparison",
  Component: ComparisonPart,
};
