// SPDX-License-Identifier: MIT
// pages.ts - the pages of `tare serve`, in the order of the menu. A page is a row here and a file under pages/; nothing
// else knows the pages. docs/server.md says how to add one.
import type { ComponentType } from "preact";
import type { Session } from "./api";
import { admin } from "./pages/admin";
import { alerts } from "./pages/alerts";
import { compare } from "./pages/compare";
import { hosts } from "./pages/hosts";
import { overview } from "./pages/overview";
import { requests } from "./pages/requests";
import { run } from "./pages/run";
import { runs } from "./pages/runs";
import { self } from "./pages/self";
import { trace } from "./pages/trace";
import { trend } from "./pages/trend";

export interface PageProps {
  session: Session;
}

export interface PageRow {
  /** Unique: the value of `page` in the address. */
  id: string;
  title: string;
  /** What the session must be allowed; without it the page is not in the menu. */
  scope: "read" | "admin";
  /** Reached from another page only. */
  unlisted?: boolean;
  Component: ComponentType<PageProps>;
}

export const pages: readonly PageRow[] = [overview, runs, run, trace, compare, trend, requests, alerts, admin, hosts, self];

export const mayOpen = (row: PageRow, session: Session): boolean => session.scopes.split(",").includes(row.scope);
