// SPDX-License-Identifier: MIT
// graphlayout.ts - where the nodes of a graph stand: rows by the longest way from a beginning, an order within rows in
// which few edges cross, and places close to what each node is joined with. Edges over many rows run beside the graph.
// Pure; nodes and edges in, numbers out.
import { neighbours, topological } from "./modelgraph";

export const NODE_WIDTH = 176;
export const NODE_HEIGHT = 40;
const GAP_X = 20;
const GAP_Y = 30;
const BEND_WIDTH = 14; // of a place that only an edge passes
const FAR = 8; // rows; a longer edge runs in a lane
const LANE = 9;
const LANES_MAX = 12;
const SWEEPS = 6;

export interface Box {
  x: number;
  y: number;
}

export interface Route {
  from: number;
  to: number;
  points: [number, number][];
  /** In a lane beside the graph. */
  far: boolean;
}

export interface Placed {
  /** Upper left corners. */
  boxes: Box[];
  routes: Route[];
  /** Node indices by row, left to right. */
  rows: number[][];
  width: number;
  height: number;
}

/** Rows: a node below all that it reads; one that reads nothing just above its first reader. */
export function rowsOf(n: number, edges: [number, number][]): number[] {
  const order = topological(n, edges);
  const place = new Int32Array(n);
  order.forEach((node, i) => (place[node] = i));
  const forward = edges.filter(([from, to]) => place[from]! < place[to]!);
  const makers = neighbours(n, forward, false);
  const readers = neighbours(n, forward, true);
  const row = new Array<number>(n).fill(0);
  for (const node of order) for (const m of makers[node]!) row[node] = Math.max(row[node]!, row[m]! + 1);
  for (const node of [...order].reverse()) {
    if (makers[node]!.length || !readers[node]!.length) continue;
    row[node] = Math.max(0, Math.min(...readers[node]!.map((r) => row[r]!)) - 1);
  }
  return row;
}

/** Of the places in one row: nodes, then the bends of edges that pass it. */
interface Grid {
  rows: number[][];
  width: number[];
  row: number[];
  up: number[][];
  down: number[][];
  /** Per edge the places it goes through, ends included; null: in a lane. */
  chains: (number[] | null)[];
}

function gridOf(n: number, edges: [number, number][]): Grid {
  const row = rowsOf(n, edges);
  const width = new Array<number>(n).fill(NODE_WIDTH);
  const links: [number, number][] = [];
  const chains = edges.map(([from, to]) => {
    const span = row[to]! - row[from]!;
    if (span < 1 || span > FAR) return null;
    const chain = [from];
    for (let r = row[from]! + 1; r < row[to]!; r++) {
      chain.push(row.length);
      row.push(r);
      width.push(BEND_WIDTH);
    }
    chain.push(to);
    for (let k = 1; k < chain.length; k++) links.push([chain[k - 1]!, chain[k]!]);
    return chain;
  });
  const rows: number[][] = Array.from({ length: row.reduce((most, r) => Math.max(most, r), 0) + 1 }, () => []);
  row.forEach((r, place) => rows[r]!.push(place));
  return { rows, width, row, chains, up: neighbours(row.length, links, false), down: neighbours(row.length, links, true) };
}

/** Each row by the mean place of its neighbours, downwards and upwards in turn. */
function order(g: Grid): void {
  const at = new Float64Array(g.row.length);
  const number = (row: number[]) => row.forEach((p, i) => (at[p] = i - row.length / 2));
  g.rows.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    const links = down ? g.up : g.down;
    const rows = down ? g.rows : [...g.rows].reverse();
    for (const row of rows) {
      const want = new Map(row.map((p): [number, number] => [p, meanOf(links[p]!, at) ?? at[p]!]));
      row.sort((a, b) => want.get(a)! - want.get(b)! || at[a]! - at[b]!);
      number(row);
    }
  }
}

function meanOf(places: number[], at: Float64Array): number | null {
  if (!places.length) return null;
  let sum = 0;
  for (const p of places) sum += at[p]!;
  return sum / places.length;
}

