// SPDX-License-Identifier: MIT
// flame.tsx - a profile as an icicle, a flame graph, or one function between its callers and callees; against a base, what
// became more and what less. Search, threads and the part in sight are in the address.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Found, plainName, ranked, searchTree, withoutWaiting } from "../data/calltree";
import { nextMatch, zoomTo } from "../data/flame";
import { cssOf, DIFF_STEPS, diffStep, diffTone, frameTone, inkOf, moduleTone, quietTone, softInkOf } from "../data/flamecolour";
import { changeText, costText, detailOf, type Graph, graphOf, greatest, gridOfGraph, headOf, nameText, placeText, titleOf, unitWord } from "../data/flamegraph";
import type { Grid } from "../data/grid";
import type { Item } from "../data/page";
import { type CallTree, type Profile, ProfileError, readProfile } from "../data/profile";
import type { Section, SectionProps } from "../sections";
import { Empty } from "../ui/Facts";
import { Figure } from "../ui/Figure";
import { FlameCanvas, type Range, WHOLE } from "../ui/FlameCanvas";
import { FlameDetail } from "../ui/FlameDetail";
import { canvasOfPicture, flamePicture, type Look, type Pane, type Picture, sandwichPicture, svgOfPicture } from "../ui/flamepaint";
import { FlameSandwich } from "../ui/FlameSandwich";
import { count, isKnown, percent, shown } from "../ui/format";
import { useView } from "../ui/hash";
import { currentTheme, readColours, useColours } from "../ui/theme";
import { Tiles } from "../ui/Tiles";
import { type ShowTip, TipLayer } from "../ui/Tip";

const VIEWS: [string, string][] = [["icicle", "Icicle"], ["flame", "Flame"], ["sandwich", "Sandwich"]];
const ROWS = 30;
const LEGEND = 8;

// ---- how frames look ----

function fillOf(g: Graph, tree: CallTree, found: Found | null, dark: boolean): (node: number) => string {
  const quiet = cssOf(quietTone(dark));
  const cache = new Map<number, string>();
  const plain = (frame: number) => {
    let css = cache.get(frame);
    if (!css) cache.set(frame, (css = cssOf(frameTone(g.modules, g.profile.frames, frame, dark))));
    return css;
  };
  const diff = tree === g.tree ? g.diff : null;
  const tones = Array.from({ length: 2 * DIFF_STEPS + 1 }, (_, i) => cssOf(diffTone(i - DIFF_STEPS, dark)));
  return (node) => {
    const frame = tree.frame[node]!;
    if (found && !found.frame[frame]) return quiet;
    return diff ? tones[diffStep(tree.total[node]!, diff.baseTotal[node]!, tree.error[node]!) + DIFF_STEPS]! : plain(frame);
  };
}

function lookOf(g: Graph, tree: CallTree, found: Found | null, dark: boolean): Look {
  const diff = tree === g.tree ? g.diff : null;
  return {
    fill: fillOf(g, tree, found, dark),
    name: (node) => nameText(g.profile, tree.frame[node]!),
    value: (node) => (diff ? changeText(tree.total[node]!, diff.baseTotal[node]!, tree.error[node]!) : costText(g.profile.unit, tree.total[node]!)),
    quiet: (node) => !!found && !found.frame[tree.frame[node]!],
    ink: inkOf(dark),
    soft: softInkOf(dark),
  };
}

// ---- what stands around the picture ----

function ModuleLegend(props: { graph: Graph; dark: boolean }) {
  const { graph: g, dark } = props;
  const named = g.modules.list.filter((m) => m.hue >= 0 && m.self > 0).slice(0, LEGEND);
  if (named.length < 2) return null;
  return (
    <ul class="flamelegend" aria-label={`Colours: files by their own ${unitWord(g.profile.unit)}`}>
      <li class="of">own {unitWord(g.profile.unit)} by file</li>
      {named.map((m) => <li><i style={{ background: cssOf(moduleTone(m.hue, dark)) }} />{shown(m.name, 40)} <span>{percent(m.self / g.selfWhole, 2)}</span></li>)}
    </ul>
  );
}

function DiffLegend(props: { dark: boolean }) {
  const steps = Array.from({ length: 2 * DIFF_STEPS + 1 }, (_, i) => i - DIFF_STEPS);
  return (
    <ul class="flamelegend" aria-label="Colours: difference from the base">
      <li>gone or less</li>
      {steps.map((s) => <li class="step"><i style={{ background: cssOf(diffTone(s, props.dark)) }} /></li>)}
      <li>more or new</li>
    </ul>
  );
}

