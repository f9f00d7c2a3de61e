// SPDX-License-Identifier: MIT
// hosts.tsx - machines that send metrics, and one of them as it works: what was kept of the last minutes, then every
// second what comes.
import { useEffect, useRef, useState } from "preact/hooks";
import { shown } from "../../ui/format";
import { useView } from "../../ui/hash";
import { Pick } from "../../ui/Pick";
import { Plot } from "../../ui/Plot";
import { ask, query, useAnswer } from "../api";
import { type Kept, type Live, liveOf, type Named, namesOf, type Sample, shownNames, specOf, take } from "../live";
import type { PageRow } from "../pages";
import { Loaded, To } from "../parts";
import { HostList } from "./overview";

const POINTS = 300;

type Keys = { host: string; project: string };

/** Samples as they come. The browser connects again by itself, and says where it was. */
function useStream(keys: Keys, onSamples: (samples: Sample[]) => void): string {
  const [state, setState] = useState("connecting");
  const tell = useRef(onSamples);
  tell.current = onSamples;
  useEffect(() => {
    const source = new EventSource(query("/api/v1/live", keys));
    source.onopen = () => setState("live");
    source.onerror = () => setState(source.readyState === EventSource.CLOSED ? "ended" : "connecting");
    source.addEventListener("samples", (e) => {
      const data = JSON.parse((e as MessageEvent<string>).data) as { samples: Sample[] };
      tell.current(data.samples);
    });
    return () => source.close();
  }, [keys.host, keys.project]);
  return state;
}

/** The metrics that are shown: asked for once, then kept up by what comes. */
function useLive(keys: Keys, names: string[], minutes: number): Map<string, Live> {
  const [lives, setLives] = useState(new Map<string, Live>());
  const text = names.join(",");
  useEffect(() => {
    let gone = false;
    setLives(new Map());
    const from = Date.now() - minutes * 60_000;
    for (const name of names)
      ask<Kept>("GET", query("/api/v1/metrics", { ...keys, name, from, to: Date.now() + 1000, points: POINTS })).then(
        (kept) => gone || setLives((l) => new Map(l).set(name, liveOf(kept))),
        () => undefined,
      );
    return () => void (gone = true);
  }, [keys.host, keys.project, text, minutes]);
  return lives;
}

function Panels(props: { keys: Keys; list: Named[]; metric: string; minutes: number }) {
  const { keys, list, minutes } = props;
  const names = shownNames(list, props.metric);
  const lives = useLive(keys, names, minutes);
  const [now, setNow] = useState(Date.now());
  const state = useStream(keys, (samples) => {
    for (const s of samples) {
      const live = lives.get(s.name);
      if (live) take(live, s, Date.now() - minutes * 60_000);
    }
    if (!document.hidden) setNow(Date.now());
  });
  if (!names.length) return <p class="empty">This host has sent no such metric.</p>;
  return (
    <>
      <p class="note" role="status">
        {state === "live" ? "Live: drawn anew with what comes." : `The stream is ${state}.`}
      </p>
      {names.map((name) => {
        const live = lives.get(name);
        return live && <Plot key={name} spec={specOf(name, list.find((m) => m.name === name)?.unit ?? null, live, now)} />;
      })}
    </>
  );
}

function OneHost(props: { keys: Keys }) {
  const [metric, setMetric] = useView("metric");
  const [minutes, setMinutes] = useView("minutes", "15");
  const names = useAnswer<{ metrics: Named[] }>(query("/api/v1/metrics", props.keys));
  const span = ["5", "15", "60", "360"].includes(minutes) ? minutes : "15";
  return (
    <section>
      <h2>{shown(props.keys.host, 80)}</h2>
      <p>
        <To page="hosts">All hosts</To>
      </p>
      <Loaded of={names}>
        {(a) => (
          <>
            <div class="actions">
              <Pick
                label="Metric"
                choices={[{ value: "", name: "the first to look at" }, ...namesOf(a.metrics).map((n) => ({ value: n, name: n }))]}
                value={metric}
                onPick={setMetric}
              />
              <Pick
                label="Minutes"
                choices={["5", "15", "60", "360"].map((n) => ({ value: n, name: n }))}
                value={span}
                onPick={setMinutes}
              />
            </div>
            <Panels keys={props.keys} list={a.metrics} metric={metric} minutes={Number(span)} />
          </>
        )}
      </Loaded>
    </section>
  );
}

function Hosts() {
  const [host] = useView("host");
  const [project] = useView("project");
  return host ? <OneHost key={`${host} ${project}`} keys={{ host, project }} /> : <HostList />;
}

export const hosts: PageRow = { id: "hosts", title: "Hosts", scope: "read", Component: Hosts };
