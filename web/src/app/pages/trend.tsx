// SPDX-License-Identifier: MIT
// trend.tsx - a metric of a subject over its runs, judged by the server: levels, and where they changed.
import { useMemo } from "preact/hooks";
import type { Grid } from "../../data/grid";
import { pointName, readHistory } from "../../data/history";
import type { JsonObject, OtherItem, Page } from "../../data/page";
import { history as section } from "../../sections/history";
import { change, shown } from "../../ui/format";
import { useView } from "../../ui/hash";
import { Pick } from "../../ui/Pick";
import { Table } from "../../ui/Table";
import { query, useAnswer } from "../api";
import { Baseline } from "../Baseline";
import type { PageProps, PageRow } from "../pages";
import { Field, linkTo, Loaded, To } from "../parts";
import { changesOf, namesOf, type SeriesList } from "../series";

const SERIES_MOST = 1000;

function Changes(props: { document: JsonObject }) {
  const changes = changesOf(props.document);
  if (!changes.length) return null;
  const grid: Grid = {
    columns: [
      { title: "case", text: true },
      { title: "host", text: true },
      { title: "it got", text: true },
      { title: "new / old level", format: change },
      { title: "low", format: change },
      { title: "high", format: change },
      { title: "last run before", text: true },
      { title: "first run since", text: true },
    ],
    rows: changes.map((c) => [c.case, c.host, c.worse ? "worse" : "better", c.ratio, c.lo, c.hi, c.before, c.run]),
  };
  return (
    <section>
      <h2>Changes</h2>
      <Table
        grid={grid}
        caption="Changes of the level"
        action={{
          column: 7,
          title: (cells) => `Compare ${cells[7]} with the run before it`,
          href: (cells) => linkTo("compare", { runs: `${cells[6]},${cells[7]}` }),
        }}
      />
    </section>
  );
}

const RUNS_OFFERED = 50;

/** Runs of all series, the newest first. */
function runsOf(document: JsonObject): { run: string; name: string }[] {
  const points = readHistory(document).series.flatMap((s) => s.points);
  const names = new Map(points.filter((p) => p.run).map((p) => [p.run!, pointName(p)]));
  const runs = [...names].map(([run, name]) => ({ run, name: `${name}, ${run}` }));
  return runs.sort((a, b) => (a.name < b.name ? 1 : -1)).slice(0, RUNS_OFFERED);
}

function Judged(props: { document: JsonObject; subject: string }) {
  const item = useMemo((): OtherItem => ({ kind: "history", document: props.document }), [props.document]);
  const page = useMemo((): Page => ({ schema: "tare.page/1", items: [item] }), [item]);
  return (
    <>
      <section>
        <h2>{shown(props.subject, 120)}</h2>
        <section.Component item={item} page={page} />
      </section>
      <Changes document={props.document} />
    </>
  );
}

function Subjects(props: { list: SeriesList }) {
  const subjects = namesOf(props.list, "subject");
  if (!subjects.length) return <p class="empty">No run yet: tare bench writes one.</p>;
  return (
    <ul class="notes">
      {subjects.map((subject) => (
        <li>
          <To page="trend" keys={{ subject }}>
            {shown(subject, 120)}
          </To>
        </li>
      ))}
    </ul>
  );
}

/** What can be chosen of this subject. */
function Choices(props: { subject: string }) {
  const [metric, setMetric] = useView("metric", "latency.p50");
  const [case_, setCase] = useView("case");
  const [host, setHost] = useView("host");
  const [last, setLast] = useView("last", "100");
  const series = useAnswer<SeriesList>(query("/api/v1/series", { subject: props.subject, limit: SERIES_MOST }));
  if (!series.data) return null;
  const any = { value: "", name: "all" };
  const choices = (names: string[]) => names.map((n) => ({ value: n, name: n || "the only case" }));
  return (
    <div class="actions">
      <Pick label="Metric" choices={choices(namesOf(series.data, "metric"))} value={metric} onPick={setMetric} />
      <Pick label="Case" choices={[any, ...choices(namesOf(series.data, "case"))]} value={case_} onPick={setCase} />
      <Pick label="Host" choices={[any, ...choices(namesOf(series.data, "host"))]} value={host} onPick={setHost} />
      <Pick label="Newest" choices={choices(["30", "100", "300", "1000", "2000"])} value={last} onPick={setLast} />
    </div>
  );
}

function Trend(props: PageProps) {
  const [subject, setSubject] = useView("subject");
  const [metric] = useView("metric", "latency.p50");
  const [case_] = useView("case");
  const [host] = useView("host");
  const [last] = useView("last", "100");
  const path = subject ? query("/api/v1/trend", { subject, metric, case: case_, host, last }) : null;
  const trend = useAnswer<JsonObject>(path);
  const all = useAnswer<SeriesList>(subject ? null : query("/api/v1/series", { metric, limit: SERIES_MOST }));
  return (
    <>
      <div class="fields">
        <Field label="Subject" value={subject} onChange={setSubject} />
      </div>
      {subject ? (
        <>
          <Choices subject={subject} />
          <Loaded of={trend}>
            {(d) => (
              <>
                <Judged document={d} subject={subject} key={path ?? ""} />
                <Baseline session={props.session} subject={subject} runs={runsOf(d)} onChange={trend.again} key={subject} />
              </>
            )}
          </Loaded>
        </>
      ) : (
        <Loaded of={all}>{(list) => <Subjects list={list} />}</Loaded>
      )}
    </>
  );
}

export const trend: PageRow = { id: "trend", title: "Trends", scope: "read", Component: Trend };