function FoundText(props: { found: Found | null }) {
  const f = props.found;
  if (!f) return null;
  const part = isKnown(f.share) ? `, ${percent(f.share)} of the whole` : "";
  return <span class="found" role="status">{f.paths ? `${count(f.functions)} ${f.functions === 1 ? "function" : "functions"}, ${count(f.paths)} ${f.paths === 1 ? "path" : "paths"}${part}` : "no match"}</span>;
}

interface Controls {
  id: string;
  profile: Profile;
  words: string;
  setWords: (v: string) => void;
  found: Found | null;
  onMatch: (back: boolean) => void;
  thread: string;
  setThread: (v: string) => void;
  by: string;
  setBy: (v: string) => void;
  /** Is there anything that waits? */
  waiting: boolean;
  hide: boolean;
  setHide: (hide: boolean) => void;
  zoomed: boolean;
  onAll: () => void;
}

function Bar(p: Controls) {
  const { threads, base } = p.profile;
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key === "Enter") p.onMatch(e.shiftKey);
    if (e.key === "Escape") p.setWords("");
  };
  return (
    <div class="flamebar">
      <input id={`${p.id}-search`} type="search" placeholder="Search functions and files" aria-label="Search functions and files" value={p.words} maxLength={200} spellcheck={false}
        onInput={(e) => p.setWords(e.currentTarget.value)} onKeyDown={onKeyDown} />
      <FoundText found={p.found} />
      {p.found && p.found.paths > 1 && <button type="button" onClick={() => p.onMatch(true)}>Previous</button>}
      {p.found && p.found.paths > 0 && <button type="button" onClick={() => p.onMatch(false)}>Next</button>}
      <span class="gap" />
      {p.waiting && <button type="button" aria-pressed={p.hide} onClick={() => p.setHide(!p.hide)}>{p.hide ? "Show waiting" : "Hide waiting"}</button>}
      {threads.length > 1 && (
        <label>Thread <select value={p.thread} onChange={(e) => p.setThread(e.currentTarget.value)}>
          <option value="">all together</option>
          {threads.map((t, i) => <option value={String(i)}>{shown(t.name, 60)}</option>)}
        </select></label>
      )}
      {base && (
        <label>Compare <select value={p.by} onChange={(e) => p.setBy(e.currentTarget.value)}>
          <option value="">{unitWord(p.profile.unit)}</option>
          <option value="share">share of the whole</option>
        </select></label>
      )}
      {p.zoomed && <button type="button" onClick={p.onAll}>Show all</button>}
    </div>
  );
}

// ---- state ----

function rangeIn(text: string): Range {
  const [from, to] = text.split("~").map(Number);
  return isKnown(from) && isKnown(to) && from >= 0 && to <= 1 && from < to ? [from, to] : WHOLE;
}
const rangeText = (r: Range): string => (r[0] <= 0 && r[1] >= 1 ? "" : `${+r[0].toPrecision(12)}~${+r[1].toPrecision(12)}`);

/** What is shown, in the address; the range is followed at once and written a moment later. */
function useRange(key: string): [Range, (r: Range) => void] {
  const [text, setText] = useView(key);
  const [range, setRange] = useState<Range>(() => rangeIn(text));
  const timer = useRef(0);
  useEffect(() => setRange(rangeIn(text)), [text]);
  const set = (r: Range) => {
    setRange(r);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setText(rangeText(r)), 120);
  };
  return [range, set];
}

/** The function that was chosen, else the costliest one of those that were searched for. */
function frameIn(text: string, g: Graph, found: Found | null): number {
  const f = Number(text);
  const { flat } = g.functions();
  if (text !== "" && Number.isInteger(f) && f >= 0 && f < flat.paths.length && flat.paths[f]! > 0) return f;
  const all = ranked(flat, flat.self);
  return all.find((frame) => found?.frame[frame]) ?? all[0] ?? -1;
}

const HINT = "Point at a frame to read it, click to zoom. Keys: arrows walk, Enter zooms, / searches, s shows callers and callees, 0 shows all.";

interface GraphProps {
  graph: Graph;
  look: Look;
  view: string;
  id: string;
  range: Range;
  onRange: (r: Range) => void;
  at: number;
  onAt: (node: number) => void;
  onMatch: (back: boolean) => void;
  onSandwich: (frame: number) => void;
  pane: { current: Pane | null };
}

