// SPDX-License-Identifier: MIT
// theme.ts - light and dark: the system's choice unless the reader chose. Canvases ask here for their colours and are
// told when they change; the colours themselves are in style.css, once.
import { useEffect, useState } from "preact/hooks";
import { readView, writeView } from "./hash";

export type Theme = "light" | "dark";

export interface Colours {
  ink: string;
  soft: string;
  faint: string;
  line: string;
  paper: string;
  good: string;
  bad: string;
  warn: string;
  accent: string;
  /** Eight series colours that stay apart for every kind of colour vision. */
  series: string[];
}

const watchers = new Set<() => void>();
const media = () => window.matchMedia("(prefers-color-scheme: dark)");

export function currentTheme(): Theme {
  const chosen = readView("theme");
  if (chosen === "light" || chosen === "dark") return chosen;
  return media().matches ? "dark" : "light";
}

function apply(): void {
  document.documentElement.dataset.theme = currentTheme();
  for (const tell of watchers) tell();
}

export function startTheme(): void {
  apply();
  media().addEventListener("change", apply);
  window.addEventListener("hashchange", apply);
}

export function toggleTheme(): void {
  const next: Theme = currentTheme() === "dark" ? "light" : "dark";
  writeView("theme", next === (media().matches ? "dark" : "light") ? undefined : next);
  apply();
}

export function readColours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const series = Array.from({ length: 8 }, (_, i) => get(`c${i}`));
  return {
    ink: get("ink"),
    soft: get("soft"),
    faint: get("faint"),
    line: get("line"),
    paper: get("paper"),
    good: get("good"),
    bad: get("bad"),
    warn: get("warn"),
    accent: get("accent"),
    series,
  };
}

/** The colours of now; the component is drawn again when they change. */
export function useColours(): Colours {
  const [colours, setColours] = useState(readColours);
  useEffect(() => {
    const tell = () => setColours(readColours());
    watchers.add(tell);
    return () => void watchers.delete(tell);
  }, []);
  return colours;
}
