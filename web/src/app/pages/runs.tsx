// SPDX-License-Identifier: MIT
// runs.tsx - all runs.
import { Table } from "../../ui/Table";
import { useAnswer } from "../api";
import type { PageRow } from "../pages";
import { Loaded } from "../parts";
import { type RunList, runsGrid } from "../runs";

function Runs() {
  const list = useAnswer<RunList>("/api/v1/runs");
  return <Loaded of={list}>{(l) => <Table grid={runsGrid(l.runs)} caption="Runs" />}</Loaded>;
}

export const runs: PageRow = { id: "runs", title: "Runs", scope: "read", Component: Runs };
