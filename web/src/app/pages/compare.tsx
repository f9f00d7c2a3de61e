// SPDX-License-Identifier: MIT
// compare.tsx - 2 to 8 runs: the first one and those that are held against it, side by side; then one of them in full,
// with what differs around it and the command that says the same.
import { useEffect, useMemo, useState } from "preact/hooks";
import { readComparison } from "../../data/comparison";
import type { JsonObject, OtherItem, Page } from "../../data/page";
import { comparison as section } from "../../sections/comparison";
import { csvOf } from "../../data/grid";
import { saveText } from "../../ui/download";
import { Badge } from "../../ui/Facts";
import { shown } from "../../ui/format";
import { useView } from "../../ui/hash";
import { Pick, usePick } from "../../ui/Pick";
import { Table } from "../../ui/Table";
import { ask, query } from "../api";
import type { PageRow } from "../pages";
import { To } from "../parts";
import { idsOf } from "../runs";
import { sideBySide, worstOf } from "../sidebyside";

/** One pair: its comparison, or why there is none. */
type Side = { id: string; document?: JsonObject; error?: string };

/** All pairs; null: they are asked for. */
function usePairs(base: string | undefined, others: string[], force: boolean): Side[] | null {
  const [state, setState] = useState<{ key: string; sides: Side[] } | null>(null);
  const key = [base, ...others, force].join();
  useEffect(() => {
    let gone = false;
    const path = (id: string) => query("/api/v1/compare", { base, new: id, force: force ? 1 : undefined });
    void Promise.all(
      others.map((id) =>
        ask<JsonObject>("GET", path(id)).then(
          (document): Side => ({ id, document }),
          (e: Error): Side => ({ id, error: e.message }),
        ),
      ),
    ).then((sides) => gone || setState({ key, sides }));
    return () => void (gone = true);
  }, [key]);
  return state?.key === key ? state.sides : null;
}

const tail = (id: string): string => `…${id.slice(-6)}`;

function Troubles(props: { sides: Side[]; onForce: () => void }) {
  const bad = props.sides.filter((s) => s.error);
  if (!bad.length) return null;
  return (
    <div class="trouble-line" role="alert">
      {bad.map((s) => (
        <p>
          <code>{s.id}</code>: {shown(s.error, 400)}
        </p>
      ))}
      <button type="button" class="link" onClick={props.onForce}>
        Compare all the same
      </button>
    </div>
  );
}

function Pair(props: { document: JsonObject }) {
  const item = useMemo((): OtherItem => ({ kind: "comparison", document: props.document }), [props.document]);
  const page = useMemo((): Page => ({ schema: "tare.page/1", items: [item] }), [item]);
  return <section.Component item={item} page={page} />;
}

function Sides(props: { base: string; sides: Side[] }) {
  const good = props.sides.filter((s) => s.document);
  const read = useMemo(() => good.map((s) => ({ id: s.id, comparison: readComparison(s.document!) })), [props.sides]);
  const choices = good.map((s) => ({ value: s.id, name: s.id }));
  const [chosen, choose] = usePick("with", choices, choices[0]?.value ?? "");
  const grid = useMemo(
    () => sideBySide(tail(props.base), read.map((r) => ({ name: tail(r.id), comparison: r.comparison }))),
    [read],
  );
  const document = good.find((s) => s.id === chosen)?.document;
  if (!good.length) return null;
  return (
    <>
      <section>
        <h2>Side by side</h2>
        <p>
          <Badge word={worstOf(read.map((r) => r.comparison.verdict))} /> of {read.length} against{" "}
          <To page="run" keys={{ id: props.base }}>
            {props.base}
          </To>
        </p>
        <ul class="notes">
          {read.map((r) => (
            <li>
              <Badge word={r.comparison.verdict} />{" "}
              <To page="run" keys={{ id: r.id }}>
                {r.id}
              </To>
            </li>
          ))}
        </ul>
        <Table grid={grid} caption="Runs side by side" />
        <p class="actions">
          <button type="button" class="link" onClick={() => saveText("comparison.csv", "text/csv", csvOf(grid))}>
            CSV
          </button>
        </p>
      </section>
      <section>
        <h2>One against the first</h2>
        <Pick label="Run" choices={choices} value={chosen} onPick={choose} />
        {document && <Pair document={document} key={chosen} />}
      </section>
    </>
  );
}

function Compare() {
  const [text] = useView("runs");
  const [force, setForce] = useView("force");
  const [base, ...others] = idsOf(text);
  const sides = usePairs(base, others, force === "1");
  if (!base || !others.length)
    return (
      <p class="empty">
        Choose two runs or more on the page <To page="runs">Runs</To>.
      </p>
    );
  if (!sides)
    return (
      <p class="empty" role="status">
        Loading…
      </p>
    );
  return (
    <>
      <Troubles sides={sides} onForce={() => setForce("1")} />
      <Sides base={base} sides={sides} />
    </>
  );
}

export const compare: PageRow = { id: "compare", title: "Compare", scope: "read", unlisted: true, Component: Compare };
