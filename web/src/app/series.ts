// SPDX-License-Identifier: MIT
// series.ts - which series there are, and the changes of those that were judged. Pure.
import { readHistory } from "../data/history";
import type { JsonObject } from "../data/page";

export interface SeriesName {
  subject: string;
  case: string;
  metric: string;
  host: string;
}

export interface SeriesList {
  series: SeriesName[];
}

/** The different names, in the order of the alphabet. */
export const namesOf = (list: SeriesList, what: keyof SeriesName): string[] =>
  [...new Set(list.series.map((s) => s[what]))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));

export interface Change {
  case: string;
  host: string;
  worse: boolean;
  ratio?: number | null;
  lo?: number | null;
  hi?: number | null;
  run?: string;
  before?: string;
}

/** Every change of a tare.trend/1 document, the newest of each series first. */
export const changesOf = (document: JsonObject): Change[] =>
  readHistory(document).series.flatMap((s) =>
    [...s.changes].reverse().map((c) => ({
      case: s.case,
      host: s.host,
      worse: c.worse === true,
      ratio: c.ratio,
      lo: c.ratio_lo,
      hi: c.ratio_hi,
      run: s.points[c.at]?.run,
      before: s.points[c.at - 1]?.run,
    })),
  );
