// SPDX-License-Identifier: MIT
// bars.tsx - everything of a trace on one time axis: streams with their kernels and copies, CUDA calls, NVTX ranges, the
// program's scopes, calls that waited. The chosen bar, the search and what is in sight are in the address.
import { useMemo } from "preact/hooks";
import { around, type Bars, barOf, barsOf, launchedBy, nameAt, nextMatch, ofName, searchNames, type Spot, spotOf } from "../data/bars";
import type { Grid } from "../data/grid";
import type { Item, JsonObject, Page } from "../data/page";
import type { Section, SectionProps } from "../sections";
import { keysOf } from "../ui/barspaint";
import { BarsCanvas, bound, type Stretch, stretchTo, whole } from "../ui/BarsCanvas";
import { Empty } from "../ui/Facts";
import { Figure } from "../ui/Figure";
import { bytes, count, duration, shown } from "../ui/format";
import { useView } from "../ui/hash";
import { currentTheme, useColours } from "../ui/theme";

const WORDS: Record<string, string> = { kernel: "kernel", copy: "copy", fill: "fill", graph: "CUDA graph", call: "CUDA call", range: "NVTX range", mark: "mark", scope: "scope", task: "call, from begin to end" };
const SHAPE = 10;
const TABLE_MOST = 2000;

export const documentOf = (item: Item): JsonObject | null =>
  item.kind === "bars" ? item.document : item.kind === "profile" ? (item.bars ?? null) : null;

/** What is chosen and in sight is kept in the address for each document of its own. */
export function keyOf(page: Page, item: Item): string {
  const place = page.items.indexOf(item);
  return place > 0 ? `bars${place}` : "bars";
}

// ---- one bar in words ----

const times3 = (v: Float64Array): string => (v[1] === 1 && v[2] === 1 ? count(v[0]!) : `${count(v[0]!)}×${count(v[1]!)}×${count(v[2]!)}`);

function shapeText(bars: Bars, number: number): string[] {
  const s = bars.shapes.subarray((number - 1) * SHAPE, number * SHAPE);
  if (number < 1 || s.length < SHAPE) return [];
  return [`grid ${times3(s.subarray(0, 3))}, block ${times3(s.subarray(3, 6))}`, `${count(s[6]!)} registers, ${bytes(s[7]! + s[8]!)} shared`];
}

function moreText(bars: Bars, s: Spot, kind: string): string[] {
  const more = s.lane.more ? s.lane.more[s.i]! : 0;
  if (kind === "kernel") return shapeText(bars, more);
  if (kind === "copy" || kind === "fill") return [`${bytes(more)}, ${bytes((more / Math.max(s.lane.length[s.i]!, 1)) * 1e9)}/s`];
  return [more & 1 ? "inner scopes left out to weigh" : "", more & 2 ? "never ended" : ""].filter(Boolean);
}

function launchText(bars: Bars, s: Spot): string[] {
  const call = s.lane.call && s.lane.call[s.i]! >= 0 ? spotOf(bars, s.lane.call[s.i]!) : null;
  return call ? [`${duration(s.lane.start[s.i]! - call.lane.start[call.i]!)} after its launch began`] : [];
}

export function describe(bars: Bars, s: Spot): { name: string; parts: string[] } {
  const n = nameAt(bars, s);
  const place = n.file ? [`${n.file}${n.line ? `:${n.line}` : ""}`] : [];
  return {
    name: shown(n.text, 200),
    parts: [
      `${WORDS[n.kind] ?? shown(n.kind, 20)}${n.group ? `, ${shown(n.group, 30)}` : ""}`,
      duration(s.lane.length[s.i]!, 4),
      `at ${duration(s.lane.start[s.i]! - bars.from, 7)}`,
      ...moreText(bars, s, n.kind),
      ...launchText(bars, s),
      shown(s.lane.label, 80),
      ...place.map((t) => shown(t, 120)),
    ],
  };
}

/** What belongs to a bar: its launch, what it launched, the range and the scope around the launch. */
function linksOf(bars: Bars, s: Spot): [string, Spot][] {
  const links: [string, Spot][] = [];
  const name = (to: Spot) => shown(nameAt(bars, to).text, 60);
  let call: Spot | null = s.lane.kind === "calls" || s.lane.kind === "ranges" ? s : null;
  if (s.lane.call && s.lane.call[s.i]! >= 0) {
    call = spotOf(bars, s.lane.call[s.i]!);
    if (call) links.push([`Launch: ${name(call)}`, call]);
  }
  if (s.lane.kind === "calls") {
    const ops = launchedBy(bars, barOf(s));
    const first = ops.length ? spotOf(bars, ops[0]!) : null;
    if (first) links.push([ops.length > 1 ? `First of ${count(ops.length)} launched: ${name(first)}` : `Launched: ${name(first)}`, first]);
  }
  const range = call && s.lane.kind !== "ranges" ? around(bars, call, "ranges") : null;
  if (range) links.push([`Range: ${name(range)}`, range]);
  const scope = call ? around(bars, call, "scopes") : null;
  if (scope) links.push([`Scope: ${name(scope)}`, scope]);
  if (s.lane.kind === "ranges") firstLaunchIn(bars, s).forEach((to) => links.push([`First launch in it: ${name(to)}`, to]));
  return links;
}

