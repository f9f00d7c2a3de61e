// SPDX-License-Identifier: MIT
// static.tsx - what the graph costs without running it: totals, operators, formulas in the free dimensions.
import { useMemo } from "preact/hooks";
import type { Item, Json, RunDocument, Static } from "../data/page";
import { weightOf } from "../data/layers";
import { isLowerBound, isUpperBound, opGrid, type OpRow, opRows, type StaticLine, staticLines } from "../data/static";
import { barsScene } from "../scenes/bars";
import type { Section, SectionProps } from "../sections";
import { Drawing } from "../ui/Drawing";
import { Unknown } from "../ui/Facts";
import { Table } from "../ui/Table";
import { count, shown } from "../ui/format";

const SHOWN_OPS = 20;

function opScene(rows: OpRow[]) {
  const list = rows.slice(0, SHOWN_OPS).map((r) => ({
    name: r.op,
    value: count(r.nodes),
    text: `${shown(r.op, 60)}: ${count(r.nodes)} nodes, ${count(r.unknown)} of unknown cost`,
    parts: [
      { to: r.nodes, colour: 0, alpha: 0.75 },
      ...(r.unknown ? [{ to: r.unknown, colour: "warn" as const, alpha: 0.9 }] : []),
    ],
  }));
  return barsScene({ rows: list, label: "nodes", format: count });
}

function Operators(props: { graph: Static }) {
  const rows = useMemo(() => opRows(props.graph), [props.graph]);
  const scene = useMemo(() => opScene(rows), [rows]);
  if (!rows.length) return null;
  const more =
    rows.length > SHOWN_OPS ? ` The ${SHOWN_OPS} most frequent of ${rows.length} are drawn; the table has all.` : "";
  return (
    <Drawing
      id="operators"
      title="Nodes by operator"
      summary={`Most frequent: ${shown(rows[0]!.op, 60)}, ${count(rows[0]!.nodes)} nodes.${more}`}
      grid={() => opGrid(rows)}
      scene={scene}
    />
  );
}

function Totals(props: { lines: StaticLine[]; both: boolean }) {
  const cell = (v: string | null) => <td class={v === null ? "number unknown" : "number"}>{v ?? <Unknown />}</td>;
  return (
    <div class="table" tabIndex={0} role="region" aria-label="Static cost">
      <table>
        <thead>
          <tr>
            <th scope="col" class="text plain">
              quantity
            </th>
            <th scope="col" class="plain">
              as in the file
            </th>
            {props.both && (
              <th scope="col" class="plain">
                as the runtime optimised it
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {props.lines.map((l) => (
            <tr>
              <th scope="row" class="text">
                {l.name}
              </th>
              {cell(l.file)}
              {props.both && cell(l.optimized)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Pairs(props: { title: string; of: Record<string, Json> }) {
  const rows = Object.entries(props.of).slice(0, 100);
  if (!rows.length) return null;
  return (
    <details class="more">
      <summary>{props.title}</summary>
      <dl class="evidence wide">
        {rows.map(([k, v]) => (
          <div>
            <dt>{shown(k, 80)}</dt>
            <dd>
              <code>{shown(v, 400)}</code>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function StaticCost(props: SectionProps) {
  const { static: file, static_optimized: optimized } = (props.item.document as RunDocument).subject!;
  const lines = useMemo(() => staticLines(file, optimized), [file, optimized]);
  const graph = file ?? optimized!;
  // What operators cost is among the layers; how often they occur says less.
  const weighed = ((props.item.document as RunDocument).cases ?? []).some((c) => weightOf(c.layers ?? []) !== null);
  const dims = Object.entries(graph.dims ?? {})
    .map(([k, v]) => `${shown(k, 40)} = ${shown(v, 40)}`)
    .join(", ");
  return (
    <>
      {dims && <p class="note">With {dims}.</p>}
      <Totals lines={lines} both={!!optimized} />
      {(isLowerBound(file) || isLowerBound(optimized)) && (
        <p class="note">Totals leave out nodes whose cost is unknown: they are lower bounds.</p>
      )}
      {(isUpperBound(file) || isUpperBound(optimized)) && (
        <p class="note">Of an If whose branch only data choose, the dearer one is counted: totals are upper bounds.</p>
      )}
      {weighed ? (
        <details class="more">
          <summary>Nodes by operator</summary>
          <Table grid={opGrid(opRows(graph))} caption="Nodes by operator" />
        </details>
      ) : (
        <Operators graph={graph} />
      )}
      <Pairs title="Formulas in the free dimensions" of={graph.formulas ?? {}} />
      <Pairs title="Bytes of weights by type" of={graph.bytes_by_type ?? {}} />
    </>
  );
}

export const staticCost: Section = {
  id: "static",
  title: "Static cost",
  applies: (item: Item) =>
    item.kind === "run" && !!(item.document.subject?.static ?? item.document.subject?.static_optimized),
  Component: StaticCost,
};
