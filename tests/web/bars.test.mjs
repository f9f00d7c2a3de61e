// SPDX-License-Identifier: MIT
// The timeline of bars: by mouse, wheel and keys, links from kernel to launch to range, search, tables, GPU traces that
// the binary wrote, hostile names, a million kernels.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, fill, overflow, packed, readJson, report, root, scratch, shot, violations, withPage } from "./browser.mjs";

after(closeBrowser);

// ---- pages ----

/** Two calls in two ranges, each launches one kernel; all within 1000 us. The window is lane by lane: stream, ranges, calls. */
function small(names) {
  const document = readJson("data/bars.json");
  if (names) document.names.text = names;
  return { kind: "bars", name: "made.tare", document };
}

const detail = (p) => p.textContent(".bardetail p");
const hash = (p) => p.evaluate(() => decodeURIComponent(location.hash));

/** A place on the canvas: part of the width, and a lane with one row each. Above: 22 px of axis; a lane: 17 px of label, 18 of bars, 5 apart. */
async function at(p, x, lane) {
  const box = await p.locator(".barsbox canvas").boundingBox();
  return [box.x + box.width * x, box.y + 22 + lane * 40 + 17 + 9];
}

async function show(p) {
  await p.locator(".barsbox").scrollIntoViewIfNeeded();
}

const STREAM = 0;

// ---- by mouse ----

test("pointing reads, clicking chooses, links lead from kernel to launch to range", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    await show(p);
    await p.mouse.move(...(await at(p, 0.2, STREAM)));
    assert.match(await p.textContent(".tip"), /gemm_a.*kernel, matmul.*200.µs.*at 100.µs.*grid 64×2×1, block 256.*32 registers, 1.KiB shared.*100.µs after its launch began/);
    await p.mouse.click(...(await at(p, 0.2, STREAM)));
    assert.match(await detail(p), /gemm_a.*void gemm_a<float>\(\)/);
    assert.match(await hash(p), /bars\.at=4/);
    assert.match(await p.textContent("tr[aria-current=true]"), /gemm_a/, "the table marks its kernel");
    await p.click("button:text('Launch: cudaLaunchKernel')");
    assert.match(await detail(p), /cudaLaunchKernel.*CUDA call/);
    await p.click("button:text('Range: step')");
    assert.match(await detail(p), /step.*NVTX range.*400.µs/);
    await p.click("button:text('First launch in it')");
    await p.click("button:text('Launched: gemm_a')");
    assert.match(await detail(p), /gemm_a/);
    await shot(p, "bars-links");
  });
});

test("double click zooms to a kernel, the address keeps it, All shows all", async () => {
  const file = fill("small", [small()]);
  let kept = "";
  await withPage(file, async (p) => {
    await show(p);
    await p.mouse.dblclick(...(await at(p, 0.2, STREAM)));
    await p.waitForFunction(() => /bars\.zoom=/.test(location.hash));
    kept = (await hash(p)).slice(1);
    const [from, to] = kept.match(/bars\.zoom=([\d.-]+)~([\d.-]+)/).slice(1).map(Number);
    assert.ok(Math.abs(to - from - 600000) < 1 && from <= 100000, "three times as wide as the kernel");
  });
  await withPage(file, async (p) => {
    await show(p);
    assert.match(await detail(p), /gemm_a/);
    await p.click("button[aria-label='Show all']");
    await p.waitForFunction(() => !/bars\.zoom=/.test(location.hash));
  }, { hash: kept });
});

test("dragging moves, the wheel zooms with Ctrl or with the keyboard there, and else scrolls the page", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    await show(p);
    const zoom = async () => (await hash(p)).match(/bars\.zoom=([\d.-]+)~([\d.-]+)/)?.slice(1).map(Number);
    const [x, y] = await at(p, 0.5, STREAM);
    await p.mouse.move(x, y);
    await p.mouse.wheel(0, 1);
    await p.waitForTimeout(250);
    assert.equal(await zoom(), undefined, "it scrolled");
    await show(p);
    const [x2, y2] = await at(p, 0.5, STREAM);
    await p.mouse.move(x2, y2);
    await p.keyboard.down("Control");
    for (let i = 0; i < 6; i++) await p.mouse.wheel(0, -60);
    await p.keyboard.up("Control");
    // The address is told whenever the wheel rests, which a busy machine may make it do between two turns.
    await p.waitForFunction(() => {
      const kept = decodeURIComponent(location.hash).match(/bars\.zoom=([\d.-]+)~([\d.-]+)/);
      return kept && kept[2] - kept[1] < 0.2e6;
    });
    const [from, to] = await zoom();
    assert.ok(from < 500000 && to > 500000, "around the pointer");
    await p.mouse.down();
    await p.mouse.move(x2 - 200, y2, { steps: 5 });
    await p.mouse.up();
    await p.waitForFunction((was) => !location.hash.includes(was), String(from.toFixed(1)));
    assert.ok((await zoom())[0] > from, "to the left is later");
    assert.doesNotMatch(await hash(p), /bars\.at=/, "a drag chooses nothing");
  });
});

// ---- by keys ----

