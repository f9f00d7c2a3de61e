// SPDX-License-Identifier: MIT
// requests.tsx - requests of a service: how long they took, whether promises were kept, what an hour's report says.
import { useMemo } from "preact/hooks";
import type { SlaDocument, SlaSlo } from "../../data/document.gen";
import type { Grid } from "../../data/grid";
import { clock, estimates, type Heat, heatGrid, heatOf, PERCENTILES } from "../../data/sla";
import { heatScene } from "../../scenes/heat";
import { Drawing } from "../../ui/Drawing";
import { Empty } from "../../ui/Facts";
import { count, duration, number, percent } from "../../ui/format";
import { useView } from "../../ui/hash";
import { Pick } from "../../ui/Pick";
import { Plot } from "../../ui/Plot";
import type { PlotSpec } from "../../ui/plotspec";
import { Table } from "../../ui/Table";
import { query, useAnswer } from "../api";
import type { PageRow } from "../pages";
import { linkTo, Loaded } from "../parts";

interface Service {
  service: string;
  project: string | null;
  routes: number;
  hosts: number;
  last_ms: number;
}
interface Report {
  id: string;
  from_ms: number;
  revisions: number;
  sealed_ms: number;
}

const SPANS = [
  { value: "-1h", name: "the last hour" },
  { value: "-6h", name: "6 hours" },
  { value: "-24h", name: "a day" },
  { value: "-168h", name: "a week" },
];
const share = (v: number): string => percent(v, 5);
const burn = (v: number): string => number(v, 3);

function Services(props: { list: Service[] }) {
  if (!props.list.length)
    return (
      <Empty>
        No service has sent requests yet: tare.ASGIMiddleware, tare.WSGIMiddleware or tare.ProductionProfiler(server=…) in the service
        does.
      </Empty>
    );
  const grid: Grid = {
    columns: [
      { title: "service", text: true },
      { title: "project", text: true },
      { title: "routes" },
      { title: "hosts" },
      { title: "last heard, UTC", text: true },
    ],
    rows: props.list.map((s) => [s.service, s.project ?? "", s.routes, s.hosts, clock(s.last_ms)]),
  };
  return (
    <Table
      grid={grid}
      caption="Services"
      action={{
        column: 0,
        title: (cells) => `Requests of ${cells[0]}`,
        href: (cells) => linkTo("requests", { service: String(cells[0]), project: String(cells[1] ?? "") || undefined }),
      }}
    />
  );
}

function Promises(props: { slo: SlaSlo[] }) {
  if (!props.slo.length) return <Empty>The service makes no promise: sla_ms= of the middleware makes one.</Empty>;
  const grid: Grid = {
    columns: [
      { title: "within, ns", format: duration },
      { title: "objective", format: share },
      { title: "attained", format: share },
      { title: "in time", format: count },
      { title: "too late", format: count },
      { title: "errors", format: count },
      { title: "budget burnt", format: burn },
      { title: "in the last hour", format: burn },
      { title: "in six hours", format: burn },
    ],
    rows: props.slo.map((o) => [
      o.threshold_ns,
      o.objective,
      o.attainment,
      o.within,
      o.breached,
      o.errors,
      o.burn,
      o.burn_1h,
      o.burn_6h,
    ]),
  };
  return <Table grid={grid} caption="Promises: exact counts; a burn of 1 spends just the budget" />;
}

function Percentiles(props: { d: SlaDocument }) {
  const { d } = props;
  const rows: Grid["rows"] = [];
  const all = [{ name: "all routes", total: d.total }, ...(d.routes ?? [])];
  for (const r of all) {
    const l = r.total?.latency_ns;
    rows.push([r.name, r.total?.requests, r.total?.errors, r.total?.cancelled, ...PERCENTILES.map(([key]) => l?.[key]?.value), l?.max]);
  }
  const grid: Grid = {
    columns: [
      { title: "route", text: true },
      { title: "requests", format: count },
      { title: "errors", format: count },
      { title: "given up", format: count },
      ...PERCENTILES.map(([, title]) => ({ title: `${title}, ns`, format: (v: number) => duration(v, 4) })),
      { title: "max, ns", format: (v: number) => duration(v, 4) },
    ],
    rows,
  };
  return <Table grid={grid} caption={`Percentiles, each within ${percent(d.error ?? 0, 2)} of the exact one`} />;
}

