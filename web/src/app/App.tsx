// SPDX-License-Identifier: MIT
// App.tsx - the frame around the pages of `tare serve`: who is logged in, the menu, keys. Knows the table of pages and no
// page. What is shown is in the address behind the #: the page and all of its view.
import { useEffect, useState } from "preact/hooks";
import { KeyHelp, Skip, ThemeButton, useActs, useUnfoldedPrint } from "../Shell";
import { Boundary } from "../ui/Boundary";
import { shown } from "../ui/format";
import { readView, useView, viewLink } from "../ui/hash";
import { toggleTheme, useColours } from "../ui/theme";
import { ask, type Session, whenLost } from "./api";
import { Login, type Who } from "./Login";
import { mayOpen, pages, type PageRow } from "./pages";

type State = { session: Session | null; why: string | null } | "asking";

/** A login link is used once and taken out of the address before anything else. */
async function whoIsThere(): Promise<State> {
  const once = location.pathname === "/login" ? readView("once") : undefined;
  if (location.pathname === "/login") history.replaceState(null, "", "/");
  try {
    const who = once
      ? await ask<Who>("POST", "/api/v1/session", { once })
      : await ask<Who>("GET", "/api/v1/session");
    return { session: who.session, why: null };
  } catch (e) {
    return { session: null, why: (e as Error).message };
  }
}

function useWho(): [State, (s: State) => void] {
  const [state, setState] = useState<State>("asking");
  useEffect(() => {
    whenLost(() => setState({ session: null, why: "The session has ended. Log in again to go on where you were." }));
    void whoIsThere().then(setState);
  }, []);
  return [state, setState];
}

function keysOf(menu: PageRow[]): [string, string][] {
  return [
    [`1 to ${menu.length}`, menu.map((p) => p.title).join(", ")],
    ["j, k", "next part, previous part of a run or a trace"],
    ["d", "light or dark"],
    ["← →", "move along a plot that has the focus"],
    ["+ − 0", "zoom in, zoom out, show all"],
    ["?", "these keys"],
  ];
}

function useKeys(menu: PageRow[], help: (shown?: boolean) => void): void {
  const acts: Record<string, () => void> = { d: toggleTheme, "?": () => help(), Escape: () => help(false) };
  menu.slice(0, 9).forEach((p, i) => (acts[String(i + 1)] = () => (location.hash = viewLink({ page: p.id }))));
  useActs(acts, [menu.length]);
}

function Menu(props: { menu: PageRow[]; at: string }) {
  return (
    <nav class="menu" aria-label="Pages">
      {props.menu.map((p) => (
        <a href={viewLink({ page: p.id })} aria-current={p.id === props.at ? "page" : undefined}>
          {p.title}
        </a>
      ))}
    </nav>
  );
}

const NOTHING: PageRow = {
  id: "",
  title: "No such page",
  scope: "read",
  Component: () => <p class="empty">There is no page of this name, or this session may not open it.</p>,
};

function Frame(props: { session: Session; onOut: () => void }) {
  const { session } = props;
  const [help, setHelp] = useState(false);
  const open = pages.filter((p) => mayOpen(p, session));
  const menu = open.filter((p) => !p.unlisted);
  const [at] = useView("page", open[0]?.id);
  const page = open.find((p) => p.id === at) ?? NOTHING;
  useColours(); // links carry the theme
  useUnfoldedPrint();
  useKeys(menu, (shown) => setHelp((h) => shown ?? !h));
  useEffect(() => {
    document.title = `${page.title} - tare`;
    scrollTo(0, 0);
  }, [page]);
  const out = () => void ask("DELETE", "/api/v1/session").then(props.onOut, props.onOut);
  return (
    <>
      <Skip />
      <header class="bar">
        <strong>tare</strong>
        <Menu menu={menu} at={page.id} />
        <span class="who">
          {session.project && <span title="The project this session is bound to">{shown(session.project, 40)}</span>}
          <ThemeButton />
          <button type="button" class="theme" onClick={out}>
            Log out
          </button>
        </span>
      </header>
      <main id="content" tabIndex={-1} key={page.id}>
        <h1>{page.title}</h1>
        <Boundary>
          <page.Component session={session} />
        </Boundary>
      </main>
      <footer>
        tare {shown(session.version, 40)}. Times are UTC. Press <kbd>?</kbd> for keys.
      </footer>
      {help && <KeyHelp keys={keysOf(menu)} onClose={() => setHelp(false)} />}
    </>
  );
}

export function App() {
  const [state, setState] = useWho();
  if (state === "asking")
    return (
      <main class="login">
        <p role="status">Loading…</p>
      </main>
    );
  if (!state.session)
    return <Login why={state.why} onIn={(session) => setState({ session, why: null })} key={state.why ?? ""} />;
  return <Frame session={state.session} onOut={() => setState({ session: null, why: "You are logged out." })} />;
}