test("everything goes by keys", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    await show(p);
    await p.focus(".barsbox");
    await p.keyboard.press("ArrowRight");
    assert.match(await detail(p), /gemm_a/);
    await p.keyboard.press("ArrowRight");
    assert.match(await detail(p), /gemm_b/);
    await p.keyboard.press("ArrowDown");
    assert.match(await detail(p), /step/);
    await p.keyboard.press("ArrowDown");
    assert.match(await detail(p), /cudaLaunchKernel/);
    await p.keyboard.press("Enter");
    await p.waitForFunction(() => /bars\.zoom=/.test(location.hash));
    await p.keyboard.press("0");
    await p.waitForFunction(() => !/bars\.zoom=/.test(location.hash));
    await p.keyboard.press("+");
    await p.waitForFunction(() => /bars\.zoom=/.test(location.hash));
    await p.keyboard.press("/");
    await p.keyboard.type("gemm");
    assert.match(await p.textContent(".found"), /2 bars, 600.µs together/);
    await p.keyboard.press("Enter");
    assert.match(await detail(p), /gemm/);
    await p.keyboard.press("Escape");
    assert.doesNotMatch(await hash(p), /bars\.find/);
  });
});

test("tables search, and lead to the timeline", async () => {
  await withPage(fill("small", [small()]), async (p) => {
    const table = p.locator(".table[aria-label='Kernels']");
    assert.match(await table.textContent(), /gemm_b.*matmul.*400.µs.*gemm_a/);
    await p.fill("input[aria-label='Search kernels and groups']", "gemm_a");
    assert.doesNotMatch(await table.textContent(), /gemm_b/);
    await table.locator("button:text-is('gemm_a')").click();
    assert.match(await detail(p), /gemm_a/);
    assert.match(await hash(p), /bars\.find==void/);
    assert.match(await p.textContent("#gpu"), /most idle time: sync 300.µs/);
    await p.click("button[aria-label='Table of Steps of GPU 0']");
    assert.match(await p.textContent(".table[aria-label='Steps of GPU 0']"), /idle: sync.*200.µs.*100.µs/);
    await p.click("button[aria-label='Table of Kernels, copies and calls over time']");
    assert.match(await p.textContent(".table[aria-label='Kernels, copies and calls over time']"), /gemm_b/);
  });
});

// ---- for everybody ----

for (const [theme, width] of [["light", 1280], ["dark", 390]])
  test(`it can be read by everybody: ${theme}, ${width} px`, async () => {
    await withPage(fill("small", [small()]), async (p) => {
      assert.equal(await overflow(p), 0);
      assert.deepEqual(await violations(p), []);
      await shot(p, `bars-${theme}-${width}`);
    }, { width, theme, hash: "bars.at=4" });
  });

test("names are text, whatever is in them", async () => {
  const bad = "<img src=x onerror=alert(1)></script>\u202e";
  await withPage(fill("hostile", [small([bad, bad, `${bad}1`, `${bad}2`.repeat(3000)])]), async (p) => {
    await show(p);
    await p.mouse.move(...(await at(p, 0.2, STREAM)));
    assert.match(await p.textContent(".tip b"), /<img src=x/);
    assert.equal(await p.locator("main img").count(), 0);
    assert.equal(await overflow(p), 0);
  });
});

test("a damaged document says so in its place", async () => {
  const item = small();
  item.document.lanes[2].what = packed([2, 99]);
  await withPage(fill("damaged", [item]), async (p) => {
    assert.match(await p.textContent("#bars"), /cannot be shown: "what" is out of range/);
  });
});

// ---- what the binary writes ----

function kernels(thousands) {
  execFileSync("make", ["-s", "--no-print-directory", "build/bench/many_kernels"], { cwd: root, stdio: "ignore" });
  const trace = join(scratch, `k${thousands}.tare`);
  execFileSync(join(root, "build", "bench", "many_kernels"), [trace, String(thousands)]);
  return trace;
}

test("a GPU trace: idle by cause, steps, memory, kernels, all from the binary", async () => {
  await withPage(report("gpu", kernels(20)), async (p) => {
    const text = await p.textContent("main");
    assert.match(text, /20,040 operations on 3 lanes of streams/);
    assert.match(text, /40 steps/);
    assert.match(text, /The most is 3\.75.GiB/);
    assert.match(await p.textContent(".table[aria-label='CUDA calls']"), /cudaLaunchKernel20,000/);
    assert.deepEqual(await violations(p), []);
    await shot(p, "bars-gpu");
  });
});

/** How long painting takes is bench/results.md's; here only that work goes with the window and not with the bars. */
test("a million kernels are moved and zoomed, and no frame draws them one by one", async () => {
  await withPage(report("million", kernels(1000)), async (p) => {
    await show(p);
    const most = await p.evaluate(async () => {
      const canvas = document.querySelector(".barsbox canvas");
      const box = canvas.getBoundingClientRect();
      const proto = CanvasRenderingContext2D.prototype;
      const fillRect = proto.fillRect;
      let [drawn, most] = [0, 0];
      proto.fillRect = function (...args) {
        drawn++;
        return fillRect.apply(this, args);
      };
      for (let i = 0; i < 80; i++) {
        drawn = 0;
        canvas.dispatchEvent(new WheelEvent("wheel", { clientX: box.left + 500, clientY: box.top + 60, deltaY: i < 60 ? -40 : 0, deltaX: i < 60 ? 0 : 300, ctrlKey: i < 60, bubbles: true, cancelable: true }));
        await new Promise((ok) => requestAnimationFrame(() => requestAnimationFrame(ok)));
        most = Math.max(most, drawn);
      }
      proto.fillRect = fillRect;
      return most;
    });
    assert.ok(most > 50 && most < 10000, `${most} rectangles in a frame`);
    assert.match(await hash(p), /bars\.zoom=|^$/);
  });
});
