// SPDX-License-Identifier: MIT
// headline.ts - the few numbers of a run that stand first. Pure.
import { bytes, count, duration, interval, isKnown, known, number, percent, rate, si } from "../ui/format";
import type { Case, RunDocument, Static, Target } from "./page";

export interface Tile {
  name: string;
  value: string;
  /** Interval, case, reason: what makes the number honest. */
  detail: string;
}

type Pick = (c: Case) => number | null | undefined;

/** The case where `pick` is least (or most), of those where it is known. */
export function bestCase(cases: readonly Case[], pick: Pick, most = false): Case | null {
  let best: Case | null = null;
  for (const c of cases) {
    const v = pick(c);
    if (!isKnown(v)) continue;
    const held = best ? (pick(best) as number) : null;
    if (held === null || (most ? v > held : v < held)) best = c;
  }
  return best;
}

const about = (text: string, c: Case, of: number): string => (of > 1 ? `${text}${text ? " · " : ""}${c.name}` : text);
const range = (text: string): string => text.match(/\((.*)\)$/)?.[1] ?? "no interval";

function latencyTile(cases: readonly Case[]): Tile | null {
  const c = bestCase(cases, (x) => x.latency_ns?.p50?.value);
  if (!c) return null;
  const p50 = c.latency_ns!.p50!;
  return {
    name: cases.length > 1 ? "Lowest median latency" : "Median latency",
    value: duration(p50.value!),
    detail: about(range(interval(p50, duration)), c, cases.length),
  };
}

function throughputTile(cases: readonly Case[]): Tile | null {
  const c = bestCase(cases, (x) => x.throughput?.value, true);
  if (!c) return null;
  const t = c.throughput!;
  const format = rate(t.unit);
  return {
    name: cases.length > 1 ? "Highest throughput" : "Throughput",
    value: format(t.value!),
    detail: about(range(interval(t, format)), c, cases.length),
  };
}

function memoryTile(cases: readonly Case[]): Tile | null {
  const c = bestCase(cases, (x) => x.memory?.rss_peak, true);
  return (
    c && {
      name: "Peak memory",
      value: bytes(c.memory!.rss_peak!),
      detail: about("resident, of the process", c, cases.length),
    }
  );
}

function targetTile(targets: readonly Target[]): Tile | null {
  if (!targets.length) return null;
  const passed = targets.filter((t) => t.verdict === "pass").length;
  const failed = targets.filter((t) => t.verdict === "fail").length;
  const open = targets.length - passed - failed;
  return {
    name: "Targets met",
    value: `${passed} of ${targets.length}`,
    detail: `${failed} missed, ${open} undecided`,
  };
}

function selfTile(cases: readonly Case[]): Tile | null {
  const c = bestCase(cases, (x) => x.self?.share, true);
  if (!c) return null;
  return {
    name: "Cost of tare itself",
    value: percent(c.self!.share!, 2),
    detail: `${known(c.self!.ns_per_run, duration)} per run at most`,
  };
}

function sampleTile(cases: readonly Case[]): Tile | null {
  const all = cases.map((c) => c.samples).filter(isKnown);
  if (!all.length) return null;
  const total = all.reduce((a, b) => a + b, 0);
  return {
    name: "Measured runs",
    value: count(total),
    detail: cases.length > 1 ? `in ${cases.length} cases` : "in one case",
  };
}

/* ---- a watched program: it ran once, so that there is nothing to be counted ---- */

function wallTile(c: Case): Tile | null {
  const wall = c.latency_ns?.p50?.value;
  const n = c.watch?.samples;
  return isKnown(wall) ? { name: "Wall time", value: duration(wall), detail: isKnown(n) ? `${count(n)} samples` : "" } : null;
}

function processorTile(c: Case): Tile | null {
  const { user_ns: user, system_ns: system } = c.cpu ?? {};
  const wall = c.latency_ns?.p50?.value;
  if (!isKnown(user) || !isKnown(system)) return null;
  const mean = isKnown(wall) && wall > 0 ? `; ${number((user + system) / wall)} processors on average` : "";
  const detail = `${duration(user)} user, ${duration(system)} system${mean}`;
  return { name: "Processor time", value: duration(user + system), detail };
}

function exitTile(c: Case): Tile | null {
  const { exit_code: code, signal, still_running: left } = c.watch ?? {};
  const detail = isKnown(left) && left > 0 ? `${count(left)} of its processes still ran` : "";
  if (isKnown(signal)) return { name: "Ended by signal", value: count(signal), detail };
  return isKnown(code) ? { name: "Exit code", value: count(code), detail: detail || (code === 0 ? "success" : "failure") } : null;
}

const watchedTiles = (c: Case): (Tile | null)[] => [wallTile(c), processorTile(c), memoryTile([c]), exitTile(c), selfTile([c])];

/* ---- a model that was looked at ---- */

function costTiles(s: Static, fileBytes: number | null | undefined): (Tile | null)[] {
  const cost = s.cost_per_run ?? s.cost ?? {};
  const bound = cost.complete === false ? "at least, " : cost.at_most === true ? "at most, " : "";
  const tile = (name: string, v: number | null | undefined, format: (v: number) => string, detail: string): Tile | null =>
    isKnown(v) ? { name, value: format(v), detail } : null;
  return [
    tile("Parameters", s.parameters, (v) => si(v), `${known(s.parameter_bytes, bytes)} of weights`),
    tile("Multiply-accumulates", cost.macs, (v) => si(v), `${bound}per run; ${known(cost.flops, (v) => si(v, "FLOP"))}`),
    tile("Activations", s.activation_peak, bytes, "alive at once, at the peak"),
    tile("Size of the file", fileBytes, bytes, `${known(s.nodes, count)} nodes`),
  ];
}

export const watchedCase = (run: RunDocument): Case | undefined => (run.cases ?? []).find((c) => c.watch);

const has = (t: Tile | null): t is Tile => t !== null;

export function headlineNumbers(run: RunDocument): Tile[] {
  const cases = run.cases ?? [];
  const watched = watchedCase(run);
  if (watched) return [...watchedTiles(watched), targetTile(run.targets ?? [])].filter(has);
  const { static: graph, size_bytes: size } = run.subject ?? {};
  if (run.kind === "inspect" && graph) return costTiles(graph, size).filter(has);
  const tiles = [
    latencyTile(cases),
    throughputTile(cases),
    memoryTile(cases),
    targetTile(run.targets ?? []),
    sampleTile(cases),
    selfTile(cases),
  ];
  return tiles.filter(has);
}
