// SPDX-License-Identifier: MIT
// runs.ts - runs of a list as the server tells them, and as rows of a table. Pure.
import type { Grid } from "../data/grid";
import { count, instant } from "../ui/format";

/** One run of GET /api/v1/runs; what is unknown is null. */
export interface ListedRun {
  id: string;
  created: string;
  kind: string;
  subject: string;
  hostname?: string | null;
  host?: string | null;
  commit?: string | null;
  branch?: string | null;
  cases?: number | null;
  tags?: string[] | null;
}

export interface RunList {
  runs: ListedRun[];
  /** Where the next page begins; null: there is none. */
  next?: string | null;
}

export const hostName = (r: ListedRun): string | null => r.hostname || r.host || null;

export function runsGrid(list: ListedRun[]): Grid {
  return {
    columns: [
      { title: "run", text: true },
      { title: "created (UTC)", text: true },
      { title: "subject", text: true },
      { title: "kind", text: true },
      { title: "host", text: true },
      { title: "commit", text: true },
      { title: "branch", text: true },
      { title: "cases", format: count },
      { title: "tags", text: true },
    ],
    rows: list.map((r) => [
      r.id,
      instant(r.created).replace(" UTC", ""),
      r.subject,
      r.kind,
      hostName(r),
      r.commit?.slice(0, 10) ?? null,
      r.branch ?? null,
      r.cases ?? null,
      r.tags?.join(", ") ?? "",
    ]),
  };
}
