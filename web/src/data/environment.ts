// SPDX-License-Identifier: MIT
// environment.ts - where and with what a run was measured, as names with values or reasons. Pure.
import { bytes, count, instant, isKnown, number, shown, UNKNOWN } from "../ui/format";
import type { Host, Json, JsonObject, RunDocument } from "./page";

export interface Fact {
  name: string;
  value: string | null;
  why?: string | null;
}

const text = (v: unknown): string | null => (typeof v === "string" && v ? v : null);
const yesNo = (v: unknown): string | null => (typeof v === "boolean" ? (v ? "yes" : "no") : null);

function gpuText(host: Host): string | null {
  if (!Array.isArray(host.gpus) || !host.gpus.length) return null;
  return host.gpus
    .map((g) => `${shown(g.name ?? UNKNOWN, 60)}${isKnown(g.memory_bytes) ? `, ${bytes(g.memory_bytes)}` : ""}`)
    .join("; ");
}

function cpuText(host: Host): string | null {
  const c = host.cpu;
  if (!c?.model) return null;
  const cores = isKnown(c.cores) ? `, ${count(c.cores)} processors` : "";
  const usable = isKnown(c.usable) && c.usable !== c.cores ? `, ${number(c.usable)} usable` : "";
  return c.model + cores + usable;
}

/** The reason of a member, or of what it is part of. */
function reason(host: Host, path: string): string | null {
  const all = host.unknown ?? {};
  for (let at = path; at; at = at.includes(".") ? at.slice(0, at.lastIndexOf(".")) : "") if (all[at]) return all[at]!;
  return null;
}

export function hostFacts(host: Host): Fact[] {
  const fact = (name: string, value: string | null, path: string): Fact => {
    const why = value === null ? reason(host, path) : null;
    return why === "no limit" ? { name, value: why } : { name, value, why };
  };
  const group = host.cgroup ?? {};
  return [
    fact("Host", text(host.hostname), "hostname"),
    fact("Processor", cpuText(host), "cpu.model"),
    fact("Memory", isKnown(host.memory_bytes) ? bytes(host.memory_bytes) : null, "memory_bytes"),
    fact("GPU", gpuText(host), "gpus"),
    fact("System", text(host.os), "os"),
    fact("Kernel", text(host.kernel), "kernel"),
    fact("Architecture", text(host.arch), "arch"),
    fact("Virtual machine", yesNo(host.virtual), "virtual"),
    fact("Clock governor", text(host.governor), "governor"),
    fact("Load before", isKnown(host.load1) ? number(host.load1) : null, "load1"),
    fact(
      "Processor limit of the group",
      isKnown(group.cpu_quota) ? `${number(group.cpu_quota)} processors` : null,
      "cgroup.cpu_quota",
    ),
    fact(
      "Memory limit of the group",
      isKnown(group.memory_limit_bytes) ? bytes(group.memory_limit_bytes) : null,
      "cgroup.memory_limit_bytes",
    ),
    fact("Fingerprint", text(host.fingerprint), "fingerprint"),
  ];
}

export function runFacts(run: RunDocument): Fact[] {
  const s = run.subject ?? {};
  const runtime = s.runtime?.name ? `${s.runtime.name} ${s.runtime.version ?? ""}`.trim() : null;
  const tool = run.tool?.version ? `tare ${run.tool.version}${run.tool.commit ? ` (${run.tool.commit})` : ""}` : null;
  return [
    { name: "Subject", value: text(s.name) },
    { name: "Kind", value: text(s.type) },
    { name: "File", value: text(s.path) },
    { name: "Size of the file", value: isKnown(s.size_bytes) ? bytes(s.size_bytes) : null },
    { name: "SHA-256", value: text(s.sha256) },
    { name: "Runtime", value: runtime },
    { name: "Measured", value: run.created ? instant(run.created) : null },
    { name: "By", value: tool },
    { name: "Run", value: text(run.id) },
  ];
}

/** A configuration as rows: nested members by their path, everything as text. */
export function configRows(config: Record<string, Json>, most = 200): [string, string][] {
  const rows: [string, string][] = [];
  const walk = (value: Json, path: string): void => {
    if (rows.length >= most) return;
    const inner =
      value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value as JsonObject) : null;
    if (inner) inner.forEach(([k, v]) => walk(v, path ? `${path}.${k}` : k));
    else rows.push([path, Array.isArray(value) ? JSON.stringify(value) : String(value)]);
  };
  walk(config, "");
  return rows;
}
