// SPDX-License-Identifier: MIT
// browser.mjs - what the browser tests share: pages made by the real binary or by filling the built viewer, opened in
// headless Chromium. A page that asks for anything over the network, or writes an error to the console, fails its test.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = process.env.TARE_SRC ?? dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const built = process.env.BUILT ?? join(root, "build");
export const tare = process.env.TARE ?? join(built, "tare");
const inWeb = createRequire(join(root, "web", "package.json"));
export const scratch = mkdtempSync(join(process.env.TMPDIR ?? tmpdir(), "web-"));

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) =>
  existsSync(p),
);
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

// ---- pages ----

/** Run the binary; its stdout. */
export function run(...args) {
  return execFileSync(tare, args, {
    cwd: scratch,
    encoding: "utf8",
    env: { ...process.env, TARE_HISTORY: join(scratch, "history.db") },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** The path of a page that `tare report` made of these files. */
export function report(name, ...files) {
  const out = join(scratch, `${name}.html`);
  run("report", ...files, "--html", out);
  return out;
}

/** The same way the Python package fills the viewer: one word of one line is replaced. */
export function fill(name, items, title = name) {
  const data = {
    schema: "tare.page/1",
    title,
    created: "2026-11-15T12:00:00.000Z",
    tool: { version: "0.1.0", commit: null },
    items,
  };
  const text = JSON.stringify(data)
    .replace(/</g, "\\u003c")
    .replace(/\u2028/g, "\\u2028")
    .replace(/\u2029/g, "\\u2029");
  const viewer = readFileSync(join(built, "page.html"), "utf8");
  const line = '<script id="tare-data" type="application/json">null</script>';
  assert.equal(viewer.split(line).length, 2, "the viewer has exactly one place for data");
  const out = join(scratch, `${name}.html`);
  writeFileSync(
    out,
    viewer.replace(line, () => line.replace("null", () => text)),
  );
  return out;
}

/** A document as a file, for the binary to read. */
export function write(name, document) {
  const out = join(scratch, name);
  writeFileSync(out, typeof document === "string" ? document : JSON.stringify(document));
  return out;
}

/** A document under tests/web/data, or anywhere. */
export const readJson = (path) =>
  JSON.parse(readFileSync(path.startsWith("/") ? path : join(root, "tests", "web", path), "utf8"));

const SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Numbers as tare packs them where there are many; NaN is unknown. */
export function packed(numbers) {
  const out = [];
  for (const v of numbers)
    for (let rest = Number.isNaN(v) ? 1 : 2 * Math.abs(v) + (v < 0 ? 1 : 0), more = true; more; ) {
      const digit = rest % 32;
      rest = Math.floor(rest / 32);
      more = rest > 0;
      out.push(SIGNS[more ? digit + 32 : digit]);
    }
  return out.join("");
}

// ---- the browser ----

let browser = null;

export async function closeBrowser() {
  await browser?.close();
  browser = tab = null;
}

async function launched() {
  assert.ok(CHROMIUM, "no chromium on this machine (make deps)");
  browser ??= await inWeb("playwright-core").chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  return browser;
}

/** Everything a quiet page never does. `isOwn`: what it may ask for. */
function watch(page, isOwn) {
  const bad = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && bad.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => bad.push(`error: ${e.message}`));
  page.on("dialog", (d) => (bad.push(`dialog: ${d.message()}`), d.dismiss()));
  page.on(
    "request",
    (r) => !isOwn(r.url()) && !/^(blob|data):/.test(r.url()) && bad.push(`request: ${r.url().slice(0, 200)}`),
  );
  return bad;
}

/** One tab for all tests of a file: a new one takes longer than most tests. Given up after a test that failed, and after
 * downloads, of which headless Chromium drops the eleventh of a tab. */
let tab = null;
const spent = new WeakSet();

async function openTab(options) {
  if (!tab) {
    const context = await (await launched()).newContext({ acceptDownloads: true, reducedMotion: "reduce" });
    tab = await context.newPage();
  }
  await tab.goto("about:blank"); // the same file with another hash would not be loaded again
  await tab.mouse.move(0, 0);
  await tab.setViewportSize({ width: options.width ?? 1280, height: options.height ?? 900 });
  await tab.emulateMedia({ media: null, colorScheme: options.theme ?? "light" });
  return tab;
}

async function leaveTab(page, good) {
  for (const event of ["console", "pageerror", "dialog", "request"]) page.removeAllListeners(event);
  if (good && !spent.has(page)) return;
  tab = null;
  await page.context().close();
}

/** Open a page and hand it to `use`; afterwards it must have been quiet. options: width, height, theme, hash, noisy (what
 * the test does is bound to make noise, and it looks at that itself). */
export async function withPage(file, use, options = {}) {
  const page = await openTab(options);
  const own = pathToFileURL(file).href;
  const bad = watch(page, (url) => url.split("#")[0] === own);
  let good = false;
  try {
    await page.goto(pathToFileURL(file).href + (options.hash ? `#${options.hash}` : ""));
    await page.waitForSelector("main");
    await use(page);
    if (!options.noisy) assert.deepEqual(bad, []);
    good = true;
  } finally {
    await leaveTab(page, good);
  }
}

// ---- a server ----

/** `tare serve` on a free port, with its data in a folder of its own. */
export async function serve(name, ...options) {
  const data = join(scratch, name);
  const child = spawn(tare, ["serve", "--port", "0", "--data", data, ...options], { stdio: ["ignore", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const url = (await lines.next()).value;
  const link = (await lines.next()).value;
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
  const token = (scope) => run("token", "new", "--scope", scope, "--data", data).trim();
  const post = async (document, path = "runs") => {
    const reply = await fetch(`${url}/api/v1/${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${writer}`, "Content-Type": "application/json" },
      body: JSON.stringify(document),
    });
    assert.equal(reply.status, 201, await reply.text());
  };
  const writer = token("ingest");
  return { url, link, data, token, post, stop: () => new Promise((done) => child.once("exit", done).kill("SIGTERM") || done()) };
}

/** A browser with no cookies at an address of the server; afterwards it must have asked nobody else, and been quiet.
 * options: as withPage(). */
export async function withApp(url, use, options = {}) {
  const context = await (await launched()).newContext({
    acceptDownloads: true,
    reducedMotion: "reduce",
    colorScheme: options.theme ?? "light",
    viewport: { width: options.width ?? 1280, height: options.height ?? 900 },
  });
  const page = await context.newPage();
  const bad = watch(page, (asked) => new URL(asked).origin === new URL(url).origin);
  try {
    await page.goto(url);
    await page.waitForSelector("main h1");
    await use(page, bad);
    if (!options.noisy) assert.deepEqual(bad, []);
  } finally {
    await context.close();
  }
}

/** Serious and critical violations of the accessibility rules; a list of short texts. */
export async function violations(page) {
  await page.evaluate(readFileSync(inWeb.resolve("axe-core/axe.min.js"), "utf8"));
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const grave = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  return grave.map(
    (v) =>
      `${v.id}: ${v.nodes
        .slice(0, 3)
        .map((n) => `${n.html.slice(0, 120)} ${n.failureSummary ?? ""}`)
        .join(" | ")}`,
  );
}

/** The text of the file that a click downloads. */
export async function downloaded(page, click) {
  spent.add(page);
  const [download] = await Promise.all([page.waitForEvent("download"), click()]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

/** Does anything stick out to the right? */
export const overflow = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** A picture for the developer to look at, where TARE_SHOTS names a folder; nothing otherwise. */
export async function shot(page, name) {
  if (process.env.TARE_SHOTS)
    await page.screenshot({ path: join(process.env.TARE_SHOTS, `${name}.png`), fullPage: true });
}
