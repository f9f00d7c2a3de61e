// SPDX-License-Identifier: MIT
// trace.tsx - a trace that was sent with a run, as the report page shows it: flame graph, timeline, samples, memory,
// whatever it holds. And the list of a run's traces, which leads here.
import { useEffect, useMemo } from "preact/hooks";
import type { Grid } from "../../data/grid";
import { type Page, pageOf } from "../../data/page";
import { Document, Tabs } from "../../Shell";
import { bytes, instant, shown } from "../../ui/format";
import { readView, useView } from "../../ui/hash";
import { Pick } from "../../ui/Pick";
import { Table } from "../../ui/Table";
import { useAnswer } from "../api";
import type { PageRow } from "../pages";
import { linkTo, Loaded, To } from "../parts";
import { idsOf } from "../runs";

interface Upload {
  id: string;
  name: string;
  bytes: number;
  pieces: number;
  created: string;
}

interface Uploads {
  uploads: Upload[];
}

/** What one reply holds: larger files are fetched by the command. */
const WHOLE_PIECES = 4;

function uploadsGrid(list: Upload[]): Grid {
  return {
    columns: [
      { title: "file", text: true },
      { title: "size", format: (v) => bytes(v) },
      { title: "sent (UTC)", text: true },
      { title: "id", text: true },
    ],
    rows: list.map((u) => [u.name, u.bytes, instant(u.created).replace(" UTC", ""), u.id]),
  };
}

/** The traces of a run; nothing where it has none. */
export function Traces(props: { run: string }) {
  const files = useAnswer<Uploads>(`/api/v1/runs/${props.run}/uploads`);
  if (!files.data?.uploads.length) return null;
  return (
    <section aria-labelledby="h-traces">
      <h2 id="h-traces">Traces</h2>
      <Table
        grid={uploadsGrid(files.data.uploads)}
        caption="Traces of this run"
        action={{
          column: 0,
          title: (cells) => `Open ${cells[0]}`,
          href: (cells) => linkTo("trace", { run: props.run, file: String(cells[3]) }),
        }}
      />
    </section>
  );
}

function Parts(props: { page: Page }) {
  const { page } = props;
  const [chosen, setChosen] = useView("item", "0");
  const at = Math.min(Math.max(Math.trunc(Number(chosen)) || 0, 0), page.items.length - 1);
  const item = page.items[at]!;
  useEffect(() => {
    const to = readView("at");
    if (to) document.getElementById(to)?.scrollIntoView();
  }, [item]);
  return (
    <>
      <Tabs page={page} at={at} onPick={(i) => setChosen(String(i))} />
      <Document item={item} page={page} key={at} />
    </>
  );
}

function Shown(props: { data: unknown; name: string }) {
  const page = useMemo(() => {
    const read = pageOf(props.data);
    if (typeof read === "string") return read;
    read.items.forEach((item) => (item.name = props.name));
    return read;
  }, [props.data, props.name]);
  if (typeof page === "string") return <p class="empty">{page}</p>;
  if (!page.items.length) return <p class="empty">The trace holds nothing that pages show.</p>;
  return <Parts page={page} />;
}

function Head(props: { run: string; file: Upload; all: Upload[] }) {
  const { run, file, all } = props;
  const [, setFile] = useView("file");
  return (
    <>
      <p>
        <strong>{shown(file.name, 80)}</strong>, {bytes(file.bytes)}, sent {instant(file.created)}
      </p>
      <div class="actions">
        <To page="run" keys={{ id: run }}>
          Its run
        </To>
        {file.pieces <= WHOLE_PIECES && (
          <a href={`/api/v1/uploads/${file.id}`} download={file.name}>
            File
          </a>
        )}
        {all.length > 1 && (
          <Pick
            label="Trace"
            choices={all.map((u) => ({ value: u.id, name: u.name }))}
            value={file.id}
            onPick={setFile}
          />
        )}
      </div>
    </>
  );
}

function View(props: { run: string; file: Upload }) {
  const { run, file } = props;
  const page = useAnswer<unknown>(`/api/v1/uploads/${file.id}/page`);
  return (
    <>
      <Loaded of={page}>{(data) => <Shown data={data} name={file.name} key={file.id} />}</Loaded>
      <p class="note">
        The same on your own machine:{" "}
        <code>
          tare report --server {location.origin} --trace @{run} --html trace.html
        </code>
      </p>
    </>
  );
}

function Trace() {
  const [text] = useView("run");
  const [wanted] = useView("file");
  const run = idsOf(text)[0];
  const files = useAnswer<Uploads>(run ? `/api/v1/runs/${run}/uploads` : null);
  if (!run) return <p class="empty">The address names no run.</p>;
  return (
    <Loaded of={files}>
      {({ uploads }) => {
        const file = uploads.find((u) => u.id === wanted) ?? (wanted ? undefined : uploads[0]);
        if (!file)
          return (
            <p class="empty">
              {wanted ? "The run has no such file." : "The run has no trace."} <To page="run" keys={{ id: run }}>Its run</To>
            </p>
          );
        return (
          <>
            <Head run={run} file={file} all={uploads} />
            <View run={run} file={file} key={file.id} />
          </>
        );
      }}
    </Loaded>
  );
}

export const trace: PageRow = { id: "trace", title: "Trace", scope: "read", unlisted: true, Component: Trace };
