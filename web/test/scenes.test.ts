// SPDX-License-Identifier: MIT
// Pictures drawn with a pen that only takes notes: everything is inside, names of any kind are text, targets answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { linearTicks, logTicks, roundStep } from "../src/data/scale";
import { slicesOf } from "../src/data/layers";
import { barsScene } from "../src/scenes/bars";
import { forestScene, ratioText } from "../src/scenes/forest";
import { histogramScene } from "../src/scenes/histogram";
import { fit, type SceneOf, textWidth } from "../src/scenes/scene";
import { scatterScene } from "../src/scenes/scatter";
import { treemapScene } from "../src/scenes/treemap";
import { linearScale } from "../src/data/scale";
import { SvgPen } from "../src/ui/pen";
import type { Colours } from "../src/ui/theme";

const COLOURS: Colours = {
  ink: "#000",
  soft: "#555",
  faint: "#888",
  line: "#ddd",
  paper: "#fff",
  good: "#0a0",
  bad: "#a00",
  warn: "#aa0",
  accent: "#00a",
  series: ["#001", "#002", "#003", "#004", "#005", "#006", "#007", "#008"],
};
const HOSTILE = '</text><script>alert("1")</script>\u202e\u0000';

interface Noted {
  texts: string[];
  points: [number, number][];
}

function noted(of: SceneOf, width: number): Noted & { height: number; targets: number } {
  const notes: Noted = { texts: [], points: [] };
  const scene = of(width, COLOURS);
  scene.draw({
    path: (p) => notes.points.push(...p.map(([x, y]): [number, number] => [x, y])),
    fill: (p) => notes.points.push(...p.map(([x, y]): [number, number] => [x, y])),
    spot: (x, y) => notes.points.push([x, y]),
    text: (_x, _y, text) => notes.texts.push(text),
  });
  return { ...notes, height: scene.height, targets: scene.targets.length };
}

const bars = barsScene({
  rows: [
    { name: HOSTILE, parts: [{ to: 5, colour: 0 }], mark: 3, value: "5", text: "five" },
    { name: "x".repeat(1e6), parts: [{ to: 0, colour: "bad" }], value: "0", text: "none" },
  ],
  label: "things",
  format: String,
});
const histogram = histogramScene(
  [
    { lo: 1e6, hi: 2e6, count: 5 },
    { lo: 2e6, hi: 9e8, count: 1 },
  ],
  [
    { at: 1.5e6, label: "median", tone: "ink" },
    { at: 9e9, label: "outside", tone: "ink" },
  ],
);
const rows = [1.3, 0.001, null].map((value, i) => ({
  case: HOSTILE,
  metric: `m${i}`,
  verdict: "regressed" as const,
  role: "gate" as const,
  better: "less",
  min_effect: 0.02,
  ratio: value === null ? null : { value, lo: value * 0.5, hi: null },
}));
const forest = forestScene(rows);
const tree = treemapScene(
  slicesOf(
    [
      { name: HOSTILE, group: HOSTILE, op: HOSTILE, time_ns: 5 },
      { name: "y".repeat(1e6), time_ns: 1 },
    ],
    "time_ns",
  ),
  String,
  "time",
);
const axis = (label: string) => ({ label, format: String, scale: (a: number, b: number) => linearScale(0, 10, a, b) });
const scatter = scatterScene({
  x: axis("x"),
  y: axis("y"),
  spots: [
    { x: 1, y: 1, radius: 5, colour: 0, name: HOSTILE, text: "a", xLo: 0, xHi: 2 },
    { x: 9.9, y: 9, radius: 5, colour: "bad", ring: true, name: "right", text: "b" },
  ],
  lines: [
    {
      points: [
        [0, 0],
        [10, 10],
      ],
      colour: "soft",
      label: "line",
    },
  ],
});

const SCENES: [string, SceneOf, number][] = [
  ["bars", bars, 2],
  ["histogram", histogram, 2],
  ["forest", forest, 3],
  ["treemap", tree, 2],
  ["scatter", scatter, 2],
];

for (const [name, scene, targets] of SCENES)
  test(`${name}: inside at every width, with all its targets`, () => {
    for (const width of [320, 700, 1400]) {
      const drawn = noted(scene, width);
      assert.equal(drawn.targets, targets);
      for (const [x, y] of drawn.points)
        assert.ok(x >= -1 && x <= width + 1 && y >= -1 && y <= drawn.height + 1, `${name} at ${width}: ${x}, ${y}`);
      for (const t of drawn.texts)
        assert.ok(t.length <= 400 && !t.includes("\u202e") && !t.includes("\u0000"), "cut and cleaned");
    }
  });

test("as SVG a hostile name is text", () => {
  for (const [, of] of SCENES) {
    const scene = of(900, COLOURS);
    const pen = new SvgPen(900, scene.height, "#fff");
    scene.draw(pen);
    assert.ok(!/<script/i.test(pen.finish(HOSTILE)));
  }
});

test("texts are cut at the end that says less, and not at all where they fit", () => {
  assert.equal(fit("short", 200), "short");
  assert.ok(fit("a/long/path/to/MatMul", 60, "end").endsWith("Mul"));
  assert.ok(fit("a long sentence here", 60).startsWith("a lo"));
  assert.ok(textWidth(fit("w".repeat(1e6), 100)) <= 100);
  assert.equal(fit("anything", 2), "");
  for (const text of ["the run", "batch=1,seq=128"])
    assert.equal(fit(text, textWidth(text), "end"), text, "not cut where it just fits");
});

test("a ratio without an interval says so", () => {
  const plain = (t: string) => t.replace(/\u00a0/g, " ");
  assert.equal(plain(ratioText(rows[0]!)), "+30 % (no interval)");
  assert.equal(ratioText(rows[2]!), "unknown");
});

test("ticks are round and inside", () => {
  assert.deepEqual(linearTicks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(logTicks(0.5, 2000), [1, 10, 100, 1000]);
  assert.deepEqual(logTicks(20, 600), [20, 50, 100, 200, 500]);
  assert.equal(roundStep(0.3), 0.5);
  assert.deepEqual(linearTicks(3, 3), [3]);
  assert.ok(logTicks(1e-12, 1e12).length <= 8);
});
