// SPDX-License-Identifier: MIT
// The words, colours and tables of flame graphs: unknown is said, colours can be read, text fits.
import assert from "node:assert/strict";
import { test } from "node:test";
import { calleesOf, callersOf } from "../src/data/calltree";
import { layoutOf } from "../src/data/flame";
import { cssOf, diffStep, diffTone, frameTone, inkOf, moduleOf, modulesOf, moduleTone, quietTone, softInkOf, type Tone } from "../src/data/flamecolour";
import { changeText, costText, detailOf, graphOf, gridOfGraph, placeText } from "../src/data/flamegraph";
import { readProfile } from "../src/data/profile";
import { boundRange, zoomAround } from "../src/ui/FlameCanvas";
import { fitText, flamePicture, type Pane, ROW_HEIGHT, sandwichPicture, type Strokes, strokeFlame, svgOfPicture } from "../src/ui/flamepaint";
import { documentOf, profileOf } from "./trees";

// ---- colours ----

/** WCAG: relative luminance of red, green, blue from 0 to 1. */
const luminance = (rgb: number[]): number => {
  const [r, g, b] = rgb.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
};
const ofHex = (hex: string): number[] => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
function ofTone(t: Tone): number[] {
  const [s, l] = [t.saturation / 100, t.light / 100];
  const a = s * Math.min(l, 1 - l);
  return [0, 8, 4].map((n) => {
    const k = (n + t.hue / 30) % 12;
    return l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  });
}
function contrast(ink: string, fill: Tone): number {
  const [a, b] = [luminance(ofHex(ink)), luminance(ofTone(fill))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

test("every fill can be read in both themes", () => {
  for (const dark of [false, true]) {
    const fills = [quietTone(dark)];
    for (let hue = -1; hue < 7; hue++) for (const shade of [-1, 0, 1]) fills.push(moduleTone(hue, dark, shade));
    for (let step = -4; step <= 4; step++) fills.push(diffTone(step, dark));
    for (const fill of fills) {
      assert.ok(contrast(inkOf(dark), fill) >= 4.5, `${cssOf(fill)} ${contrast(inkOf(dark), fill)}`);
      assert.ok(contrast(softInkOf(dark), fill) >= 4.5, `soft on ${cssOf(fill)} ${contrast(softInkOf(dark), fill)}`);
    }
  }
});

test("the costliest files have hues of their own, the rest is grey", () => {
  const names = Array.from({ length: 10 }, (_, i) => `f${i}`);
  const frames = { name: [...names, "pkg.mod.f", "ns::f", "bare"], file: [...names.map((n) => `src/${n}.c`), null, null, null], line: names.map(() => 1) };
  const self = Float64Array.from(frames.name, (_, i) => i + 1);
  const m = modulesOf(frames, self);
  assert.equal(moduleOf(frames, 10), "pkg.mod");
  assert.equal(moduleOf(frames, 11), "ns");
  assert.equal(moduleOf(frames, 12), "");
  assert.equal(moduleOf({ name: ["<method 'join' of 'str' objects>"], file: [null], line: [null] }, 0), "built-in");
  assert.equal(m.list[m.of[11]!]!.hue, 0);
  assert.equal(m.list[m.of[12]!]!.hue, -1); /* no file and no module: nothing to be told apart by */
  assert.equal(m.list[m.of[0]!]!.hue, -1);
  assert.notEqual(cssOf(frameTone(m, frames, 9, false)), cssOf(frameTone(m, frames, 8, false)));
});

test("more is one colour, less the other, noise is none", () => {
  assert.equal(diffStep(100, 100.5, NaN), 0);
  assert.equal(diffStep(110, 100, 20), 0);
  assert.ok(diffStep(110, 100, 2) > 0 && diffStep(100, 110, 2) < 0);
  assert.equal(diffStep(5, 0, NaN), 4);
  assert.equal(diffStep(0, 5, NaN), -4);
  assert.notEqual(diffTone(2, false).hue, diffTone(-2, false).hue);
});

// ---- words ----

test("what is not known says so", () => {
  assert.equal(costText("ns", NaN), "unknown");
  assert.equal(costText("ns", -3), "not told from 0");
  assert.equal(costText("bytes", 2048), "2\u00a0KiB");
  assert.equal(costText("samples", 1234), "1,234");
});

test("changes in words", () => {
  assert.equal(changeText(110, 100), "+10\u00a0%");
  assert.equal(changeText(90, 100), "\u221210\u00a0%");
  assert.equal(changeText(300, 100), "3×");
  assert.equal(changeText(5, 0), "new");
  assert.equal(changeText(0, 5), "gone");
  assert.equal(changeText(0, 0), "same");
  assert.equal(changeText(104, 100, 5), "same");
});

test("a frame in words", () => {
  const d = documentOf(["main 1000", "main;step 3000"]) as Record<string, any>;
  d.nodes.total_error = [100, null];
  const g = graphOf(readProfile(d), -1, false);
  assert.deepEqual(detailOf(g, g.tree, 0), ["total 4\u00a0µs ± 100\u00a0ns (100\u00a0%)", "self 1\u00a0µs (25\u00a0%)", "1 call", "app.py:1"]);
  assert.equal(placeText(g.profile, 1), "app.py:2");
  assert.match(g.summary(), /^2 call paths, 2 deep, 4.µs in all\. Most time of their own: step \(75.%\), main \(25.%\)\.$/);
});

test("a hidden path, a thread and an empty profile are told", () => {
  const d = documentOf(["main 1000"]) as Record<string, any>;
  d.threads = [{ name: "t", nodes: { ...d.nodes, total: [7], self: [7] }, hidden: 12345 }];
  const g = graphOf(readProfile(d), 0, false);
  assert.equal(g.whole, 7);
  assert.match(g.summary(), /12,345 small paths are left out/);
  const none = graphOf(readProfile({ schema: "tare.profile/1", frames: { name: [] }, nodes: { parent: [], frame: [], self: [] } }), -1, false);
  assert.match(none.summary(), /Nothing was recorded/);
});

function difference(byShare: boolean) {
  const d = documentOf(["main;a 10", "main;b 30"]) as Record<string, any>;
  d.base = { name: "old", nodes: { ...d.nodes, self: [0, 10, 10], total: [20, 10, 10] } };
  return graphOf(readProfile(d), -1, byShare);
}

test("a difference by amount and by share", () => {
  const amount = difference(false);
  assert.deepEqual([...amount.diff!.baseTotal], [20, 10, 10]);
  assert.match(amount.summary(), /Against the base, 20.ns: 2×|\+100/);
  const share = difference(true);
  assert.deepEqual([...share.diff!.baseTotal], [40, 20, 20]);
  assert.match(detailOf(share, share.tree, 1).join(), /base 20.ns scaled: \u221250.%/);
});

// ---- the table ----

test("the table has each function once, the costliest first", () => {
  const g = graphOf(profileOf(["main;step;step 5", "main;step 2", "main;load 1"]), -1, false);
  const grid = gridOfGraph(g);
  assert.deepEqual(grid.columns.map((c) => c.title), ["Function", "File", "Line", "Self, ns", "Total, ns", "Total, share", "Calls"]);
  assert.deepEqual(grid.rows[0], ["step", "app.py", 2, 7, 7, 7 / 8, 2]);
  assert.equal(grid.rows.length, 3);
});

test("the table of a difference has the base beside it", () => {
  const grid = gridOfGraph(difference(false));
  assert.deepEqual(grid.columns.slice(7).map((c) => c.title), ["Base self, ns", "Base total, ns", "Change of total"]);
  const b = grid.rows.find((r) => r[0] === "b")!;
  assert.deepEqual(b.slice(3), [30, 30, 0.75, 1, 10, 10, 2]);
});

// ---- drawing ----

test("text is cut to its room, wide characters take two columns", () => {
  assert.equal(fitText("matmul", 6), "matmul");
  assert.equal(fitText("matmul", 4), "mat…");
  assert.equal(fitText("矩阵乘法", 5), "矩阵…");
  assert.equal(fitText("matmul", 0), "");
  assert.equal(fitText("😀😀😀", 4), "😀…");
});

const look = { fill: () => "red", name: (i: number) => (i === 0 ? '<script>alert("1")</script>' : "x"), value: () => "9 ms", quiet: () => false, ink: "black", soft: "grey" };
const camera = { from: 0, to: 1, width: 600, height: 100, top: 0, rowHeight: 19, flame: false };

test("strokes stay inside the window", () => {
  const g = graphOf(profileOf(["main;a 10", "main;b 30"]), -1, false);
  const rects: number[][] = [];
  const texts: string[] = [];
  const to: Strokes = { rect: (x, _y, w) => rects.push([x, x + w]), text: (_x, _y, t) => texts.push(t) };
  strokeFlame(to, { layout: g.layout, camera: { ...camera, from: 0.1, to: 0.6 }, look }, 6.6);
  assert.ok(rects.length === 2 && rects.every(([a, b]) => a! >= 0 && b! <= 600));
  assert.deepEqual(texts, ['<script>alert("1")</script>', "9 ms", "x", "9 ms"]);
});

test("an SVG holds names as text only", () => {
  const g = graphOf(profileOf(["main;a 10"]), -1, false);
  const svg = svgOfPicture(flamePicture({ layout: g.layout, camera, look }, "white"), "</title><script>");
  assert.ok(!svg.includes("<script"));
  assert.match(svg, /&lt;script&gt;alert\(&quot;1&quot;\)/);
  assert.match(svg, /^<svg .*<\/svg>\n$/s);
});

/** Both halves around a function, each `rows` high and scrolled by so many pixels. */
function halvesOf(stacks: string[], name: string, rows: number, top: number): [Pane, Pane] {
  const g = graphOf(profileOf(stacks), -1, false);
  const { name: names } = g.profile.frames;
  const { outer } = g.functions();
  const pane = (of: typeof callersOf, flame: boolean): Pane => {
    const tree = of(g.tree, outer, names.indexOf(name), names.length);
    return { layout: layoutOf(tree), camera: { ...camera, height: rows * ROW_HEIGHT, top, flame }, look: { ...look, name: (node) => names[tree.frame[node]!]! } };
  };
  return [pane(callersOf, true), pane(calleesOf, false)];
}

test("a sandwich is one picture: callers, the name, callees", () => {
  const [callers, callees] = halvesOf(["<main>;f;\"&\" 10"], "f", 2, 0);
  const picture = sandwichPicture(callers, callees, "f()", "white");
  const drawn: [string, number][] = [];
  picture.stroke({ rect: () => {}, text: (_x, y, text) => drawn.push([text, y]) }, 6.6);
  const names = drawn.filter(([text]) => text !== "9 ms").sort((a, b) => a[1] - b[1]);
  assert.deepEqual(names.map(([text]) => text), ["<main>", "f", "f()", "callers above, callees below", "f", '"&"']);
  assert.ok(picture.height > 4 * ROW_HEIGHT && names[5]![1] < picture.height);
  const svg = svgOfPicture(picture, "</title>");
  for (const name of ["&lt;main&gt;", "f()", "&quot;&amp;&quot;", "&lt;/title&gt;"]) assert.ok(svg.includes(`>${name}<`), name);
  assert.ok(svg.includes(`height="${picture.height}" viewBox="0 0 600 ${picture.height}"`));
});

test("rows cut by scrolling stay out of the band with the name", () => {
  const [callers, callees] = halvesOf(["a;b;c;f;d;e;g 10"], "f", 2, 7);
  const picture = sandwichPicture(callers, callees, "f()", "white");
  const rects: { y: number; end: number; fill: string }[] = [];
  picture.stroke({ rect: (_x, y, _w, height, fill) => rects.push({ y, end: y + height, fill }), text: () => {} }, 6.6);
  const band = rects.pop()!;
  assert.deepEqual(band, { y: callers.camera.height, end: picture.height - callees.camera.height, fill: "white" });
  const reaching = rects.filter((r) => r.end > band.y && r.y < band.end);
  assert.equal(reaching.length, 2); /* so there was something to cover */
  assert.ok(reaching.every((r) => (r.y < band.y ? r.end <= band.end : r.y >= band.y)));
});

test("ranges stay within the whole", () => {
  assert.deepEqual(boundRange(-1, 3), [0, 1]);
  assert.deepEqual(boundRange(0.9, 1.1).map((x) => +x.toFixed(6)), [0.8, 1]);
  assert.deepEqual(zoomAround([0, 1], 0.5, 0.5), [0.25, 0.75]);
  assert.deepEqual(zoomAround([0.25, 0.75], 0.5, 8), [0, 1]);
  const [from, to] = zoomAround([0.5, 0.5 + 1e-9], 0.5, 1e-9);
  assert.ok(to > from);
});
