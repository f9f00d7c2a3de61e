// SPDX-License-Identifier: MIT
// flamegraph.ts - one profile made ready to be drawn: the tree that was asked for, its layout, its functions, the words
// about a frame and the table. Pure; the page only places it.
import { changeOf, diffTrees, type Diff, type Flat, flatten, outermost, ranked, sameFunctions, wholeOf } from "./calltree";
import { layoutOf, type Layout } from "./flame";
import { type Modules, modulesOf } from "./flamecolour";
import type { Cell, Grid } from "./grid";
import type { CallTree, Profile } from "./profile";
import { count, duration, isKnown, number, ofUnit, percent, shown, UNKNOWN } from "../ui/format";

export interface Graph {
  profile: Profile;
  tree: CallTree;
  layout: Layout;
  outer: Uint8Array;
  flat: Flat;
  modules: Modules;
  whole: number;
  diff: Diff | null;
  /** What the base adds up to, before any scaling. */
  baseWhole: number;
  /** The base is compared by its share of the whole, not by its amount. */
  byShare: boolean;
}

const pickTree = (p: Profile, thread: number): CallTree => p.threads[thread]?.tree() ?? p.tree;

function widthsOf(diff: Diff): Float64Array {
  return diff.tree.total.map((now, i) => Math.max(now, diff.baseTotal[i]!));
}

/** `thread` -1: all of them. */
export function graphOf(profile: Profile, thread: number, byShare: boolean): Graph {
  const of = pickTree(profile, thread);
  const base = thread < 0 && profile.base ? profile.base.tree() : null;
  const baseWhole = base ? wholeOf(base) : NaN;
  const scale = byShare && baseWhole > 0 ? wholeOf(of) / baseWhole : 1;
  const diff = base ? diffTrees(of, base, sameFunctions(profile.frames), scale) : null;
  const tree = diff ? diff.tree : of;
  const n = profile.frames.name.length;
  const layout = layoutOf(tree, diff ? widthsOf(diff) : tree.total);
  const outer = outermost(tree, layout.kids, n);
  const flat = flatten(tree, outer, n);
  return { profile, tree, layout, outer, flat, modules: modulesOf(profile.frames, flat), whole: wholeOf(tree), diff, baseWhole, byShare };
}

// ---- words ----

const UNIT_WORDS: Record<string, string> = { ns: "time", bytes: "memory", calls: "calls", samples: "samples" };
export const unitWord = (unit: string): string => UNIT_WORDS[unit] ?? shown(unit, 20);

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

export function changeText(now: number, before: number): string {
  if (!(before > 0)) return now > 0 ? "new" : "the same";
  if (!(now > 0)) return "gone";
  const change = changeOf(now, before);
  if (Math.abs(change) < 0.001) return "the same";
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
  parts.push(`total ${costText(unit, total)}${own ? errorText(g, node) : ""}${shareText(total, g.whole)}`);
  if (isKnown(tree.self[node])) parts.push(`self ${costText(unit, tree.self[node]!)}${shareText(tree.self[node]!, g.whole)}`);
  if (own && g.diff) parts.push(`base ${costText(unit, g.diff.baseTotal[node]!)}${g.byShare ? " scaled" : ""}: ${changeText(total, g.diff.baseTotal[node]!)}`);
  if (isKnown(tree.calls[node]) && unit !== "calls" && tree.calls[node]! > 0) parts.push(`${count(tree.calls[node]!)} ${tree.calls[node] === 1 ? "call" : "calls"}`);
  const place = placeText(g.profile, tree.frame[node]!);
  if (place) parts.push(place);
  return parts;
}

/** The picture in words. */
export function summaryOf(g: Graph): string {
  const { profile: p, flat } = g;
  if (!g.tree.n) return "Nothing was recorded: there is no frame to show.";
  const top = ranked(flat, flat.self).slice(0, 3).filter((f) => flat.self[f]! > 0);
  const named = top.map((f) => `${nameText(p, f, 40)}${shareText(flat.self[f]!, g.whole)}`).join(", ");
  const most = named ? ` Most ${unitWord(p.unit)} of their own: ${named}.` : "";
  const against = g.diff ? ` Against the base, ${costText(p.unit, g.baseWhole)}: ${changeText(g.whole, g.baseWhole)}.` : "";
  const hidden = g.tree.hidden ? ` ${count(g.tree.hidden)} small paths are left out.` : "";
  return `${count(g.tree.n)} call paths, ${g.layout.rows} deep, ${costText(p.unit, g.whole)} in all.${against}${most}${hidden}`;
}

// ---- the table ----

function baseFlat(g: Graph): Flat | null {
  if (!g.diff) return null;
  return flatten({ ...g.tree, self: g.diff.baseSelf, total: g.diff.baseTotal }, g.outer, g.profile.frames.name.length);
}

/** Each function over all its paths: what the picture shows, for readers and spreadsheets. */
export function gridOfGraph(g: Graph): Grid {
  const { profile: p, flat } = g;
  const format = (v: number) => costText(p.unit, v);
  const base = baseFlat(g);
  const columns: Grid["columns"] = [
    { title: "Function", text: true }, { title: "File", text: true }, { title: "Line", format: String },
    { title: `Self, ${p.unit}`, format }, { title: `Total, ${p.unit}`, format }, { title: "Total, share", format: (v) => percent(v) }, { title: "Calls", format: count },
  ];
  if (base) columns.push({ title: `Base self, ${p.unit}`, format }, { title: `Base total, ${p.unit}`, format }, { title: "Change of total", format: (v) => percent(v) });
  const rows = ranked(flat, base ? flat.total : flat.self).map((f): Cell[] => {
    const row: Cell[] = [p.frames.name[f], p.frames.file[f] ?? "", p.frames.line[f], flat.self[f], flat.total[f], g.whole > 0 ? flat.total[f]! / g.whole : null, flat.calls[f]];
    if (base) row.push(base.self[f], base.total[f], base.total[f]! > 0 ? flat.total[f]! / base.total[f]! - 1 : null);
    return row;
  });
  return { columns, rows };
}
