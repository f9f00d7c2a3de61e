// SPDX-License-Identifier: MIT
// Pick.tsx - one of several, kept in the address.
import type { ComponentChild } from "preact";
import type { Case } from "../data/page";
import { shown } from "./format";
import { useView } from "./hash";

export interface Choice {
  value: string;
  name: string;
}

/** The chosen value, always one of the choices, and how to choose. */
export function usePick(key: string, choices: Choice[], initial: string): [string, (v: string) => void] {
  const [chosen, choose] = useView(key, initial);
  const valid = choices.some((c) => c.value === chosen)
    ? chosen
    : (choices.find((c) => c.value === initial) ?? choices[0])?.value;
  return [valid ?? initial, choose];
}

/** Nothing to choose from is no control. */
export function Pick(props: { label: string; choices: Choice[]; value: string; onPick: (v: string) => void }) {
  if (props.choices.length < 2) return null;
  return (
    <label class="pick">
      <span>{props.label}</span>
      <select value={props.value} onChange={(e) => props.onPick((e.target as HTMLSelectElement).value)}>
        {props.choices.map((c) => (
          <option value={c.value}>{shown(c.name, 80)}</option>
        ))}
      </select>
    </label>
  );
}

/** One of the cases of a run, and the control to choose it. */
export function useCase(key: string, cases: Case[], first = 0): [Case, ComponentChild] {
  const choices = cases.map((c, i) => ({ value: String(i), name: c.name || "the only case" }));
  const [chosen, choose] = usePick(key, choices, String(first));
  return [cases[Number(chosen)]!, <Pick label="Case" choices={choices} value={chosen} onPick={choose} />];
}