function Whole(p: GraphProps) {
  const { graph: g } = p;
  const show = useRef<ShowTip | null>(null);
  const wordsOf = (node: number) => ({ name: nameText(g.profile, g.tree.frame[node]!), parts: detailOf(g, g.tree, node) });
  const chosen = p.at >= 0 ? wordsOf(p.at) : { name: "", parts: [] };
  const keys: Record<string, () => void> = {
    "/": () => document.getElementById(`${p.id}-search`)?.focus(),
    n: () => p.onMatch(false),
    N: () => p.onMatch(true),
    s: () => p.at >= 0 && p.onSandwich(g.tree.frame[p.at]!),
  };
  const onKey = (key: string) => {
    keys[key]?.();
    return key in keys;
  };
  const act = p.at >= 0 ? { title: "Callers and callees", act: () => p.onSandwich(g.tree.frame[p.at]!) } : null;
  return (
    <>
      <FlameDetail {...chosen} hint={HINT} spoken={p.at >= 0} action={act} />
      <TipLayer show={show} />
      <FlameCanvas tree={g.tree} layout={g.layout} look={p.look} flame={p.view === "flame"} range={p.range} onRange={p.onRange} at={p.at} onAt={p.onAt} onOver={(node, at) => show.current?.(node >= 0 ? wordsOf(node) : null, at)} onKey={onKey}
        rows={ROWS} label={`${p.view === "flame" ? "Flame graph" : "Icicle"}. ${g.summary()} ${HINT}`} pane={p.pane} />
    </>
  );
}

const TOP = 20;

