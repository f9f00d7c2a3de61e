// SPDX-License-Identifier: MIT
// hash.ts - what is shown is in the address behind the #, so that a link or a reload shows the same. Keys are short
// words; a value equal to its default is left out of the address.
import { useCallback, useEffect, useState } from "preact/hooks";

type View = Map<string, string>;
const watchers = new Set<() => void>();

export function parseView(hash: string): View {
  const view: View = new Map();
  for (const [key, value] of new URLSearchParams(hash.replace(/^#/, ""))) view.set(key, value);
  return view;
}

export const viewText = (view: View): string => new URLSearchParams([...view]).toString();

export const readView = (key: string): string | undefined => parseView(location.hash).get(key);

/** Set one key; undefined takes it out. The history is not filled with every click. */
export function writeView(key: string, value: string | undefined): void {
  const view = parseView(location.hash);
  if (value === undefined) view.delete(key);
  else view.set(key, value);
  const text = viewText(view);
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  for (const tell of watchers) tell();
}

/** The address of a view with these keys and no others, but for the colours that were chosen. */
export function viewLink(keys: Record<string, string | undefined>): string {
  const theme = readView("theme");
  const view: View = new Map(Object.entries(keys).filter((e): e is [string, string] => !!e[1]));
  if (theme) view.set("theme", theme);
  return `#${viewText(view)}`;
}

// Unit tests have no window.
if (typeof window !== "undefined") window.addEventListener("hashchange", () => watchers.forEach((tell) => tell()));

/** A piece of state that lives in the address. */
export function useView(key: string, initial = ""): [string, (value: string) => void] {
  const [value, setValue] = useState(() => readView(key) ?? initial);
  useEffect(() => {
    const tell = () => setValue(readView(key) ?? initial);
    watchers.add(tell);
    tell();
    return () => void watchers.delete(tell);
  }, [key, initial]);
  const set = useCallback((v: string) => writeView(key, v === initial ? undefined : v), [key, initial]);
  return [value, set];
}
