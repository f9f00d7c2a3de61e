// SPDX-License-Identifier: MIT
// page.ts - what a page is given: documents that tare wrote, read as they are. Every member may be missing, because
// documents come from other versions too; what is missing is unknown, never 0.
import { RUN, shaped } from "./shape";

export type Scalar = number | string | boolean | null;
export type Json = Scalar | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** A value with its interval; null members are unknown. */
export interface Estimate {
  value: number | null;
  lo?: number | null;
  hi?: number | null;
}

export interface Throughput extends Estimate {
  unit?: string | null;
}

export interface Histogram {
  scale: number;
  offset: number;
  zero?: number;
  counts: number[];
}

export interface Latency {
  mean?: number | null;
  stddev?: number | null;
  min?: number | null;
  max?: number | null;
  p50?: Estimate | null;
  p90?: Estimate | null;
  p95?: Estimate | null;
  p99?: Estimate | null;
  p999?: Estimate | null;
  histogram?: Histogram | null;
}

export interface Memory {
  rss_before?: number | null;
  rss_peak?: number | null;
  rss_mean?: number | null;
  delta?: number | null;
  per_unit?: number | null;
  fragmentation?: number | null;
  arena?: Record<string, Json> | null;
  growth?: Estimate | null;
}

export interface Cost {
  complete?: boolean | null;
  macs?: number | null;
  int_macs?: number | null;
  flops?: number | null;
  bytes_read?: number | null;
  bytes_written?: number | null;
  [key: string]: Json | undefined;
}

export interface Layer {
  name: string;
  op?: string | null;
  group?: string | null;
  provider?: string | null;
  nodes?: number | null;
  calls?: number | null;
  total_ns?: number | null;
  share?: number | null;
  flops?: number | null;
  bytes?: number | null;
  macs?: number | null;
  int_macs?: number | null;
  parameters?: number | null;
  output_bytes?: number | null;
  output?: string | null;
  time_ns?: number | null;
  intensity?: number | null;
  rate?: number | null;
  bandwidth?: number | null;
  bound?: string | null;
  roof_share?: number | null;
  speedup_if_free?: number | null;
}

export interface Profile {
  runs?: number | null;
  latency_ns?: number | null;
  overhead?: number | null;
  node_ns?: number | null;
  covered?: number | null;
  dropped_events?: number | null;
}

export interface Self {
  ns_per_run?: number | null;
  share?: number | null;
}

export type Reasons = Record<string, string>;

export interface Case {
  name: string;
  params?: Record<string, Json>;
  samples?: number | null;
  warmup_runs?: number | null;
  unit?: string | null;
  units_per_run?: number | null;
  confidence?: number | null;
  load_ns?: number | null;
  first_run_ns?: number | null;
  latency_ns?: Latency | null;
  /** Single latencies in the order they were taken, decoded by whoever wrote the page. */
  samples_ns?: number[] | null;
  samples_kept?: string | null;
  throughput?: Throughput | null;
  memory?: Memory | null;
  cpu?: JsonObject | null;
  outliers?: { count?: number | null; explained?: number | null; limit_ns?: number | null } | null;
  io?: JsonObject | null;
  gpu?: JsonObject | null;
  energy?: JsonObject | null;
  accuracy?:
    | (Estimate & {
        metric?: string | null;
        dataset?: string | null;
        examples?: number | null;
        baseline?: number | null;
      })
    | null;
  cost?: Cost | null;
  layers?: Layer[] | null;
  profile?: Profile | null;
  launches?: JsonObject[] | null;
  watch?: JsonObject | null;
  self?: Self | null;
  unknown?: Reasons;
}

export interface Finding {
  id: string;
  severity: string;
  title?: string | null;
  case?: string | null;
  evidence?: Record<string, Json> | null;
  action?: string | null;
}

export interface Recommendation {
  objective?: string | null;
  case?: string | null;
  why?: string | null;
  proof?: {
    against?: string | null;
    metric?: string | null;
    ratio?: number | null;
    ratio_lo?: number | null;
    ratio_hi?: number | null;
    confidence?: number | null;
    verdict?: string | null;
  } | null;
}

