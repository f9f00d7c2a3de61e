// SPDX-License-Identifier: MIT
// main.tsx - read the data that stands in the page and show it; say what is wrong with it where it cannot be shown.
import { render } from "preact";
import { readPage } from "./data/page";
import { Shell } from "./Shell";
import { shown } from "./ui/format";
import { readView } from "./ui/hash";
import { startTheme } from "./ui/theme";

function Trouble(props: { why: string }) {
  return (
    <main class="trouble">
      <h1>tare report</h1>
      <p>{shown(props.why, 600)}</p>
    </main>
  );
}

function start(): void {
  const place = document.getElementById("tare-page")!;
  const page = readPage(document.getElementById("tare-data")?.textContent ?? "null");
  startTheme();
  place.replaceChildren();
  if (typeof page === "string") return render(<Trouble why={page} />, place);
  if (!page.items.length) return render(<Trouble why="This page was written without any document." />, place);
  document.title = shown(page.title ?? "tare report", 120);
  render(<Shell page={page} />, place);
  const at = readView("at");
  if (at) document.getElementById(at)?.scrollIntoView();
}

start();
