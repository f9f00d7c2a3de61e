// SPDX-License-Identifier: MIT
// Flame graphs: of traces that a real program recorded, by mouse and by keys, hostile names, half a million frames.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, test } from "node:test";
import { built, closeBrowser, downloaded, fill, overflow, packed, report, root, scratch, shot, violations, withPage } from "./browser.mjs";

after(closeBrowser);

// ---- pages ----

/** A trace of examples/transformer.c; `args` change what it does. */
function record(name, ...args) {
  const program = join(scratch, "transformer");
  execFileSync("cc", ["-O2", `-I${root}/include`, `${root}/examples/transformer.c`, `-L${built}`, `-Wl,-rpath,${built}`, "-ltare", "-pthread", "-lm", "-o", program]);
  const trace = join(scratch, `${name}.tare`);
  execFileSync(program, args, { cwd: scratch, env: { ...process.env, TARE_TRACE: trace }, stdio: "ignore" });
  return trace;
}

const profile = (nodes, names, more = {}) => ({
  kind: "profile", name: "made",
  document: { schema: "tare.profile/1", name: "made", unit: "ns", frames: { name: names, file: names.map((_, i) => `file${i % 3}.py`), line: names.map((_, i) => i + 1) }, nodes, ...more },
});

/** main (100) calls left (60, of which deep 50) and right (30); right calls deep (10). */
const small = () => profile({ parent: [-1, 0, 0, 1, 2], frame: [0, 1, 2, 3, 3], self: [10, 10, 20, 50, 10], total: [100, 60, 30, 50, 10], calls: [1, 2, 3, 4, 5] }, ["main", "left", "right", "deep"]);

/** What is beside the pointer, else what is said of the frame that was chosen. */
const detail = (page) => page.evaluate(() => (document.querySelector(".tip") ?? document.querySelector(".flamedetail p")).textContent);
const hash = (page) => page.evaluate(() => decodeURIComponent(location.hash));

/** A point of the graph: part of the width, row from the top. */
async function at(page, x, row) {
  const box = await page.locator(".flamebox canvas").first().boundingBox();
  return [box.x + box.width * x, box.y + row * 19 + 9];
}

// ---- the head, the costliest functions, waiting ----

/** main (100) calls work (30), a lock (50) and sleep (10) within nap (15): 60 of it were waiting. */
const waiting = () => profile({ parent: [-1, 0, 0, 0, 3], frame: [0, 1, 2, 3, 4], self: [5, 30, 50, 5, 10], total: [100, 30, 50, 15, 10], calls: [1, 1, 1, 1, 1] },
  ["main", "work", "<method 'acquire' of '_thread.lock' objects>", "nap", "<built-in method time.sleep>"], { measured: { duration_ns: 4e6, processes: 1, threads: 3, own_ns: 2000, own_share: 0.0005, lost: 0 } });

test("the head says what was recorded; without it there is none", async () => {
  await withPage(fill("head", [waiting()]), async (p) => {
    const tiles = await p.$$eval("#flame .tiles > div", (all) => all.map((t) => t.textContent.replace(/\u00a0/g, " ")));
    assert.deepEqual(tiles, ["Duration4 msrecorded, by the clock", "Threads3in 1 process", "Cost of tare itself0.05 %2 µs, taken out", "Lostnothingevery call is here"]);
    assert.deepEqual(await violations(p), []);
  });
  await withPage(fill("headless", [small()]), async (p) => assert.equal(await p.locator("#flame .tiles").count(), 0));
});

