// SPDX-License-Identifier: MIT
// FlameSandwich.tsx - one function between those that call it, above, and those it calls, below; beside them the list of
// functions to choose from. All paths to the function are laid over one another.
import type { RefObject } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { calleesOf, callersOf, type Found, ranked } from "../data/calltree";
import { layoutOf } from "../data/flame";
import { costText, detailOf, type Graph, nameText } from "../data/flamegraph";
import type { CallTree } from "../data/profile";
import { FlameCanvas, type Range, WHOLE } from "./FlameCanvas";
import { FlameDetail } from "./FlameDetail";
import type { Look, Pane } from "./flamepaint";
import { count, percent } from "./format";
import { type ShowTip, TipLayer } from "./Tip";

const LISTED = 200;

interface SandwichProps {
  graph: Graph;
  found: Found | null;
  frame: number;
  onFrame: (frame: number) => void;
  lookOf: (tree: CallTree) => Look;
  /** Kept at what is in sight of each half. */
  callers: RefObject<Pane | null>;
  callees: RefObject<Pane | null>;
}

/** A bar behind the number: what part of the costliest it is. */
function Listed(props: { graph: Graph; frame: number; most: number; chosen: boolean; onPick: () => void }) {
  const { graph: g, frame } = props;
  const self = g.self[frame]!;
  return (
    <li>
      <button type="button" aria-current={props.chosen ? "true" : undefined} onClick={props.onPick}>
        <span class="fn">{nameText(g.profile, frame, 80)}</span>
        <span class="cost">{g.selfWhole > 0 ? percent(self / g.selfWhole, 2) : costText(g.profile.unit, self)}</span>
        <i style={{ width: `${props.most > 0 ? (100 * self) / props.most : 0}%` }} />
      </button>
    </li>
  );
}

function FunctionList(props: SandwichProps) {
  const { graph: g, found } = props;
  const { flat } = g.functions();
  const all = useMemo(() => ranked(flat, flat.self), [flat]);
  const list = found ? all.filter((f) => found.frame[f]) : all;
  const most = all.length ? flat.self[all[0]!]! : 0;
  return (
    <div class="functions">
      <h4>Functions by self{found ? ", as searched" : ""}</h4>
      <ul>{list.slice(0, LISTED).map((f) => <Listed graph={g} frame={f} most={most} chosen={f === props.frame} onPick={() => props.onFrame(f)} />)}</ul>
      {list.length > LISTED && <p class="note">The first {LISTED} of {count(list.length)}; search to find others.</p>}
      {list.length === 0 && <p class="note">No function matches.</p>}
    </div>
  );
}

/** One half: a tree of its own, with its own zoom. */
function Half(props: { graph: Graph; tree: CallTree; look: Look; flame: boolean; title: string; onFrame: (frame: number) => void; pane: RefObject<Pane | null> }) {
  const { graph: g, tree } = props;
  const layout = useMemo(() => layoutOf(tree), [tree]);
  const [range, setRange] = useState<Range>(WHOLE);
  const [at, setAt] = useState(-1);
  const show = useRef<ShowTip | null>(null);
  const wordsOf = (node: number) => ({ name: nameText(g.profile, tree.frame[node]!), parts: detailOf(g, tree, node) });
  const chosen = at >= 0 ? wordsOf(at) : { name: "", parts: [] };
  const onKey = (key: string) => {
    if (key !== "s" || at < 0) return false;
    props.onFrame(tree.frame[at]!);
    return true;
  };
  return (
    <>
      <h4>{props.title}</h4>
      <FlameCanvas tree={tree} layout={layout} look={props.look} flame={props.flame} range={range} onRange={setRange} at={at} onAt={setAt} onOver={(node, where) => show.current?.(node >= 0 ? wordsOf(node) : null, where)} onKey={onKey}
        rows={14} pane={props.pane} label={`${props.title}. Arrow keys walk, Enter zooms, 0 shows all, s puts a function in the middle.`} />
      <TipLayer show={show} />
      <FlameDetail {...chosen} spoken={at >= 0}
        action={at >= 0 && at !== layout.node[0] ? { title: "Put in the middle", act: () => props.onFrame(tree.frame[at]!) } : null} hint="" />
    </>
  );
}

export function FlameSandwich(props: SandwichProps) {
  const { graph: g, frame } = props;
  const n = g.profile.frames.name.length;
  const { outer } = g.functions();
  const callers = useMemo(() => callersOf(g.tree, outer, frame, n), [g, frame]);
  const callees = useMemo(() => calleesOf(g.tree, outer, frame, n), [g, frame]);
  const name = nameText(g.profile, frame, 60);
  return (
    <div class="sandwich">
      <FunctionList {...props} />
      <div class="halves" key={frame}>
        <Half graph={g} tree={callers} look={props.lookOf(callers)} flame title={`Callers of ${name}`} onFrame={props.onFrame} pane={props.callers} />
        <Half graph={g} tree={callees} look={props.lookOf(callees)} flame={false} title={`Callees of ${name}`} onFrame={props.onFrame} pane={props.callees} />
      </div>
    </div>
  );
}