/** The costliest functions by themselves, beside the picture; one that is clicked on is searched for. */
function TopSelf(props: { graph: Graph; words: string; setWords: (v: string) => void }) {
  const { graph: g } = props;
  const top = useMemo(() => greatest(g.self, TOP), [g]);
  if (!top.length) return null;
  return (
    <div class="functions topself">
      <h4>Most {unitWord(g.profile.unit)} of their own</h4>
      <ul>
        {top.map((f) => {
          const name = g.profile.frames.name[f]!.slice(0, 200);
          const self = g.self[f]!;
          return (
            <li>
              <button type="button" title={`${nameText(g.profile, f)} ${placeText(g.profile, f)}`} aria-pressed={props.words === name} onClick={() => props.setWords(props.words === name ? "" : name)}>
                <span class="fn">{shown(plainName(name), 80)}</span>
                <span class="cost">{costText(g.profile.unit, self)} · {percent(self / g.selfWhole, 2)}</span>
                <i style={{ width: `${(100 * self) / g.self[top[0]!]!}%` }} />
              </button>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function Views(props: { view: string; onView: (v: string) => void }) {
  return <>{VIEWS.map(([id, title]) => <button type="button" aria-pressed={props.view === id} onClick={() => props.onView(id)}>{title}</button>)}<span class="bar" aria-hidden="true" /></>;
}

/** Made once, when somebody asks. */
function useGrid(g: Graph): () => Grid {
  const kept = useRef<{ of: Graph; grid: Grid } | null>(null);
  return () => {
    if (kept.current?.of !== g) kept.current = { of: g, grid: gridOfGraph(g) };
    return kept.current.grid;
  };
}

function Notes(props: { graph: Graph; view: string; hide: boolean }) {
  const { profile: p, diff } = props.graph;
  const sandwich = diff && props.view === "sandwich" ? "Callers and callees are those of the new side." : "";
  const widths = diff ? "A frame is as wide as the larger of its two sides; functions are matched by name and file. Each side was recorded once, so a difference may be chance: compare runs with tare compare to know." : "";
  const busy = props.hide ? "Calls in which threads waited (for a lock, the clock, a socket, a process) are left out, and their time in those that called them." : "";
  return <>{[busy, ...p.notes.slice(0, 6).map((n) => shown(n)), widths, sandwich].filter(Boolean).join(" ")}</>;
}

/** All that the figure shows and how to change it: in the address, but for the frame with the keyboard. */
function useFlame(profile: Profile, id: string) {
  useColours(); /* drawn again when the theme changes */
  const dark = currentTheme() === "dark";
  const [view, setView] = useView(`${id}.view`, "icicle");
  const [words, setWords] = useView(`${id}.find`);
  const [thread, setThread] = useView(`${id}.thread`);
  const [by, setBy] = useView(`${id}.by`);
  const [chosen, setChosen] = useView(`${id}.fn`);
  const [range, setRange] = useRange(`${id}.zoom`);
  const [at, setAt] = useState(-1);
  const [hideText, setHideText] = useView(`${id}.busy`);
  const hide = hideText === "1";
  const waiting = useMemo(() => withoutWaiting(profile.tree, profile.frames) !== null, [profile]);
  const graph = useMemo(() => graphOf(profile, thread === "" ? -1 : Number(thread), by === "share", hide), [profile, thread, by, hide]);
  const found = useMemo(() => searchTree(graph.tree, profile.frames, words), [graph, words]);
  const look = useMemo(() => lookOf(graph, graph.tree, found, dark), [graph, found, dark]);
  return { view, setView, waiting, hide, setHideText, words, setWords, thread, setThread, by, setBy, chosen, setChosen, range, setRange, at, setAt, graph, found, look, dark };
}

/** What is in sight, for files: of a sandwich both halves, of which `upper` are the callers. */
function usePicture(graph: Graph, view: string, chosen: string, found: Found | null) {
  const upper = useRef<Pane | null>(null);
  const lower = useRef<Pane | null>(null);
  const middle = () => nameText(graph.profile, frameIn(chosen, graph, found));
  const picture = (): Picture => {
    const { paper } = readColours();
    return view === "sandwich" ? sandwichPicture(upper.current!, lower.current!, middle(), paper) : flamePicture(upper.current!, paper);
  };
  const svg = () => svgOfPicture(picture(), view === "sandwich" ? `${titleOf(graph.profile)}: callers and callees of ${middle()}` : titleOf(graph.profile));
  return { upper, lower, svg, canvas: () => canvasOfPicture(picture()) };
}

function FlameGraph(props: { profile: Profile; id: string }) {
  const { profile, id } = props;
  const f = useFlame(profile, id);
  const { graph, found, view } = f;
  const { upper, lower, svg, canvas } = usePicture(graph, view, f.chosen, found);
  const grid = useGrid(graph);
  const anew = (set: (v: string) => void) => (v: string) => {
    f.setAt(-1);
    f.setRange(WHOLE);
    set(v);
  };
  const match = (back: boolean) => {
    const next = found ? nextMatch(graph.tree, graph.layout, found.frame, f.at, back) : -1;
    if (next < 0) return;
    f.setAt(next);
    const [x0, x1] = zoomTo(graph.layout, next);
    if (x0 >= f.range[1] || x1 <= f.range[0]) f.setRange(WHOLE);
  };
  const sandwich = (frame: number) => {
    f.setChosen(String(frame));
    f.setView("sandwich");
  };
  return (
    <Figure id={id} title={titleOf(profile)} summary={graph.summary()} grid={grid} svg={svg} canvas={view === "sandwich" ? canvas : undefined} tools={<Views view={view} onView={f.setView} />} note={<Notes graph={graph} view={view} hide={f.hide && f.waiting} />}>
      <Bar id={id} profile={profile} words={f.words} setWords={f.setWords} found={found} onMatch={match} thread={f.thread} setThread={anew(f.setThread)} by={f.by} setBy={anew(f.setBy)} waiting={f.waiting} hide={f.hide} setHide={(hide) => anew(f.setHideText)(hide ? "1" : "")}
        zoomed={rangeText(f.range) !== "" && view !== "sandwich"} onAll={() => f.setRange(WHOLE)} />
      {view === "sandwich" ? (
        <FlameSandwich graph={graph} found={found} frame={frameIn(f.chosen, graph, found)} onFrame={(frame) => f.setChosen(String(frame))} lookOf={(tree) => lookOf(graph, tree, found, f.dark)}
          callers={upper} callees={lower} />
      ) : (
        <div class="beside">
          <div>
            <Whole graph={graph} look={f.look} view={view} id={id} range={f.range} onRange={f.setRange} at={f.at} onAt={f.setAt} onMatch={match} onSandwich={sandwich} pane={upper} />
            {graph.diff ? <DiffLegend dark={f.dark} /> : <ModuleLegend graph={graph} dark={f.dark} />}
          </div>
          <TopSelf graph={graph} words={f.words} setWords={f.setWords} />
        </div>
      )}
      {view === "sandwich" && <ModuleLegend graph={graph} dark={f.dark} />}
    </Figure>
  );
}

function read(document: unknown): Profile | string {
  try {
    return readProfile(document);
  } catch (e) {
    if (e instanceof ProfileError) return e.message;
    throw e;
  }
}

function FlameSection(props: SectionProps) {
  const profile = useMemo(() => read(props.item.document), [props.item]);
  if (typeof profile === "string") return <Empty>This profile cannot be shown: {shown(profile)}.</Empty>;
  if (!profile.tree.n) return <Empty>This profile holds no frame: nothing was recorded, or nothing took long enough to be seen.</Empty>;
  const place = props.page.items.indexOf(props.item);
  return (
    <>
      <Tiles tiles={headOf(profile)} />
      <FlameGraph profile={profile} id={place > 0 ? `flame${place}` : "flame"} />
    </>
  );
}

export const flame: Section = { id: "flame", title: "Flame graph", applies: (item: Item) => item.kind === "profile", Component: FlameSection };