test("the costliest functions stand beside the picture, below it where there is no room; a click searches", async () => {
  for (const width of [1280, 375])
    await withPage(fill("top", [small()]), async (p) => {
      const rows = await p.$$eval(".topself li", (all) => all.map((t) => t.textContent.replace(/\u00a0/g, " ")));
      assert.deepEqual(rows, ["deep60 ns · 60 %", "right20 ns · 20 %", "main10 ns · 10 %", "left10 ns · 10 %"]);
      const [list, graph] = [await p.locator(".topself").boundingBox(), await p.locator(".flamebox").boundingBox()];
      if (width > 820) assert.ok(list.x >= graph.x + graph.width && list.y < graph.y + graph.height);
      else assert.ok(list.y >= graph.y + graph.height);
      await p.click(".topself button:has-text('deep')");
      assert.match(await p.textContent(".found"), /1 function, 2 paths/);
      assert.equal(await p.getAttribute(".topself button:has-text('deep')", "aria-pressed"), "true");
      await p.click(".topself button:has-text('deep')");
      assert.equal(await p.locator(".found").count(), 0);
      assert.ok((await overflow(p)) <= 0);
    }, { width });
});

test("waiting can be hidden: its calls, and its time in those that called them", async () => {
  await withPage(fill("waiting", [waiting()]), async (p) => {
    assert.match(await p.textContent(".summary"), /5 call paths.*100.ns in all.*_thread\.lock' objects> \(50/);
    await p.click("button:text-is('Hide waiting')");
    assert.match(await p.textContent(".summary"), /3 call paths.*40.ns in all.*work \(75/);
    assert.match(await hash(p), /flame\.busy=1/);
    assert.match(await p.textContent(".note"), /Calls in which threads waited .* are left out/);
    await p.mouse.move(...(await at(p, 0.05, 0)));
    assert.match(await detail(p), /^maintotal 40.ns/);
  });
  await withPage(fill("busy", [small()]), async (p) => assert.equal(await p.locator("button:text-is('Hide waiting')").count(), 0));
});

test("what the pointer is told takes no room: nothing on the page moves", async () => {
  const boxes = (p) => p.evaluate(() => [...document.querySelectorAll("main h2, figure, .flamebar, .flamedetail, .flamebox, .topself, .summary, footer")].map((e) => JSON.stringify(e.getBoundingClientRect())));
  for (const view of ["icicle", "sandwich"])
    await withPage(fill("still", [small()]), async (p) => {
      const before = await boxes(p);
      await p.mouse.move(...(await at(p, 0.5, 0)));
      assert.match(await p.textContent(".tip b"), /main|deep/);
      assert.deepEqual(await boxes(p), before);
      await p.mouse.move(2, 2);
      assert.equal(await p.locator(".tip").count(), 0);
    }, { hash: `flame.view=${view}` });
});

// ---- real traces ----

test("a trace is a flame graph with its functions, files and threads", async () => {
  const page = report("trace", record("app", "--batches", "2", "--seq", "32"));
  await withPage(page, async (p) => {
    const text = await p.textContent("main");
    assert.match(text, /call paths, \d+ deep/);
    assert.match(text, /Times are net: the cost of tare itself is taken out/);
    await p.click("button:text-is('Table')");
    assert.match(await p.textContent(".table"), /transformer\.c/);
    assert.deepEqual(await violations(p), []);
    await shot(p, "flame-trace");
  });
});

test("two traces are a difference, the first being the base", async () => {
  const page = report("two", record("old", "--batches", "2", "--seq", "64"), record("new", "--batches", "2", "--seq", "64", "--transpose-keys"));
  await withPage(page, async (p) => {
    assert.match(await p.textContent("h3"), /new\.tare against .*old\.tare/);
    assert.match(await p.textContent(".summary"), /Against the base/);
    await p.click("button:text-is('Table')");
    assert.match(await p.textContent(".table"), /Base total/);
    await p.selectOption("select", "share");
    assert.match(await hash(p), /by=share/);
    assert.match(await p.textContent(".table"), /Base scaled to the same whole, total/);
    await shot(p, "flame-diff");
  });
});

// ---- by mouse ----

test("pointing reads, clicking zooms, the address keeps it", async () => {
  const file = fill("small", [small()]);
  let kept = "";
  await withPage(file, async (p) => {
    await p.mouse.move(...(await at(p, 0.1, 1)));
    assert.match(await detail(p), /left.*total 60.ns \(60.%\).*self 10.ns.*2 calls.*file1\.py:2/);
    await p.mouse.click(...(await at(p, 0.1, 1)));
    await p.waitForFunction(() => /zoom=/.test(location.hash));
    kept = (await hash(p)).slice(1);
    await p.mouse.move(...(await at(p, 0.95, 1)));
    assert.match(await detail(p), /^left/); /* right is out of sight: left fills the width */
    await p.mouse.click(...(await at(p, 0.5, 1))); /* again: out by one */
    await p.mouse.move(...(await at(p, 0.8, 1)));
    assert.match(await detail(p), /^right/);
  });
  await withPage(file, async (p) => {
    await p.mouse.move(...(await at(p, 0.95, 1)));
    assert.match(await detail(p), /^left/);
    await p.click("button:text-is('Show all')");
    await p.mouse.move(...(await at(p, 0.8, 1)));
    assert.match(await detail(p), /^right/);
  }, { hash: kept });
});

test("the wheel zooms with Ctrl, moves with Shift, scrolls without", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    await p.mouse.move(...(await at(p, 0.0, 1)));
    await p.keyboard.down("Control");
    for (let i = 0; i < 4; i++) await p.mouse.wheel(0, -60);
    await p.keyboard.up("Control");
    await p.waitForFunction(() => /zoom=/.test(location.hash));
    const [from, to] = (await hash(p)).match(/zoom=([^&]*)/)[1].split("~").map(Number);
    assert.ok(from < 0.01 && to < 0.5, `${from} ${to}`);
    await p.mouse.move(...(await at(p, 0.99, 1)));
    assert.match(await detail(p), /^left/);
    await p.keyboard.down("Shift");
    for (let i = 0; i < 12; i++) await p.mouse.wheel(0, 900);
    await p.keyboard.up("Shift");
    await p.waitForFunction(() => Number((location.hash.match(/zoom=([^&~%]*)/) ?? [])[1]) > 0.5);
  });
});

