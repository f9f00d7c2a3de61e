// SPDX-License-Identifier: MIT
// headline.tsx - the first thing a reader sees of a run: the few numbers that matter, what to do, and the cases in numbers.
import { useMemo } from "preact/hooks";
import { gridOfCases, isMeasured } from "../data/cases";
import { csvOf } from "../data/grid";
import { headlineNumbers, watchedCase } from "../data/headline";
import type { Case, Item, Recommendation, RunDocument } from "../data/page";
import type { Section, SectionProps } from "../sections";
import { saveText } from "../ui/download";
import { Badge } from "../ui/Facts";
import { count, interval, isKnown, ratio, shown, surety } from "../ui/format";
import { Table } from "../ui/Table";
import { Tiles } from "../ui/Tiles";

function Proof(props: { proof: NonNullable<Recommendation["proof"]> }) {
  const p = props.proof;
  const r = interval({ value: p.ratio ?? null, lo: p.ratio_lo, hi: p.ratio_hi }, ratio);
  const sure = isKnown(p.confidence) ? `, ${surety(p.confidence)} confidence` : "";
  return (
    <p>
      Proved by measuring it in turn with <code>{shown(p.against)}</code>: {shown(p.metric)} {r}
      {sure} <Badge word={p.verdict} />
    </p>
  );
}

function Advice(props: { advice: Recommendation }) {
  const a = props.advice;
  return (
    <div class="advice">
      <h3>Recommended{a.objective ? ` for ${shown(a.objective, 80)}` : ""}</h3>
      <p class="lead">
        <code>{shown(a.case)}</code>
      </p>
      {a.why && <p>{shown(a.why, 600)}</p>}
      {a.proof ? (
        <Proof proof={a.proof} />
      ) : (
        <p class="note">Not proved by an interleaved measurement; it is read from this run alone.</p>
      )}
    </div>
  );
}

const FEW = 12; // cases whose table is open from the start

/** Single values belong in a table. */
function AllCases(props: { cases: Case[] }) {
  const { cases } = props;
  const grid = useMemo(() => gridOfCases(cases), [cases]);
  if (!cases.some(isMeasured)) return null;
  const name = cases.length === 1 ? "The case in numbers" : `All ${count(cases.length)} cases in numbers`;
  return (
    <details class="more" open={cases.length <= FEW}>
      <summary>{name}</summary>
      <Table grid={grid} caption={name} />
      <p class="tools">
        <button type="button" onClick={() => saveText("cases.csv", "text/csv", csvOf(grid))}>
          CSV
        </button>
      </p>
    </details>
  );
}

function Headline(props: SectionProps) {
  const run = props.item.document as RunDocument;
  return (
    <>
      <Tiles tiles={headlineNumbers(run)} />
      {run.recommendation && <Advice advice={run.recommendation} />}
      {!watchedCase(run) && <AllCases cases={run.cases ?? []} />}
    </>
  );
}

export const headline: Section = {
  id: "headline",
  title: "Headline",
  applies: (item: Item) => item.kind === "run",
  Component: Headline,
};
