// SPDX-License-Identifier: MIT
// Shell.tsx - the page around the parts: its head, the choice of document, navigation, keys. Knows the table of parts
// and no part. The pages of the server (app/) show documents by the same Document.
import { useEffect, useMemo, useState } from "preact/hooks";
import { answerOf, readComparison } from "./data/comparison";
import type { Item, JsonObject, Page, RunDocument } from "./data/page";
import { type Section, sectionsOf } from "./sections";
import { Boundary } from "./ui/Boundary";
import { instant, shown } from "./ui/format";
import { useView, writeView } from "./ui/hash";
import { toggleTheme, currentTheme, useColours } from "./ui/theme";

const KIND_WORDS: Record<string, string> = {
  run: "Run",
  comparison: "Comparison",
  profile: "Profile",
  history: "History",
  timeline: "Timeline",
  bars: "GPU",
};

/** A run is called by what was weighed; anything else by the file it came from. */
function itemTitle(item: Item): string {
  const subject = item.kind === "run" ? item.document.subject?.name : null;
  return shown(subject ?? item.name ?? KIND_WORDS[item.kind], 60);
}

/** What tells two documents of one subject apart. */
function tabTitle(item: Item): string {
  return item.name || item.kind === "run" ? shown(item.name ?? itemTitle(item), 120) : "";
}

function subtitle(item: Item): string {
  const d = item.document as RunDocument;
  const parts = [KIND_WORDS[item.kind]!];
  if (item.kind === "run" && d.subject?.type) parts.push(shown(d.subject.type, 40));
  if (d.subject?.runtime?.name)
    parts.push(shown(`${d.subject.runtime.name} ${d.subject.runtime.version ?? ""}`.trim(), 60));
  if (d.host?.cpu?.model) parts.push(shown(d.host.cpu.model, 60));
  if (item.kind === "run" && item.name && item.name !== d.subject?.name) parts.push(shown(item.name, 80));
  if (d.created) parts.push(`${d.kind === "inspect" ? "looked at" : "measured"} ${instant(d.created)}`);
  return parts.join(" · ");
}

export function Tabs(props: { page: Page; at: number; onPick: (i: number) => void }) {
  const { items } = props.page;
  if (items.length < 2) return null;
  return (
    <nav class="tabs" aria-label="Documents">
      {items.map((item, i) => (
        <button type="button" aria-current={i === props.at ? "page" : undefined} onClick={() => props.onPick(i)}>
          <small>{KIND_WORDS[item.kind]}</small> <span title={tabTitle(item)}>{tabTitle(item)}</span>
        </button>
      ))}
    </nav>
  );
}

export function ThemeButton() {
  useColours();
  const next = currentTheme() === "dark" ? "light" : "dark";
  return (
    <button type="button" class="theme" onClick={toggleTheme} aria-label={`Show in ${next} colours`}>
      {next === "dark" ? "◐ Dark" : "◑ Light"}
    </button>
  );
}

/** Which part is at the top of the window. */
function partAt(list: Section[]): number {
  const tops = list.map((s) => document.getElementById(s.id)?.getBoundingClientRect().top ?? Infinity);
  return tops.reduce((found, top, i) => (top <= 80 ? i : found), 0);
}

function goTo(id: string): void {
  const el = document.getElementById(id);
  el?.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  el?.querySelector<HTMLElement>("h2")?.focus({ preventScroll: true });
  writeView("at", id);
}

/** The part under the top of the window, followed while the reader scrolls. */
function useWhere(list: Section[]): string | undefined {
  const [at, setAt] = useState<string>();
  useEffect(() => {
    let asked = 0;
    const look = () => {
      asked = 0;
      setAt(list[partAt(list)]?.id);
    };
    const onScroll = () => (asked ||= requestAnimationFrame(look));
    look();
    window.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      window.removeEventListener("scroll", onScroll);
      cancelAnimationFrame(asked);
    };
  }, [list]);
  return at;
}

/** Paper cannot be clicked: what is folded is unfolded for it. */
export function useUnfoldedPrint(): void {
  useEffect(() => {
    let opened: HTMLDetailsElement[] = [];
    const before = () => {
      opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
      opened.forEach((d) => (d.open = true));
    };
    const after = () => opened.forEach((d) => (d.open = false));
    window.addEventListener("beforeprint", before);
    window.addEventListener("afterprint", after);
    return () => {
      window.removeEventListener("beforeprint", before);
      window.removeEventListener("afterprint", after);
    };
  }, []);
}

function Contents(props: { list: Section[] }) {
  const at = useWhere(props.list);
  return (
    <nav class="contents" aria-label="Parts of the page">
      <ul>
        {props.list.map((s) => (
          <li>
            <button type="button" aria-current={at === s.id ? "location" : undefined} onClick={() => goTo(s.id)}>
              {s.title}
            </button>
          </li>
        ))}
      </ul>
    </nav>
  );
}