test("a thread is shown alone", async () => {
  const item = small();
  item.document.threads = [{ name: "first", nodes: item.document.nodes }, { name: "second", nodes: { parent: [-1], frame: [2], self: [7] } }];
  await withPage(fill("threads", [item]), async (p) => {
    await p.selectOption("select", { label: "second" });
    assert.match(await p.textContent(".summary"), /1 call path, 1 deep, 7.ns in all/);
    await p.selectOption("select", { label: "all together" });
    assert.match(await p.textContent(".summary"), /5 call paths/);
  });
});

test("a deep stack is scrolled to by keys, and never drawn whole", async () => {
  const n = 3000;
  const nodes = { parent: Array.from({ length: n }, (_, i) => i - 1), frame: Array.from({ length: n }, (_, i) => i % 4), self: new Array(n).fill(1) };
  await withPage(fill("deep", [profile(nodes, ["a", "b", "c", "d"])]), async (p) => {
    await p.focus(".flamebox");
    for (let i = 0; i < 50; i++) await p.keyboard.press("ArrowDown");
    await p.waitForFunction(() => { // a busy browser scrolls to where the last key led a few frames later
      const top = document.querySelector(".flamebox").scrollTop, rests = top > 0 && top === window.scrolledBefore;
      window.scrolledBefore = top;
      return rests;
    }, undefined, { polling: 200 });
    const [scrolled, height] = await p.evaluate(() => [document.querySelector(".flamebox").scrollTop, document.querySelector(".flamebox canvas").clientHeight]);
    assert.ok(scrolled >= 19 * 19 && scrolled <= 50 * 19, `${scrolled}`);
    assert.ok(height <= 30 * 19, `${height}`);
    const box = await p.locator(".flamebox canvas").boundingBox();
    await p.mouse.move(box.x + 50, box.y + height - 9);
    assert.match(await detail(p), new RegExp(`^${"abcd"[49 % 4]}`));
  });
});

test("a flame graph stands on its outermost frame", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    await p.mouse.move(...(await at(p, 0.1, 2)));
    assert.match(await detail(p), /^main/);
    await p.mouse.move(...(await at(p, 0.1, 0)));
    assert.match(await detail(p), /^deep/);
  }, { hash: "flame.view=flame" });
});

