// SPDX-License-Identifier: MIT
// flamecolour.ts - colours of frames. A colour says where a function lives: the costliest files get hues of their own, the
// rest is grey. In a difference it says more or less than the base. Names and numbers say the same in words, and every
// fill is far enough from its ink to be read (a test measures it).
import { changeOf, isTold } from "./calltree";
import { baseName, type Frames } from "./profile";

export interface Tone {
  /** Degrees, and percent. */
  hue: number;
  saturation: number;
  light: number;
}

/** Far apart in hue for every kind of colour vision in the order they are given out. */
const HUES = [30, 212, 160, 322, 52, 262, 188];
const LIGHT = { saturation: 68, light: 83, spread: 4, ink: "#1b1b1a", soft: "#424240" };
const DARK = { saturation: 34, light: 28, spread: 2.5, ink: "#f4f4f1", soft: "#dededa" };
const themeOf = (dark: boolean) => (dark ? DARK : LIGHT);

export const inkOf = (dark: boolean): string => themeOf(dark).ink;
export const softInkOf = (dark: boolean): string => themeOf(dark).soft;
export const cssOf = (t: Tone): string => `hsl(${t.hue} ${t.saturation}% ${t.light}%)`;

/** The file of a function, or what stands before the last dot of its name; Python's own functions are one module. */
export function moduleOf(frames: Frames, frame: number): string {
  const file = frames.file[frame];
  if (file) return baseName(file);
  const name = frames.name[frame]!.slice(0, 400);
  if (/^<(built-in|method)\b/.test(name)) return "built-in";
  const cut = Math.max(name.lastIndexOf("."), name.lastIndexOf("::"));
  return cut > 0 ? name.slice(0, cut) : "";
}

export interface Module {
  name: string;
  self: number;
  /** Index of its hue, -1: grey. */
  hue: number;
}

export interface Modules {
  /** Costliest first. */
  list: Module[];
  of: Int32Array;
}

export function modulesOf(frames: Frames, self: Float64Array): Modules {
  const at = new Map<string, Module>();
  const each = frames.name.map((_, f) => {
    const name = moduleOf(frames, f);
    let m = at.get(name);
    if (!m) at.set(name, (m = { name, self: 0, hue: -1 }));
    m.self += self[f]!;
    return m;
  });
  const list = [...at.values()].sort((a, b) => b.self - a.self);
  list.filter((m) => m.name !== "").slice(0, HUES.length).forEach((m, i) => (m.hue = i));
  const place = new Map(list.map((m, i) => [m, i]));
  return { list, of: Int32Array.from(each, (m) => place.get(m)!) };
}

/** A number for a name, the same in every page. */
export function hashOf(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < Math.min(text.length, 200); i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h >>> 0;
}

export function moduleTone(hue: number, dark: boolean, shade = 0): Tone {
  const t = themeOf(dark);
  const light = t.light + shade * t.spread;
  return hue < 0 ? { hue: 60, saturation: dark ? 3 : 6, light: light + (dark ? -4 : 5) } : { hue: HUES[hue]!, saturation: t.saturation, light };
}

/** Functions of one file differ in shade, so that neighbours stay apart. */
export const frameTone = (modules: Modules, frames: Frames, frame: number, dark: boolean): Tone =>
  moduleTone(modules.list[modules.of[frame]!]!.hue, dark, ((hashOf(frames.name[frame]!) % 5) - 2) / 2);

/** What a search did not ask for. */
export const quietTone = (dark: boolean): Tone => ({ hue: 60, saturation: dark ? 3 : 5, light: dark ? 17 : 94 });

export const DIFF_STEPS = 4;
const LESS = 212;
const MORE = 24;

/** Step from -4 (gone) over 0 (the same: within a percent, or within its error) to 4 (new). */
export function diffStep(now: number, before: number, error: number): number {
  const change = changeOf(now, before);
  if (Math.abs(change) < 0.01 || !isTold(now, before, error)) return 0;
  return Math.sign(change) * Math.min(DIFF_STEPS, 1 + Math.floor(Math.abs(change) * DIFF_STEPS));
}

export function diffTone(step: number, dark: boolean): Tone {
  const size = Math.abs(step);
  if (!size) return { hue: 60, saturation: dark ? 3 : 6, light: dark ? 24 : 90 };
  return { hue: step < 0 ? LESS : MORE, saturation: dark ? 30 + 8 * size : 60 + 8 * size, light: dark ? 22 + 3 * size : 91 - 4 * size };
}