function firstLaunchIn(bars: Bars, range: Spot): Spot[] {
  const [from, to] = [range.lane.start[range.i]!, range.lane.start[range.i]! + range.lane.length[range.i]!];
  for (const l of bars.lanes) {
    if (l.kind !== "calls" || l.pid !== range.lane.pid || l.thread !== range.lane.thread) continue;
    const i = l.start.findIndex((t) => t >= from);
    if (i >= 0 && l.start[i]! <= to) return [{ lane: l, i }];
  }
  return [];
}

// ---- what stands around ----

const HINT = "Point at a bar to read it, click to choose it, double-click to zoom to it; drag to move. Keys: arrows walk, + and − zoom, a and d move, Enter zooms to the bar, 0 shows all, / searches.";

function Detail(props: { bars: Bars; at: Spot | null; onGo: (s: Spot) => void; onSame: (name: string) => void }) {
  const { bars, at } = props;
  if (!at) return <div class="bardetail"><p><span>{HINT}</span></p></div>;
  const { name, parts } = describe(bars, at);
  const own = nameAt(bars, at);
  return (
    <div class="bardetail">
      <p aria-live="polite">
        <b>{name}</b>
        {parts.map((part) => <span>{part}</span>)}
        {own.full && own.full !== own.text && <span>{shown(own.full, 300)}</span>}
      </p>
      <div class="barlinks">
        {linksOf(bars, at).map(([title, to]) => <button type="button" onClick={() => props.onGo(to)}>{title}</button>)}
        <button type="button" onClick={() => props.onSame(own.full ?? own.text)}>All of this name</button>
      </div>
    </div>
  );
}

function Legend(props: { bars: Bars }) {
  useColours(); /* drawn again when the theme changes */
  const keys = keysOf(props.bars.names, currentTheme() === "dark");
  if (!keys.length) return null;
  return <ul class="flamelegend" aria-label="Colours">{keys.map(([name, css]) => <li><i style={{ background: css }} />{shown(name, 40)}</li>)}</ul>;
}

function Found(props: { bars: Bars; matches: Uint8Array | null }) {
  const sum = useMemo(() => (props.matches ? ofName(props.bars, props.matches) : null), [props.bars, props.matches]);
  if (!sum) return null;
  return <span class="found" role="status">{sum.count ? `${count(sum.count)} bars, ${duration(sum.total)} together` : "no match"}</span>;
}

function stretchIn(bars: Bars, text: string): Stretch {
  const [from, to] = text.split("~").map(Number);
  return Number.isFinite(from) && Number.isFinite(to) && from! < to! ? bound(bars, from!, to!) : whole(bars);
}

/** The longest bars in sight, largest first. */
function gridOfBars(bars: Bars, [from, to]: Stretch): Grid {
  const spots: Spot[] = [];
  for (const lane of bars.order)
    for (let i = 0; i < lane.n; i++) if (lane.start[i]! < to && lane.start[i]! + lane.length[i]! > from) spots.push({ lane, i });
  spots.sort((a, b) => b.lane.length[b.i]! - a.lane.length[a.i]!);
  return {
    columns: [{ title: "name", text: true }, { title: "what", text: true }, { title: "lane", text: true }, { title: "start, ns", format: (v) => duration(v, 7) }, { title: "length, ns", format: (v) => duration(v, 4) }],
    rows: spots.slice(0, TABLE_MOST).map((s) => {
      const n = nameAt(bars, s);
      return [n.text, n.kind, s.lane.label, s.lane.start[s.i]! - bars.from, s.lane.length[s.i]!];
    }),
  };
}

function summaryOf(bars: Bars): string {
  const streams = bars.order.filter((l) => l.kind === "stream");
  const ops = streams.reduce((sum, l) => sum + l.n, 0);
  const gpu = ops ? `${count(ops)} operations on ${count(streams.length)} ${streams.length === 1 ? "lane" : "lanes"} of streams; ` : "";
  return `${gpu}${count(bars.shown)} bars in ${count(bars.order.length)} lanes over ${duration(bars.end - bars.from)}.`;
}

