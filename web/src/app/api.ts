// SPDX-License-Identifier: MIT
// api.ts - the one way to the server: same origin, the session's cookie, JSON both ways, and errors as the texts the
// server gives. A page asks by useAnswer() and shows it by <Loaded>.
import { useEffect, useState } from "preact/hooks";

export interface Session {
  /** "read,run" */
  scopes: string;
  project: string | null;
  token: string | null;
  idle_s: number;
  ends_s: number;
  version: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text);
  }
}

/** Told when the server no longer knows this browser. */
let onLost: () => void = () => undefined;
export const whenLost = (tell: () => void): void => void (onLost = tell);

const textOf = (status: number, body: unknown): string => {
  const detail = (body as { detail?: unknown } | null)?.detail;
  return typeof detail === "string" ? detail : `the server answered ${status}`;
};

/** What a request answers, or an ApiError. The header says that a page of this server asks: no form can send it. */
export async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method, headers: { "X-Tare": "page" }, credentials: "same-origin" };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...init.headers, "Content-Type": "application/json" };
  }
  let reply: Response;
  try {
    reply = await fetch(path, init);
  } catch {
    throw new ApiError(0, "the server cannot be reached");
  }
  const text = await reply.text();
  let answer: unknown = null;
  try {
    answer = text ? JSON.parse(text) : null;
  } catch {
    throw new ApiError(reply.status, "the server's answer is no JSON");
  }
  if (reply.ok) return answer as T;
  if (reply.status === 401 && path !== "/api/v1/session") onLost();
  throw new ApiError(reply.status, textOf(reply.status, answer));
}

/** "/api/v1/runs?subject=a%20b": empty values are left out. */
export function query(path: string, keys: Record<string, string | number | undefined>): string {
  const given = Object.entries(keys).filter(([, v]) => v !== undefined && v !== "");
  const text = given.map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`).join("&");
  return text ? `${path}?${text}` : path;
}

export interface Answer<T> {
  data: T | null;
  /** Why there is nothing newer than `data`. */
  error: string | null;
  /** When `data` came. */
  at: Date | null;
  again: () => void;
}

/** What GET answers; asked again when the path changes. `every`: also so many seconds apart, while the tab is seen. */
export function useAnswer<T>(path: string | null, every?: number): Answer<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; error: string | null; at: Date | null }>({
    path: null,
    data: null,
    error: null,
    at: null,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let gone = false;
    if (!path) return;
    ask<T>("GET", path).then(
      (data) => gone || setState({ path, data, error: null, at: new Date() }),
      (e: Error) =>
        gone || setState((s) => ({ ...(s.path === path ? s : { data: null, at: null }), path, error: e.message })),
    );
    const timer = every ? setTimeout(() => document.hidden || setTurn((t) => t + 1), every * 1000) : undefined;
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [path, turn, every]);
  useEffect(() => {
    if (!every) return;
    const seen = () => document.hidden || setTurn((t) => t + 1);
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, [every]);
  const fresh = state.path === path;
  return {
    data: fresh ? state.data : null,
    error: fresh ? state.error : null,
    at: fresh ? state.at : null,
    again: () => setTurn((t) => t + 1),
  };
}
