// SPDX-License-Identifier: MIT
// sections.ts - the parts of a page, in the order they are shown. A part is a row here and a file under sections/; it
// says itself to which documents it applies. Nothing else knows the parts.
import type { ComponentType } from "preact";
import type { Item, Page } from "./data/page";
import { bars } from "./sections/bars";
import { comparison } from "./sections/comparison";
import { curves } from "./sections/curves";
import { distribution } from "./sections/distribution";
import { environment } from "./sections/environment";
import { findings } from "./sections/findings";
import { flame } from "./sections/flame";
import { gpu } from "./sections/gpu";
import { headline } from "./sections/headline";
import { held } from "./sections/held";
import { history } from "./sections/history";
import { kernels } from "./sections/kernels";
import { layers } from "./sections/layers";
import { memory } from "./sections/memory";
import { model } from "./sections/model";
import { pareto } from "./sections/pareto";
import { proof } from "./sections/proof";
import { requests } from "./sections/requests";
import { roofline } from "./sections/roofline";
import { self } from "./sections/self";
import { staticCost } from "./sections/static";
import { targets } from "./sections/targets";
import { timeline } from "./sections/timeline";
import { tokens } from "./sections/tokens";

export interface SectionProps {
  item: Item;
  page: Page;
}

export interface Section {
  /** Unique; the anchor in the page and the key in the address. */
  id: string;
  title: string;
  applies(item: Item, page: Page): boolean;
  Component: ComponentType<SectionProps>;
}

export const sections: readonly Section[] = [
  headline,
  proof,
  targets,
  comparison,
  history,
  curves,
  findings,
  requests,
  tokens,
  distribution,
  memory,
  layers,
  model,
  roofline,
  pareto,
  timeline,
  gpu,
  held,
  flame,
  bars,
  kernels,
  staticCost,
  self,
  environment,
];

/** A part that stumbles over a document already here is shown, and says so in its place. */
function applies(s: Section, item: Item, page: Page): boolean {
  try {
    return s.applies(item, page);
  } catch {
    return true;
  }
}

export const sectionsOf = (item: Item, page: Page): Section[] => sections.filter((s) => applies(s, item, page));
