// SPDX-License-Identifier: MIT
// findings.tsx - what was found in a run, by importance, each finding with its evidence and its action.
import type { Finding, Item, Json, RunDocument } from "../data/page";
import type { Section, SectionProps } from "../sections";
import { Badge, Empty } from "../ui/Facts";
import { isKnown, number, shown } from "../ui/format";

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

function Findings(props: SectionProps) {
  const sorted = [...((props.item.document as RunDocument).findings ?? [])].sort(bySeverity);
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

export const findings: Section = {
  id: "findings",
  title: "Findings",
  applies: (item: Item) => item.kind === "run",
  Component: Findings,
};
