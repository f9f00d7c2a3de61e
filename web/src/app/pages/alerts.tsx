// SPDX-License-Identifier: MIT
// alerts.tsx - alert rules of the server: how each stands, since when, with which value; silence, and a message on trial.
import { useState } from "preact/hooks";
import type { Grid } from "../../data/grid";
import { bytes, instant, shown } from "../../ui/format";
import { Table } from "../../ui/Table";
import { ask, useAnswer } from "../api";
import type { PageProps, PageRow } from "../pages";
import { Loaded } from "../parts";

export interface Alert {
  rule: string;
  about: string;
  project?: string | null;
  state: string;
  since_ms?: number | null;
  value?: number | null;
  threshold: number;
  unit: string;
  run?: string | null;
  silent_until_ms?: number | null;
}

export interface Silence {
  id: string;
  project?: string | null;
  rule?: string | null;
  about?: string | null;
  why?: string | null;
  who: string;
  until?: string | null;
}

/** What wants somebody comes first. */
const ORDER = ["firing", "no data", "resolved", "good"];
const LENGTHS: [string, number][] = [
  ["1 hour", 3600],
  ["8 hours", 8 * 3600],
  ["1 day", 86400],
  ["1 week", 7 * 86400],
];
const SILENCE_END = 6;

const at = (ms: number | null | undefined, none: string): string =>
  ms ? instant(new Date(ms).toISOString()).replace(" UTC", "") : none;

/** A value as its rule would be written: shares of quantities, rates and times keep their unit. */
export function amount(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined) return "unknown";
  if (unit === "B" || unit === "B/s") return bytes(value) + unit.slice(1);
  return `${Number(value.toPrecision(4))}${unit === "1" ? "" : ` ${unit}`}`;
}

export function alertsGrid(alerts: Alert[]): Grid {
  const titles = ["state", "rule", "about", "project", "since (UTC)", "value", "limit", "run", "silent until (UTC)"];
  const rank = (a: Alert) => ORDER.indexOf(a.state);
  return {
    columns: titles.map((title) => ({ title, text: true })),
    rows: [...alerts]
      .sort((a, b) => rank(a) - rank(b))
      .map((a) => [
        a.state,
        a.rule,
        a.about,
        a.project ?? "",
        at(a.since_ms, "never changed"),
        a.since_ms ? amount(a.value, a.unit) : "",
        amount(a.threshold, a.unit),
        a.run ?? "",
        at(a.silent_until_ms, ""),
      ]),
  };
}

export function silencesGrid(silences: Silence[]): Grid {
  const titles = ["rule", "about", "project", "why", "who", "until (UTC)", "end"];
  return {
    columns: titles.map((title) => ({ title, text: true })),
    rows: silences.map((s) => [
      s.rule ?? "every rule",
      s.about ?? "everything",
      s.project ?? "all",
      s.why ?? "",
      s.who,
      s.until ? instant(s.until).replace(" UTC", "") : "unknown",
      "End",
    ]),
  };
}

function Trouble(props: { text: string | null }) {
  if (!props.text) return null;
  return (
    <p class="trouble-line" role="alert">
      {shown(props.text, 300)}
    </p>
  );
}

/** Silence for a time, or the message of a rule on trial. */
function Ask(props: { rules: string[]; alerts: Alert[]; onDone: () => void }) {
  const [trouble, setTrouble] = useState<string | null>(null);
  const [done, setDone] = useState<string | null>(null);
  const send = (path: string, body: unknown, said: string) => {
    setTrouble(null);
    setDone(null);
    ask("POST", path, body).then(
      () => {
        setDone(said);
        props.onDone();
      },
      (e: Error) => setTrouble(e.message),
    );
  };
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const data = new FormData(e.currentTarget as HTMLFormElement);
    const text = (key: string) => String(data.get(key) ?? "").trim() || undefined;
    if ((e.submitter as HTMLButtonElement | null)?.value === "test")
      return send("/api/v1/alerts/test", { rule: text("rule") }, "The test is on its way.");
    const wish = { rule: text("rule"), about: text("about"), why: text("why"), for_s: Number(data.get("for")) };
    send("/api/v1/silences", wish, "Nobody will be told.");
  };
  return (
    <form onSubmit={submit}>
      <div class="fields">
        <label class="field">
          <span>Rule</span>
          <select name="rule">
            <option value="">every rule</option>
            {props.rules.map((rule) => (
              <option value={rule}>{rule}</option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>About</span>
          <select name="about">
            <option value="">everything</option>
            {[...new Set(props.alerts.map((a) => a.about))].map((about) => (
              <option value={about}>{shown(about, 80)}</option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>For</span>
          <select name="for">
            {LENGTHS.map(([name, seconds]) => (
              <option value={String(seconds)}>{name}</option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Why</span>
          <input type="text" name="why" autocomplete="off" maxLength={200} />
        </label>
      </div>
      <p class="actions">
        <button type="submit" class="main" value="silence">
          Silence
        </button>{" "}
        <button type="submit" value="test">
          Send a test
        </button>
      </p>
      <Trouble text={trouble} />
      {done && <p role="status">{done}</p>}
    </form>
  );
}

function Alerts(props: PageProps) {
  const answer = useAnswer<{ rules: string[]; alerts: Alert[] }>("/api/v1/alerts", 5);
  const silences = useAnswer<{ silences: Silence[] }>("/api/v1/silences", 5);
  const [trouble, setTrouble] = useState<string | null>(null);
  const isAdmin = props.session.scopes.split(",").includes("admin");
  const changed = () => {
    answer.again();
    silences.again();
  };
  const end = (id: string | undefined) => {
    setTrouble(null);
    if (id) ask("DELETE", `/api/v1/silences/${id}`).then(changed, (e: Error) => setTrouble(e.message));
  };
  const listed = (s: Silence[]) => {
    const grid = silencesGrid(s);
    const idOf = (cells: unknown[]) => s[grid.rows.indexOf(cells as Grid["rows"][number])]?.id;
    if (isAdmin)
      return (
        <Table
          grid={grid}
          caption="Silences"
          action={{ column: SILENCE_END, title: (c) => `End the silence of ${c[0]}, ${c[1]}`, act: (c) => end(idOf(c)) }}
        />
      );
    for (const row of grid.rows) row.pop();
    return <Table grid={{ columns: grid.columns.slice(0, SILENCE_END), rows: grid.rows }} caption="Silences" />;
  };
  return (
    <Loaded of={answer}>
      {(a) =>
        a.rules.length ? (
          <>
            {a.alerts.length ? (
              <Table grid={alertsGrid(a.alerts)} caption="Alerts" />
            ) : (
              <p class="empty">Nothing came yet that the {a.rules.length} rules of this server are about.</p>
            )}
            <section>
              <h2>Silences</h2>
              <Trouble text={trouble} />
              <Loaded of={silences}>
                {(s) => (s.silences.length ? listed(s.silences) : <p class="empty">Every change is told.</p>)}
              </Loaded>
              {isAdmin && <Ask rules={a.rules} alerts={a.alerts} onDone={changed} />}
            </section>
          </>
        ) : (
          <p class="empty">
            This server has no alert rules. They are in its operator's file: <code>tare serve --operations FILE</code>, key{" "}
            <code>alerts</code>.
          </p>
        )
      }
    </Loaded>
  );
}

export const alerts: PageRow = { id: "alerts", title: "Alerts", scope: "read", Component: Alerts };
