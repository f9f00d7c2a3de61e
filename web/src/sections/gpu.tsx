// SPDX-License-Identifier: MIT
// gpu.tsx - how busy each GPU was and what it waited for: the run, every step, and memory over time.
import { useMemo } from "preact/hooks";
import { type Bars, barsOf, type Course } from "../data/bars";
import type { GpuCard, GpuDocument, GpuEnergyGroup, GpuHolder } from "../data/document.gen";
import type { Grid } from "../data/grid";
import { NOT_RECORDED, partsOf, stepGrid, stepParts, type TimePart } from "../data/gpu";
import type { Item } from "../data/page";
import { type BarRow, barsScene } from "../scenes/bars";
import { colourOf, type Tone } from "../scenes/scene";
import { stepsScene } from "../scenes/steps";
import type { Section, SectionProps } from "../sections";
import { Drawing, Key } from "../ui/Drawing";
import { Empty } from "../ui/Facts";
import { bytes, count, duration, interval, isKnown, known, number, percent, rowOf, shown } from "../ui/format";
import { Plot } from "../ui/Plot";
import type { PlotSpec } from "../ui/plotspec";
import { Table } from "../ui/Table";
import { type Colours, useColours } from "../ui/theme";

/** Colour and strength of each part of a time; what it means, in words. */
const PARTS: Record<string, [Tone, number, string]> = {
  busy: [2, 0.85, "at least one operation ran"],
  sync: [1, 0.9, "the program waited for results before it launched more"],
  copy: [3, 0.85, "in a copy, or the copy was on its way"],
  communication: [5, 0.6, "launched in time, it waited for other ranks"],
  launch: [4, 0.85, "the call that launches, and the way to the GPU"],
  allocation: [6, 0.85, "taking or freeing GPU memory"],
  loading: [5, 0.85, "loading code to the GPU"],
  "host-running": [0, 0.85, "the launching thread ran other code"],
  "host-waiting": [0, 0.6, "the launching thread waited: for data, a lock, another process"],
  "host-sleeping": [0, 0.4, "the launching thread slept"],
  host: [0, 0.7, "the launching thread was elsewhere: looked at too seldom to say where"],
  unknown: [7, 0.45, "the launch was not recorded, or waited for something that is not"],
  [NOT_RECORDED]: [7, 0.2, "records are missing: neither busy nor idle is known"],
};
const partOf = (cause: string): [Tone, number, string] => rowOf(PARTS, cause) ?? [7, 0.45, cause];
const paintOf = (cause: string, c: Colours): [string, number] => [colourOf(c, partOf(cause)[0]), partOf(cause)[1]];

function Legend(props: { causes: string[] }) {
  const c = useColours();
  const mix = (cause: string) => `color-mix(in srgb, ${paintOf(cause, c)[0]} ${Math.round(paintOf(cause, c)[1] * 100)}%, transparent)`;
  return <>{props.causes.map((cause) => <span title={partOf(cause)[2]}><Key colour={mix(cause)}>{cause}</Key></span>)}</>;
}

const cardName = (d: GpuCard): string => `GPU ${d.number ?? "?"}${d.name ? ` (${shown(d.name, 60)})` : ""}`;

// ---- tiles ----

function Tile(props: { name: string; value: string; detail?: string }) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>{props.value}{props.detail && <div class="detail">{props.detail}</div>}</dd>
    </div>
  );
}

function stepText(d: GpuCard): string {
  const s = d.steps;
  if (!s) return "nothing was found to repeat";
  const by = s.found_by === "range" ? `by the range ${shown(s.name, 40)}` : "by the order of kernels";
  return `${known(s.count, count)} ${by}; p95 ${known(s.step_ns?.p95, duration)}`;
}

function Tiles(props: { card: GpuCard }) {
  const d = props.card;
  const idle = isKnown(d.wall_ns) && isKnown(d.busy_ns) ? d.wall_ns - d.busy_ns - (d.unrecorded_ns ?? 0) : null;
  return (
    <dl class="tiles">
      <Tile name="busy" value={known(d.busy, percent)} detail={`${known(d.busy_ns, duration)} of ${known(d.wall_ns, duration)}`} />
      <Tile name="idle" value={known(idle, duration)} detail={`exposed copies ${known(d.exposed_copy_ns, duration)}`} />
      <Tile name="operations" value={known(d.operations, count)} detail="kernels, copies and fills" />
      <Tile name="step, p50" value={known(d.steps?.step_ns?.p50, duration)} detail={stepText(d)} />
      <Tile name="launch to start, p50" value={known(d.launch_ns?.p50, duration)} detail={`p95 ${known(d.launch_ns?.p95, duration)}`} />
      <Tile name="memory, most" value={known(d.memory_peak_bytes, bytes)} detail={`taken from the driver, of ${known(d.memory_bytes, bytes)}`} />
    </dl>
  );
}