function overTime(d: SlaDocument): PlotSpec {
  const steps = d.steps ?? [];
  const series = PERCENTILES.slice(0, 4).map(([key, label]) => {
    const of = estimates(d, key);
    return { label, values: of.map((e) => e?.value ?? null), lo: of.map((e) => e?.lo ?? null), hi: of.map((e) => e?.hi ?? null) };
  });
  const last = steps.length ? (d.total?.to_ms ?? 0) : 0;
  return {
    id: "latency",
    title: "Latency over time",
    summary: `p50, p90, p95 and p99 of ${steps.length} steps up to ${clock(last)} UTC, with the bounds of the histograms.`,
    x: { label: "time, UTC", format: (v) => clock(v * 1000).slice(5), values: steps.map((s) => (s.from_ms ?? 0) / 1000) },
    y: { label: "latency", format: duration, zero: true },
    series,
  };
}

function HeatMap(props: { heat: Heat }) {
  const { heat } = props;
  const scene = useMemo(() => heatScene(heat), [heat]);
  const total = heat.cells.flat().reduce((a, b) => a + b, 0);
  const summary =
    `${count(total)} requests; columns are steps from ${clock(heat.at[0])} UTC, rows latencies up to ` +
    `${duration(heat.edges[heat.edges.length - 1]!)}; the stronger the colour, the more.`;
  return (
    <Drawing id="heat" title="Requests by time and latency" summary={summary} grid={() => heatGrid(heat, duration)} scene={scene} />
  );
}

function Reports(props: { list: Report[]; project: string }) {
  if (!props.list.length) return <Empty>No report yet: an hour is sealed five minutes after its end.</Empty>;
  const grid: Grid = {
    columns: [
      { title: "report", text: true },
      { title: "from, UTC", text: true },
      { title: "revisions" },
      { title: "sealed, UTC", text: true },
    ],
    rows: props.list.map((r) => [r.id, clock(r.from_ms), r.revisions, clock(r.sealed_ms)]),
  };
  return (
    <Table
      grid={grid}
      caption="Hourly reports of the last day"
      action={{
        column: 0,
        title: (cells) => `The report ${cells[0]}`,
        href: (cells) => query(`/api/v1/reports/${cells[0]}`, { format: "html", project: props.project }),
      }}
    />
  );
}

function Worst(props: { d: SlaDocument }) {
  const list = props.d.worst ?? [];
  if (!list.length) return null;
  const grid: Grid = {
    columns: [
      { title: "request", text: true },
      { title: "took, ns", format: duration },
      { title: "ended, UTC", text: true },
      { title: "failed", text: true },
    ],
    rows: list.map((w) => [w.id, w.latency_ns, clock(w.at_ms), w.failed ?? ""]),
  };
  return (
    <section>
      <h2>The slowest requests</h2>
      <Table grid={grid} caption="The slowest requests" />
    </section>
  );
}

function Answer(props: { d: SlaDocument }) {
  const { d } = props;
  const heat = useMemo(() => heatOf(d), [d]);
  if (!d.total?.requests && !d.total?.cancelled) return <Empty>No requests in this time.</Empty>;
  return (
    <>
      <section>
        <h2>Promises</h2>
        <Promises slo={d.total?.slo ?? []} />
      </section>
      <section>
        <h2>Latency</h2>
        <Percentiles d={d} />
        <Plot spec={overTime(d)} />
        {heat && <HeatMap heat={heat} />}
      </section>
      <Worst d={d} />
    </>
  );
}

function OneService(props: { service: string }) {
  const [from, setFrom] = useView("from", "-1h");
  const [project] = useView("project");
  const path = `/api/v1/services/${props.service}`;
  const answer = useAnswer<SlaDocument>(query(`${path}/latency`, { from, project }), 10);
  const reports = useAnswer<{ reports: Report[] }>(query(`${path}/reports`, { project }));
  return (
    <>
      <div class="actions">
        <Pick label="Time" choices={SPANS} value={from} onPick={setFrom} />
      </div>
      <Loaded of={answer}>{(d) => <Answer d={d} />}</Loaded>
      <section>
        <h2>Reports</h2>
        <Loaded of={reports}>{(r) => <Reports list={r.reports} project={project} />}</Loaded>
      </section>
    </>
  );
}

function Requests() {
  const [service] = useView("service");
  const list = useAnswer<{ services: Service[] }>(service ? null : "/api/v1/services", 10);
  if (service) return <OneService service={service} key={service} />;
  return <Loaded of={list}>{(l) => <Services list={l.services} />}</Loaded>;
}

export const requests: PageRow = { id: "requests", title: "Requests and SLA", scope: "read", Component: Requests };
