// SPDX-License-Identifier: MIT
// runs.tsx - all runs, page by page: found by subject, host, tag or commit, and chosen to be compared.
import { csvOf, type Grid } from "../../data/grid";
import { saveText } from "../../ui/download";
import { useView } from "../../ui/hash";
import { Table } from "../../ui/Table";
import { query, useAnswer } from "../api";
import type { PageRow } from "../pages";
import { Field, linkTo, Loaded, To } from "../parts";
import { COMPARED_MOST, idsOf, nextPage, RUN_ID, type RunList, runsGrid, toggled } from "../runs";

const PAGE = 50;
const FILTERS = ["subject", "host", "tag", "commit"] as const;
const HINTS: Record<string, string> = { host: "name or fingerprint", commit: "its beginning", tag: "baseline:main" };

function useFilters(): Record<(typeof FILTERS)[number], string> & { set: (key: string, value: string) => void } {
  const views = Object.fromEntries(FILTERS.map((key) => [key, useView(key)])); // always the same four, in this order
  const [, setBefore] = useView("before");
  return {
    subject: views.subject![0],
    host: views.host![0],
    tag: views.tag![0],
    commit: views.commit![0],
    set: (key, value) => {
      setBefore(""); // another list begins at its beginning
      views[key]![1](value);
    },
  };
}

function Chosen(props: { ids: string[]; onClear: () => void }) {
  const { ids } = props;
  return (
    <div class="actions" role="status">
      {ids.length < 2 ? (
        <span class="note">Choose 2 to {COMPARED_MOST} runs to compare; the first one is what the others are held against.</span>
      ) : (
        <a class="main" href={linkTo("compare", { runs: ids.join(",") })}>
          Compare {ids.length} runs
        </a>
      )}
      {ids.length > 0 && (
        <button type="button" class="link" onClick={props.onClear}>
          Choose none
        </button>
      )}
    </div>
  );
}

function List(props: { grid: Grid; picked: string; onPick: (picked: string) => void }) {
  const { grid, picked, onPick } = props;
  const ids = idsOf(picked);
  return (
    <Table
      grid={grid}
      caption="Runs"
      action={{
        column: RUN_ID,
        title: (cells) => `Open ${cells[RUN_ID]}`,
        href: (cells) => linkTo("run", { id: String(cells[RUN_ID]) }),
      }}
      pick={{
        title: "compare",
        label: (cells) => `Compare ${cells[RUN_ID]}`,
        isPicked: (cells) => ids.includes(String(cells[RUN_ID])),
        isFull: ids.length >= COMPARED_MOST,
        toggle: (cells) => onPick(toggled(picked, String(cells[RUN_ID]))),
      }}
    />
  );
}

function Runs() {
  const filters = useFilters();
  const [before] = useView("before");
  const [picked, setPicked] = useView("pick");
  const { subject, host, tag, commit } = filters;
  const asked = { subject, host, tag, commit };
  const list = useAnswer<RunList>(query("/api/v1/runs", { ...asked, before, limit: PAGE }));
  const isFiltered = !!(subject || host || tag || commit);
  return (
    <>
      <div class="fields" role="search" aria-label="Find runs">
        {FILTERS.map((key) => (
          <Field
            label={key[0]!.toUpperCase() + key.slice(1)}
            value={asked[key]}
            hint={HINTS[key]}
            onChange={(v) => filters.set(key, v)}
          />
        ))}
      </div>
      <Chosen ids={idsOf(picked)} onClear={() => setPicked("")} />
      <Loaded of={list}>
        {({ runs }) => {
          const next = nextPage(runs, PAGE);
          const grid = runsGrid(runs);
          return (
            <>
              {runs.length ? (
                <List grid={grid} picked={picked} onPick={setPicked} />
              ) : (
                <p class="empty">{isFiltered || before ? "No run is like this." : "No run yet: tare bench writes one."}</p>
              )}
              <nav class="actions" aria-label="Pages of the list">
                {before && (
                  <To page="runs" keys={{ ...asked, pick: picked }}>
                    Newest
                  </To>
                )}
                {next && (
                  <To page="runs" keys={{ ...asked, pick: picked, before: next }}>
                    Older
                  </To>
                )}
                <button type="button" class="link" onClick={() => saveText("runs.csv", "text/csv", csvOf(grid))}>
                  CSV of these {runs.length}
                </button>
              </nav>
            </>
          );
        }}
      </Loaded>
    </>
  );
}

export const runs: PageRow = { id: "runs", title: "Runs", scope: "read", Component: Runs };
