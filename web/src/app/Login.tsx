// SPDX-License-Identifier: MIT
// Login.tsx - who is there: a login link, or a token that is pasted. What is typed goes to the server and nowhere else.
import { useState } from "preact/hooks";
import { shown } from "../ui/format";
import { ThemeButton } from "../Shell";
import { ask, type Session } from "./api";

export interface Who {
  session: Session | null;
}

export function Login(props: { why: string | null; onIn: (session: Session | null) => void }) {
  const [trouble, setTrouble] = useState(props.why);
  const [busy, setBusy] = useState(false);
  const send = (e: SubmitEvent) => {
    e.preventDefault();
    const token = String(new FormData(e.currentTarget as HTMLFormElement).get("token") ?? "").trim();
    if (!token) return setTrouble("Paste a token first.");
    setBusy(true);
    ask<Who>("POST", "/api/v1/session", { token }).then(
      (who) => props.onIn(who.session),
      (e: Error) => {
        setBusy(false);
        setTrouble(e.message);
      },
    );
  };
  return (
    <main class="login" id="content">
      <h1>tare</h1>
      <form onSubmit={send}>
        <label class="field">
          <span>Token</span>
          <input type="password" name="token" autocomplete="off" placeholder="tare_read_…" aria-describedby="login-help" />
        </label>
        <button type="submit" class="main" disabled={busy}>
          Log in
        </button>
      </form>
      {trouble && (
        <p class="trouble-line" role="alert">
          {shown(trouble, 300)}
        </p>
      )}
      <p class="note" id="login-help">
        <code>tare token new --scope read</code> makes a token. Whoever starts <code>tare serve</code> also finds a login
        link in its output, which works once.
      </p>
      <ThemeButton />
    </main>
  );
}
