// SPDX-License-Identifier: MIT
// Baseline.tsx - the run that later ones of a subject are judged against: which it is, and accepting another, which asks
// once more, because what got worse up to that run is told no more.
import { useState } from "preact/hooks";
import { instant, shown } from "../ui/format";
import { ask, query, type Session, useAnswer } from "./api";
import { Loaded, To } from "./parts";

interface Accepted {
  subject: string;
  run: string;
  created: string;
  commit?: string | null;
}

export const mayAccept = (session: Session): boolean => session.scopes.split(",").includes("admin");

/** A button that acts at the second click. */
export function Accept(props: { run: string; word: string; onDone: () => void }) {
  const [sure, setSure] = useState(false);
  const [trouble, setTrouble] = useState<string | null>(null);
  const act = () => {
    if (!sure) return setSure(true);
    setSure(false);
    ask("POST", "/api/v1/baselines", { run: props.run }).then(
      () => (setTrouble(null), props.onDone()),
      (e: Error) => setTrouble(e.message),
    );
  };
  return (
    <>
      <button type="button" class="main" onClick={act} onBlur={() => setSure(false)}>
        {sure ? "Surely?" : props.word}
      </button>
      {trouble && (
        <span role="alert" class="trouble-line">
          {shown(trouble, 200)}
        </span>
      )}
    </>
  );
}

/** Which run is accepted; taking it back, and accepting the newest of `runs` or another of them. */
export function Baseline(props: {
  session: Session;
  subject: string;
  runs: { run: string; name: string }[];
  onChange: () => void;
}) {
  const { session, subject, runs } = props;
  const accepted = useAnswer<{ baselines: Accepted[] }>(query("/api/v1/baselines", { subject }));
  const [chosen, setChosen] = useState<string | null>(null);
  const run = runs.some((r) => r.run === chosen) ? chosen! : runs[0]?.run;
  const changed = () => (accepted.again(), props.onChange());
  const end = (id: string) => void ask("DELETE", `/api/v1/baselines/${id}`).then(changed, changed);
  return (
    <section aria-labelledby="h-baseline">
      <h2 id="h-baseline">Baseline</h2>
      <Loaded of={accepted}>
        {({ baselines }) => (
          <>
            {baselines.map((b) => (
              <p>
                Judged against{" "}
                <To page="run" keys={{ id: b.run }}>
                  <code>{b.run}</code>
                </To>{" "}
                of {instant(b.created)}
                {b.commit ? `, commit ${shown(b.commit, 10)}` : ""}: changes up to it are accepted, and what got worse since is
                told however long ago.{" "}
                {mayAccept(session) && (
                  <button type="button" class="link" onClick={() => end(b.run)}>
                    Take it back
                  </button>
                )}
              </p>
            ))}
            {!baselines.length && (
              <p class="empty">No run is accepted as the baseline: a level is judged against the one before it.</p>
            )}
            {mayAccept(session) && run && (
              <div class="actions">
                <label class="pick">
                  <span>Run</span>
                  <select value={run} onChange={(e) => setChosen(e.currentTarget.value)}>
                    {runs.map((r) => (
                      <option value={r.run}>{shown(r.name, 80)}</option>
                    ))}
                  </select>
                </label>
                <Accept run={run} word="Accept new baseline" onDone={changed} key={run} />
              </div>
            )}
          </>
        )}
      </Loaded>
    </section>
  );
}
