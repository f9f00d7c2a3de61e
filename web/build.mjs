// SPDX-License-Identifier: MIT
// build.mjs - bundle the report page into one HTML file, the server's pages or the unit tests into a folder. Fetches
// nothing.
//   node build.mjs page OUT.html     the viewer with an empty place for its data
//   node build.mjs app FOLDER        the pages of `tare serve`: app.html.gz, app.js.gz, app.css.gz
//   node build.mjs test FOLDER       test/*.test.ts as plain JavaScript, for `node --test FOLDER`
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const DATA_LINE = '<script id="tare-data" type="application/json">null</script>';

const common = {
  bundle: true,
  target: "es2021",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  absWorkingDir: here,
};

/** The text of one bundled entry: script or style sheet. */
async function bundle(entry) {
  const result = await build({
    ...common,
    entryPoints: [entry],
    minify: true,
    format: "iife",
    write: false,
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  return result.outputFiles[0].text.trim();
}

const hashOf = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Nothing may be fetched, and nothing runs but the one script whose hash is here. */
function policy(script, style) {
  return `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; img-src data: blob:; base-uri 'none'; form-action 'none'`;
}

function pageOf(script, style) {
  if (/<\/(script|style)/i.test(script + style)) throw new Error("the bundle would close its own element");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy(script, style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>tare report</title>
<style>${style}</style>
</head>
<body>
<div id="tare-page"><noscript>This page draws its plots with a script it carries itself; scripts are turned off.</noscript></div>
${DATA_LINE}
<script>${script}</script>
</body>
</html>
`;
}

async function makePage(out) {
  const [script, style] = await Promise.all([bundle("src/main.tsx"), bundle("src/style.css")]);
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, pageOf(script, style));
}

/** Script and style are asked for by the hash of their compressed bytes, which src/server/app.c makes of them, too. */
async function makeApp(folder) {
  const [script, style] = await Promise.all([bundle("src/app/main.tsx"), bundle("src/app/app.css")]);
  const packed = (text) => gzipSync(text, { level: 9 });
  const named = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const js = packed(script);
  const css = packed(style);
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tare</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/assets/${named(css)}.css">
<script src="/assets/${named(js)}.js" defer></script>
</head>
<body><div id="tare-page"><noscript>These pages are drawn by a script; scripts are turned off.</noscript></div></body>
</html>
`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "app.js.gz"), js);
  writeFileSync(join(folder, "app.css.gz"), css);
  writeFileSync(join(folder, "app.html.gz"), packed(html)); // last: make looks at this one
}

async function makeTests(folder) {
  mkdirSync(folder, { recursive: true });
  for (const old of readdirSync(folder)) if (old.endsWith(".test.mjs")) rmSync(join(folder, old)); // tests that are gone
  const entryPoints = readdirSync(join(here, "test"))
    .filter((n) => /\.test\.tsx?$/.test(n))
    .map((n) => join("test", n));
  await build({
    ...common,
    entryPoints,
    outdir: folder,
    format: "esm",
    platform: "node",
    outExtension: { ".js": ".mjs" },
    jsx: "automatic",
    jsxImportSource: "preact",
  });
}

const [what, out] = process.argv.slice(2);
const make = { page: makePage, app: makeApp, test: makeTests }[what];
if (!make || !out) {
  console.error("usage: node build.mjs page OUT.html | app FOLDER | test FOLDER");
  process.exit(2);
}
await make(out.startsWith("/") ? out : join(process.cwd(), out));
