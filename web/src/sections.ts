// SPDX-License-Identifier: MIT
// sections.ts - the parts of a page, in the order they are shown. A part is a row here and a file under sections/; it
// says itself to which documents it applies. Nothing else knows the parts.
import type { ComponentType } from "preact";
import type { Item, Page } from "./data/page";
import { flame } from "./sections/flame";
import { headline } from "./sections/headline";

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

export const sections: readonly Section[] = [headline, flame];

export const sectionsOf = (item: Item, page: Page): Section[] => sections.filter((s) => s.applies(item, page));
