// SPDX-License-Identifier: MIT
// trees.ts - call trees for the tests of flame graphs: by hand from folded stacks, and large ones from a seed.
import { type CallTree, type Profile, readProfile } from "../src/data/profile";

interface Nodes {
  parent: number[];
  frame: number[];
  self: number[];
  total: number[];
  calls: number[];
}

function add(nodes: Nodes, parent: number, frame: number): number {
  for (let i = parent + 1; i < nodes.parent.length; i++) if (nodes.parent[i] === parent && nodes.frame[i] === frame) return i;
  return nodes.parent.push(parent) && nodes.frame.push(frame) && nodes.self.push(0) && nodes.calls.push(0) - 1;
}

function addTotals(nodes: Nodes): void {
  nodes.total = nodes.self.slice();
  for (let i = nodes.total.length - 1; i >= 0; i--) if (nodes.parent[i]! >= 0) nodes.total[nodes.parent[i]!]! += nodes.total[i]!;
}

/** "main;step 5" lines as a document: self times by path, one call each. */
export function documentOf(stacks: string[]) {
  const names: string[] = [];
  const nodes: Nodes = { parent: [], frame: [], self: [], total: [], calls: [] };
  for (const line of stacks) {
    const [path, value] = line.split(" ");
    let at = -1;
    for (const name of path!.split(";")) {
      if (!names.includes(name)) names.push(name);
      at = add(nodes, at, names.indexOf(name));
    }
    nodes.self[at]! += Number(value);
    nodes.calls[at]!++;
  }
  addTotals(nodes);
  return { schema: "tare.profile/1", name: "by hand", unit: "ns", frames: { name: names, file: names.map(() => "app.py"), line: names.map((_, i) => i + 1) }, nodes };
}

export const profileOf = (stacks: string[]): Profile => readProfile(documentOf(stacks));

/** Paths of a tree as "main;step", by node. */
export function pathsOf(tree: CallTree, names: string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i < tree.n; i++) out.push((tree.parent[i]! >= 0 ? `${out[tree.parent[i]!]};` : "") + names[tree.frame[i]!]);
  return out;
}

/** Totals by path. */
export function totalsOf(tree: CallTree, names: string[]): Record<string, number> {
  return Object.fromEntries(pathsOf(tree, names).map((path, i) => [path, tree.total[i]!]));
}

/** The same tree for the same seed: many children of few, as real profiles have. */
export function randomDocument(n: number, nFrames: number, seed: number) {
  let state = seed >>> 0;
  const random = () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32);
  const nodes: Nodes = { parent: [-1], frame: [0], self: [0], total: [], calls: [1] };
  for (let i = 1; i < n; i++) {
    nodes.parent.push(Math.max(0, i - 1 - Math.floor(random() ** 3 * Math.min(i, 2000))));
    nodes.frame.push(Math.floor(random() * nFrames));
    nodes.self.push(Math.floor(random() ** 4 * 1e6));
    nodes.calls.push(1 + Math.floor(random() * 9));
  }
  addTotals(nodes);
  const name = Array.from({ length: nFrames }, (_, i) => `package.module_${i % 23}.function_${i}`);
  return { schema: "tare.profile/1", name: "random", unit: "ns", frames: { name, file: name.map((_, i) => `src/module_${i % 23}.py`), line: name.map((_, i) => i) }, nodes };
}
