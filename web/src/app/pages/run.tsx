// SPDX-License-Identifier: MIT
// run.tsx - one run, as the report page shows it.
import { useEffect, useMemo } from "preact/hooks";
import { type Page, readItem, type RunDocument } from "../../data/page";
import { Document } from "../../Shell";
import { instant, shown } from "../../ui/format";
import { readView, useView } from "../../ui/hash";
import { useAnswer } from "../api";
import type { PageRow } from "../pages";
import { Loaded, To } from "../parts";
import { idsOf } from "../runs";

function Report(props: { document: RunDocument }) {
  const { document: d } = props;
  const item = useMemo(() => readItem({ kind: "run", document: d }), [d]);
  const page = useMemo((): Page => ({ schema: "tare.page/1", items: [item] }), [item]);
  useEffect(() => {
    const at = readView("at");
    if (at) document.getElementById(at)?.scrollIntoView();
  }, [item]);
  return <Document item={item} page={page} />;
}

function Run() {
  const [text] = useView("id");
  const id = idsOf(text)[0];
  const run = useAnswer<RunDocument>(id ? `/api/v1/runs/${id}/view` : null);
  if (!id) return <p class="empty">The address names no run.</p>;
  return (
    <Loaded of={run}>
      {(d) => (
        <>
          <p>
            <strong>{shown(d.subject?.name, 120)}</strong>, {instant(d.created)}, <code>{id}</code>
          </p>
          <p class="actions">
            <To page="trend" keys={{ subject: d.subject?.name ?? undefined }}>
              Trend
            </To>
            <To page="runs" keys={{ subject: d.subject?.name ?? undefined, pick: id }}>
              Compare with another run
            </To>
            <a href={`/api/v1/runs/${id}`} download={`${id}.json`}>
              Document
            </a>
          </p>
          <Report document={d} key={id} />
        </>
      )}
    </Loaded>
  );
}

export const run: PageRow = { id: "run", title: "Run", scope: "read", unlisted: true, Component: Run };
