// SPDX-License-Identifier: MIT
// live.ts - metrics of a host over a while: what the server kept, and behind it samples as they come; as lines of plots.
// Pure. A counter is shown as its rate. Where nothing was sent there is a gap, never a line across it.
import { type Format, isKnown, ofUnit } from "../ui/format";
import type { PlotSpec } from "../ui/plotspec";

/** A series of GET /api/v1/metrics?host=. */
export interface Named {
  name: string;
  label: string;
  unit: string | null;
  kind: string;
}

/** GET /api/v1/metrics?host=&name= */
export interface Kept {
  name: string;
  unit: string | null;
  kind: string;
  step: number;
  series: { label: string; at: number[]; mean: number[] }[];
}

/** One of an event of the stream. */
export interface Sample {
  name: string;
  label: string;
  at: number;
  value: number;
}

/** Two readings of a counter that are further apart give no rate. */
const GAP_MS = 60_000;

interface Point {
  at: number;
  value: number;
}

/** Points of one metric by label; the last reading of a counter, from which the next rate counts. */
export interface Live {
  counter: boolean;
  step: number;
  lines: Map<string, Point[]>;
  last: Map<string, Sample>;
}

export function liveOf(kept: Kept): Live {
  const live: Live = { counter: kept.kind === "counter", step: kept.step, lines: new Map(), last: new Map() };
  for (const s of kept.series)
    live.lines.set(
      s.label,
      s.at.map((at, i) => ({ at, value: s.mean[i] ?? NaN })).filter((p) => isKnown(p.value)),
    );
  return live;
}

/** Takes one sample in; what is older than `from` goes. False: nothing to draw came of it. */
export function take(live: Live, s: Sample, from: number): boolean {
  const before = live.last.get(s.label);
  let value = s.value;
  if (before && s.at <= before.at) return false;
  live.last.set(s.label, s);
  if (live.counter) {
    if (!before || s.at - before.at > GAP_MS || s.value < before.value) return false;
    value = (s.value - before.value) / ((s.at - before.at) / 1000);
  }
  let line = live.lines.get(s.label);
  if (!line) live.lines.set(s.label, (line = []));
  const end = line[line.length - 1];
  if (end && end.at >= s.at) return false; // the server told of it already
  line.push({ at: s.at, value });
  while (line.length && line[0]!.at < from) line.shift();
  return true;
}

/** What a line breaks at: three steps of what is drawn, and at least five seconds. */
const breakAfter = (live: Live): number => Math.max(3 * live.step, 5000);

/** Seconds before `now` of every point, ascending, and of each line its values there; a null where it breaks. */
export function columnsOf(live: Live, now: number): { at: number[]; lines: { label: string; values: (number | null)[] }[] } {
  const times = [...new Set([...live.lines.values()].flatMap((line) => line.map((p) => p.at)))].sort((a, b) => a - b);
  const at: number[] = [];
  times.forEach((t, i) => {
    if (i && t - times[i - 1]! > breakAfter(live)) at.push((t + times[i - 1]!) / 2);
    at.push(t);
  });
  const lines = [...live.lines].map(([label, line]) => {
    const values = new Map(line.map((p) => [p.at, p.value]));
    return { label, values: at.map((t) => values.get(t) ?? null) };
  });
  return { at: at.map((t) => (t - now) / 1000), lines };
}

/** Metrics that are looked at first, where a host has them. */
const FIRST = [
  "cpu.busy",
  "load.1m",
  "memory.available",
  "gpu.utilization",
  "gpu.memory.used",
  "gpu.power",
  "gpu.temperature",
  "disk.read",
  "disk.write",
  "net.rx",
  "net.tx",
  "pressure.cpu",
  "pressure.memory",
  "pressure.io",
];
export const namesOf = (list: Named[]): string[] => [...new Set(list.map((m) => m.name))];
/** The chosen one, or those that are looked at first, or whatever there is. */
export function shownNames(list: Named[], chosen: string): string[] {
  const names = namesOf(list);
  if (chosen) return names.includes(chosen) ? [chosen] : [];
  const first = FIRST.filter((n) => names.includes(n));
  return first.length ? first : names.slice(0, 8);
}

/** A rate of seconds in a second is a number of processors, tasks or disks that were busy. */
export function unitOf(unit: string | null, counter: boolean): string {
  if (counter) return unit === "s" ? "" : `${unit && unit !== "1" ? unit : ""}/s`;
  return unit && unit !== "1" ? unit : "";
}

const LINES_MOST = 16;
const ago: Format = (s) => (s > -0.5 ? "now" : `${Math.round(s)}\u00a0s`);

export function specOf(name: string, unit: string | null, live: Live, now: number): PlotSpec {
  const { at, lines } = columnsOf(live, now);
  const whole = lines.filter((l) => l.label === "");
  const some = (whole.length ? whole : lines).slice(0, LINES_MOST);
  const format = ofUnit(unitOf(unit, live.counter));
  const newest = some
    .map((l) => ({ label: l.label, value: l.values[l.values.length - 1] }))
    .filter((l) => isKnown(l.value))
    .map((l) => (l.label ? `${l.label} ${format(l.value!)}` : format(l.value!)));
  return {
    id: `live-${name.replaceAll(".", "-")}`,
    title: name,
    summary: newest.length ? `Newest: ${newest.slice(0, 4).join(", ")}.` : "Nothing came in this time.",
    x: { label: "seconds ago", values: at, format: ago },
    y: { label: name, format, zero: true },
    series: some.map((l) => ({ label: l.label || name, values: l.values })),
    height: 180,
    sync: "live",
  };
}
