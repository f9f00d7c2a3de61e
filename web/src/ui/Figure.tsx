// SPDX-License-Identifier: MIT
// Figure.tsx - the frame of every plot: title, what it says in words, its numbers as a table, and files of it. A canvas
// is nothing to a screen reader, so the words and the table are not optional.
import type { ComponentChildren, RefObject } from "preact";
import { useRef } from "preact/hooks";
import { csvOf, type Grid } from "../data/grid";
import { framed, saveCanvas, saveText } from "./download";
import { shown } from "./format";
import { useView } from "./hash";
import { Table } from "./Table";
import { readColours } from "./theme";

export interface FigureProps {
  /** Unique in the page: names files and the key in the address. */
  id: string;
  title: string;
  /** One or two sentences: what the picture shows, in words. */
  summary: string;
  /** The numbers of the picture; made only when somebody asks for them. */
  grid: () => Grid;
  /** A line below: method, limits, what is left out. */
  note?: ComponentChildren;
  /** The picture as SVG text; without it no SVG is offered. */
  svg?: () => string;
  /** The canvas to take a PNG of; by default the largest one inside. */
  canvas?: () => HTMLCanvasElement | null;
  /** Controls of the figure's own, left of the common ones. */
  tools?: ComponentChildren;
  children: ComponentChildren;
}

function largestCanvas(box: RefObject<HTMLElement | null>): HTMLCanvasElement | null {
  const all = [...(box.current?.querySelectorAll("canvas") ?? [])];
  all.sort((a, b) => b.width * b.height - a.width * a.height);
  return all[0] ?? null;
}

function Tools(props: FigureProps & { table: boolean; onTable: () => void; box: RefObject<HTMLElement | null> }) {
  const { id, title } = props;
  const png = () => {
    const canvas = props.canvas ? props.canvas() : largestCanvas(props.box);
    const { ink, paper } = readColours();
    if (canvas) saveCanvas(`${id}.png`, framed(canvas, shown(title, 120), ink, paper));
  };
  const of = `of ${shown(title, 80)}`;
  return (
    <div class="tools" role="group" aria-label={`Tools ${of}`}>
      {props.tools}
      <button type="button" aria-pressed={props.table} onClick={props.onTable} aria-label={`Table ${of}`}>
        Table
      </button>
      {props.svg && (
        <button
          type="button"
          onClick={() => saveText(`${id}.svg`, "image/svg+xml", props.svg!())}
          aria-label={`Save SVG ${of}`}
        >
          SVG
        </button>
      )}
      <button type="button" onClick={png} aria-label={`Save PNG ${of}`}>
        PNG
      </button>
      <button
        type="button"
        onClick={() => saveText(`${id}.csv`, "text/csv", csvOf(props.grid()))}
        aria-label={`Save CSV ${of}`}
      >
        CSV
      </button>
    </div>
  );
}

export function Figure(props: FigureProps) {
  const box = useRef<HTMLElement>(null);
  const [table, setTable] = useView(`table.${props.id}`);
  return (
    <figure
      id={`fig-${props.id}`}
      ref={box}
      aria-labelledby={`title-${props.id}`}
      aria-describedby={`summary-${props.id}`}
    >
      <figcaption>
        <h3 id={`title-${props.id}`}>{shown(props.title)}</h3>
        <Tools {...props} box={box} table={table === "1"} onTable={() => setTable(table === "1" ? "" : "1")} />
      </figcaption>
      <div class="picture">{props.children}</div>
      <p class="summary" id={`summary-${props.id}`}>
        {shown(props.summary, 600)}
      </p>
      {props.note && <p class="note">{props.note}</p>}
      {table === "1" && <Table grid={props.grid()} caption={shown(props.title)} />}
    </figure>
  );
}