// ---- the run ----

const share = (p: TimePart, all: number): string => (all > 0 ? percent(p.ns / all) : "unknown");

function barRow(d: GpuCard): BarRow {
  const parts = partsOf(d);
  const all = parts.reduce((sum, p) => sum + p.ns, 0);
  let sum = 0;
  const stacked = parts.map((p) => ({ to: (sum += p.ns), colour: partOf(p.cause)[0], alpha: partOf(p.cause)[1] })).reverse();
  return { name: cardName(d), parts: stacked, value: known(d.busy, percent), text: `${cardName(d)}: ${parts.map((p) => `${p.cause} ${duration(p.ns)} (${share(p, all)})`).join(", ")}` };
}

function idleText(d: GpuCard): string {
  const parts = partsOf(d).slice(1).filter((p) => p.ns > 0 && p.cause !== NOT_RECORDED).sort((a, b) => b.ns - a.ns);
  const top = parts.slice(0, 2).map((p) => `${p.cause} ${duration(p.ns)} (${partOf(p.cause)[2]})`);
  return `${cardName(d)} was busy ${known(d.busy, percent)} of ${known(d.wall_ns, duration)}${top.length ? `; most idle time: ${top.join(", ")}` : ""}.`;
}

function Run(props: { gpu: GpuDocument; cards: GpuCard[] }) {
  const { cards } = props;
  const scene = useMemo(() => barsScene({ rows: cards.map(barRow), label: "from the first operation to the last", format: (v) => duration(v, 4) }), [cards]);
  const causes = [...new Set(cards.flatMap((d) => partsOf(d).map((p) => p.cause)))];
  const grid = () => ({
    columns: [{ title: "GPU", text: true }, { title: "part", text: true }, { title: "time, ns", format: (v: number) => duration(v, 4) }, { title: "share", format: percent }, { title: "gaps", format: count }, { title: "longest, ns", format: (v: number) => duration(v, 4) }],
    rows: cards.flatMap((d) => [
      [cardName(d), "busy", d.busy_ns, d.busy, null, null],
      ...(d.idle ?? []).map((i) => [cardName(d), i.cause, i.ns, i.share, i.gaps, i.longest_ns]),
      ...(d.unrecorded_ns ? [[cardName(d), NOT_RECORDED, d.unrecorded_ns, null, null, null]] : []),
    ]),
  });
  return <Drawing id="gpu-idle" title="Where the time of the run went" summary={cards.map(idleText).join(" ")} grid={grid} scene={scene} legend={<Legend causes={causes} />} />;
}

// ---- steps ----

function Steps(props: { course: Course; card: GpuCard | undefined }) {
  const { course } = props;
  const s = course.steps!;
  const parts = useMemo(() => Array.from(s.start, (_, i) => stepParts(course, i)), [course]);
  const scene = useMemo(() => stepsScene(parts, paintOf), [parts]);
  const causes = parts[0]!.map((p) => p.cause);
  const slowest = s.length.reduce((best, v, i) => (v > s.length[best]! ? i : best), 0);
  const fewer = s.n > s.start.length ? ` ${count(s.start.length)} of ${count(s.n)}, evenly taken.` : "";
  const range = props.card?.steps?.found_by === "range" ? "A step is a range on the host: the GPU may still run it when it ends." : "A step is from its first kernel to the first of the next.";
  const worst = stepParts(course, slowest).filter((p) => p.ns > 0).map((p) => `${p.cause} ${duration(p.ns)}`);
  return (
    <Drawing id={`gpu-steps-${course.pid}-${course.number}`} title={`Steps of GPU ${course.number}`} grid={() => stepGrid(course)} scene={scene} legend={<Legend causes={causes} />}
      summary={`${count(s.n)} steps.${fewer} The longest is step ${count(slowest + 1)}: ${duration(s.length[slowest]!)} (${worst.join(", ")}).`}
      note={`${range} A gap that reaches over the end of a step is shared by length. Own code of the host is not told apart here: a step is too short for the looks at its thread.`} />
  );
}

// ---- memory ----

function memorySpec(bars: Bars, d: GpuCard): PlotSpec {
  const points = (d.memory ?? []).filter((p) => isKnown(p.at_ns) && isKnown(p.bytes));
  const when = isKnown(d.memory_peak_at_ns) ? ` at ${duration(d.memory_peak_at_ns - bars.from, 4)}` : "";
  return {
    id: `gpu-memory-${d.number ?? 0}`,
    title: `Memory of ${cardName(d)} taken from the driver`,
    summary: `The most is ${known(d.memory_peak_bytes, bytes)}${when}. Frameworks keep what they took and hand out pieces of it.`,
    x: { label: "time from the first bar", format: (v) => duration(v * 1e9, 4), values: points.map((p) => (p.at_ns! - bars.from) / 1e9) },
    y: { label: "bytes", format: bytes, zero: true, binary: true },
    series: [{ label: "held", values: points.map((p) => p.bytes!), kind: "steps" }],
    height: 200,
  };
}

