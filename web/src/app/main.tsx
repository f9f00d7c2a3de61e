// SPDX-License-Identifier: MIT
// main.tsx - the pages of `tare serve` begin here.
import { render } from "preact";
import { startTheme } from "../ui/theme";
import { App } from "./App";

const place = document.getElementById("tare-page")!;
startTheme();
place.replaceChildren();
render(<App />, place);
