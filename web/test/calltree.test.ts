// SPDX-License-Identifier: MIT
// Functions over all their paths, callers and callees, differences, search: small trees by hand, large ones against
// the plain way of counting.
import assert from "node:assert/strict";
import { test } from "node:test";
import { calleesOf, callersOf, changeOf, diffTrees, flatten, kidsOf, outermost, plainName, ranked, sameFunctions, searchTree, waits, wholeOf, withoutWaiting } from "../src/data/calltree";
import { readProfile } from "../src/data/profile";
import { profileOf, randomDocument, totalsOf } from "./trees";

const stacks = ["main 1", "main;load 2", "main;load;read 4", "main;step;read 8", "main;step;fib 16", "main;step;fib;fib 32", "idle 64"];

function small() {
  const p = profileOf(stacks);
  const n = p.frames.name.length;
  const outer = outermost(p.tree, kidsOf(p.tree), n);
  return { ...p, n, outer, flat: flatten(p.tree, outer, n), at: (name: string) => p.frames.name.indexOf(name) };
}

test("recursion is counted once", () => {
  const s = small();
  assert.equal(s.flat.total[s.at("fib")], 48);
  assert.equal(s.flat.self[s.at("fib")], 48);
  assert.equal(s.flat.paths[s.at("fib")], 2);
  assert.equal(s.flat.total[s.at("main")], 63);
  assert.equal(s.flat.total[s.at("read")], 12);
  assert.equal(wholeOf(s.tree), 127);
});

test("ranked leaves out what never ran", () => {
  const p = profileOf(stacks);
  p.frames.name.push("never");
  const n = p.frames.name.length;
  const flat = flatten(p.tree, outermost(p.tree, kidsOf(p.tree), n), n);
  assert.deepEqual(ranked(flat, flat.self).map((f) => p.frames.name[f]), ["idle", "fib", "read", "load", "main", "step"]);
});

test("callees lie over one another", () => {
  const s = small();
  assert.deepEqual(totalsOf(calleesOf(s.tree, s.outer, s.at("fib"), s.n), s.frames.name), { fib: 48, "fib;fib": 32 });
  assert.deepEqual(totalsOf(calleesOf(s.tree, s.outer, s.at("read"), s.n), s.frames.name), { read: 12 });
  assert.deepEqual(totalsOf(calleesOf(s.tree, s.outer, s.at("load"), s.n), s.frames.name), { load: 6, "load;read": 4 });
});

test("callers carry what came through them", () => {
  const s = small();
  const callers = callersOf(s.tree, s.outer, s.at("read"), s.n);
  assert.deepEqual(totalsOf(callers, s.frames.name), { read: 12, "read;load": 4, "read;load;main": 4, "read;step": 8, "read;step;main": 8 });
  assert.ok(Number.isNaN(callers.self[0]));
});

test("a difference has both sides of every path", () => {
  const now = profileOf(["main;a 10", "main;b 5", "main;new 3"]);
  const old = profileOf(["main;a 4", "main;b 5", "main;gone 2"]);
  const frames = { name: [...now.frames.name, ...old.frames.name], file: ["/x/app.py", ...now.frames.file.slice(1), ...old.frames.file], line: [...now.frames.line, ...old.frames.line.map(() => 99)] };
  const shift = now.frames.name.length;
  const base = { ...old.tree, frame: old.tree.frame.map((f) => f + shift) };
  const d = diffTrees(now.tree, base, sameFunctions(frames), 1);
  const before = totalsOf({ ...d.tree, total: d.baseTotal }, frames.name);
  assert.deepEqual(totalsOf(d.tree, frames.name), { main: 18, "main;a": 10, "main;b": 5, "main;new": 3, "main;gone": 0 });
  assert.deepEqual(before, { main: 11, "main;a": 4, "main;b": 5, "main;new": 0, "main;gone": 2 });
  assert.equal(diffTrees(now.tree, base, sameFunctions(frames), 2).baseTotal[0], 22);
});

test("files of other names are other functions", () => {
  const frames = { name: ["run", "run", "run"], file: ["a/x.py", "b\\x.py", "y.py"], line: [1, 2, 3] };
  assert.deepEqual([...sameFunctions(frames)], [0, 0, 2]);
});

test("a change is even in both directions", () => {
  assert.equal(changeOf(2, 1), 0.5);
  assert.equal(changeOf(1, 2), -0.5);
  assert.equal(changeOf(1, 0), 1);
  assert.equal(changeOf(0, 1), -1);
  assert.equal(changeOf(0, 0), 0);
  assert.equal(changeOf(NaN, NaN), 0);
});

