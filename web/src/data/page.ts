// SPDX-License-Identifier: MIT
// page.ts - what a page is given: documents that tare wrote, read as they are. Every member may be missing, because
// documents come from other versions too; what is missing is unknown, never 0.
import type * as document from "./document.gen";
import { RUN_WITH_SAMPLES, shaped } from "./shape";

export type * from "./document.gen";

export type JsonObject = { [key: string]: document.Json };
export type Reasons = Record<string, string>;

/** A case, with its single latencies in the order they were taken, decoded by whoever wrote the page. */
export interface Case extends document.Case {
  samples_ns?: number[] | null;
  samples_kept?: string | null;
}

export interface RunDocument extends Omit<document.RunDocument, "cases"> {
  schema?: string;
  cases?: Case[] | null;
}

export interface RunItem {
  kind: "run";
  name?: string;
  document: RunDocument;
}

/** Documents whose sections describe them further. */
export interface OtherItem {
  kind: "comparison" | "profile" | "history" | "timeline" | "bars" | "memory";
  name?: string;
  document: JsonObject;
  /** Of a profile: the scopes of the same trace over time. */
  bars?: JsonObject;
}

export type Item = RunItem | OtherItem;

export interface Page {
  schema: string;
  title?: string;
  created?: string;
  tool?: document.Tool;
  items: Item[];
}

const SCHEMA = "tare.page/1";
const KINDS = ["run", "comparison", "profile", "history", "timeline", "bars", "memory"];

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
export function readItem(item: Item): Item {
  const name = typeof item.name === "string" ? item.name : undefined;
  if (item.kind !== "run") return { ...item, name };
  const document = shaped(item.document, RUN_WITH_SAMPLES) as RunDocument;
  document.cases?.forEach((c, i) => (c.name ??= `case ${i + 1}`));
  document.cases?.forEach((c) => c.layers?.forEach((l) => (l.name ??= "(no name)")));
  return { kind: "run", name, document };
}

/** Scopes over time are shown beside the profile of the same trace; with a GPU they are a document of their own. */
function joinBars(items: Item[]): Item[] {
  return items.filter((item, i) => {
    const before = items[i - 1];
    if (item.kind !== "bars" || item.document.gpu || before?.kind !== "profile" || before.name !== item.name) return true;
    before.bars = item.document;
    return false;
  });
}

/** The page of what was read, or why it is none. Items of a kind this viewer does not know are left out. */
export function pageOf(data: unknown): Page | string {
  const page = data as Page | null;
  if (page?.schema !== SCHEMA || !Array.isArray(page.items)) return `The data of this page is not ${SCHEMA}.`;
  const title = typeof page.title === "string" ? page.title : undefined;
  return { ...page, title, items: joinBars(page.items.filter(isItem).map(readItem)) };
}

export function readPage(text: string): Page | string {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (e) {
    return `The data of this page is no JSON: ${(e as Error).message}`;
  }
  if (data === null) return "This page has no data in it yet: it is the empty viewer.";
  return pageOf(data);
}
