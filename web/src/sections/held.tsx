// SPDX-License-Identifier: MIT
// held.tsx - who held memory, line by line: over time, one on the other, with a slider for one moment; findings; all lines
// as a table.
import { useMemo } from "preact/hooks";
import { gridOfLines, heldAt, type HeldProcess, layersOf, readHeld } from "../data/held";
import type { Item, JsonObject } from "../data/page";
import type { Section, SectionProps } from "../sections";
import { Badge, Empty } from "../ui/Facts";
import { bytes, count, number, percent, shown } from "../ui/format";
import { useView } from "../ui/hash";
import { Plot } from "../ui/Plot";
import type { PlotSpec } from "../ui/plotspec";
import { Table } from "../ui/Table";

const LAYERS = 8;
const seconds = (v: number): string => `${number(v, 3)}\u00a0s`;

function specOf(p: HeldProcess): PlotSpec {
  const layers = layersOf(p, LAYERS);
  const top = p.total.reduce((a, b) => Math.max(a, b), 0);
  const first = p.lines[0];
  const most = first ? ` At the peak most was held by ${shown(first.name, 80)}: ${bytes(first.peak)}.` : "";
  return {
    id: `held-${p.pid}`,
    title: `Memory of process ${p.pid} by line`,
    summary: `At most ${bytes(top)} at one of ${count(p.at.length)} moments.${most}`,
    x: { label: "time from the first record", format: seconds, values: p.at },
    y: { label: "bytes held, one line on the other", format: bytes, binary: true, zero: true },
    series: layers.map((l, i) => ({ label: shown(l.name, 60), values: l.to, lo: l.from, hi: l.to, colour: i })),
  };
}

function Moment(props: { process: HeldProcess }) {
  const { process: p } = props;
  const last = p.at.length - 1;
  const [text, setText] = useView(`held-${p.pid}.at`, String(Math.round(last / 2)));
  const moment = Math.min(last, Math.max(0, Math.round(Number(text)) || 0));
  const rows = heldAt(p, moment);
  const id = `held-${p.pid}-moment`;
  const grid = {
    columns: [{ title: "line", text: true }, { title: "held (B)", format: bytes }, { title: "share", format: percent }],
    rows: rows.map((r) => [r.name, r.bytes, r.share]),
  };
  return (
    <>
      <p>
        <label for={id}>What was held at this moment</label>{" "}
        <input id={id} type="range" min={0} max={last} value={moment} onInput={(e) => setText(e.currentTarget.value)}
          aria-valuetext={`${seconds(p.at[moment]!)}, ${bytes(p.total[moment]!)}`} />{" "}
        <output for={id} role="status">{seconds(p.at[moment]!)}: {bytes(p.total[moment]!)} held</output>
      </p>
      {rows.length ? <Table grid={grid} caption={`What was held after ${seconds(p.at[moment]!)}`} /> : <Empty>Nothing was held at this moment.</Empty>}
    </>
  );
}

function Process(props: { process: HeldProcess }) {
  const { process: p } = props;
  const spec = useMemo(() => specOf(p), [p]);
  const grid = useMemo(() => gridOfLines(p, bytes), [p]);
  return (
    <>
      {p.findings.map((f) => (
        <p>
          <Badge word={f.severity} /> {shown(f.title, 300)}. {shown(f.action, 400)}
        </p>
      ))}
      <Plot spec={spec} />
      <Moment process={p} />
      <h3>All lines of process {p.pid}</h3>
      <Table grid={grid} caption={`All lines of process ${p.pid}`} />
    </>
  );
}

function HeldSection(props: SectionProps) {
  const processes = useMemo(() => readHeld(props.item.document as JsonObject), [props.item]);
  if (!processes.length) return <Empty>This record of memory holds no moment that could be shown.</Empty>;
  return <>{processes.slice(0, 8).map((p) => <Process process={p} />)}</>;
}

export const held: Section = { id: "held", title: "Memory by line", applies: (item: Item) => item.kind === "memory", Component: HeldSection };
