// SPDX-License-Identifier: MIT
// shape.ts - what a run document looks like, as a table, and a document held against it: a member of another kind than
// the table says is left out, which is unknown to everybody who reads it. Members the table does not name stay as they are.

type Leaf = "text" | "number" | "numbers";
/** Members by name; a list of one shape; a leaf. "*" stands for every member. */
export type Shape = Leaf | readonly [Shape] | { readonly [member: string]: Shape };

const ESTIMATE = { value: "number", lo: "number", hi: "number", unit: "text" } as const;
const REASONS = { "*": "text" } as const;
const COST = {
  macs: "number",
  int_macs: "number",
  flops: "number",
  bytes_read: "number",
  bytes_written: "number",
} as const;

const LATENCY: Shape = {
  mean: "number",
  stddev: "number",
  min: "number",
  max: "number",
  p50: ESTIMATE,
  p90: ESTIMATE,
  p95: ESTIMATE,
  p99: ESTIMATE,
  p999: ESTIMATE,
  histogram: { scale: "number", offset: "number", zero: "number", counts: "numbers" },
};

const LAYER: Shape = {
  name: "text",
  op: "text",
  group: "text",
  provider: "text",
  output: "text",
  bound: "text",
  nodes: "number",
  calls: "number",
  total_ns: "number",
  share: "number",
  flops: "number",
  bytes: "number",
  macs: "number",
  int_macs: "number",
  parameters: "number",
  output_bytes: "number",
  time_ns: "number",
  intensity: "number",
  rate: "number",
  bandwidth: "number",
  roof_share: "number",
  speedup_if_free: "number",
};

const CASE: Shape = {
  name: "text",
  params: {},
  samples: "number",
  warmup_runs: "number",
  unit: "text",
  units_per_run: "number",
  confidence: "number",
  load_ns: "number",
  first_run_ns: "number",
  latency_ns: LATENCY,
  samples_ns: "numbers",
  samples_kept: "text",
  throughput: ESTIMATE,
  memory: {
    rss_before: "number",
    rss_peak: "number",
    rss_mean: "number",
    delta: "number",
    per_unit: "number",
    fragmentation: "number",
    arena: {},
    growth: ESTIMATE,
  },
  cpu: {},
  outliers: { count: "number", explained: "number", limit_ns: "number" },
  io: {},
  gpu: {},
  energy: {},
  accuracy: { ...ESTIMATE, metric: "text", dataset: "text", examples: "number", baseline: "number" },
  cost: COST,
  layers: [LAYER],
  profile: {
    runs: "number",
    latency_ns: "number",
    overhead: "number",
    node_ns: "number",
    covered: "number",
    dropped_events: "number",
  },
  launches: [{}],
  watch: {},
  self: { ns_per_run: "number", share: "number" },
  unknown: REASONS,
};

const STATIC: Shape = {
  nodes: "number",
  unknown_nodes: "number",
  parameters: "number",
  parameter_bytes: "number",
  dims: {},
  bytes_by_type: {},
  ops: {},
  unknown_ops: {},
  cost: COST,
  cost_per_run: COST,
  activation_sum: "number",
  activation_peak: "number",
  activation_arena: "number",
  activation_peak_node: "text",
  formulas: {},
  unknown: REASONS,
};

const HOST: Shape = {
  fingerprint: "text",
  hostname: "text",
  os: "text",
  kernel: "text",
  arch: "text",
  cpu: { model: "text", cores: "number", usable: "number" },
  memory_bytes: "number",
  governor: "text",
  cgroup: {},
  gpus: [{}],
  load1: "number",
  unknown: REASONS,
};

export const RUN: Shape = {
  id: "text",
  kind: "text",
  created: "text",
  tool: { version: "text", commit: "text" },
  host: HOST,
  subject: {
    type: "text",
    name: "text",
    path: "text",
    sha256: "text",
    size_bytes: "number",
    runtime: { name: "text", version: "text" },
    static: STATIC,
    static_optimized: STATIC,
  },
  config: {},
  roof: { threads: "number", flops: "number", int_ops: "number", bandwidth: "number", measured: "text" },
  trace: "text",
  cases: [CASE],
  findings: [{ id: "text", severity: "text", title: "text", case: "text", evidence: {}, action: "text" }],
  recommendation: {
    objective: "text",
    case: "text",
    why: "text",
    proof: {
      against: "text",
      metric: "text",
      ratio: "number",
      ratio_lo: "number",
      ratio_hi: "number",
      confidence: "number",
      verdict: "text",
    },
  },
  targets: [
    {
      metric: "text",
      op: "text",
      value: "number",
      unit: "text",
      case: "text",
      achieved: "number",
      ratio: "number",
      verdict: "text",
      confidence: "number",
    },
  ],
};

type Loose = Record<string, unknown>;

const isNumber = (v: unknown): v is number => typeof v === "number" && Number.isFinite(v);

const LEAVES: Record<Leaf, (v: unknown) => unknown> = {
  text: (v) => (typeof v === "string" ? v : undefined),
  number: (v) => (isNumber(v) ? v : undefined),
  numbers: (v) => (!Array.isArray(v) ? undefined : v.every(isNumber) ? v : v.filter(isNumber)),
};

function shapedMembers(of: Loose, shape: { readonly [member: string]: Shape }): Loose {
  const out: Loose = { ...of };
  for (const key of "*" in shape ? Object.keys(of) : Object.keys(shape))
    if (out[key] !== undefined && out[key] !== null) out[key] = shaped(out[key], shape["*"] ?? shape[key]!);
  return out;
}

/** The value as its shape says, or undefined. */
export function shaped(value: unknown, shape: Shape): unknown {
  if (typeof shape === "string") return LEAVES[shape](value);
  if (Array.isArray(shape))
    return Array.isArray(value) ? value.map((v) => shaped(v, shape[0])).filter((v) => v !== undefined) : undefined;
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? shapedMembers(value as Loose, shape as { [member: string]: Shape }) : undefined;
}
