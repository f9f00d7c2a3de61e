// SPDX-License-Identifier: MIT
// sidebyside.ts - one run and those that are held against it, a row for each metric of each case. Pure.
import { type ComparedRow, type Comparison, VERDICTS } from "../data/comparison";
import type { Cell, Column, Grid } from "../data/grid";
import { change, interval, isKnown, ofUnit } from "../ui/format";

const keyOf = (r: ComparedRow): string => `${r.case}\n${r.metric}`;

function ratioText(r: ComparedRow): string | null {
  if (!isKnown(r.ratio?.value)) return null;
  const { value, lo, hi } = r.ratio;
  return isKnown(lo) && isKnown(hi) ? `${change(value)} (${change(lo)} to ${change(hi)})` : change(value);
}

/** Base first, then for each run its value, its ratio to the base with the interval, and the verdict. */
export function sideBySide(base: string, others: { name: string; comparison: Comparison }[]): Grid {
  const columns: Column[] = [
    { title: "case", text: true },
    { title: "metric", text: true },
    { title: base, text: true },
  ];
  for (const o of others)
    for (const what of ["", " against the first", " verdict"]) columns.push({ title: `${o.name}${what}`, text: true });
  const rows = new Map<string, Cell[]>();
  others.forEach(({ comparison }, i) => {
    for (const r of comparison.rows) {
      const format = ofUnit(r.unit);
      const row = rows.get(keyOf(r)) ?? [r.case, r.metric, isKnown(r.base?.value) ? interval(r.base, format) : null];
      row[3 + 3 * i] = isKnown(r.new?.value) ? interval(r.new, format) : null;
      row[4 + 3 * i] = ratioText(r);
      row[5 + 3 * i] = r.verdict;
      rows.set(keyOf(r), row);
    }
  });
  return { columns, rows: [...rows.values()].map((r) => columns.map((_, i) => r[i] ?? null)) };
}

/** The worst that any of them says. */
export const worstOf = (verdicts: string[]): string | undefined => VERDICTS.find((v) => verdicts.includes(v));
