// SPDX-License-Identifier: MIT
// overview.tsx - the first page: the newest runs.
import { Table } from "../../ui/Table";
import { useAnswer } from "../api";
import type { PageRow } from "../pages";
import { Loaded, To } from "../parts";
import { type RunList, runsGrid } from "../runs";

const NEWEST = 10;

function Overview() {
  const newest = useAnswer<RunList>(`/api/v1/runs?limit=${NEWEST}`, 30);
  return (
    <section>
      <h2>Newest runs</h2>
      <Loaded of={newest}>
        {(list) =>
          list.runs.length ? (
            <>
              <Table grid={runsGrid(list.runs)} caption="Newest runs" />
              <p>
                <To page="runs">All runs</To>
              </p>
            </>
          ) : (
            <p class="empty">
              No run yet. <code>tare bench</code> writes one; send it with POST /api/v1/runs.
            </p>
          )
        }
      </Loaded>
    </section>
  );
}

export const overview: PageRow = { id: "overview", title: "Overview", scope: "read", Component: Overview };