test("a search tells how much it found and leads there", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    await p.fill("input[type=search]", "DEEP");
    assert.match(await p.textContent(".found"), /1 function, 2 paths, 60.% of the whole/);
    await p.click("button:text-is('Next')");
    assert.match(await detail(p), /^deep.*total 50.ns/);
    await p.click("button:text-is('Next')");
    assert.match(await detail(p), /^deep.*total 10.ns/);
    await p.fill("input[type=search]", "nowhere");
    assert.equal(await p.textContent(".found"), "no match");
    assert.match(await hash(p), /find=nowhere/);
  });
});

test("a sandwich has callers above and callees below", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    await p.click("button:text-is('Sandwich')");
    await p.click(".functions button:has-text('right')");
    assert.match(await p.textContent(".halves"), /Callers of right.*Callees of right/);
    const canvases = p.locator(".flamebox canvas");
    assert.equal(await canvases.count(), 2);
    const callers = await canvases.nth(0).boundingBox();
    await p.mouse.move(callers.x + 20, callers.y + 9);
    assert.match(await detail(p), /^main.*total 30.ns/);
    const callees = await canvases.nth(1).boundingBox();
    await p.mouse.move(callees.x + 20, callees.y + 19 + 9);
    assert.match(await detail(p), /^deep.*total 10.ns/);
    assert.match(await hash(p), /fn=2/);
    assert.deepEqual(await violations(p), []);
    await shot(p, "flame-sandwich");
  });
});

test("a sandwich of what is searched for has the costliest match in the middle, until one is chosen", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    await p.click("button:text-is('Sandwich')");
    await p.fill("input[type=search]", "right");
    assert.match(await p.textContent(".halves"), /Callers of right.*Callees of right/);
    await p.fill("input[type=search]", "deep");
    assert.match(await p.textContent(".halves"), /Callers of deep/);
    await p.click(".functions button:has-text('deep')");
    await p.fill("input[type=search]", "right");
    assert.match(await p.textContent(".halves"), /Callers of deep/);
  });
});

// ---- by keys ----

test("the whole graph can be walked by keys", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    await p.focus(".flamebox");
    const press = async (...keys) => {
      for (const k of keys) await p.keyboard.press(k);
      return detail(p);
    };
    assert.match(await press("ArrowDown"), /^main/);
    assert.match(await press("ArrowDown"), /^left/);
    assert.match(await press("ArrowRight"), /^right/);
    assert.match(await press("ArrowDown"), /^deep.*total 10/);
    assert.match(await press("ArrowUp"), /^right/);
    assert.match(await press("Home"), /^main/);
    await press("ArrowDown", "Enter");
    await p.waitForFunction(() => /zoom=/.test(location.hash));
    await press("0");
    await p.waitForFunction(() => !/zoom=/.test(location.hash));
    await press("/");
    assert.equal(await p.evaluate(() => document.activeElement.getAttribute("type")), "search");
    await p.keyboard.type("right");
    await p.focus(".flamebox");
    assert.match(await press("n"), /^right/);
    await press("s");
    assert.match(await p.textContent(".halves"), /Callers of right/);
  });
});

// ---- files ----

test("a graph is saved as SVG, PNG and CSV", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    const click = (kind) => downloaded(p, () => p.click(`button:text-is('${kind}')`));
    const svg = (await click("SVG")).bytes.toString();
    assert.match(svg, /^<svg /);
    for (const name of ["main", "left", "right", "deep"]) assert.match(svg, new RegExp(`>${name}<`));
    assert.equal((await click("PNG")).bytes.subarray(1, 4).toString(), "PNG");
    const lines = (await click("CSV")).bytes.toString().trim().split("\r\n");
    assert.equal(lines.length, 5);
    assert.equal(lines[1], "deep,file0.py,4,60,60,0.6,9");
  });
});

