// SPDX-License-Identifier: MIT
// admin.tsx - tokens: which there are, a new one, an end to one; and who changed what.
import { useState } from "preact/hooks";
import type { Grid } from "../../data/grid";
import { instant, shown } from "../../ui/format";
import { Table } from "../../ui/Table";
import { ask, query, useAnswer } from "../api";
import type { PageProps, PageRow } from "../pages";
import { Loaded } from "../parts";

const AUDIT_SHOWN = 50;
const SCOPES = ["read", "ingest", "run", "admin"];
const LIVES: [string, number | undefined][] = [
  ["30 days", 30 * 86400],
  ["1 year", 365 * 86400],
  ["for ever", undefined],
];

export interface Token {
  id: string;
  scopes: string;
  project?: string | null;
  name?: string | null;
  state: string;
  created?: string | null;
  expires?: string | null;
  used?: string | null;
}

export interface AuditEntry {
  seq: number;
  at?: string | null;
  who?: string | null;
  what: string;
  about?: string | null;
  project?: string | null;
  from?: string | null;
  status: number;
}

const when = (t: string | null | undefined, none: string): string => (t ? instant(t).replace(" UTC", "") : none);

const TOKEN_STATE = 4;
const TOKEN_END = 8;

export function tokensGrid(tokens: Token[]): Grid {
  const titles = ["id", "name", "scopes", "project", "state", "created (UTC)", "expires (UTC)", "used (UTC)", "end"];
  return {
    columns: titles.map((title) => ({ title, text: true })),
    rows: tokens.map((t) => [
      t.id,
      t.name ?? "",
      t.scopes,
      t.project ?? "all",
      t.state,
      when(t.created, "unknown"),
      when(t.expires, "never"),
      when(t.used, "never"),
      t.state === "good" ? "Revoke" : "",
    ]),
  };
}

export function auditGrid(entries: AuditEntry[]): Grid {
  const titles = ["at (UTC)", "who", "what", "about", "project", "from"];
  return {
    columns: [...titles.map((title) => ({ title, text: true })), { title: "status" }],
    rows: entries.map((e) => [when(e.at, "unknown"), e.who, e.what, e.about ?? "", e.project ?? "", e.from, e.status]),
  };
}

function NewToken(props: { onMade: () => void; project: string | null }) {
  const [made, setMade] = useState<string | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const send = (e: SubmitEvent) => {
    e.preventDefault();
    const form = e.currentTarget as HTMLFormElement;
    const data = new FormData(form);
    const text = (key: string) => String(data.get(key) ?? "").trim() || undefined;
    const body = {
      scopes: data.getAll("scope").join(","),
      name: text("name"),
      project: text("project"),
      expires_s: LIVES[Number(data.get("lives"))]?.[1],
    };
    setMade(null);
    setTrouble(null);
    ask<{ token: string }>("POST", "/api/v1/tokens", body).then(
      (answer) => {
        setMade(answer.token);
        form.reset();
        props.onMade();
      },
      (e: Error) => setTrouble(e.message),
    );
  };
  return (
    <form onSubmit={send}>
      <div class="fields">
        <label class="field">
          <span>Name</span>
          <input type="text" name="name" autocomplete="off" placeholder="CI" />
        </label>
        {!props.project && (
          <label class="field">
            <span>Project (empty: all)</span>
            <input type="text" name="project" autocomplete="off" />
          </label>
        )}
        <label class="field">
          <span>Is good for</span>
          <select name="lives">
            {LIVES.map(([name], i) => (
              <option value={String(i)}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      <fieldset class="scopes">
        <legend>May</legend>
        {SCOPES.map((scope) => (
          <label>
            <input type="checkbox" name="scope" value={scope} defaultChecked={scope === "read"} /> {scope}
          </label>
        ))}
      </fieldset>
      <p class="actions">
        <button type="submit" class="main">
          Make a token
        </button>
      </p>
      {trouble && (
        <p class="trouble-line" role="alert">
          {shown(trouble, 300)}
        </p>
      )}
      {made && (
        <p class="made" role="status">
          Shown this once: <code>{made}</code>
        </p>
      )}
    </form>
  );
}

function Admin(props: PageProps) {
  const tokens = useAnswer<{ tokens: Token[] }>("/api/v1/tokens");
  const audit = useAnswer<{ entries: AuditEntry[] }>(query("/api/v1/audit", { limit: AUDIT_SHOWN }));
  const [trouble, setTrouble] = useState<string | null>(null);
  const [asked, setAsked] = useState<string | null>(null);
  const changed = () => {
    tokens.again();
    audit.again();
  };
  /** The first click asks, the second one does it. */
  const revoke = (id: string) => {
    if (asked !== id) return setAsked(id);
    setAsked(null);
    setTrouble(null);
    ask("DELETE", `/api/v1/tokens/${id}`).then(changed, (e: Error) => setTrouble(e.message));
  };
  return (
    <>
      <section>
        <h2>Tokens</h2>
        {trouble && (
          <p class="trouble-line" role="alert">
            {shown(trouble, 300)}
          </p>
        )}
        <Loaded of={tokens}>
          {(t) => {
            const grid = tokensGrid(t.tokens);
            for (const row of grid.rows) if (row[0] === asked && row[TOKEN_END]) row[TOKEN_END] = "Surely?";
            return t.tokens.length ? (
              <Table
                grid={grid}
                caption="Tokens"
                action={{
                  column: TOKEN_END,
                  title: (cells) => `Revoke ${cells[0]}, which is ${cells[TOKEN_STATE]}`,
                  act: (cells) => revoke(String(cells[0])),
                }}
              />
            ) : (
              <p class="empty">No token yet.</p>
            );
          }}
        </Loaded>
        <h3>A new one</h3>
        <NewToken onMade={changed} project={props.session.project} />
      </section>
      <section>
        <h2>Who changed what, and who was refused</h2>
        <Loaded of={audit}>
          {(a) =>
            a.entries.length ? (
              <Table grid={auditGrid(a.entries)} caption={`The newest ${AUDIT_SHOWN} changes`} />
            ) : (
              <p class="empty">Nothing was changed yet.</p>
            )
          }
        </Loaded>
      </section>
    </>
  );
}

export const admin: PageRow = { id: "admin", title: "Admin", scope: "admin", Component: Admin };