export interface Target {
  metric: string;
  op: string;
  value: number;
  unit?: string | null;
  case?: string | null;
  achieved?: number | null;
  ratio?: number | null;
  verdict?: string | null;
  confidence?: number | null;
}

export interface Static {
  nodes?: number | null;
  unknown_nodes?: number | null;
  parameters?: number | null;
  parameter_bytes?: number | null;
  dims?: Record<string, Json> | null;
  bytes_by_type?: Record<string, Json> | null;
  ops?: Record<string, Json> | null;
  unknown_ops?: Record<string, Json> | null;
  cost?: Cost | null;
  cost_per_run?: Cost | null;
  activation_sum?: number | null;
  activation_peak?: number | null;
  activation_arena?: number | null;
  activation_peak_node?: string | null;
  formulas?: Record<string, Json> | null;
  unknown?: Reasons;
}

export interface Subject {
  type?: string | null;
  name?: string | null;
  path?: string | null;
  sha256?: string | null;
  size_bytes?: number | null;
  runtime?: { name?: string | null; version?: string | null } | null;
  static?: Static | null;
  static_optimized?: Static | null;
}

export interface Host {
  fingerprint?: string | null;
  hostname?: string | null;
  os?: string | null;
  kernel?: string | null;
  arch?: string | null;
  cpu?: { model?: string | null; cores?: number | null; usable?: number | null } | null;
  memory_bytes?: number | null;
  virtual?: boolean | null;
  governor?: string | null;
  cgroup?: Record<string, Json> | null;
  gpus?: JsonObject[] | null;
  load1?: number | null;
  unknown?: Reasons;
}

export interface Tool {
  version?: string | null;
  commit?: string | null;
}

export interface Roof {
  threads?: number | null;
  flops?: number | null;
  int_ops?: number | null;
  bandwidth?: number | null;
  measured?: string | null;
}

export interface RunDocument {
  schema?: string;
  id?: string;
  kind?: string;
  created?: string;
  tool?: Tool;
  host?: Host | null;
  subject?: Subject | null;
  config?: Record<string, Json> | null;
  roof?: Roof | null;
  trace?: string | null;
  cases?: Case[];
  findings?: Finding[];
  recommendation?: Recommendation | null;
  targets?: Target[];
}

export interface RunItem {
  kind: "run";
  name?: string;
  document: RunDocument;
}

/** Documents whose sections describe them further. */
export interface OtherItem {
  kind: "comparison" | "profile" | "history" | "timeline";
  name?: string;
  document: JsonObject;
}

export type Item = RunItem | OtherItem;

export interface Page {
  schema: string;
  title?: string;
  created?: string;
  tool?: Tool;
  items: Item[];
}

const SCHEMA = "tare.page/1";
const KINDS = ["run", "comparison", "profile", "history", "timeline"];

function isItem(x: unknown): x is Item {
  const item = x as Item | null;
  return (
    !!item &&
    typeof item === "object" &&
    KINDS.includes(item.kind) &&
    !!item.document &&
    typeof item.document === "object" &&
    !Array.isArray(item.document)
  );
}

/** A run document is held against its shape; the others are checked by those who read them. */
function readItem(item: Item): Item {
  const name = typeof item.name === "string" ? item.name : undefined;
  if (item.kind !== "run") return { ...item, name };
  const document = shaped(item.document, RUN) as RunDocument;
  document.cases?.forEach((c, i) => (c.name ??= `case ${i + 1}`));
  document.cases?.forEach((c) => c.layers?.forEach((l) => (l.name ??= "(no name)")));
  return { kind: "run", name, document };
}

/** The page of a text, or why it is none. Items of a kind this viewer does not know are left out. */
export function readPage(text: string): Page | string {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (e) {
    return `The data of this page is no JSON: ${(e as Error).message}`;
  }
  if (data === null) return "This page has no data in it yet: it is the empty viewer.";
  const page = data as Page;
  if (page.schema !== SCHEMA || !Array.isArray(page.items)) return `The data of this page is not ${SCHEMA}.`;
  const title = typeof page.title === "string" ? page.title : undefined;
  return { ...page, title, items: page.items.filter(isItem).map(readItem) };
}