/** Middles of one row's places, as near to `want` as their widths let them: neighbours that would overlap move as one. */
export function spread(want: number[], width: number[], gap: number): number[] {
  interface Pool {
    first: number;
    n: number;
    sum: number;
  }
  const before: number[] = [0]; // of each place, from the first: how far its middle is from that of the first at least
  for (let i = 1; i < want.length; i++) before.push(before[i - 1]! + (width[i - 1]! + width[i]!) / 2 + gap);
  const pools: Pool[] = [];
  want.forEach((w, i) => {
    let pool: Pool = { first: i, n: 1, sum: w - before[i]! };
    while (pools.length) {
      const left = pools[pools.length - 1]!;
      if (left.sum / left.n <= pool.sum / pool.n) break;
      pool = { first: left.first, n: left.n + pool.n, sum: left.sum + pool.sum };
      pools.pop();
    }
    pools.push(pool);
  });
  return pools.flatMap((p) => Array.from({ length: p.n }, (_, k) => p.sum / p.n + before[p.first + k]!));
}

function places(g: Grid): Float64Array {
  const at = new Float64Array(g.row.length);
  const put = (row: number[], want: number[]) => {
    const middles = spread(want, row.map((p) => g.width[p]!), GAP_X);
    row.forEach((p, i) => (at[p] = middles[i]!));
  };
  for (const row of g.rows) put(row, row.map(() => 0));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    const rows = down ? g.rows : [...g.rows].reverse();
    for (const row of rows) put(row, row.map((p) => meanOf((down ? g.up : g.down)[p]!, at) ?? at[p]!));
  }
  return at;
}

const yOf = (row: number): number => row * (NODE_HEIGHT + GAP_Y);

/** From the foot of one node to the head of another through a lane left of the graph. */
function laneRoute(a: Box, b: Box, lane: number): [number, number][] {
  const x = -LANE * (lane + 1);
  const [ay, by] = [a.y + NODE_HEIGHT, b.y];
  return [[a.x + NODE_WIDTH / 2 - 8, ay], [a.x + NODE_WIDTH / 2 - 8, ay + 6], [x, ay + 12], [x, by - 12], [b.x + NODE_WIDTH / 2 - 8, by - 6], [b.x + NODE_WIDTH / 2 - 8, by]];
}

export function layoutGraph(n: number, edges: [number, number][]): Placed {
  const g = gridOf(n, edges);
  order(g);
  const at = places(g);
  let [least, most] = [Infinity, -Infinity];
  for (let p = 0; p < at.length; p++) {
    least = Math.min(least, at[p]! - g.width[p]! / 2);
    most = Math.max(most, at[p]! + g.width[p]! / 2);
  }
  if (!n) [least, most] = [0, 0];
  const boxes = Array.from({ length: n }, (_, i) => ({ x: at[i]! - NODE_WIDTH / 2 - least, y: yOf(g.row[i]!) }));
  const lanes = new Map<number, number>(); // all edges from one node share a lane
  const routes = edges.map(([from, to], k): Route => {
    const chain = g.chains[k];
    if (!chain) {
      if (!lanes.has(from)) lanes.set(from, lanes.size % LANES_MAX);
      return { from, to, points: laneRoute(boxes[from]!, boxes[to]!, lanes.get(from)!), far: true };
    }
    const passed = chain.slice(1, -1).flatMap((p) => [0, NODE_HEIGHT].map((down): [number, number] => [at[p]! - least, yOf(g.row[p]!) + down]));
    // straight on over rows in which it stays where it is
    const points = passed.filter(([x], i) => i === 0 || i === passed.length - 1 || x !== passed[i - 1]![0] || x !== passed[i + 1]![0]);
    const [a, b] = [boxes[from]!, boxes[to]!];
    return { from, to, far: false, points: [[a.x + NODE_WIDTH / 2, a.y + NODE_HEIGHT], ...points, [b.x + NODE_WIDTH / 2, b.y]] };
  });
  const rows = g.rows.map((row) => row.filter((p) => p < n));
  const gutter = Math.min(lanes.size, LANES_MAX) * LANE + (lanes.size ? LANE : 0);
  for (const b of boxes) b.x += gutter;
  for (const r of routes) for (const point of r.points) point[0] += gutter;
  return { boxes, routes, rows, width: most - least + gutter, height: yOf(g.rows.length) - GAP_Y };
}