test("a search counts each moment once", () => {
  const s = small();
  const found = searchTree(s.tree, s.frames, " FIB ")!;
  assert.equal(found.functions, 1);
  assert.equal(found.paths, 2);
  assert.equal(found.share, 48 / 127);
  assert.equal(searchTree(s.tree, s.frames, "app.py")!.share, 1);
  assert.equal(searchTree(s.tree, s.frames, "nothing")!.paths, 0);
  assert.equal(searchTree(s.tree, s.frames, "  "), null);
});

test("a large tree agrees with the plain way", () => {
  const p = readProfile(randomDocument(3000, 40, 7));
  const n = p.frames.name.length;
  const outer = outermost(p.tree, kidsOf(p.tree), n);
  const flat = flatten(p.tree, outer, n);
  const total = new Array(n).fill(0);
  for (let i = 0; i < p.tree.n; i++) {
    let above = p.tree.parent[i]!;
    while (above >= 0 && p.tree.frame[above] !== p.tree.frame[i]) above = p.tree.parent[above]!;
    assert.equal(outer[i], above < 0 ? 1 : 0);
    if (above < 0) total[p.tree.frame[i]!] += p.tree.total[i]!;
  }
  assert.deepEqual([...flat.total], total);
  for (const f of [0, 3, 17]) {
    assert.equal(calleesOf(p.tree, outer, f, n).total[0], total[f]);
    assert.equal(callersOf(p.tree, outer, f, n).total[0], total[f]);
  }
});

test("a stack of a hundred thousand calls", () => {
  const n = 100_000;
  const p = readProfile({
    schema: "tare.profile/1", frames: { name: ["deep", "deeper"] },
    nodes: { parent: Array.from({ length: n }, (_, i) => i - 1), frame: Array.from({ length: n }, (_, i) => i % 2), self: new Array(n).fill(1) },
  });
  const outer = outermost(p.tree, kidsOf(p.tree), 2);
  assert.equal(flatten(p.tree, outer, 2).total[0], n);
  assert.equal(callersOf(p.tree, outer, 1, 2).n, 2);
});

test("nothing at all", () => {
  const p = readProfile({ schema: "tare.profile/1", frames: { name: [] }, nodes: { parent: [], frame: [], self: [] } });
  assert.equal(outermost(p.tree, kidsOf(p.tree), 0).length, 0);
  assert.equal(wholeOf(p.tree), 0);
  assert.ok(Number.isNaN(searchTree(p.tree, p.frames, "x")!.share));
});

test("what waits: for locks, the clock, sockets, processes; under Python's names and those of the C library", () => {
  const python = ["<method 'acquire' of '_thread.lock' objects>", "<method '__enter__' of '_thread.RLock' objects>", "<built-in method time.sleep>", "<built-in method select.select>", "<method 'poll' of 'select.epoll' objects>", "<method 'get' of '_queue.SimpleQueue' objects>", "<built-in method posix.waitpid>", "<method 'recv_into' of '_socket.socket' objects>"];
  const c = ["pthread_cond_wait", "pthread_cond_timedwait@@GLIBC_2.3.2", "__pthread_mutex_lock", "__futex_abstimed_wait_common64", "epoll_wait", "__poll", "clock_nanosleep", "sem_wait", "wait4", "sleep"];
  for (const name of [...python, ...c]) assert.ok(waits(name), name);
  for (const name of ["acquire", "wait", "get", "read", "select_rows", "sleepy", "polling", "<built-in method posix.read>", "<method 'get' of 'dict' objects>", "futexes", "main", ""]) assert.ok(!waits(name), name);
  assert.equal(plainName(python[0]!), "_thread.lock.acquire");
  assert.equal(plainName("<built-in method builtins.exec>"), "builtins.exec");
  assert.equal(plainName("<listcomp>"), "<listcomp>");
});

test("without waiting: its calls and all below them are gone, and their time from whoever called", () => {
  const p = profileOf(["main 1", "main;work 2", "main;sleep 4", "main;sleep;inner 8", "main;load;poll 16", "main;load 32"]);
  const busy = withoutWaiting(p.tree, p.frames)!;
  const totals = new Map(Array.from(busy.frame, (f, i): [string, number] => [p.frames.name[f]!, busy.total[i]!]));
  assert.deepEqual([...totals].sort(), [["load", 32], ["main", 35], ["work", 2]]);
  assert.equal(wholeOf(busy), wholeOf(p.tree) - 4 - 8 - 16);
  assert.ok(busy.parent.every((parent, i) => parent < i));
  const none = profileOf(stacks);
  assert.equal(withoutWaiting(none.tree, none.frames), null);
});
