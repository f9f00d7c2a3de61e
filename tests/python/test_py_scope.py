# SPDX-License-Identifier: MIT
"""Scopes of greenlets, which switch the stack, and of tasks, on the timeline."""

import json

import pytest

pytest.importorskip("greenlet")

PROGRAM = """
import asyncio, sys, time
import greenlet, tare
tare.start(sys.argv[1])

def work(n):
    with tare.scope("green%d" % n):
        greenlet.getcurrent().parent.switch()
        with tare.scope("inner"):
            pass

def pool():
    greens = [greenlet.greenlet(work) for _ in range(3)]
    for n, green in enumerate(greens):
        green.switch(n)
    for green in greens:
        green.switch()

with tare.scope("pool"):
    pool()

async def bridged():  # as libraries do that run blocking code within a task
    with tare.scope("task"):
        greenlet.greenlet(lambda: tare.scope("blocking")(lambda: 0)()).switch()
        await asyncio.sleep(0)

asyncio.run(bridged())
tare.stop()
"""


def paths(nodes, above=()):
    for node in nodes:
        yield (*above, node["name"]), node["count"]
        yield from paths(node.get("children", []), (*above, node["name"]))


def test_greenlets_do_not_mix(python, tmp_path):
    trace = tmp_path / "x.tare"
    python(PROGRAM, trace)
    read = "import sys; from tare import _command; print(_command.call('report', '--json', sys.argv[1]))"
    report = json.loads(python(read, trace).stdout)
    expected = {("pool",): 1, ("task",): 1, ("task", "blocking"): 1}
    for n in range(3):
        expected[("pool", f"green{n}")] = expected[("pool", f"green{n}", "inner")] = 1
    assert dict(paths(report["tree"])) == expected


TASKS = """
import asyncio, sys, tare
tare.start(sys.argv[1])

async def request():
    with tare.scope("request"):
        await asyncio.sleep(0.05)

async def main():
    await asyncio.gather(*(request() for _ in range(8)))

asyncio.run(main())
tare.stop()
"""


def test_tasks_that_overlap_are_bars_of_the_same_length(python, tmp_path):
    """They were one long slice and seven slivers."""
    trace, out = tmp_path / "x.tare", tmp_path / "x.json"
    python(TASKS, trace)
    python("import sys; from tare import _command; _command.call('export', '-f', 'chrome', '-o', *sys.argv[1:])", out, trace)
    begins, bars = {}, {}
    for e in json.loads(out.read_text())["traceEvents"]:
        if e["ph"] == "b":
            begins[e["id2"]["local"]] = e["ts"]
        if e["ph"] == "e":
            bars[e["id2"]["local"]] = (e["ts"] - begins[e["id2"]["local"]]) / 1e3
    assert len(bars) == 8
    assert min(bars.values()) >= 49 and max(bars.values()) < min(bars.values()) + 45, bars


THREADS = """
import asyncio, sys, threading, tare
from concurrent.futures import ThreadPoolExecutor
tare.start(sys.argv[1])

def work():
    with tare.scope("work"):
        pass

def rename():
    work()
    threading.current_thread().name = "renamed at its end"

for target, name in ((work, "a loader of more than fifteen bytes"), (work, "l\u00e4der" * 20), (rename, "first")):
    thread = threading.Thread(target=target, name=name)
    thread.start()
    thread.join()
with ThreadPoolExecutor(1, "pool") as pool:
    pool.submit(work).result()
    for t in threading.enumerate():
        if t.name.startswith("pool"):
            t.name = "renamed while it lives"
    before = threading.active_count()
    work()
    assert threading.active_count() == before
    tare.stop()

async def counts(n):
    with tare.scope("task%d" % n):
        await asyncio.sleep(0)
        tare.count("items", n)

async def main():
    await asyncio.gather(*(counts(n) for n in range(3)))

tare.start(sys.argv[1] + "2")
asyncio.run(main())
tare.stop()
"""


def test_threads_have_the_names_of_threading(python, tmp_path):
    trace, out = tmp_path / "x.tare", tmp_path / "x.json"
    python(THREADS, trace)
    python("import sys; from tare import _command; _command.call('export', '-f', 'chrome', '-o', *sys.argv[1:])", out, trace)
    events = json.loads(out.read_text())["traceEvents"]
    assert sorted(e["args"]["name"] for e in events if e.get("name") == "thread_name") == sorted([
        "MainThread", "a loader of more than fifteen bytes", ("l\u00e4der" * 20).encode()[:63].decode("utf-8", "ignore"),
        "renamed at its end", "renamed while it lives"])
    # counts belong to the task that runs, though no scope was begun or ended since another ran
    read = "import sys; from tare import _command; print(_command.call('report', '--json', sys.argv[1]))"
    report = json.loads(python(read, str(trace) + "2").stdout)
    assert {p: n for p, n in paths(report["tree"]) if p[-1] == "items"} == {("task%d" % n, "items"): 1 for n in range(3)}
