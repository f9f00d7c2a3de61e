// SPDX-License-Identifier: MIT
// model.tsx - the graph of a model: its nodes and who reads from whom, stronger the more a node costs, with repeated blocks
// folded into one. What is unfolded, searched for and coloured by is in the address.
import { useMemo, useRef, useState } from "preact/hooks";
import type { Grid } from "../data/grid";
import { layoutGraph, type Placed } from "../data/graphlayout";
import { allKeys, blockTitles, foldKey, folded, type GraphNode, type GraphSource, graphSource, type GraphWeight, graphWeights, type ModelGraph } from "../data/modelgraph";
import type { Case, Item, Layer, RunDocument } from "../data/page";
import type { Section, SectionProps } from "../sections";
import { Figure } from "../ui/Figure";
import { FlameDetail } from "../ui/FlameDetail";
import { bytes, count, duration, type Format, isKnown, percent, shown, si } from "../ui/format";
import { type GraphActs, GraphCanvas } from "../ui/GraphCanvas";
import { drawGraph, type GraphLook, nodeWords, PAD } from "../ui/graphpaint";
import { useView } from "../ui/hash";
import { SvgPen } from "../ui/pen";
import { Pick, useCase, usePick } from "../ui/Pick";
import { useColours } from "../ui/theme";
import { Tip, type TipAt } from "../ui/Tip";

/** `word`: behind the number, where its unit does not tell it. */
const WEIGHTS: Record<GraphWeight, { name: string; word: string; format: Format }> = {
  time_ns: { name: "time", word: " of time", format: (v) => duration(v) },
  macs: { name: "multiply-accumulates", word: "", format: (v) => si(v, "MAC") },
  flops: { name: "operations", word: "", format: (v) => si(v, "FLOP") },
  bytes: { name: "bytes read and written", word: " read and written", format: bytes },
  parameters: { name: "parameters", word: " parameters", format: (v) => si(v) },
};
const ALL = "all";
const READS_SHOWN = 4;

// ---- words ----

const sum = (layers: Layer[], key: GraphWeight): number | null => {
  const known = layers.map((l) => l[key]).filter(isKnown);
  return known.length ? known.reduce((a, b) => a + b, 0) : null;
};

/** All costs of a node, what it reads and makes. */
function partsOf(source: GraphSource, n: GraphNode, whole: Map<GraphWeight, number>): string[] {
  const layers = n.layers.map((p) => source.layers[p]!);
  const costs = [...whole].flatMap(([w, all]) => {
    const v = sum(layers, w);
    return v ? [`${WEIGHTS[w].format(v)}${WEIGHTS[w].word}${all > 0 ? ` (${percent(v / all)})` : ""}`] : [];
  });
  if (n.kind !== "layer") return [nodeWords(n)[1], ...costs];
  const only = layers[0]!;
  const reads = source.edges.filter(([, to]) => to === n.layers[0]).map(([from]) => source.layers[from]!.output);
  const known = reads.filter((r): r is string => !!r);
  const ins = known.length ? [`reads ${known.slice(0, READS_SHOWN).map((r) => shown(r, 60)).join(", ")}${known.length > READS_SHOWN ? ", \u2026" : ""}`] : [];
  const made = only.output ? [`makes ${shown(only.output, 60)}`] : [];
  return [...(only.op ? [shown(only.op, 60)] : []), ...ins, ...made, ...costs];
}

const titleOf = (n: GraphNode): string => (n.kind === "layer" ? shown(n.name, 160) : nodeWords(n)[0]);

function summaryOf(source: GraphSource, g: ModelGraph, weight: GraphWeight | null, whole: number): string {
  const folds = g.nodes.filter((n) => n.kind === "repeat").map((n) => nodeWords(n)[0]);
  const drawn = g.nodes.length === source.order.length ? "" : ` Drawn as ${count(g.nodes.length)}${folds.length ? `: ${folds.slice(0, 4).join(", ")}${folds.length > 4 ? ", .." : ""}` : ""}.`;
  const heavy = [...g.nodes].filter((n) => n.value).sort((a, b) => b.value! - a.value!).slice(0, 3);
  const most = weight && heavy.length ? ` Most ${WEIGHTS[weight].name}: ${heavy.map((n) => `${titleOf(n)} ${percent(n.value! / whole)}`).join(", ")}.` : "";
  return `${count(source.order.length)} ${source.order.length === 1 ? "node" : "nodes"}, ${count(source.edges.length)} edges.${drawn}${most}`;
}

