// SPDX-License-Identifier: MIT
// modelgraph.ts - the graph of a model as a reader wants it: layers, joined by who reads from whom, with the blocks that
// repeat folded into one node. Pure.
import { isKnown } from "../ui/format";
import { foldedName } from "./layers";
import type { Case, Layer } from "./page";

export type GraphWeight = "time_ns" | "macs" | "flops" | "bytes" | "parameters";

/** A layer, a block of layers, or several blocks that are alike. */
export interface GraphNode {
  /** Stable for a document: what the address keeps of what is unfolded. */
  key: string;
  kind: "layer" | "block" | "repeat";
  name: string;
  op: string;
  /** Of a layer: type and shape of what it makes. */
  makes: string | null;
  /** Places in the case's layers. */
  layers: number[];
  /** Blocks that it stands for; 1 of all but repeats. */
  times: number;
  /** Sum over its layers; null: not known of any. */
  value: number | null;
  /** The unfolded block whose layer it is. */
  within: string | null;
}

export interface ModelGraph {
  nodes: GraphNode[];
  /** Places in `nodes`. */
  edges: [number, number][];
}

interface Block {
  key: string;
  name: string;
  layers: number[];
  signature: string;
}

interface Repeat {
  key: string;
  name: string;
  blocks: Block[];
}

export interface GraphSource {
  layers: Layer[];
  /** The layers that stand in the graph, makers before readers. */
  order: number[];
  edges: [number, number][];
  /** Runs of blocks; a run of one is a block without repeats. */
  repeats: Repeat[];
}

// ---- edges and order ----

/** Edges whose ends are there; a document may come from anywhere. */
function edgesOf(c: Case): [number, number][] {
  const n = c.layers?.length ?? 0;
  const { from, to } = c.graph ?? {};
  if (!Array.isArray(from) || !Array.isArray(to)) return [];
  const good = (v: unknown): v is number => typeof v === "number" && Number.isInteger(v) && v >= 0 && v < n;
  return from.slice(0, to.length).flatMap((f, k): [number, number][] => (good(f) && good(to[k]) && f !== to[k] ? [[f, to[k]!]] : []));
}

/** For each of n places the other ends of its edges. */
export function neighbours(n: number, edges: readonly (readonly [number, number])[], out: boolean): number[][] {
  const lists: number[][] = Array.from({ length: n }, () => []);
  for (const [from, to] of edges) lists[out ? from : to]!.push(out ? to : from);
  return lists;
}

/** Makers before readers; where the list is in such an order, that one. A circle, which no model has, is cut. */
export function topological(n: number, edges: [number, number][]): number[] {
  const all = Array.from({ length: n }, (_, i) => i);
  if (edges.every(([from, to]) => from < to)) return all;
  const makers = neighbours(n, edges, false);
  const readers = neighbours(n, edges, true);
  const state = new Uint8Array(n); // 1: on the way, 2: done
  const order: number[] = [];
  const visit = (root: number) => {
    const stack: [number, number][] = [[root, 0]];
    state[root] = 1;
    while (stack.length) {
      const top = stack[stack.length - 1]!;
      const next = makers[top[0]]![top[1]++];
      if (next === undefined) {
        state[top[0]] = 2;
        order.push(top[0]);
        stack.pop();
      } else if (!state[next]) {
        state[next] = 1;
        stack.push([next, 0]);
      }
    }
  };
  for (const i of all) if (!state[i] && !readers[i]!.length) visit(i);
  for (const i of all) if (!state[i]) visit(i);
  return order;
}

// ---- blocks by names: "/encoder/layer.3/attention/query/MatMul" is of the block "encoder/layer.3" ----

const LEAST_BLOCK = 3; // layers
const NUMBERED = /(^|[._-])\d+$|^[a-z_]+\d+\.\d+$/i;

