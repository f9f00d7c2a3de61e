// SPDX-License-Identifier: MIT
// FlameDetail.tsx - the line that says what a frame is: steady in its place, so that nothing jumps under the pointer.

export interface DetailAction {
  title: string;
  act: () => void;
}

export function FlameDetail(props: { name: string; parts: string[]; hint: string; spoken: boolean; action: DetailAction | null }) {
  return (
    <div class="flamedetail">
      <p aria-live={props.spoken ? "polite" : "off"}>
        {props.name ? <b>{props.name}</b> : <span class="soft">{props.hint}</span>}
        {props.parts.map((part) => <span>{part}</span>)}
      </p>
      {props.action && <button type="button" onClick={props.action.act}>{props.action.title}</button>}
    </div>
  );
}