/** Per row of a PNG, how many pixels are not paper: the gap below the last frame is. */
const inkPerRow = (page, bytes) =>
  page.evaluate(async (base64) => {
    const image = await createImageBitmap(new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], { type: "image/png" }));
    const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
    pen.drawImage(image, 0, 0);
    const pixels = new Uint32Array(pen.getImageData(0, 0, image.width, image.height).data.buffer);
    const paper = pixels[pixels.length - image.width];
    return Array.from({ length: image.height }, (_, y) => pixels.subarray(y * image.width, (y + 1) * image.width).filter((v) => v !== paper).length);
  }, bytes.toString("base64"));

test("a sandwich is saved whole: callers, the function's name, callees", async () => {
  const names = ['"><img src=x onerror="window.hit=1">', "</text><script>window.hit=1</script>", "]]>&amp;\u0000"];
  const nodes = { parent: [-1, 0, 1], frame: [0, 1, 2], self: [0, 0, 90] };
  await withPage(fill("sandwich", [profile(nodes, names)]), async (p) => {
    const click = (kind) => downloaded(p, () => p.click(`button:text-is('${kind}')`));
    const svg = (await click("SVG")).bytes.toString();
    const { texts, title, kinds, height } = await p.evaluate((text) => {
      const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
      const all = [...root.querySelectorAll("text")].sort((a, b) => a.getAttribute("y") - b.getAttribute("y"));
      return { texts: all.map((t) => t.textContent), title: root.querySelector("title").textContent, kinds: [...new Set([root, ...root.querySelectorAll("*")].map((e) => e.nodeName))], height: Number(root.getAttribute("height")) };
    }, svg);
    assert.deepEqual(kinds, ["svg", "title", "rect", "text"]);
    assert.deepEqual(texts.filter((t) => !/^90.ns$|^callers above/.test(t)), [names[0], names[1], names[1], names[1], names[2].replace("\0", "\ufffd")]);
    assert.equal(title, `made: callers and callees of ${names[1]}`);

    const { bytes } = await click("PNG");
    const canvases = await p.evaluate(() => [...document.querySelectorAll(".flamebox canvas")].map((c) => [c.width, c.height]));
    const [[width, above], [, below]] = canvases;
    assert.equal(bytes.readUInt32BE(16), width);
    assert.ok(height > above + below && bytes.readUInt32BE(20) > height, "as high as the SVG, and a title");
    const ink = await inkPerRow(p, bytes);
    const full = (from, n) => ink.slice(from, from + n).filter((v) => v > width / 2).length;
    const head = ink.length - height;
    assert.deepEqual([full(head, above), full(head + height - below, below)], [36, 36], "two rows of frames above and two below");
    assert.equal(full(head + above, height - above - below), 0, "nothing but a name between");
    assert.match((await click("CSV")).bytes.toString(), /file2\.py,3,90,90/);
    assert.equal(await p.evaluate(() => window.hit), undefined);
  }, { hash: "flame.view=sandwich&flame.fn=1" });
});

// ---- what must not happen ----

const HOSTILE = ['</script><script>window.hit=1</script>', '"><img src=x onerror="window.hit=1">', "\u202eright to left", "nul\u0000l", "x".repeat(10_000_000), "", "${window.hit=1}", "\ud800"];

test("hostile names are text, wherever they stand", async () => {
  const n = HOSTILE.length;
  const nodes = { parent: HOSTILE.map((_, i) => (i ? 0 : -1)), frame: HOSTILE.map((_, i) => i), self: HOSTILE.map(() => 10), total: HOSTILE.map((_, i) => (i ? 10 : 10 * n)) };
  const item = profile(nodes, HOSTILE, { name: HOSTILE[0], notes: [HOSTILE[1], HOSTILE[4]], threads: [{ name: HOSTILE[1], nodes }, { name: HOSTILE[4], nodes }], base: { name: HOSTILE[1], nodes } });
  for (const view of ["icicle", "sandwich"])
    await withPage(fill("hostile", [item]), async (p) => {
      for (let x = 0.05; x < 1; x += 0.1) await p.mouse.move(...(await at(p, x, 1)));
      await p.click("button:text-is('Table')");
      assert.equal(await p.evaluate(() => window.hit), undefined);
      assert.equal(await p.evaluate(() => document.querySelectorAll("img").length), 0);
      assert.ok((await p.textContent("main")).length < 20_000);
      assert.equal(await overflow(p), 0);
      await shot(p, `flame-hostile-${view}`);
    }, { hash: `flame.view=${view}` });
});