const holderGrid = (holders: GpuHolder[]): Grid => ({
  columns: [{ title: "taken in range", text: true }, { title: "by call", text: true }, { title: "step", format: count }, { title: "held at the peak, B", format: bytes }, { title: "pieces", format: count }],
  rows: holders.map((h) => [h.range ?? "none, or not known", h.call, h.step, h.bytes, h.pieces]),
});

function Memory(props: { bars: Bars; card: GpuCard }) {
  const { bars, card } = props;
  const spec = useMemo(() => memorySpec(bars, card), [bars, card]);
  const holders = card.memory_holders ?? [];
  return (
    <>
      <Plot spec={spec} />
      {holders.length > 0 && <details class="more"><summary>Who held it at the peak</summary><Table grid={holderGrid(holders)} caption={`Who held the memory of ${cardName(card)} at the peak`} /></details>}
    </>
  );
}

// ---- energy ----

const energyGrid = (groups: GpuEnergyGroup[]): Grid => ({
  columns: [{ title: "while", text: true }, { title: "time, ns", format: (v: number) => duration(v, 4) }, { title: "power, W (95 %)", text: true }, { title: "energy, J (95 %)", text: true }],
  rows: groups.map((g) => [g.group, g.time_ns, interval(g.watts, number, g.why && shown(g.why)), interval(g.joules, number, g.why && shown(g.why))]),
});

function Energy(props: { card: GpuCard }) {
  const groups = props.card.energy?.groups ?? [];
  if (!groups.length) return null;
  return (
    <details class="more">
      <summary>Energy of {cardName(props.card)} by what ran</summary>
      <p class="note">The rise of the card's energy counter, over the time of each group between its readings; of the whole board. "Several": of different groups at once.</p>
      <Table grid={energyGrid(groups)} caption={`Energy of ${cardName(props.card)} by what ran`} />
    </details>
  );
}

// ---- what is missing ----

const LOST: [keyof NonNullable<GpuDocument["lost"]>, string][] = [
  ["dropped", "records that CUPTI had no room for"],
  ["untimed", "records without times"],
  ["unread", "buffers with something that cannot be read"],
  ["unwritten", "records that could not be written"],
  ["ranges", "ranges for which no room was left"],
  ["holes", "times in which another tool had CUPTI's buffers: nothing was recorded"],
  ["graphs", "launches of CUDA graphs of which nothing was recorded"],
  ["rows", "rows with the least time that the tables leave out"],
  ["before_launch", "operations that seem to start before their call: the clocks differ"],
];

function Missing(props: { gpu: GpuDocument }) {
  const { lost, notes } = props.gpu;
  const lines = [
    ...LOST.filter(([key]) => (lost?.[key] ?? 0) > 0).map(([key, words]) => `${count(lost![key]!)} ${words}.`),
    ...(notes ?? []).slice(0, 20).map((n) => `Process ${n.pid ?? "?"}: ${shown(n.text, 400)}`),
  ];
  return lines.length ? <ul class="notes">{lines.map((l) => <li>{l}</li>)}</ul> : null;
}

function GpuPart(props: SectionProps) {
  const bars = useMemo(() => barsOf((props.item as { document: Parameters<typeof barsOf>[0] }).document), [props.item]);
  if (typeof bars === "string") return <Empty>What the GPU did cannot be shown: {shown(bars)}.</Empty>;
  const gpu = bars.gpu!;
  const cards = gpu.devices ?? [];
  if (!cards.length) return <><Empty>No operation of a GPU was recorded.</Empty><Missing gpu={gpu} /></>;
  const cardOf = (c: Course) => cards[bars.courses.indexOf(c)];
  return (
    <>
      {cards.length === 1 && <Tiles card={cards[0]!} />}
      <Run gpu={gpu} cards={cards} />
      {bars.courses.map((c) => c.steps && c.steps.start.length > 0 && <Steps course={c} card={cardOf(c)} />)}
      {cards.map((d) => (d.memory?.length ?? 0) > 1 && <Memory bars={bars} card={d} />)}
      {cards.map((d) => <Energy card={d} />)}
      <Missing gpu={gpu} />
    </>
  );
}

export const gpu: Section = { id: "gpu", title: "GPU", applies: (item: Item) => item.kind === "bars" && !!item.document.gpu, Component: GpuPart };
