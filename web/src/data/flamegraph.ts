// SPDX-License-Identifier: MIT
// flamegraph.ts - one profile made ready to be drawn: the tree that was asked for, its layout, its functions, the words
// about a frame and the table. Pure; the page only places it.
import { changeOf, diffTrees, type Diff, type Flat, flatten, isTold, outermost, ranked, sameFunctions, selvesOf, sumOfRoots, wholeOf, withoutWaiting } from "./calltree";
import { layoutOf, type Layout } from "./flame";
import { type Modules, modulesOf } from "./flamecolour";
import type { Cell, Grid } from "./grid";
import type { Tile } from "./headline";
import { baseName, type CallTree, type Profile } from "./profile";
import { count, duration, isKnown, number, ofUnit, percent, rowOf, shown, UNKNOWN } from "../ui/format";

/** What only the sandwich, the search list and the table need: worked out when the first of them asks. */
export interface Functions {
  outer: Uint8Array;
  flat: Flat;
}

export interface Graph {
  profile: Profile;
  tree: CallTree;
  layout: Layout;
  functions: () => Functions;
  self: Float64Array;
  summary: () => string;
  modules: Modules;
  whole: number;
  /** What the functions' own costs add up to: noise can make it more than the whole. */
  selfWhole: number;
  diff: Diff | null;
  /** What the base adds up to, before any scaling. */
  baseWhole: number;
  /** The base is compared by its share of the whole, not by its amount. */
  byShare: boolean;
}

const pickTree = (p: Profile, thread: number): CallTree => p.threads[thread]?.tree() ?? p.tree;
const busy = (tree: CallTree, p: Profile, hide: boolean): CallTree => (hide ? withoutWaiting(tree, p.frames) : null) ?? tree;

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

function widthsOf(diff: Diff): Float64Array {
  return diff.tree.total.map((now, i) => Math.max(now, diff.baseTotal[i]!));
}

/** `thread` -1: all of them. `hide`: without the calls in which threads waited. */
export function graphOf(profile: Profile, thread: number, byShare: boolean, hide = false): Graph {
  const of = busy(pickTree(profile, thread), profile, hide);
  const base = thread < 0 && profile.base ? busy(profile.base.tree(), profile, hide) : null;
  const baseWhole = base ? wholeOf(base) : NaN;
  const scale = byShare && baseWhole > 0 ? wholeOf(of) / baseWhole : 1;
  const diff = base ? diffTrees(of, base, sameFunctions(profile.frames), scale) : null;
  const tree = diff ? diff.tree : of;
  const n = profile.frames.name.length;
  const layout = layoutOf(tree, diff ? widthsOf(diff) : tree.total);
  const self = selvesOf(tree, n);
  const functions = once(() => {
    const outer = outermost(tree, layout.kids, n);
    return { outer, flat: flatten(tree, outer, n) };
  });
  const graph: Graph = { profile, tree, layout, functions, self, summary: once(() => summaryOf(graph)), modules: modulesOf(profile.frames, self), whole: sumOfRoots(layout.kids, tree.total), selfWhole: self.reduce((sum, v) => sum + v, 0), diff, baseWhole, byShare };
  return graph;
}

// ---- words ----

/** What the picture is of: a file against a file where two are compared. */
export function titleOf(p: Profile): string {
  if (p.base) return `${shown(baseName(p.file || p.name || "profile"), 60)} against ${shown(baseName(p.base.name), 60)}`;
  return shown(p.name || p.file || "Profile", 120);
}

const UNIT_WORDS: Record<string, string> = { ns: "time", bytes: "memory", calls: "calls", samples: "samples" };
export const unitWord = (unit: string): string => rowOf(UNIT_WORDS, unit) ?? shown(unit, 20);

/** A cost for people; what could not be told from zero says so. */
export function costText(unit: string, v: number): string {
  if (!isKnown(v)) return UNKNOWN;
  return v < 0 ? "not told from 0" : ofUnit(unit)(v);
}

const shareText = (v: number, whole: number): string => (isKnown(v) && v >= 0 && whole > 0 ? ` (${percent(v / whole)})` : "");

export function placeText(p: Profile, frame: number): string {
  const file = p.frames.file[frame];
  const line = p.frames.line[frame];
  return file ? shown(file, 160) + (line ? `:${line}` : "") : "";
}

export const nameText = (p: Profile, frame: number, longest = 160): string => shown(p.frames.name[frame]!, longest);

/** A change in few words; one within its error is none. */
export function changeText(now: number, before: number, error = NaN): string {
  if (!isTold(now, before, error) || Math.abs(changeOf(now, before)) < 0.001) return "same";
  if (!(before > 0)) return "new";
  if (!(now > 0)) return "gone";
  return now > 2 * before ? `${number(now / before)}×` : `${now > before ? "+" : ""}${percent(now / before - 1)}`;
}

function errorText(g: Graph, node: number): string {
  const error = g.tree.error[node]!;
  return isKnown(error) && error > 0 && g.profile.unit === "ns" ? ` ± ${duration(error, 2)}` : "";
}

