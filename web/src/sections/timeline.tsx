// SPDX-License-Identifier: MIT
// timeline.tsx - the machine and the program over time: processors, memory, GPUs, power, storage, networks, with phases
// and alerts in the same picture. A run document alone has the summary; its trace has the series.
import { useMemo } from "preact/hooks";
import type { Grid } from "../data/grid";
import type { Item, JsonObject, RunDocument } from "../data/page";
import { extent } from "../data/scale";
import {
  type Alert,
  column,
  type Panel,
  panelsOf,
  type Phase,
  readTimeline,
  readWatch,
  seriesName,
  type Timeline,
  timelineFor,
  type TimelineSeries,
  type Watch,
  type WatchMetric,
} from "../data/timeline";
import type { Section, SectionProps } from "../sections";
import { Badge, Empty } from "../ui/Facts";
import { bytes, count, duration, type Format, instant, isKnown, known, number, percent, rowOf, shown } from "../ui/format";
import { Pick, usePick } from "../ui/Pick";
import { Plot } from "../ui/Plot";
import type { PlotMark, PlotSeries, PlotSpec } from "../ui/plotspec";
import { Table } from "../ui/Table";

const SHARES =
  /\.share$|utilization$|\.active$|occupancy$|^cpu$|^memory$|^process\.memory$|^gpu$|throttled$|waiting$|pressure\.|^disk\.busy$/;
const UNITS: Record<string, Format> = {
  B: bytes,
  "B/s": (v) => `${bytes(v)}/s`,
  s: (v) => duration(v * 1e9),
  "1/s": (v) => `${number(v)}/s`,
  W: (v) => `${number(v)}\u00a0W`,
  C: (v) => `${number(v)}\u00a0°C`,
  Hz: (v) => `${number(v / 1e9)}\u00a0GHz`,
};
const UNIT_WORDS: Record<string, string> = {
  B: "bytes",
  "B/s": "bytes per second",
  s: "time",
  "1/s": "per second",
  W: "watts",
  C: "degrees Celsius",
  Hz: "clock",
  share: "share of the whole",
};

/** A unit of 1 is a share of something, or a number of things. */
function unitOf(metric: string, unit: string | null | undefined): string {
  return unit === "1" ? (SHARES.test(metric) ? "share" : "") : (unit ?? "");
}
const formatOf = (metric: string, unit: string | null | undefined): Format => {
  const u = unitOf(metric, unit);
  return u === "share" ? (v) => percent(v) : (rowOf(UNITS, u) ?? ((v) => number(v, 4)));
};
const seconds: Format = (v) => duration(v * 1e9);

function marksOf(phases: Phase[], alerts: Alert[], end: number): PlotMark[] {
  const steady = phases.filter((p) => p.name !== "steady" && isKnown(p.start_s) && isKnown(p.end_s));
  const shades = steady.map((p): PlotMark => ({ x: p.start_s!, to: p.end_s!, label: p.name, tone: "soft" }));
  const fired = alerts
    .filter((a) => isKnown(a.start_s))
    .map((a): PlotMark => ({ x: a.start_s!, to: a.end_s ?? end, label: `alert: ${a.rule}`, tone: "bad" }));
  return [...shades, ...fired];
}

function plotSeries(s: TimelineSeries, t: Timeline): PlotSeries[] {
  const values = column(s, t.at.length);
  return [{ label: seriesName(s), values, ...(s.peaks ? { lo: values, hi: s.peaks } : {}) }];
}

function rangeText(s: TimelineSeries, format: Format): string {
  const seen = extent(s.peaks ? [...(s.values ?? []), ...s.peaks] : (s.values ?? [s.constant]));
  if (!seen) return `${shown(seriesName(s), 60)} unknown`;
  return seen[0] === seen[1]
    ? `${shown(seriesName(s), 60)} always ${format(seen[0])}`
    : `${shown(seriesName(s), 60)} ${format(seen[0])} to ${format(seen[1])}`;
}

const alertText = (alerts: Alert[]): string =>
  alerts.length ? ` Alerts: ${alerts.map((a) => shown(a.rule, 80)).join("; ")}.` : "";

export function panelSpec(t: Timeline, p: Panel): PlotSpec {
  const metric = p.series[0]!.metric;
  const format = formatOf(metric, p.unit);
  const own = t.alerts.filter((a) => p.series.some((s) => s.metric === a.metric));
  return {
    id: `time-${p.id}`,
    title: p.title,
    summary: `${p.series.map((s) => rangeText(s, format)).join("; ")}.${alertText(own)}`,
    x: { label: `seconds from ${instant(t.start)}`, format: (v) => `${number(v, 5)}\u00a0s`, values: t.at },
    y: {
      label: rowOf(UNIT_WORDS, unitOf(metric, p.unit)) ?? "count",
      format,
      zero: !["C", "Hz"].includes(p.unit),
      binary: p.unit.startsWith("B"),
    },
    series: p.series.flatMap((s) => plotSeries(s, t)),
    marks: marksOf(t.phases, own, t.at[t.at.length - 1]!),
    height: 220,
    sync: "timeline",
  };
}

function PanelPlot(props: { timeline: Timeline; panel: Panel }) {
  const spec = useMemo(() => panelSpec(props.timeline, props.panel), [props.timeline, props.panel.id, props.panel.series.length]);
  return <Plot spec={spec} />;
}