/** Every layer with what it reads: the graph for those who read tables. */
function gridOf(source: GraphSource): Grid {
  const reads = new Map<number, string[]>();
  for (const [from, to] of source.edges) reads.set(to, [...(reads.get(to) ?? []), source.layers[from]!.name]);
  const weights = graphWeights(source.layers);
  return {
    columns: [
      { title: "node", text: true },
      { title: "operator", text: true },
      { title: "reads", text: true },
      { title: "makes", text: true },
      ...weights.map((w) => ({ title: WEIGHTS[w].name, format: WEIGHTS[w].format })),
    ],
    rows: source.order.map((p) => {
      const l = source.layers[p]!;
      return [l.name, l.op ?? null, (reads.get(p) ?? []).join(", "), l.output ?? null, ...weights.map((w) => l[w] ?? null)];
    }),
  };
}

// ---- what is unfolded and found ----

function useOpen(id: string, source: GraphSource) {
  const [text, setText] = useView(`${id}.open`);
  const all = useMemo(() => allKeys(source), [source]);
  const open = useMemo(() => new Set(text === ALL ? all : text.split(".").filter((k) => all.includes(k))), [text, all]);
  const set = (keys: Set<string>) => setText(keys.size === all.length ? ALL : [...keys].join("."));
  const toggle = (key: string) => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    set(next);
  };
  return { open, toggle, any: all.length > 0, isAll: open.size === all.length, setAll: (yes: boolean) => set(new Set(yes ? all : [])) };
}

function foundIn(source: GraphSource, g: ModelGraph, words: string): { nodes: Set<number>; layers: number } | null {
  const want = words.trim().toLowerCase();
  if (!want) return null;
  const hit = (p: number) => `${source.layers[p]!.name} ${source.layers[p]!.op ?? ""}`.toLowerCase().includes(want);
  const layers = source.order.filter(hit).length;
  return { layers, nodes: new Set(g.nodes.flatMap((n, i) => (n.layers.some(hit) ? [i] : []))) };
}

// ---- the picture ----

const FOLDS = " A click unfolds a block; one on the name above its frame folds it.";
const HINT = "Point at a node to read it; drag to move.";
const KEYS = "Keys: arrows walk, Enter unfolds, f folds, / searches, + and \u2212 zoom, 0 shows all.";

interface BarProps {
  id: string;
  words: string;
  onWords: (v: string) => void;
  found: { nodes: Set<number>; layers: number } | null;
  onNext: (back: boolean) => void;
  fold: ReturnType<typeof useOpen>;
  acts: { current: GraphActs | null };
}

function GraphBar(p: BarProps) {
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key === "Enter") p.onNext(e.shiftKey);
    if (e.key === "Escape") p.onWords("");
  };
  return (
    <div class="flamebar">
      <input id={`${p.id}-search`} type="search" placeholder="Search nodes and operators" aria-label="Search nodes and operators" value={p.words} maxLength={200} spellcheck={false} onInput={(e) => p.onWords(e.currentTarget.value)} onKeyDown={onKeyDown} />
      {p.found && <span class="found" role="status">{p.found.layers ? `${count(p.found.layers)} ${p.found.layers === 1 ? "node" : "nodes"}` : "no match"}</span>}
      {p.found && p.found.nodes.size > 0 && <button type="button" onClick={() => p.onNext(false)}>Next</button>}
      <span class="gap" />
      {p.fold.any && <button type="button" aria-pressed={p.fold.isAll} onClick={() => p.fold.setAll(!p.fold.isAll)}>{p.fold.isAll ? "Fold all" : "Unfold all"}</button>}
      <button type="button" aria-label="Zoom out" onClick={() => p.acts.current?.zoom(1 / 1.4)}>−</button>
      <button type="button" aria-label="Zoom in" onClick={() => p.acts.current?.zoom(1.4)}>+</button>
      <button type="button" onClick={() => p.acts.current?.whole()}>Show all</button>
    </div>
  );
}

function svgOf(g: ModelGraph, placed: Placed, look: GraphLook, title: string): string {
  const pen = new SvgPen(Math.ceil(placed.width + 2 * PAD), Math.ceil(placed.height + 2 * PAD), look.colours.paper, PAD);
  drawGraph(pen, g, placed, look, null, 1);
  return pen.finish(title);
}

