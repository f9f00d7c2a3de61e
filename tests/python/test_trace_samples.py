# SPDX-License-Identifier: MIT
"""Samples of probes in a trace, by the second reader: the files of fuzz/corpus/samples have a known history."""

import os

import pytest

from trace_reader import Trace

CORPUS = os.path.join(os.path.dirname(__file__), "..", "..", "fuzz", "corpus", "samples")


def sampler(name):
    trace = Trace(os.path.join(CORPUS, name))
    assert trace.minor == 1 and trace.unknown_chunks == 0
    (process,) = trace.processes.values()
    return trace, process


def columns(process):
    out = {}
    for at, values in process.samples:
        for number, value in values.items():
            out.setdefault(process.series[number], {})[at] = value
    return out


@pytest.mark.parametrize("name, moments, labels, closed", [("whole", 4, 2, True), ("killed", 3, 3, False), ("series", 30, 20, True)])
def test_known_history(name, moments, labels, closed):
    trace, process = sampler(name)
    assert trace.damaged_bytes == trace.damaged_chunks == 0
    assert process.info["mode"] == 0 and bool(process.end) == closed
    at = [1000 + 100 * k for k in range(moments)]
    assert [t for t, _ in process.samples] == at
    got = columns(process)
    assert got["cpu.busy", ""] == {t: k * 0.01 for k, t in enumerate(at)}
    assert got["process.memory.rss", ""] == {t: 4096.0 * k for k, t in enumerate(at) if k % 2}
    for label in range(labels):
        want = {t: 1 / 3.0 * k for k, t in enumerate(at) if k >= label}
        assert got["disk.read", "sd" + chr(ord("a") + label)] == want


def test_marks():
    _, process = sampler("whole")
    assert process.marks == [(1000, 0, "cpu>80% for 10s"), (1300, 3, "cpu>80% for 10s")]


@pytest.mark.parametrize("name", ["flipped", "torn"])
def test_damage(name):
    def pieces(process):
        return len(process.samples) + len(process.marks) + len(process.series)

    trace, process = sampler(name)
    assert trace.damaged_bytes > 0 and pieces(process) < pieces(sampler("whole")[1])
