// SPDX-License-Identifier: MIT
// --html of every command, without a browser: which documents are on the page, beside which answer.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root, run, scratch, tare } from "./browser.mjs";

const SWEEP = `${root}/tests/web/data/sweep.json`;
const HISTORY = ["--output-dir", "results", "--history", "history.db"];

/** The data of a page in the scratch folder. */
const dataOf = (name) =>
  JSON.parse(readFileSync(join(scratch, name), "utf8").match(/application\/json">([^]*?)<\/script>/)[1]);
const kinds = (name) => dataOf(name).items.map((i) => i.kind);
/** A run that is expected to fail: exit code and stderr. */
const attempt = (...args) => spawnSync(tare, args, { cwd: scratch, encoding: "utf8" });

test("bench: the run, with its samples, beside the text", () => {
  const text = run("bench", ...HISTORY, "--budget", "50ms", "--html", "bench.html", "--", "true");
  assert.match(text, /true/);
  const data = dataOf("bench.html");
  assert.equal(data.schema, "tare.page/1");
  assert.deepEqual(kinds("bench.html"), ["run"]);
  const [only] = data.items[0].document.cases;
  assert.equal(only.samples_ns.length, only.samples);
  assert.equal(Math.min(...only.samples_ns), only.latency_ns.min);
});

test("bench against a baseline: the comparison, then both runs", () => {
  run("bench", ...HISTORY, "--budget", "50ms", "--html", "against.html", "--baseline", "latest", "--", "true");
  assert.deepEqual(kinds("against.html"), ["comparison", "run", "run"]);
});

test("compare: saved runs are on the page too; a measured comparison is alone", () => {
  const [first] = readdirSync(join(scratch, "results")).filter((n) => n.endsWith(".json"));
  run("compare", `results/${first}`, `results/${first}`, "--no-history", "--html", "saved.html");
  assert.deepEqual(kinds("saved.html"), ["comparison", "run", "run"]);
  const ab = attempt("compare", "--ab", "--no-save", "--budget", "300ms", "--html", "ab.html", "true", "true");
  assert.ok([0, 1].includes(ab.status), ab.stderr);
  assert.deepEqual(kinds("ab.html"), ["comparison"]);
});

test("trend: the history of a metric", () => {
  run("trend", "--history", "history.db", "--html", "trend.html");
  assert.deepEqual(kinds("trend.html"), ["history"]);
  assert.ok(dataOf("trend.html").items[0].document.series[0].points.length >= 2);
});

test("report: documents and traces in one page, and to stdout", () => {
  run("run", "-i", "10ms", "-o", "watched.json", "--no-history", "--", "sleep", "0.1");
  run("report", SWEEP, "watched.json", "watched.tare", "--html", "mixed.html");
  assert.deepEqual(kinds("mixed.html"), ["run", "run", "timeline", "timeline"]); // the document brings its own trace
  assert.match(run("report", "--html", "-", SWEEP), /^<!doctype html>[^]*tare\.page\/1/);
});

test("runs that cannot be compared are shown side by side, and it is said", () => {
  const done = attempt("report", SWEEP, "watched.json", "--html", "apart.html");
  assert.equal(done.status, 0, done.stderr);
  assert.match(done.stderr, /without a comparison: /);
  assert.ok(!kinds("apart.html").includes("comparison"));
});

test("a file that is no document is named, and no page appears", () => {
  writeFileSync(join(scratch, "cut.json"), readFileSync(SWEEP, "utf8").slice(0, 2000));
  for (const bad of ["cut.json", "missing.json", "history.db"]) {
    const done = attempt("report", SWEEP, bad, "--html", "none.html");
    assert.equal(done.status, 2, done.stderr);
    assert.match(done.stderr, new RegExp(bad));
    assert.ok(!existsSync(join(scratch, "none.html")));
  }
});

test("a page that cannot be written leaves nothing behind", () => {
  const done = attempt("report", SWEEP, "--html", "/dev/full");
  assert.equal(done.status, 3, done.stderr);
  assert.match(done.stderr, /\/dev\/full/);
});

test("a folder that cannot be written to is told before anything is measured", () => {
  const folder = mkdtempSync(join(tmpdir(), "readonly-"));
  chmodSync(folder, 0o555);
  const nobody = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
  const page = join(folder, "page.html");
  const args = ["bench", "--no-save", "--budget", "20ms", "--html", page, "--", "echo", "it ran"];
  const done = spawnSync(tare, args, { cwd: "/", encoding: "utf8", ...nobody });
  rmdirSync(folder);
  assert.equal(done.status, 2, done.stderr);
  assert.match(done.stderr, /cannot write to the folder .*readonly-.*: Permission denied/);
  assert.equal(done.stdout, "");
});

test("one page for a suite of several is refused", () => {
  const folder = join(scratch, "suite");
  mkdirSync(folder);
  writeFileSync(
    join(folder, "tare.yaml"),
    "suite:\n  - {name: a, command: 'touch ran'}\n  - {name: b, command: 'touch ran'}\n",
  );
  const done = spawnSync(tare, ["bench", "--html", "out.html"], { cwd: folder, encoding: "utf8" });
  assert.equal(done.status, 2);
  assert.match(done.stderr, /--html writes one page: give each of the 2 entries/);
  assert.deepEqual(readdirSync(folder), ["tare.yaml"]);
});