const KEY_HELP: [string, string][] = [
  ["j, k", "next part, previous part"],
  ["1 to 9", "choose a document"],
  ["d", "light or dark"],
  ["p", "print"],
  ["← →", "move along a plot that has the focus"],
  ["+ − 0", "zoom in, zoom out, show all"],
  ["?", "these keys"],
];

export function KeyHelp(props: { keys: [string, string][]; onClose: () => void }) {
  return (
    <div class="help" role="dialog" aria-label="Keys" aria-modal="false">
      <dl>
        {props.keys.map(([key, what]) => (
          <div>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={props.onClose}>
        Close
      </button>
    </div>
  );
}

function step(list: Section[], by: number): void {
  const to = list[Math.min(Math.max(partAt(list) + by, 0), list.length - 1)];
  if (to) goTo(to.id);
}

export const typing = (e: KeyboardEvent): boolean => {
  const el = e.target as HTMLElement;
  return (
    e.ctrlKey ||
    e.metaKey ||
    e.altKey ||
    /^(INPUT|SELECT|TEXTAREA)$/.test(el.tagName) ||
    el.getAttribute("aria-roledescription") === "plot"
  );
};

/** What single keys do, unless the reader types or has moved into a plot. */
export function useActs(acts: Record<string, () => void>, on: unknown[]): void {
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      const act = acts[e.key];
      if (!act || typing(e) || e.defaultPrevented) return;
      e.preventDefault();
      act();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, on);
}

function useKeys(page: Page, pick: (i: number) => void, help: (shown?: boolean) => void): void {
  const acts: Record<string, () => void> = {
    d: toggleTheme,
    p: () => print(),
    "?": () => help(),
    Escape: () => help(false),
  };
  page.items.slice(0, 9).forEach((_, i) => (acts[String(i + 1)] = () => pick(i)));
  useActs(acts, [page]);
}

function Parts(props: { list: Section[]; item: Item; page: Page }) {
  return (
    <>
      {props.list.map((s) => (
        <section id={s.id} aria-labelledby={`h-${s.id}`}>
          <h2 id={`h-${s.id}`} tabIndex={-1}>
            {s.title}
          </h2>
          <Boundary>
            <s.Component item={props.item} page={props.page} />
          </Boundary>
        </section>
      ))}
    </>
  );
}

function Foot(props: { page: Page }) {
  const { tool, created } = props.page;
  const by = tool?.version ? `tare ${tool.version}${tool.commit ? ` (${tool.commit})` : ""}` : "tare";
  return (
    <footer>
      Written by {shown(by, 80)} at {instant(created)}. Times are UTC. This page makes no network request. Press{" "}
      <kbd>?</kbd> for keys.
    </footer>
  );
}

export function Skip() {
  return (
    <a
      class="skip"
      href="#content"
      onClick={(e) => {
        e.preventDefault();
        document.getElementById("content")?.focus();
      }}
    >
      Skip to content
    </a>
  );
}

/** One document whole: its parts, and the way to each. */
export function Document(props: { item: Item; page: Page }) {
  const { item, page } = props;
  const list = useMemo(() => sectionsOf(item, page), [item, page]);
  useActs({ j: () => step(list, 1), k: () => step(list, -1) }, [list]);
  return (
    <div class="columns">
      <Contents list={list} />
      <div>
        <Parts list={list} item={item} page={page} />
        {list.length === 0 && <p class="empty">This viewer has no part that shows a document of this kind.</p>}
      </div>
    </div>
  );
}

/** Of a comparison the answer; else what was weighed, or the page's own title where it holds several documents. */
function headingOf(page: Page, item: Item): string {
  try {
    if (item.kind === "comparison") return answerOf(readComparison(item.document as JsonObject));
  } catch {
    return itemTitle(item); // its part says what is wrong with it
  }
  return page.items.length > 1 ? (page.title ?? itemTitle(item)) : itemTitle(item);
}

export function Shell(props: { page: Page }) {
  const { page } = props;
  const [chosen, setChosen] = useView("item", "0");
  const [help, setHelp] = useState(false);
  const at = Math.min(Math.max(Number(chosen) || 0, 0), page.items.length - 1);
  const item = page.items[at]!;
  useUnfoldedPrint();
  useKeys(
    page,
    (i) => setChosen(String(i)),
    (open) => setHelp((h) => open ?? !h),
  );
  const heading = headingOf(page, item);
  return (
    <>
      <Skip />
      <header>
        <div>
          <h1>{shown(heading, 120)}</h1>
          <p>{subtitle(item)}</p>
        </div>
        <ThemeButton />
      </header>
      <Tabs page={page} at={at} onPick={(i) => setChosen(String(i))} />
      <main id="content" tabIndex={-1} key={at}>
        <Document item={item} page={page} />
      </main>
      <Foot page={page} />
      {help && <KeyHelp keys={KEY_HELP} onClose={() => setHelp(false)} />}
    </>
  );
}
