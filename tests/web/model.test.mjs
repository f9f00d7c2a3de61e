// SPDX-License-Identifier: MIT
// The graph of a model: of a real file, by mouse and by keys; thousands of nodes; a single one; names that want harm.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, downloaded, fill, overflow, run, scratch, shot, violations, withPage } from "./browser.mjs";
import { join } from "node:path";

after(closeBrowser);

const hash = (page) => page.evaluate(() => decodeURIComponent(location.hash));
const summary = (page) => page.textContent("#fig-model .summary");
const detail = (page) => page.textContent("#fig-model .flamedetail p");

/** The document of a run whose only case has these layers and edges. */
const made = (layers, edges) => [
  {
    kind: "run", name: "made.json",
    document: {
      schema: "tare.run/1", kind: "inspect", subject: { type: "onnx", name: "made" },
      cases: [{ name: "only", params: {}, layers, graph: edges.length ? { from: edges.map((e) => e[0]), to: edges.map((e) => e[1]) } : null }],
    },
  },
];

/** A page of four small transformer layers, as `tare inspect` makes it. */
let decoder = null;
function inspected() {
  if (decoder) return decoder;
  run("synth", "gpt2-small", "--layers", "4", "--hidden", "32", "--heads", "2", "--ffn", "64", "--vocab", "100", "--positions", "64", "-o", "decoder.onnx");
  run("inspect", "decoder.onnx", "--batch", "2", "--seq", "8", "--html", "decoder.html");
  return (decoder = join(scratch, "decoder.html"));
}

/** A point of the canvas: the part of its size. */
async function point(page, x, y) {
  const b = await page.locator(".graphbox canvas").boundingBox();
  return [b.x + b.width * x, b.y + b.height * y];
}

/** Boxes of everything in the figure and after it: what a reader would see move. */
const boxes = (page) =>
  page.evaluate(() => [...document.querySelectorAll("main h2, main figure, .flamebar, .flamedetail, canvas, .summary, main table, footer")].map((e) => {
    const { x, y, width, height } = e.getBoundingClientRect();
    return [e.tagName, x, y + scrollY, width, height].join(" ");
  }));

test("tare inspect: repeated blocks are one node; unfolded, searched, saved", async () => {
  await withPage(inspected(), async (p) => {
    assert.match(await summary(p), /nodes, \d+ edges\. Drawn as \d+: transformer\/h\.\* ×4\. Most multiply-accumulates/);
    assert.deepEqual(await violations(p), []);
    await p.click("#fig-model button:text-is('Unfold all')");
    assert.doesNotMatch(await summary(p), /Drawn as/);
    assert.match(await hash(p), /model\.open=all/);
    await p.fill("#model-search", "softmax");
    assert.match(await p.textContent(".found"), /^4 nodes$/);
    await p.click("#fig-model button:text-is('Next')");
    assert.match(await detail(p), /h\.0.*Softmax.*reads float32\[2,2,8,8\].*makes float32\[2,2,8,8\]/);
    await p.click("#fig-model button:text-is('Fold its block')");
    assert.match(await detail(p), /transformer\/h\.0.*nodes/);
    await p.click("#fig-model button:text-is('Table')");
    assert.match(await p.textContent("#fig-model .table"), /h\.3\/attn\/Softmax.*h\.3\/attn/);
    const { bytes } = await downloaded(p, () => p.click("#fig-model button:text-is('SVG')"));
    const svg = bytes.toString();
    assert.match(svg, /^<svg .*LayerNormalization/s);
    assert.equal(svg.match(/>Softmax</g).length, 3, "three blocks are unfolded, one is folded");
    await shot(p, "model-graph");
  });
});

test("tare inspect: a click unfolds a block, the address keeps it, and colours can be chosen", async () => {
  const file = inspected();
  let link = "";
  await withPage(file, async (p) => {
    await p.fill("#model-search", "softmax"); // one node: the folded block; Next selects it and brings it into sight
    await p.click("#fig-model button:text-is('Next')");
    await p.focus(".graphbox");
    await p.keyboard.press("Enter");
    assert.match(await hash(p), /model\.open=r\d+/);
    assert.match(await detail(p), /transformer\/h\.0/);
    await p.selectOption("#fig-model select", "bytes");
    assert.match(await summary(p), /Most bytes read and written/);
    link = (await hash(p)).slice(1);
  });
  await withPage(file, async (p) => {
    assert.match(await detail(p), /transformer\/h\.0/);
    assert.match(await summary(p), /Most bytes read and written/);
  }, { hash: link });
});