/** What there is to say about one frame, in parts. */
export function detailOf(g: Graph, tree: CallTree, node: number): string[] {
  const { unit } = g.profile;
  const parts: string[] = [];
  const total = tree.total[node]!;
  const own = tree === g.tree;
  parts.push(`total ${costText(unit, total)}${own && !g.diff ? errorText(g, node) : ""}${shareText(total, g.whole)}`);
  if (isKnown(tree.self[node])) parts.push(`self ${costText(unit, tree.self[node]!)}${shareText(tree.self[node]!, g.whole)}`);
  if (own && g.diff) parts.push(`base ${costText(unit, g.diff.baseTotal[node]!)}${g.byShare ? " scaled" : ""}: ${changeText(total, g.diff.baseTotal[node]!, tree.error[node]!)}`);
  if (isKnown(tree.calls[node]) && unit !== "calls" && tree.calls[node]! > 0) parts.push(`${count(tree.calls[node]!)} ${tree.calls[node] === 1 ? "call" : "calls"}`);
  const place = placeText(g.profile, tree.frame[node]!);
  if (place) parts.push(place);
  return parts;
}

/** The frames with the greatest values, found without sorting all of them. */
export function greatest(values: Float64Array, n: number): number[] {
  const top: number[] = [];
  for (let f = 0; f < values.length; f++) {
    if (!(values[f]! > 0) || (top.length === n && values[f]! <= values[top[n - 1]!]!)) continue;
    top.push(f);
    top.sort((a, b) => values[b]! - values[a]!);
    top.length = Math.min(n, top.length);
  }
  return top;
}

/** Cut with an ellipsis and nothing else: of a name in a sentence the length does not matter. */
const cutText = (text: string, longest: number): string => (text.length > longest ? `${text.slice(0, longest)}\u2026` : text);

/** The picture in words. */
function summaryOf(g: Graph): string {
  const { profile: p, self } = g;
  if (!g.tree.n) return "Nothing was recorded: there is no frame to show.";
  const named = greatest(self, 3).map((f) => `${cutText(nameText(p, f), 60)}${shareText(self[f]!, g.selfWhole)}`).join(", ");
  const most = named ? ` Most ${unitWord(p.unit)} of their own: ${named}.` : "";
  const against = g.diff ? ` Against the base, ${costText(p.unit, g.baseWhole)}: ${changeText(g.whole, g.baseWhole)}.` : "";
  const hidden = g.tree.hidden ? ` ${count(g.tree.hidden)} small paths are left out.` : "";
  return `${count(g.tree.n)} call ${g.tree.n === 1 ? "path" : "paths"}, ${g.layout.rows} deep, ${costText(p.unit, g.whole)} in all.${against}${most}${hidden}`;
}

// ---- the head: what was recorded, in few numbers ----

const counted = (n: number, one: string, many: string): string => `${count(n)} ${n === 1 ? one : many}`;

/** Duration, threads, tare's own cost, what was lost; only what the document knows. */
export function headOf(p: Profile): Tile[] {
  const m = p.measured;
  if (!m) return [];
  const tiles: (Tile | null)[] = [
    m.duration_ns !== null ? { name: "Duration", value: duration(m.duration_ns), detail: "recorded, by the clock" } : null,
    m.threads !== null ? { name: "Threads", value: count(m.threads), detail: m.processes !== null ? `in ${counted(m.processes, "process", "processes")}` : "" } : null,
    m.own_share !== null
      ? { name: "Cost of tare itself", value: m.own_share > 0 ? percent(m.own_share) : "0\u00a0%", detail: m.own_ns !== null ? `${duration(m.own_ns)}, taken out` : "of what was read" }
      : m.own_ns !== null ? { name: "Cost of tare itself", value: duration(m.own_ns), detail: "taken out" } : null,
    m.lost !== null ? { name: "Lost", value: m.lost > 0 ? count(m.lost) : "nothing", detail: m.lost > 0 ? "events and calls that are not here" : "every call is here" } : null,
  ];
  return tiles.filter((t) => t !== null);
}

// ---- the table ----

function baseFlat(g: Graph): Flat | null {
  if (!g.diff) return null;
  return flatten({ ...g.tree, self: g.diff.baseSelf, total: g.diff.baseTotal }, g.functions().outer, g.profile.frames.name.length);
}

/** Each function over all its paths: what the picture shows, for readers and spreadsheets. */
export function gridOfGraph(g: Graph): Grid {
  const { profile: p } = g;
  const { flat } = g.functions();
  const format = (v: number) => costText(p.unit, v);
  const base = baseFlat(g);
  const columns: Grid["columns"] = [
    { title: "Function", text: true }, { title: "File", text: true }, { title: "Line", format: String },
    { title: `Self, ${p.unit}`, format }, { title: `Total, ${p.unit}`, format }, { title: "Total, share", format: (v) => percent(v) }, { title: "Calls", format: count },
  ];
  const of = g.byShare ? "Base scaled to the same whole," : "Base";
  if (base) columns.push({ title: `${of} self, ${p.unit}`, format }, { title: `${of} total, ${p.unit}`, format }, { title: "Change of total", format: (v) => percent(v) });
  const rows = ranked(flat, base ? flat.total : flat.self).map((f): Cell[] => {
    const row: Cell[] = [p.frames.name[f], p.frames.file[f] ?? "", p.frames.line[f], flat.self[f], flat.total[f], g.whole > 0 ? flat.total[f]! / g.whole : null, flat.calls[f]];
    if (base) row.push(base.self[f], base.total[f], base.total[f]! > 0 ? flat.total[f]! / base.total[f]! - 1 : null);
    return row;
  });
  return { columns, rows };
}