/** The path to the outermost part with a number of its own; "": there is none. */
export function blockName(name: string): string {
  const bare = name.replace(/^\//, "");
  const parts = bare.split(bare.includes("/") ? "/" : ".").slice(0, -1);
  const at = parts.findIndex((p) => NUMBERED.test(p));
  if (at < 0) return "";
  return parts.slice(0, at + 1).join(bare.includes("/") ? "/" : ".");
}

/** What its layers are, whatever they are called: alike blocks have the same. */
function signatureOf(layers: Layer[], places: number[], block: string): string {
  const of = places.map((p) => {
    const l = layers[p]!;
    const name = l.name.replace(/^\//, "");
    const inner = name.startsWith(block) ? name.slice(block.length) : foldedName(name);
    return `${inner}|${l.op ?? ""}|${l.output ?? ""}`;
  });
  return of.sort().join("\n");
}

function namedBlocks(layers: Layer[], order: number[]): Block[] {
  const groups = new Map<string, number[]>();
  for (const p of order) {
    const name = blockName(layers[p]!.name ?? "");
    if (name) groups.set(name, [...(groups.get(name) ?? []), p]);
  }
  return [...groups]
    .filter(([, places]) => places.length >= LEAST_BLOCK)
    .map(([name, places]) => ({ key: `b${places[0]}`, name, layers: places, signature: signatureOf(layers, places, name) }));
}

// ---- blocks by their operators, where names tell nothing: the longest stretch that is one piece over and over ----

const LONGEST_PIECE = 400;

interface Stretch {
  start: number;
  piece: number;
  times: number;
}

/** The stretch of `kinds` that repeats its first `piece` entries, covering most; pieces that are shorter win. */
export function longestRepeat(kinds: readonly number[]): Stretch | null {
  let best: Stretch | null = null;
  for (let piece = LEAST_BLOCK; piece <= Math.min(LONGEST_PIECE, kinds.length >> 1); piece++) {
    let same = 0;
    for (let i = 0; i + piece <= kinds.length; i++) {
      const equal = i + piece < kinds.length && kinds[i] === kinds[i + piece];
      if (equal) same++;
      const times = Math.floor(same / piece) + 1;
      if (!equal || i + piece + 1 === kinds.length) {
        if (times > 1 && (!best || times * piece > best.times * best.piece)) best = { start: i + (equal ? 1 : 0) - same, piece, times };
        if (!equal) same = 0;
      }
    }
  }
  return best;
}

function repeatsByKind(layers: Layer[], order: number[], depth = 0): Repeat[] {
  if (order.length < 4 * LEAST_BLOCK || depth > 8) return [];
  const numbers = new Map<string, number>();
  const kinds = order.map((p) => {
    const kind = `${layers[p]!.op ?? ""}|${layers[p]!.output ?? ""}`;
    return numbers.get(kind) ?? (numbers.set(kind, numbers.size), numbers.size - 1);
  });
  const found = longestRepeat(kinds);
  if (!found) return [];
  const { start, piece, times } = found;
  const blocks = Array.from({ length: times }, (_, k): Block => {
    const places = order.slice(start + k * piece, start + (k + 1) * piece);
    return { key: `b${places[0]}`, name: layers[places[0]!]!.name, layers: places, signature: "" };
  });
  const here = { key: `r${blocks[0]!.layers[0]}`, name: `${piece} nodes from ${blocks[0]!.name}`, blocks };
  return [
    ...repeatsByKind(layers, order.slice(0, start), depth + 1),
    here,
    ...repeatsByKind(layers, order.slice(start + piece * times), depth + 1),
  ];
}

/** Neighbouring blocks that are alike, as one run. */
function runsOf(blocks: Block[]): Repeat[] {
  const runs: Repeat[] = [];
  for (const b of blocks) {
    const last = runs[runs.length - 1];
    const before = last?.blocks[last.blocks.length - 1];
    if (before && before.signature === b.signature && foldedOf(before.name) === foldedOf(b.name)) last!.blocks.push(b);
    else runs.push({ key: `r${b.layers[0]}`, name: b.name, blocks: [b] });
  }
  for (const r of runs) if (r.blocks.length > 1) r.name = foldedOf(r.blocks[0]!.name);
  return runs;
}

const foldedOf = (name: string): string => foldedName(name).replace(/([a-z_]\d+\.)\d+$/i, "$1*");

/** What a case says of its graph; null: nothing that could be drawn. */
export function graphSource(c: Case): GraphSource | null {
  const layers = c.layers ?? [];
  const edges = edgesOf(c);
  if (!edges.length && layers.length !== 1) return null;
  const joined = new Set(edges.flat());
  const order = topological(layers.length, edges).filter((p) => joined.has(p) || layers[p]!.op);
  const blocks = namedBlocks(layers, order);
  const taken = new Set(blocks.flatMap((b) => b.layers));
  const rest = order.filter((p) => !taken.has(p));
  return { layers, order, edges, repeats: [...runsOf(blocks), ...repeatsByKind(layers, rest)] };
}

// ---- what is drawn ----

/** The quantities that at least one layer has, the most telling first. */
export const graphWeights = (layers: Layer[]): GraphWeight[] =>
  (["time_ns", "macs", "flops", "bytes", "parameters"] as const).filter((w) => layers.some((l) => isKnown(l[w]) && l[w]! > 0));

function sumOf(layers: Layer[], places: number[], weight: GraphWeight | null): number | null {
  if (!weight) return null;
  const known = places.map((p) => layers[p]![weight]).filter(isKnown);
  return known.length ? known.reduce((sum, v) => sum + v, 0) : null;
}

/** The nodes as they are with these keys unfolded: a run of blocks into its blocks, a block into its layers. */
export function folded(source: GraphSource, open: ReadonlySet<string>, weight: GraphWeight | null): ModelGraph {
  const { layers } = source;
  const nodes: GraphNode[] = [];
  const nodeOf = new Map<number, number>();
  const seen = new Set<string>();
  const place = new Map<number, [Repeat, Block]>();
  for (const r of source.repeats) for (const b of r.blocks) for (const p of b.layers) place.set(p, [r, b]);
  const add = (node: Omit<GraphNode, "value">) => {
    for (const p of node.layers) nodeOf.set(p, nodes.length);
    nodes.push({ ...node, value: sumOf(layers, node.layers, weight) });
  };
  const addLayer = (p: number, within: string | null) =>
    add({ key: `n${p}`, kind: "layer", name: layers[p]!.name, op: layers[p]!.op ?? "", makes: layers[p]!.output ?? null, layers: [p], times: 1, within });
  for (const p of source.order) {
    const [run, block] = place.get(p) ?? [];
    if (!run || !block || open.has(block.key)) addLayer(p, block?.key ?? null);
    else if (run.blocks.length > 1 && !open.has(run.key)) {
      if (seen.has(run.key)) continue;
      seen.add(run.key);
      add({ key: run.key, kind: "repeat", name: run.name, op: "", makes: null, layers: run.blocks.flatMap((b) => b.layers), times: run.blocks.length, within: null });
    } else if (!seen.has(block.key)) {
      seen.add(block.key);
      add({ key: block.key, kind: "block", name: block.name, op: "", makes: null, layers: block.layers, times: 1, within: null });
    }
  }
  return { nodes, edges: mergedEdges(source.edges, nodeOf, nodes.length) };
}

function mergedEdges(edges: [number, number][], nodeOf: Map<number, number>, n: number): [number, number][] {
  const seen = new Set<number>();
  const merged: [number, number][] = [];
  for (const [from, to] of edges) {
    const [a, b] = [nodeOf.get(from), nodeOf.get(to)];
    if (a === undefined || b === undefined || a === b || seen.has(a * n + b)) continue;
    seen.add(a * n + b);
    merged.push([a, b]);
  }
  return merged;
}

/** What to fold again so that a layer of it is one node less: its block, then the run of that. */
export function foldKey(source: GraphSource, node: GraphNode, open: ReadonlySet<string>): string | null {
  const p = node.layers[0]!;
  const run = source.repeats.find((r) => r.blocks.some((b) => b.layers.includes(p)));
  if (!run) return null;
  const block = run.blocks.find((b) => b.layers.includes(p))!;
  if (node.kind === "layer") return open.has(block.key) ? block.key : null;
  return node.kind === "block" && open.has(run.key) ? run.key : null;
}

/** Of each unfolded block its name, for the frame around its layers. */
export function blockTitles(source: GraphSource): Map<string, string> {
  return new Map(source.repeats.flatMap((r) => r.blocks.map((b): [string, string] => [b.key, b.name])));
}

/** Keys of all that can be unfolded. */
export const allKeys = (source: GraphSource): string[] =>
  source.repeats.flatMap((r) => [...(r.blocks.length > 1 ? [r.key] : []), ...r.blocks.map((b) => b.key)]);