test("keys walk, unfold and fold; the mouse reads, and moves nothing on the page", async () => {
  const chain = Array.from({ length: 12 }, (_, i) => ({ name: `/block.${Math.floor(i / 4)}/part${i % 4}/Op`, op: `Op${i % 4}`, macs: 10 + (i % 4), output: "float32[4]" }));
  const file = fill("chain", made(chain, chain.slice(1).map((_, i) => [i, i + 1])));
  await withPage(file, async (p) => {
    await p.focus(".graphbox");
    await p.keyboard.press("ArrowDown");
    assert.match(await detail(p), /block\.\* ×3/);
    await p.keyboard.press("Enter");
    await p.keyboard.press("ArrowDown");
    assert.match(await detail(p), /block\.1/);
    await p.keyboard.press("Enter");
    assert.match(await detail(p), /block\.1\/part0\/Op.*reads float32\[4\]/);
    await p.keyboard.press("f");
    assert.match(await detail(p), /^block\.1/);
    await p.keyboard.press("f");
    assert.match(await detail(p), /block\.\* ×3/);
    await p.keyboard.press("/");
    assert.equal(await p.evaluate(() => document.activeElement.id), "model-search");
    await p.keyboard.press("Escape");
    await p.click("#fig-model button:text-is('Unfold all')");
    const before = await boxes(p);
    assert.equal(await p.locator(".tip").count(), 0);
    await p.mouse.move(...(await point(p, 0.5, 0.05)));
    const [x, y] = await point(p, 0.5, 0.5);
    for (let dy = -40; dy <= 40 && !(await p.locator(".tip").count()); dy += 20) await p.mouse.move(x, y + dy);
    assert.match(await p.textContent(".tip"), /block\.\d\/part\d\/Op.*makes float32\[4\].*MAC/);
    assert.deepEqual(await boxes(p), before, "hovering moves nothing");
    await p.mouse.move(2, 2);
    assert.equal(await p.locator(".tip").count(), 0);
  });
});

test("2,000 nodes whose names tell nothing: folded by what they do, and all of them at once", async (t) => {
  const layers = Array.from({ length: 2000 }, (_, i) => ({ name: `node_${i}`, op: ["MatMul", "Add", "Relu", "Mul", "Softmax"][i % 5], macs: i % 5 ? 0 : 1000, output: "float32[8,8]" }));
  const edges = layers.slice(1).flatMap((_, i) => [[i, i + 1], ...(i % 5 === 4 && i > 5 ? [[i - 5, i + 1]] : []), ...(i % 50 ? [] : [[0, i + 1]])]);
  await withPage(fill("many", made(layers, edges)), async (p) => {
    assert.match(await summary(p), /2,000 nodes, 2,\d+ edges\. Drawn as \d+: 5 nodes from node_0 ×400/);
    const start = Date.now();
    await p.click("#fig-model button:text-is('Unfold all')");
    await p.waitForFunction(() => !document.querySelector("#fig-model .summary").textContent.includes("Drawn as"));
    const unfolded = Date.now() - start;
    const move = Date.now();
    await p.focus(".graphbox");
    for (let i = 0; i < 20; i++) await p.keyboard.press("ArrowDown");
    assert.match(await detail(p), /node_\d+/);
    await p.keyboard.press("0");
    t.diagnostic(`unfolding 2,000 nodes ${unfolded} ms, twenty steps ${Date.now() - move} ms`);
    await p.fill("#model-search", "node_1999");
    assert.equal(await p.textContent(".found"), "1 node");
  });
});

test("a model of one node is a node; one without edges has no graph", async () => {
  await withPage(fill("single", made([{ name: "/only", op: "Relu", flops: 8, output: "float32[8]" }], [])), async (p) => {
    assert.match(await summary(p), /^1 node, 0 edges\. Most operations: \/only 100/);
    await p.focus(".graphbox");
    await p.keyboard.press("Home");
    assert.match(await detail(p), /Relu.*makes float32\[8\]/);
  });
  await withPage(fill("apart", made([{ name: "a", op: "Relu" }, { name: "b", op: "Relu" }], [])), async (p) => assert.equal(await p.locator("#model").count(), 0));
});

test("names that want harm stay names; edges to nowhere are left out", async () => {
  const evil = '<img src=x onerror=alert(1)>\u202e</script>' + "x".repeat(5000);
  const layers = [evil, "/ok", evil].map((name) => ({ name, op: evil, group: evil, output: evil, macs: 1 }));
  await withPage(fill("evil", made(layers, [[0, 1], [1, 2], [0, 9], [-1, 1], [1.5, 2], ["0", 1]])), async (p) => {
    assert.match(await summary(p), /^3 nodes, 2 edges/);
    await p.focus(".graphbox");
    await p.keyboard.press("Home");
    assert.match(await detail(p), /<img src=x/);
    assert.equal(await p.locator("main img").count(), 0);
    await p.click("#fig-model button:text-is('Table')");
    assert.ok((await overflow(p)) <= 0);
  });
});

for (const theme of ["light", "dark"])
  test(`${theme}, 375 pixels and printed: nothing sticks out`, async () => {
    await withPage(inspected(), async (p) => {
      assert.ok((await overflow(p)) <= 0);
      await p.click("#fig-model button:text-is('Unfold all')");
      assert.ok((await overflow(p)) <= 0);
      assert.deepEqual(await violations(p), []);
      await shot(p, `model-${theme}-375`);
      await p.emulateMedia({ media: "print" });
      assert.ok(await p.locator(".graphbox canvas").isVisible());
      assert.equal(await p.locator("#fig-model .flamebar").isVisible(), false);
    }, { theme, width: 375 });
  });
