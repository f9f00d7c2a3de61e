// SPDX-License-Identifier: MIT
// runs.ts - runs of a list as the server tells them, as rows of a table, and those that are chosen to be compared. Pure.
import type { Cell, Grid } from "../data/grid";
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
}

/** Where these are in a row. */
export const RUN_ID = 0;
export const RUN_SUBJECT = 2;

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
    rows: list.map((r): Cell[] => [
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

// ---- those that are chosen ----

export const COMPARED_MOST = 8;
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** The ids in the address, in the order they were chosen; what is no id, comes twice or is one too many is left out. */
export const idsOf = (text: string): string[] =>
  [...new Set(text.split(",").map((id) => id.toUpperCase()))].filter((id) => ID.test(id)).slice(0, COMPARED_MOST);

export function toggled(text: string, id: string): string {
  const ids = idsOf(text);
  return (ids.includes(id) ? ids.filter((i) => i !== id) : [...ids, id].slice(0, COMPARED_MOST)).join(",");
}

/** The id of the last run of a full page: the next page begins after it. */
export const nextPage = (list: ListedRun[], size: number): string | undefined =>
  list.length >= size ? list[list.length - 1]?.id : undefined;
