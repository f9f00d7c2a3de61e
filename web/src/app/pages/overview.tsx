// SPDX-License-Identifier: MIT
// overview.tsx - the first page: what got worse, the newest runs, and hosts that send metrics.
import type { Grid } from "../../data/grid";
import { change, count, duration, instant, isKnown } from "../../ui/format";
import { useView } from "../../ui/hash";
import { Table } from "../../ui/Table";
import { query, useAnswer } from "../api";
import type { PageRow } from "../pages";
import { Field, linkTo, Loaded, To } from "../parts";
import { RUN_ID, type RunList, runsGrid } from "../runs";

const NEWEST = 10;
const EVERY_S = 60;

export interface Regression {
  subject: string;
  case: string;
  host: string;
  hostname?: string | null;
  run: string;
  run_before: string;
  /** The accepted run it is judged against; null: the level before. */
  baseline?: string | null;
  created_ms?: number;
  commit?: string | null;
  ratio?: number | null;
  ratio_lo?: number | null;
  ratio_hi?: number | null;
}

export interface Regressions {
  metric: string;
  series: number;
  /** What `after` goes on with. */
  next: number | null;
  regressions: Regression[];
}

export function regressionsGrid(list: Regression[]): Grid {
  return {
    columns: [
      { title: "subject", text: true },
      { title: "case", text: true },
      { title: "host", text: true },
      { title: "new / old level", format: change },
      { title: "low", format: change },
      { title: "high", format: change },
      { title: "since (UTC)", text: true },
      { title: "commit", text: true },
      { title: "run", text: true },
      { title: "against", text: true },
    ],
    rows: list.map((r) => [
      r.subject,
      r.case,
      r.hostname || r.host,
      r.ratio,
      r.ratio_lo,
      r.ratio_hi,
      isKnown(r.created_ms) ? instant(new Date(r.created_ms).toISOString()).replace(" UTC", "") : null,
      r.commit?.slice(0, 10) ?? null,
      r.run,
      r.baseline ? `baseline ${r.baseline}` : r.run_before,
    ]),
  };
}

export interface Hosts {
  /** The server's clock, unix ms. */
  now: number;
  hosts: { name: string; project?: string | null; last_heard: number; metrics: number }[];
}

const SILENT_MS = 120_000;

/** A host that was not heard for two minutes is silent: what is known of it is old. */
export function hostsGrid(h: Hosts): Grid {
  return {
    columns: [
      { title: "host", text: true },
      { title: "project", text: true },
      { title: "state", text: true },
      { title: "last heard, ns", format: (v) => `${duration(v)} ago` },
      { title: "series", format: count },
    ],
    rows: h.hosts.map((host) => {
      const silent = Math.max(0, h.now - host.last_heard);
      return [host.name, host.project ?? "", silent > SILENT_MS ? "silent" : "heard", silent * 1e6, host.metrics];
    }),
  };
}

/** Hosts that send metrics; each leads to its page. */
export function HostList() {
  const hosts = useAnswer<Hosts>("/api/v1/hosts", EVERY_S);
  return (
    <section>
      <h2>Hosts</h2>
      <Loaded of={hosts}>
        {(h) =>
          h.hosts.length ? (
            <Table
              grid={hostsGrid(h)}
              caption="Hosts that send metrics"
              action={{
                column: 0,
                title: (cells) => `Watch ${cells[0]}`,
                href: ([host, project]) => linkTo("hosts", { host: String(host), project: project ? String(project) : undefined }),
              }}
            />
          ) : (
            <p class="empty">
              No host sends metrics. <code>POST /api/v1/metrics</code> takes them.
            </p>
          )
        }
      </Loaded>
    </section>
  );
}

function Worse(props: { of: Regressions }) {
  const { metric, series, regressions } = props.of;
  const looked = `${series} series of ${metric}`;
  if (!series) return <p class="empty">No run has {metric} yet.</p>;
  if (!regressions.length) return <p class="empty">Nothing got worse than its baseline, or within the newest 12 runs without one, of {looked}.</p>;
  const grid = regressionsGrid(regressions);
  return (
    <>
      <Table
        grid={grid}
        caption={`What got worse in ${metric}`}
        action={{
          column: 8,
          title: (cells) => `Compare ${cells[8]} with ${cells[9]}`,
          href: (cells) => linkTo("compare", { runs: `${String(cells[9]).replace("baseline ", "")},${cells[8]}` }),
        }}
      />
      <ul class="notes">
        {[...new Set(regressions.map((r) => r.subject))].slice(0, 12).map((subject) => (
          <li>
            <To page="trend" keys={{ subject, metric }}>
              Trend of {subject}
            </To>
          </li>
        ))}
      </ul>
      <p class="note">
        Of {looked}; against the accepted baseline where there is one, else the level before. Single outliers are no change.
      </p>
    </>
  );
}

function Overview() {
  const [metric, setMetric] = useView("metric", "latency.p50");
  const [after] = useView("after");
  const worse = useAnswer<Regressions>(query("/api/v1/regressions", { metric, after }), EVERY_S);
  const newest = useAnswer<RunList>(query("/api/v1/runs", { limit: NEWEST }), EVERY_S);
  return (
    <>
      <section>
        <h2>What got worse</h2>
        <div class="fields">
          <Field label="Metric" value={metric} onChange={(v) => setMetric(v || "latency.p50")} />
        </div>
        <Loaded of={worse}>
          {(w) => (
            <>
              <Worse of={w} />
              {w.next !== null && (
                <To page="overview" keys={{ metric, after: String(w.next) }}>
                  The next {w.series} series
                </To>
              )}
            </>
          )}
        </Loaded>
      </section>
      <section>
        <h2>Newest runs</h2>
        <Loaded of={newest}>
          {(list) =>
            list.runs.length ? (
              <>
                <Table
                  grid={runsGrid(list.runs)}
                  caption="Newest runs"
                  action={{
                    column: RUN_ID,
                    title: (cells) => `Open ${cells[RUN_ID]}`,
                    href: (cells) => linkTo("run", { id: String(cells[RUN_ID]) }),
                  }}
                />
                <p>
                  <To page="runs">All runs</To>
                </p>
              </>
            ) : (
              <p class="empty">
                No run yet. <code>tare bench</code> writes one; send it with <code>POST /api/v1/runs</code>.
              </p>
            )
          }
        </Loaded>
      </section>
      <HostList />
    </>
  );
}

export const overview: PageRow = { id: "overview", title: "Overview", scope: "read", Component: Overview };