test("a broken profile says what is wrong, an empty one that it is empty", async () => {
  const broken = profile({ parent: [0], frame: [0], self: [1] }, ["main"]);
  await withPage(fill("broken", [broken]), async (p) => assert.match(await p.textContent("main"), /cannot be shown: "parent" of node 0 is 0/));
  await withPage(fill("empty", [profile({ parent: [], frame: [], self: [] }, [])]), async (p) => assert.match(await p.textContent("main"), /holds no frame/));
});

test("an address from elsewhere breaks nothing", async () => {
  for (const hash of ["flame.fn=99&flame.view=sandwich", "flame.zoom=9~1&flame.thread=77", "flame.zoom=x&flame.view=nothing&flame.fn=-1"])
    await withPage(fill("small", [small()]), async (p) => assert.match(await p.textContent("main"), /5 call paths/), { hash });
});

// ---- at every width, in both themes ----

test("narrow and dark", async () => {
  for (const [width, view] of [[375, "icicle"], [375, "sandwich"], [1280, "flame"]])
    await withPage(fill("small", [small()]), async (p) => {
      assert.equal(await overflow(p), 0);
      assert.deepEqual(await violations(p), []);
      await shot(p, `flame-${view}-${width}`);
    }, { width, theme: "dark", hash: `flame.view=${view}` });
});

// ---- much ----

/** Half a million call paths of twenty thousand functions, deep and wide. */
function large(n) {
  let state = 5;
  const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const nodes = { parent: [-1], frame: [0], self: [0], total: [], calls: [1] };
  for (let i = 1; i < n; i++) {
    nodes.parent.push(Math.max(0, i - 1 - Math.floor(random() ** 3 * Math.min(i, 2000))));
    nodes.frame.push(Math.floor(random() * 20000));
    nodes.self.push(Math.floor(random() ** 4 * 1e6));
    nodes.calls.push(1 + Math.floor(random() * 9));
  }
  nodes.total = nodes.self.slice();
  for (let i = n - 1; i > 0; i--) nodes.total[nodes.parent[i]] += nodes.total[i];
  nodes.parent = nodes.parent.map((p, i) => i - p);
  for (const key of Object.keys(nodes)) nodes[key] = packed(nodes[key]);
  return profile(nodes, Array.from({ length: 20000 }, (_, i) => `package.module_${i % 23}.function_${i}`));
}

/** Milliseconds from the start of the navigation to the first paint. */
const firstPaint = (p) => p.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.getEntriesByName("first-contentful-paint")[0].startTime), 0))));

test("half a million frames are drawn at once and stay fluid", async () => {
  const [few, many] = [fill("few", [large(5000)]), fill("many", [large(500_000)])];
  const times = { few: [], many: [] };
  for (let round = 0; round < 3; round++) {
    await withPage(few, async (p) => times.few.push(await firstPaint(p)));
    await withPage(many, async (p) => {
      times.many.push(await firstPaint(p));
      assert.match(await p.textContent(".summary"), /500,000 call paths/);
      await p.mouse.click(...(await at(p, 0.3, 12)));
      assert.match(await detail(p), /^package\.module_/);
    });
  }
  const middle = (list) => list.sort((a, b) => a - b)[1];
  console.log(`# first paint: ${Math.round(middle(times.few))} ms of 5,000 frames, ${Math.round(middle(times.many))} ms of 500,000`);
  assert.ok(middle(times.many) < 12 * middle(times.few), "a hundred times the frames take far less than a hundred times as long");
});
