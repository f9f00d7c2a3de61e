// SPDX-License-Identifier: MIT
// self.tsx - the server about itself: what it answered, what waits, what it wrote.
import type { Fact } from "../../data/environment";
import { Facts } from "../../ui/Facts";
import { bytes, count, duration, type Format, isKnown } from "../../ui/format";
import { useAnswer } from "../api";
import type { PageRow } from "../pages";
import { Loaded } from "../parts";

interface SelfAnswer {
  version?: string;
  replies?: Record<string, number>;
  [key: string]: unknown;
}

/** Members that are shown, in this order; what is not listed here is shown behind them as it is. */
const ROWS: Record<string, [string, Format]> = {
  uptime_s: ["Running for", (v) => duration(v * 1e9)],
  threads: ["Threads", count],
  connections: ["Connections now", count],
  accepted: ["Connections so far", count],
  refused: ["Connections refused", count],
  closed_by_deadline: ["Closed because they were slow", count],
  requests: ["Requests", count],
  bytes_in: ["Received", (v) => bytes(v)],
  bytes_out: ["Sent", (v) => bytes(v)],
  commits: ["Commits", count],
  committed: ["Records that were committed", count],
};

export function selfFacts(self: SelfAnswer): Fact[] {
  const facts: Fact[] = [{ name: "Version", value: self.version ?? null }];
  for (const [key, [name, format]] of Object.entries(ROWS))
    facts.push({ name, value: isKnown(self[key]) ? format(self[key]) : null });
  for (const [kind, n] of Object.entries(self.replies ?? {})) facts.push({ name: `Replies ${kind}`, value: count(n) });
  for (const [key, v] of Object.entries(self))
    if (!(key in ROWS) && isKnown(v)) facts.push({ name: key.replaceAll("_", " "), value: count(v) });
  return facts;
}

function Self() {
  const self = useAnswer<SelfAnswer>("/api/v1/self", 5);
  return <Loaded of={self}>{(s) => <Facts facts={selfFacts(s)} />}</Loaded>;
}

export const self: PageRow = { id: "self", title: "Server", scope: "read", Component: Self };
