// SPDX-License-Identifier: MIT
// run.tsx - one run, as the report page shows it.
import { useEffect, useMemo } from "preact/hooks";
import { type Page, readItem, type RunDocument } from "../../data/page";
import { Document } from "../../Shell";
import { instant, shown } from "../../ui/format";
import { readView, useView } from "../../ui/hash";
import { query, useAnswer } from "../api";
import { Accept, mayAccept } from "../Baseline";
import type { PageProps, PageRow } from "../pages";
import { Loaded, To } from "../parts";
import { idsOf } from "../runs";
import { Traces } from "./trace";

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

/** Accepts this run as what later ones of its subject are judged against, or says that it is that already. */
function Judge(props: { id: string; subject: string }) {
  const accepted = useAnswer<{ baselines: { run: string }[] }>(query("/api/v1/baselines", { subject: props.subject }));
  if (!accepted.data) return null;
  if (accepted.data.baselines.some((b) => b.run === props.id)) return <span>The baseline of its subject</span>;
  return <Accept run={props.id} word="Accept as baseline" onDone={accepted.again} />;
}

function Run(props: PageProps) {
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
            {d.subject?.name && mayAccept(props.session) && <Judge id={id} subject={d.subject.name} key={id} />}
          </p>
          <Traces run={id} key={`t-${id}`} />
          <Report document={d} key={id} />
        </>
      )}
    </Loaded>
  );
}

export const run: PageRow = { id: "run", title: "Run", scope: "read", unlisted: true, Component: Run };
