// SPDX-License-Identifier: MIT
// parts.tsx - what several pages are made of: an answer that is waited for, links between pages, fields of a form.
import type { ComponentChildren } from "preact";
import { shown } from "../ui/format";
import { viewLink } from "../ui/hash";
import type { Answer } from "./api";

/** An answer of the server: waited for, failed, old, or here. */
export function Loaded<T>(props: { of: Answer<T>; children: (data: T) => ComponentChildren }) {
  const { data, error, at, again } = props.of;
  const trouble = error && (
    <p class="trouble-line" role="alert">
      {shown(error, 400)}
      {data !== null && at ? `; shown is what was there at ${at.toISOString().slice(11, 19)} UTC` : ""}.{" "}
      <button type="button" class="link" onClick={again}>
        Try again
      </button>
    </p>
  );
  if (data === null)
    return (
      trouble || (
        <p class="empty" role="status">
          Loading…
        </p>
      )
    );
  return (
    <>
      {trouble}
      {props.children(data)}
    </>
  );
}

export type Keys = Record<string, string | undefined>;

/** The address of another page; its keys are the whole view. */
export const linkTo = (page: string, keys?: Keys): string => viewLink({ page, ...keys });

export function To(props: { page: string; keys?: Keys; children: ComponentChildren }) {
  return <a href={linkTo(props.page, props.keys)}>{props.children}</a>;
}

/** One line of input with its name. The value goes out when the reader is done with it, not with each key. */
export function Field(props: { label: string; value: string; onChange: (value: string) => void; hint?: string }) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <input
        type="text"
        value={props.value}
        placeholder={props.hint}
        autocomplete="off"
        spellcheck={false}
        onChange={(e) => props.onChange(e.currentTarget.value.trim())}
      />
    </label>
  );
}
