// SPDX-License-Identifier: MIT
// environment.tsx - where, with what and how the run was measured: what somebody needs to measure it again.
import { useMemo } from "preact/hooks";
import { configRows, hostFacts, runFacts } from "../data/environment";
import type { Item, RunDocument } from "../data/page";
import type { Section, SectionProps } from "../sections";
import { Facts } from "../ui/Facts";
import { Table } from "../ui/Table";

function Environment(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const rows = useMemo(() => configRows(run.config ?? {}), [run]);
  return (
    <>
      <h3>Subject</h3>
      <Facts facts={runFacts(run)} />
      <h3>Machine</h3>
      <Facts facts={hostFacts(run.host ?? {})} />
      {rows.length > 0 && (
        <details class="more">
          <summary>Configuration, {rows.length} settings</summary>
          <Table
            caption="Configuration"
            grid={{
              columns: [
                { title: "setting", text: true },
                { title: "value", text: true },
              ],
              rows,
            }}
          />
        </details>
      )}
    </>
  );
}

export const environment: Section = {
  id: "environment",
  title: "Environment",
  applies: (item: Item) => item.kind === "run",
  Component: Environment,
};
