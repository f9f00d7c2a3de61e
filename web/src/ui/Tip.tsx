// SPDX-License-Identifier: MIT
// Tip.tsx - what is under the pointer, in words beside it. It lies above the page and takes no room in it, so that nothing
// moves when it comes and goes.
import { useState } from "preact/hooks";

export interface TipAt {
  /** Of the window. */
  x: number;
  y: number;
}

const AWAY = 14;

/** On the side of the pointer on which there is more room. */
export function tipPlace(at: TipAt, width: number, height: number): Record<string, string> {
  const right = at.x > width / 2;
  const low = at.y > height / 2;
  return {
    [right ? "right" : "left"]: `${Math.round(right ? width - at.x + AWAY : at.x + AWAY)}px`,
    [low ? "bottom" : "top"]: `${Math.round(low ? height - at.y + AWAY : at.y + AWAY)}px`,
    maxWidth: `${Math.round(Math.min(440, Math.max(at.x, width - at.x) - 2 * AWAY))}px`,
  };
}

export function Tip(props: { at: TipAt | null; name: string; parts: string[] }) {
  if (!props.at || !props.name) return null;
  const { clientWidth, clientHeight } = document.documentElement;
  return (
    <div class="tip" aria-hidden="true" style={tipPlace(props.at, clientWidth, clientHeight)}>
      {props.parts.length ? <b>{props.name}</b> : props.name}
      {props.parts.map((part) => <span>{part}</span>)}
    </div>
  );
}

export interface TipWords {
  name: string;
  parts: string[];
}

export type ShowTip = (words: TipWords | null, at: TipAt | null) => void;

/** Told from outside, so that a picture need not be drawn again when only the pointer moved. */
export function TipLayer(props: { show: { current: ShowTip | null } }) {
  const [tip, setTip] = useState<[TipWords, TipAt] | null>(null);
  props.show.current = (words, at) => setTip((was) => (words && at ? [words, at] : was && null));
  return <Tip at={tip?.[1] ?? null} name={tip?.[0].name ?? ""} parts={tip?.[0].parts ?? []} />;
}
