// SPDX-License-Identifier: MIT
// Facts.tsx - small pieces of text that several parts show: names with their values, verdicts, an empty state.
import type { ComponentChildren } from "preact";
import type { Fact } from "../data/environment";
import { rowOf, shown, UNKNOWN } from "./format";

/** A value that is not known says so, with its reason where the document has one. */
export function Unknown(props: { why?: string | null }) {
  return <span class="unknown">{props.why ? `${UNKNOWN}: ${shown(props.why)}` : UNKNOWN}</span>;
}

export function Facts(props: { facts: Fact[] }) {
  return (
    <dl class="facts">
      {props.facts.map((f) => (
        <div>
          <dt>{f.name}</dt>
          <dd>{f.value === null ? <Unknown why={f.why} /> : shown(f.value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Verdicts and severities: a sign and a word, so that colour is never alone. */
const TONES: Record<string, [string, string]> = {
  pass: ["good", "✓"],
  improved: ["good", "✓"],
  same: ["soft", "="],
  fail: ["bad", "✕"],
  regressed: ["bad", "✕"],
  critical: ["bad", "✕"],
  warn: ["warn", "!"],
  info: ["soft", "i"],
  inconclusive: ["warn", "?"],
  unverified: ["warn", "?"],
};

export function Badge(props: { word: string | null | undefined }) {
  const word = props.word ?? UNKNOWN;
  const [tone, sign] = rowOf(TONES, word) ?? ["soft", "·"];
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{sign}</span> {shown(word, 40)}
    </span>
  );
}

export function Empty(props: { children: ComponentChildren }) {
  return <p class="empty">{props.children}</p>;
}