function noteOf(bars: Bars): string {
  const left = bars.seen > bars.shown ? `The trace has ${count(bars.seen)} bars: the ${count(bars.shown)} longest are here. ` : "";
  const tasks = bars.order.some((l) => l.kind === "tasks") ? "A lane of tasks has calls from begin to end, pale, and in them what ran. " : "";
  const dropped = bars.dropped ? `${count(bars.dropped)} events were dropped while recording. ` : "";
  return `${left}${dropped}${tasks}Where bars are thinner than a pixel, a column is as strong as the part of its time that they cover, in the colour of the longest. The table has the ${count(TABLE_MOST)} longest in sight.`;
}

/** All that the figure shows: in the address. */
function useBars(bars: Bars, key: string) {
  const [zoom, setZoom] = useView(`${key}.zoom`);
  const [chosen, setChosen] = useView(`${key}.at`, "-1");
  const [words, setWords] = useView(`${key}.find`);
  const stretch = useMemo(() => stretchIn(bars, zoom), [bars, zoom]);
  const matches = useMemo(() => searchNames(bars.names, words), [bars, words]);
  const all = whole(bars);
  const setStretch = ([from, to]: Stretch) => setZoom(from <= all[0] && to >= all[1] ? "" : `${from.toFixed(1)}~${to.toFixed(1)}`);
  const at = Number(chosen);
  return { stretch, setStretch, words, setWords, matches, at, spot: spotOf(bars, at), setAt: (bar: number) => setChosen(String(bar)) };
}

function Timeline(props: { bars: Bars; id: string }) {
  const { bars } = props;
  const v = useBars(bars, props.id);
  const go = (s: Spot) => {
    v.setAt(barOf(s));
    const [from, to] = v.stretch;
    const outside = s.lane.start[s.i]! < from || s.lane.start[s.i]! > to;
    if (outside || s.lane.length[s.i]! < (to - from) / 500) v.setStretch(stretchOfBoth(bars, s, v.spot));
  };
  const match = (back: boolean) => {
    const next = v.matches ? nextMatch(bars, v.matches, v.at, back) : -1;
    if (next >= 0) v.setAt(next);
  };
  const keys: Record<string, () => void> = { "/": () => document.getElementById("bars-search")?.focus(), n: () => match(false), N: () => match(true) };
  const onKey = (key: string) => {
    keys[key]?.();
    return key in keys;
  };
  const onSearchKey = (e: KeyboardEvent) => {
    if (e.key === "Enter") match(e.shiftKey);
    if (e.key === "Escape") v.setWords("");
  };
  return (
    <Figure id="bars" title={bars.gpu ? "Kernels, copies and calls over time" : "Scopes over time"} summary={summaryOf(bars)} grid={() => gridOfBars(bars, v.stretch)} note={noteOf(bars)}>
      <div class="flamebar">
        <input id="bars-search" type="search" placeholder="Search names" aria-label="Search names of bars" value={v.words} maxLength={200} spellcheck={false}
          onInput={(e) => v.setWords(e.currentTarget.value)} onKeyDown={onSearchKey} />
        <Found bars={bars} matches={v.matches} />
        {v.matches && <button type="button" onClick={() => match(true)}>Previous</button>}
        {v.matches && <button type="button" onClick={() => match(false)}>Next</button>}
      </div>
      <BarsCanvas bars={bars} stretch={v.stretch} onStretch={v.setStretch} at={v.at} onAt={v.setAt} matches={v.matches} tip={(s) => describe(bars, s)} onKey={onKey}
        label={`Timeline. ${summaryOf(bars)} ${HINT}`} />
      <Legend bars={bars} />
      <Detail bars={bars} at={v.spot} onGo={go} onSame={(name) => v.setWords(`=${name}`)} />
    </Figure>
  );
}

/** A stretch that shows a bar and the one it was reached from. */
function stretchOfBoth(bars: Bars, s: Spot, from: Spot | null): Stretch {
  if (!from) return stretchTo(bars, s);
  const starts = [s, from].map((x) => x.lane.start[x.i]!);
  const ends = [s, from].map((x) => x.lane.start[x.i]! + x.lane.length[x.i]!);
  const [lo, hi] = [Math.min(...starts), Math.max(...ends)];
  return bound(bars, lo - (hi - lo) * 0.2, hi + (hi - lo) * 0.2);
}

function BarsSection(props: SectionProps) {
  const doc = documentOf(props.item)!;
  const bars = useMemo(() => barsOf(doc), [doc]);
  if (typeof bars === "string") return <Empty>This timeline cannot be shown: {shown(bars)}.</Empty>;
  if (!bars.order.length) return <Empty>Nothing of this trace has times.</Empty>;
  return <Timeline bars={bars} id={keyOf(props.page, props.item)} />;
}

export const bars: Section = { id: "bars", title: "Timeline", applies: (item: Item) => documentOf(item) !== null, Component: BarsSection };