function AnyMetric(props: { timeline: Timeline }) {
  const t = props.timeline;
  const choices = t.series.map((s, i) => ({ value: String(i), name: seriesName(s) }));
  const first = String(
    Math.max(
      0,
      t.series.findIndex((s) => s.metric === "process.threads"),
    ),
  );
  const [chosen, choose] = usePick("metric", choices, first);
  const s = t.series[Number(chosen)];
  const spec = useMemo(
    () => (s ? panelSpec(t, { id: "any", title: seriesName(s), unit: s.unit, series: [s] }) : null),
    [t, chosen],
  );
  return spec ? (
    <Plot key={chosen} spec={spec} tools={<Pick label="Any other" choices={choices} value={chosen} onPick={choose} />} />
  ) : null;
}

function Alerts(props: { alerts: Alert[] }) {
  if (!props.alerts.length) return null;
  return (
    <ul class="notes">
      {props.alerts.map((a) => (
        <li>
          <Badge word="warn" /> <code>{shown(a.rule, 200)}</code> from {known(a.start_s, seconds)}{" "}
          {isKnown(a.end_s) ? `to ${seconds(a.end_s)}` : "on, and it did not clear"}
          {isKnown(a.value) && `, at ${formatOf(a.metric, isKnown(a.threshold) && a.threshold <= 1 ? "1" : "")(a.value)}`}
          {a.action && <span class="note">: {shown(a.action, 300)}</span>}
        </li>
      ))}
    </ul>
  );
}

const PHASE_COLUMNS: Grid["columns"] = [
  { title: "phase", text: true },
  { title: "from (s)", format: seconds },
  { title: "to (s)", format: seconds },
  { title: "processors busy", format: (v) => number(v) },
  { title: "GPU", format: percent },
  { title: "memory (B)", format: bytes },
];
const phaseGrid = (phases: Phase[]): Grid => ({
  columns: PHASE_COLUMNS,
  rows: phases.map((p) => [p.name, p.start_s, p.end_s, p.cpu, p.gpu, p.rss]),
});

function Phases(props: { phases: Phase[] }) {
  if (!props.phases.length) return null;
  return (
    <>
      <h3 class="sub">Phases</h3>
      <Table grid={phaseGrid(props.phases)} caption="Phases" />
    </>
  );
}

/** Each row has a unit of its own, so cells are texts; sorting is by name. */
function metricRow(m: WatchMetric): (string | null)[] {
  const f = formatOf(m.metric, m.unit);
  const cell = (v: number | null | undefined) => (isKnown(v) ? f(v) : null);
  return [seriesName(m), isKnown(m.samples) ? count(m.samples) : null, cell(m.mean), cell(m.p50), cell(m.p95), cell(m.max), isKnown(m.at_max_s) ? seconds(m.at_max_s) : null];
}

function Metrics(props: { watch: Watch }) {
  const { metrics } = props.watch;
  const columns = [{ title: "metric", text: true }, ...["readings", "mean", "median", "p95", "most", "when"].map((title) => ({ title }))];
  if (!metrics.length) return <Empty>No probe saw anything during this run.</Empty>;
  return (
    <details>
      <summary>All {count(metrics.length)} quantities over the whole run</summary>
      <Table grid={{ columns, rows: metrics.map(metricRow) }} caption="Quantities over the whole run" />
    </details>
  );
}

function headText(t: Timeline): string {
  const joined = t.joined > 1 ? `; each point is the mean of ${count(t.joined)} moments, and the band reaches to their peak` : "";
  const end = t.closed ? "" : " The recording has no end: its process was killed, or still runs.";
  return `${count(t.moments)} moments from ${instant(t.start)} on${joined}.${end} Shaded: load and idle phases; alerts where they hold.`;
}

function Panels(props: { timeline: Timeline }) {
  const panels = useMemo(() => panelsOf(props.timeline), [props.timeline]);
  return (
    <>
      <p class="note intro">{headText(props.timeline)}</p>
      <div class="pair">
        {panels.map((p) => (
          <PanelPlot key={p.id} timeline={props.timeline} panel={p} />
        ))}
      </div>
      <AnyMetric timeline={props.timeline} />
    </>
  );
}

function documentOf(item: Item, items: Item[]): JsonObject | null {
  return item.kind === "timeline" ? item.document : timelineFor(items, (item.document as RunDocument).id);
}

const watchOf = (item: Item): Watch | null =>
  item.kind === "run" ? readWatch(item.document.cases?.find((c) => c.watch)?.watch) : null;

function TimelinePart(props: SectionProps) {
  const { item, page } = props;
  const timeline = useMemo(() => {
    const doc = documentOf(item, page.items);
    return doc ? readTimeline(doc) : null;
  }, [item, page]);
  const watch = useMemo(() => watchOf(item), [item]);
  return (
    <>
      {timeline ? (
        <Panels timeline={timeline} />
      ) : (
        <Empty>
          How the quantities went over time is in the trace beside this document: give both to <code>tare report --html</code>.
        </Empty>
      )}
      <Alerts alerts={watch?.alerts ?? timeline?.alerts ?? []} />
      <Phases phases={watch?.phases ?? timeline?.phases ?? []} />
      {watch && <Metrics watch={watch} />}
    </>
  );
}

export const timeline: Section = {
  id: "timeline",
  title: "Timeline",
  applies: (item: Item) => item.kind === "timeline" || watchOf(item) !== null,
  Component: TimelinePart,
};
