// SPDX-License-Identifier: MIT
// kernels.tsx - kernels, copies, CUDA calls and NVTX ranges, each a table that sorts and searches. A name leads to its
// longest bar on the timeline; the name of the chosen bar is marked here.
import { useMemo } from "preact/hooks";
import { type Bars, barsOf, nameAt, ofName, searchNames, spotOf } from "../data/bars";
import { callGrid, copyGrid, kernelGrid, originGrid, rangeGrid, searched } from "../data/gpu";
import type { Cell, Grid } from "../data/grid";
import type { Item } from "../data/page";
import type { Section, SectionProps } from "../sections";
import { keyOf } from "./bars";
import { Empty } from "../ui/Facts";
import { count, shown } from "../ui/format";
import { useView, writeView } from "../ui/hash";
import { type RowAction, Table } from "../ui/Table";

/** From a row of a table to the bars of its name, the longest chosen. */
function goTo(bars: Bars, key: string, words: string): void {
  const matches = searchNames(bars.names, words);
  const found = matches ? ofName(bars, matches).longest : -1;
  writeView(`${key}.find`, words);
  if (found >= 0) writeView(`${key}.at`, String(found));
  document.getElementById("bars")?.scrollIntoView({ block: "start" });
}

function One(props: { bars: Bars; id: string; title: string; grid: Grid; column?: number; name: (cells: Cell[]) => string; chosen: string | null }) {
  const { bars, grid, column = 0 } = props;
  const action: RowAction = {
    column,
    title: (cells) => `Show ${shown(cells[column], 80)} on the timeline`,
    act: (cells) => goTo(bars, props.id, `=${props.name(cells)}`),
    isCurrent: (cells) => props.chosen !== null && props.name(cells) === props.chosen,
  };
  if (!grid.rows.length) return null;
  return (
    <>
      <h3 class="sub">{props.title}</h3>
      <Table grid={grid} caption={props.title} action={action} />
    </>
  );
}

const byFull = (cells: Cell[]): string => String(cells[cells.length - 1]);
const byFirst = (cells: Cell[]): string => String(cells[0]);
const byCopy = (cells: Cell[]): string => (cells[0] === "fill" ? "fill" : `copy ${String(cells[0])}`);

function Tables(props: { bars: Bars; id: string }) {
  const { bars } = props;
  const gpu = bars.gpu!;
  const [words, setWords] = useView("kernels.find");
  const [at] = useView(`${props.id}.at`, "-1");
  const kernels = useMemo(() => kernelGrid(bars), [bars]);
  const shownKernels = useMemo(() => searched(kernels, words), [kernels, words]);
  const spot = spotOf(bars, Number(at));
  const chosen = spot ? (nameAt(bars, spot).full ?? nameAt(bars, spot).text) : null;
  return (
    <>
      <div class="flamebar">
        <input type="search" placeholder="Search kernels and groups" aria-label="Search kernels and groups" value={words} maxLength={200} spellcheck={false}
          onInput={(e) => setWords(e.currentTarget.value)} onKeyDown={(e) => e.key === "Escape" && setWords("")} />
        <span class="found" role="status">{`${count(shownKernels.rows.length)} of ${count(kernels.rows.length)} kernels`}</span>
      </div>
      <One bars={bars} id={props.id} title="Kernels" grid={shownKernels} name={byFull} chosen={chosen} />
      {bars.seen > bars.shown && <p class="note">p50 and p95 are unknown: the short bars of this trace are not in the page.</p>}
      <One bars={bars} id={props.id} title="Kernels by module and operator" grid={originGrid(gpu.origins ?? [])} column={3} name={(cells) => String(cells[3])} chosen={null} />
      <One bars={bars} id={props.id} title="Copies and fills" grid={copyGrid(gpu.copies ?? [])} name={byCopy} chosen={chosen} />
      <One bars={bars} id={props.id} title="CUDA calls" grid={callGrid(gpu.calls ?? [])} name={byFirst} chosen={chosen} />
      <One bars={bars} id={props.id} title="NVTX ranges" grid={rangeGrid(gpu.ranges ?? [])} name={byFirst} chosen={chosen} />
    </>
  );
}

function KernelsPart(props: SectionProps) {
  const bars = useMemo(() => barsOf((props.item as { document: Parameters<typeof barsOf>[0] }).document), [props.item]);
  if (typeof bars === "string") return <Empty>The tables cannot be shown: {shown(bars)}.</Empty>;
  return <Tables bars={bars} id={keyOf(props.page, props.item)} />;
}

export const kernels: Section = {
  id: "kernels",
  title: "Kernels and calls",
  applies: (item: Item) => item.kind === "bars" && !!item.document.gpu,
  Component: KernelsPart,
};