function Graph(props: { id: string; source: GraphSource; title: string }) {
  const { id, source } = props;
  const colours = useColours();
  const weights = graphWeights(source.layers);
  const [by, setBy] = usePick(`${id}.by`, weights.map((w) => ({ value: w, name: WEIGHTS[w].name })), weights[0] ?? "");
  const weight = weights.length ? (by as GraphWeight) : null;
  const fold = useOpen(id, source);
  const [words, setWords] = useView(`${id}.find`);
  const [key, setKey] = useView(`${id}.node`);
  const [over, setOver] = useState<[number, TipAt | null]>([-1, null]);
  const acts = useRef<GraphActs | null>(null);
  const whole = useMemo(() => new Map(weights.map((w): [GraphWeight, number] => [w, sum(source.layers, w) ?? 0])), [source]);
  const graph = useMemo(() => folded(source, fold.open, weight), [source, fold.open, weight]);
  const placed = useMemo(() => layoutGraph(graph.nodes.length, graph.edges), [source, fold.open]);
  const found = useMemo(() => foundIn(source, graph, words), [graph, words]);
  const all = weight ? whole.get(weight)! : 0;
  const look: GraphLook = { colours, whole: all, found: found?.nodes ?? null, titles: useMemo(() => blockTitles(source), [source]) };
  const at = graph.nodes.findIndex((n) => n.key === key);
  const setAt = (node: number) => setKey(graph.nodes[node]?.key ?? "");
  const turn = (to: string, select: string) => {
    setOver([-1, null]);
    fold.toggle(to);
    setKey(select);
  };
  const unfold = (node: number) => {
    const n = graph.nodes[node]!;
    if (n.kind !== "layer") turn(n.key, `${n.kind === "repeat" ? "b" : "n"}${n.layers[0]}`);
  };
  const foldOf = (n: GraphNode | undefined) => (n ? foldKey(source, n, fold.open) : null);
  const next = (back: boolean) => {
    const list = placed.rows.flat().filter((n) => found?.nodes.has(n));
    const i = list.indexOf(at);
    if (list.length) setAt(list[(i + (back ? list.length - 1 : 1) + (i < 0 && back ? 1 : 0)) % list.length]!);
  };
  const foldIt = () => {
    const to = foldOf(graph.nodes[at]);
    if (to) turn(to, to);
  };
  const onKey = (k: string) => {
    if (k === "/") document.getElementById(`${id}-search`)?.focus();
    else if (k === "n" || k === "N") next(k === "N");
    else if (k === "f") foldIt();
    else return false;
    return true;
  };
  const node = graph.nodes[at];
  const tip = graph.nodes[over[0]];
  return (
    <Figure
      id={id}
      title={props.title}
      summary={summaryOf(source, graph, weight, all)}
      grid={() => gridOf(source)}
      svg={() => svgOf(graph, placed, look, props.title)}
      tools={<Pick label="Coloured by" choices={weights.map((w) => ({ value: w, name: WEIGHTS[w].name }))} value={by} onPick={setBy} />}
    >
      <GraphBar id={id} words={words} onWords={setWords} found={found} onNext={next} fold={fold} acts={acts} />
      <FlameDetail name={node ? titleOf(node) : ""} parts={node ? partsOf(source, node, whole) : []} hint={`${HINT}${fold.any ? FOLDS : ""} ${KEYS}`} spoken={over[0] < 0 && !!node}
        action={foldOf(node) ? { title: node!.kind === "layer" ? "Fold its block" : "Fold the repeats", act: foldIt } : null} />
      <GraphCanvas graph={graph} placed={placed} look={look} at={at} onAt={setAt} over={over[0]} onOver={(n, where) => setOver([n, where])} onUnfold={unfold} onFold={(k) => turn(k, k)} onKey={onKey} acts={acts}
        label={`${props.title}. ${summaryOf(source, graph, weight, all)} ${KEYS}`} />
      <Tip at={over[1]} name={tip ? titleOf(tip) : ""} parts={tip ? partsOf(source, tip, whole) : []} />
    </Figure>
  );
}

function ModelSection(props: SectionProps) {
  const run = props.item.document as RunDocument;
  const cases = useMemo(() => (run.cases ?? []).filter(hasGraph), [run]);
  const [c, pick] = useCase("model.case", cases);
  const source = useMemo(() => graphSource(c)!, [c]);
  return (
    <>
      <div class="picks">{pick}</div>
      <Graph key={c.name} id="model" source={source} title={source.layers.some((l) => isKnown(l.time_ns)) ? "The graph as it ran" : "The graph as the file has it"} />
    </>
  );
}

const hasGraph = (c: Case): boolean => graphSource(c) !== null;

export const model: Section = {
  id: "model",
  title: "Model graph",
  applies: (item: Item) => item.kind === "run" && (item.document.cases ?? []).some(hasGraph),
  Component: ModelSection,
};
