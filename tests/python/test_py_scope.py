# SPDX-License-Identifier: MIT
"""Scopes where other libraries switch the stack: greenlets."""

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
