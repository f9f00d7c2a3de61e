// SPDX-License-Identifier: MIT
// headline.tsx - the first thing a reader sees of a run: what was weighed, the few numbers that matter, what to do, and
// what was found, each finding with its evidence and its action.
import { useMemo } from "preact/hooks";
import { gridOfCases, isMeasured } from "../data/cases";
import { csvOf } from "../data/grid";
import { headlineNumbers } from "../data/headline";
import type { Case, Finding, Item, Json, Recommendation, RunDocument } from "../data/page";
import type { Section, SectionProps } from "../sections";
import { saveText } from "../ui/download";
import { Badge, Empty } from "../ui/Facts";
import { count, interval, isKnown, number, ratio, shown, surety } from "../ui/format";
import { Table } from "../ui/Table";

/** A number with its unit: the unit stands back. */
function Quantity(props: { text: string }) {
  const [value, unit] = props.text.split("\u00a0");
  return (
    <>
      {shown(value, 40)}
      {unit && <small> {shown(unit, 40)}</small>}
    </>
  );
}

function Numbers(props: { run: RunDocument }) {
  const tiles = headlineNumbers(props.run);
  if (!tiles.length) return null;
  return (
    <dl class="tiles">
      {tiles.map((t) => (
        <div>
          <dt>{t.name}</dt>
          <dd>
            <Quantity text={t.value} />
          </dd>
          <dd class="detail">{shown(t.detail, 160)}</dd>
        </div>
      ))}
    </dl>
  );
}

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

function evidenceText(v: Json): string {
  if (isKnown(v)) return number(v, 5);
  return shown(typeof v === "object" && v !== null ? JSON.stringify(v) : v, 120);
}

function Found(props: { finding: Finding }) {
  const f = props.finding;
  const evidence = Object.entries(f.evidence ?? {});
  return (
    <li class={`finding ${shown(f.severity, 20)}`}>
      <p class="lead">
        <Badge word={f.severity} /> {shown(f.title ?? f.id, 600)}
      </p>
      {f.action && <p class="action">{shown(f.action, 600)}</p>}
      <details>
        <summary>Evidence{f.case ? ` of ${shown(f.case, 80)}` : ""}</summary>
        <dl class="evidence">
          <div>
            <dt>rule</dt>
            <dd>{shown(f.id, 80)}</dd>
          </div>
          {evidence.map(([k, v]) => (
            <div>
              <dt>{shown(k, 80)}</dt>
              <dd>{evidenceText(v)}</dd>
            </div>
          ))}
        </dl>
      </details>
    </li>
  );
}

const AT_ONCE = 6; // what warns is always shown; what only informs is folded away beyond so many
const RANK = ["critical", "warn", "info"];
const bySeverity = (a: Finding, b: Finding): number =>
  ((RANK.indexOf(a.severity) + 9) % 9) - ((RANK.indexOf(b.severity) + 9) % 9);

function Findings(props: { findings: Finding[] }) {
  const sorted = [...props.findings].sort(bySeverity);
  if (!sorted.length) return <Empty>No rule found anything to say about this run.</Empty>;
  const grave = sorted.filter((f) => f.severity !== "info").length;
  const first = sorted.length <= AT_ONCE ? sorted.length : Math.max(grave, AT_ONCE - 2);
  return (
    <>
      <ul class="findings">
        {sorted.slice(0, first).map((f) => (
          <Found finding={f} />
        ))}
      </ul>
      {first < sorted.length && (
        <details class="more">
          <summary>{sorted.length - first} more, for information</summary>
          <ul class="findings">
            {sorted.slice(first).map((f) => (
              <Found finding={f} />
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/** Single values belong in a table. */
function AllCases(props: { cases: Case[] }) {
  const { cases } = props;
  const grid = useMemo(() => gridOfCases(cases), [cases]);
  if (!cases.some(isMeasured)) return null;
  const name = cases.length === 1 ? "The case in numbers" : `All ${count(cases.length)} cases in numbers`;
  return (
    <details class="more">
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
      <Numbers run={run} />
      {run.recommendation && <Advice advice={run.recommendation} />}
      <h3>Findings</h3>
      <Findings findings={run.findings ?? []} />
      <AllCases cases={run.cases ?? []} />
    </>
  );
}

export const headline: Section = {
  id: "headline",
  title: "Headline",
  applies: (item: Item) => item.kind === "run",
  Component: Headline,
};
