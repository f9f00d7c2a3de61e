// SPDX-License-Identifier: MIT
// Table.tsx - a grid as a table: every column sorts by a button in its heading, and of a long one only the rows in sight
// are in the page. Cells are text nodes, whatever is in them.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Cell, type Column, type Grid, heading, sortRows } from "../data/grid";
import { isKnown, shown, UNKNOWN } from "./format";

const LONG = 200;
const ROW_PX = 27;
const AROUND = 12;
const CELL_LONGEST = 120;

function cellText(cell: Cell, column: Column): string {
  if (isKnown(cell)) return (column.format ?? String)(cell);
  if (cell === null || cell === undefined || typeof cell === "number") return UNKNOWN;
  return shown(cell, CELL_LONGEST);
}

function Heading(props: { column: Column; order: "up" | "down" | null; onSort: () => void }) {
  const { column, order } = props;
  const sort = order === "up" ? "ascending" : order === "down" ? "descending" : "none";
  return (
    <th scope="col" aria-sort={sort} class={column.text ? "text" : "number"}>
      <button type="button" onClick={props.onSort}>
        {heading(column)}
        <span aria-hidden="true" class="order">
          {order === "up" ? "▲" : order === "down" ? "▼" : ""}
        </span>
      </button>
    </th>
  );
}

/** What a click on the cells of one column does; `title`: for which row. */
export interface RowAction {
  column: number;
  title: (cells: Cell[]) => string;
  act?: (cells: Cell[]) => void;
  /** Or where it leads. */
  href?: (cells: Cell[]) => string;
  /** The row that is chosen. */
  isCurrent?: (cells: Cell[]) => boolean;
}

/** A box before each row, by which rows are chosen. */
export interface RowPick {
  title: string;
  label: (cells: Cell[]) => string;
  isPicked: (cells: Cell[]) => boolean;
  /** No more can be chosen. */
  isFull: boolean;
  toggle: (cells: Cell[]) => void;
}

function ActiveCell(props: { action: RowAction; cells: Cell[]; text: string }) {
  const { action, cells, text } = props;
  if (action.href)
    return (
      <a href={action.href(cells)} title={action.title(cells)}>
        {text}
      </a>
    );
  return (
    <button type="button" class="rowaction" title={action.title(cells)} onClick={() => action.act?.(cells)}>
      {text}
    </button>
  );
}

function PickCell(props: { pick: RowPick; cells: Cell[] }) {
  const { pick, cells } = props;
  const picked = pick.isPicked(cells);
  return (
    <td class="text">
      <input
        type="checkbox"
        aria-label={pick.label(cells)}
        checked={picked}
        disabled={pick.isFull && !picked}
        onChange={() => pick.toggle(cells)}
      />
    </td>
  );
}

function Row(props: { cells: Cell[]; columns: Column[]; action?: RowAction; pick?: RowPick }) {
  const { action, pick } = props;
  return (
    <tr aria-current={action?.isCurrent?.(props.cells) ? "true" : undefined}>
      {pick && <PickCell pick={pick} cells={props.cells} />}
      {props.columns.map((c, i) => {
        const cell = props.cells[i];
        const text = cellText(cell, c);
        const cut = typeof cell === "string" && cell.length > CELL_LONGEST;
        const kind = c.text ? "text" : "number";
        return (
          <td class={text === UNKNOWN ? `${kind} unknown` : kind} title={cut ? shown(cell, 2000) : undefined}>
            {action?.column === i && text && text !== UNKNOWN ? <ActiveCell action={action} cells={props.cells} text={text} /> : text}
          </td>
        );
      })}
    </tr>
  );
}

/** Which rows of a long table are in sight, from its scrolling box. */
function useWindow(total: number) {
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, Math.min(total, 60)]);
  const look = () => {
    const el = box.current;
    if (!el || total <= LONG) return;
    const first = Math.max(0, Math.floor(el.scrollTop / ROW_PX) - AROUND);
    const many = Math.ceil((el.clientHeight || 480) / ROW_PX) + 2 * AROUND;
    setRange([first, Math.min(total, first + many)]);
  };
  useLayoutEffect(look, [total]);
  return { box, look, range: total <= LONG ? ([0, total] as [number, number]) : range };
}

const Spacer = (props: { rows: number; span: number }) =>
  props.rows > 0 ? (
    <tr aria-hidden="true" style={{ height: `${props.rows * ROW_PX}px` }}>
      <td colSpan={props.span} />
    </tr>
  ) : null;

export interface TableProps {
  grid: Grid;
  caption: string;
  sort?: number;
  down?: boolean;
  action?: RowAction;
  pick?: RowPick;
}

export function Table(props: TableProps) {
  const { columns, rows } = props.grid;
  const [order, setOrder] = useState<{ column: number; down: boolean } | null>(
    props.sort === undefined ? null : { column: props.sort, down: !!props.down },
  );
  const sorted = useMemo(() => (order ? sortRows(rows, order.column, order.down) : rows), [rows, order]);
  const { box, look, range } = useWindow(sorted.length);
  const [from, to] = range;
  const span = columns.length + (props.pick ? 1 : 0);
  const sortBy = (i: number) => setOrder((o) => ({ column: i, down: o?.column === i ? !o.down : !columns[i]!.text }));
  return (
    <div
      class={rows.length > LONG ? "table long" : "table"}
      ref={box}
      onScroll={look}
      tabIndex={0}
      role="region"
      aria-label={props.caption}
    >
      <table aria-rowcount={rows.length + 1}>
        <caption class="hidden">{props.caption}</caption>
        <thead>
          <tr>
            {props.pick && (
              <th scope="col" class="plain text">
                {props.pick.title}
              </th>
            )}
            {columns.map((c, i) => (
              <Heading
                column={c}
                order={order?.column === i ? (order.down ? "down" : "up") : null}
                onSort={() => sortBy(i)}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer rows={from} span={span} />
          {sorted.slice(from, to).map((r) => (
            <Row cells={r} columns={columns} action={props.action} pick={props.pick} />
          ))}
          <Spacer rows={sorted.length - to} span={span} />
        </tbody>
      </table>
      {rows.length === 0 && <p class="empty">Nothing to list.</p>}
    </div>
  );
}
