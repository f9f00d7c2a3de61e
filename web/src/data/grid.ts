// SPDX-License-Identifier: MIT
// grid.ts - a table as data: what the page shows, sorts and writes as CSV. Cells are raw values; columns say how they read.

export type Cell = string | number | boolean | null | undefined;

export interface Column {
  /** Heading; with a unit in it where the CSV needs one. */
  title: string;
  /** How a number is shown; the CSV always has the number itself. */
  format?: (v: number) => string;
  /** Text reads from the left, numbers from the right. */
  text?: boolean;
}

export interface Grid {
  columns: Column[];
  rows: Cell[][];
}

/** Above cells that show their own unit, the CSV's unit would be false. */
export const heading = (c: Column): string => (c.format ? c.title.replace(/(, (ns|s|B|B\/s)| \((ns|s|B|B\/s)\))$/, "") : c.title);

function quoted(cell: Cell): string {
  if (cell === null || cell === undefined) return "";
  const text = String(cell);
  // A spreadsheet takes these for a formula.
  const safe = typeof cell === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** RFC 4180, numbers as they are; unknown is empty. */
export function csvOf(grid: Grid): string {
  const lines = [grid.columns.map((c) => quoted(c.title)), ...grid.rows.map((r) => r.map(quoted))];
  return lines.map((cells) => cells.join(",")).join("\r\n") + "\r\n";
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

const isNone = (c: Cell): boolean => c === null || c === undefined || (typeof c === "number" && Number.isNaN(c));

/** Rows in the order of one column; unknown cells last, either way. Stable. */
export function sortRows(rows: Cell[][], column: number, down: boolean): Cell[][] {
  const some = rows.filter((r) => !isNone(r[column]));
  const none = rows.filter((r) => isNone(r[column]));
  some.sort((a, b) => (down ? -1 : 1) * compare(a[column], b[column]));
  return [...some, ...none];
}
