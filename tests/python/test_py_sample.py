# SPDX-License-Identifier: MIT
"""tare.sample: a block whose shares are known, what is written of it read back by those who read such files, and a program that is afterwards as it was."""

import gzip
import io
import json
import os
import pstats
import threading
import time

import pytest

tare = pytest.importorskip("tare")
from tare import _memory_block  # noqa: E402

if _memory_block.supported():
    pytest.skip(_memory_block.supported(), allow_module_level=True)

SECONDS = 0.02


def leaf(x):
    return x + 1


def calls(n):
    x = 0
    for _ in range(n):
        x = leaf(x)


def loop(n):
    x = 0
    for i in range(n):
        x += i


def work(f):
    """Equal processor time for both, however busy the machine is."""
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        f(2000)


def halves(turns):
    for _ in range(turns):
        work(calls)
        work(loop)


def waits(for_what):
    for_what.wait()


@pytest.fixture(scope="module")
def seen():
    with tare.sample(hz=250, budget=50) as s:
        halves(40)
    return s


def by_name(functions):
    return {f.name: f for f in functions}


def test_two_halves_of_equal_time(seen):
    told = by_name(seen.functions("cpu"))
    for name in ("calls", "loop"):
        low, high = told[name].total_interval
        assert abs(told[name].total - 0.5) <= high - low + 0.05, told[name]
    assert told["halves"].total > 0.95 and told["leaf"].own > 0 and told["work"].own < 0.2
    assert told["loop"].file == __file__


def test_it_prints_and_shows_itself(seen):
    out = io.StringIO()
    seen.print("cpu", file=out)
    assert "cpu time:" in out.getvalue() and "loop" in out.getvalue() and "250 /s asked" in out.getvalue()
    assert "wall time:" in str(seen) and seen._repr_html_().startswith("<pre>1 process")
    assert seen.to_dict()["schema"] == "tare.stacks/1"


def test_pstats_reads_it(seen, tmp_path):
    path = tmp_path / "x.prof"
    seen.save(path, time="cpu")
    stats = pstats.Stats(str(path)).stats
    key = {name: (file, line, name) for file, line, name in stats}
    assert stats[key["loop"]][3] + stats[key["calls"]][3] == pytest.approx(40 * 2 * SECONDS, rel=0.5)
    assert key["leaf"][:2] == (__file__, leaf.__code__.co_firstlineno) and key["calls"] in stats[key["leaf"]][4]
    [mark] = [k for k in stats if k[0] == "~"]
    assert "sampled by tare: times are estimates, calls are samples" in mark[2]
    roots = [k for k, v in stats.items() if mark in v[4]]
    assert roots and sum(stats[k][4][mark][3] for k in roots) == pytest.approx(stats[mark][3])
    own = sum(v[2] for v in stats.values())
    assert own == pytest.approx(seen.to_dict("cpu")["sum_ns"] / 1e9)
    text = io.StringIO()
    pstats.Stats(str(path), stream=text).sort_stats("cumtime").print_stats().print_callers()
    assert "(loop)" in text.getvalue()


def fields(data):
    """Those of one message of protobuf: (number, value)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def test_pprof_speedscope_folded_and_the_page(seen, tmp_path):
    total = seen.to_dict()["sum_ns"]
    seen.save(tmp_path / "x.pb.gz")
    message = list(fields(gzip.decompress((tmp_path / "x.pb.gz").read_bytes())))
    strings = [v.decode() for n, v in message if n == 6]
    assert strings[0] == "" and {"samples", "wall", "nanoseconds", "loop", __file__} <= set(strings)
    values = []
    for number, value in message:
        if number == 2:
            packed = dict(fields(value))[2]
            values.append([v for _, v in fields(b"".join(b"\x08" + p for p in split_varints(packed)))])
    assert all(len(v) == 2 for v in values) and sum(v[1] for v in values) == pytest.approx(total, abs=len(values))

    seen.save(tmp_path / "x.speedscope.json")
    shown = json.loads((tmp_path / "x.speedscope.json").read_text())
    [profile] = shown["profiles"]
    assert sum(profile["weights"]) == profile["endValue"] == pytest.approx(total, abs=len(profile["weights"]))
    names = [f["name"] for f in shown["shared"]["frames"]]
    assert any([names[f] for f in stack][-3:] == ["work", "calls", "leaf"] for stack in profile["samples"])

    seen.save(tmp_path / "x.folded")
    rows = [line.rpartition(" ") for line in (tmp_path / "x.folded").read_text().splitlines()]
    assert sum(int(ns) for _, _, ns in rows) == pytest.approx(total, abs=len(rows))
    assert any(f";work ({__file__}:{work.__code__.co_firstlineno});loop ({__file__}:" in stack for stack, _, _ in rows)

    seen.flame(tmp_path / "x.html")
    assert '"tare.profile/1"' in (tmp_path / "x.html").read_text()
    seen.save(tmp_path / "x.tare")
    assert "loop" in tare._command.call("report", "--stacks", tmp_path / "x.tare")


def split_varints(data):
    one = b""
    for byte in data:
        one += bytes([byte])
        if byte < 128:
            yield one
            one = b""


def test_all_threads_are_seen_and_waiting_is_told_from_work():
    stop = threading.Event()
    thread = threading.Thread(target=waits, args=(stop,))
    thread.start()
    with tare.sample(hz=250, budget=50) as s:
        halves(20)
    stop.set()
    thread.join()
    idle, cpu = by_name(s.functions("idle")), by_name(s.functions("cpu"))
    assert idle["waits"].total > 0.5 and cpu.get("waits", idle["waits"]._replace(total=0)).total < 0.1 and cpu["halves"].total > 0.8
    told = s.to_dict()
    assert told["processes"] == 1 and told["threads"] == 2  # whoever looks is not among them


def test_the_block_may_raise_and_the_program_goes_on():
    with pytest.raises(KeyError), tare.sample() as s:
        halves(10)
        raise KeyError("mine")
    assert s.functions() and "not ended" not in repr(s)


def test_consistent():
    with tare.sample(hz=100, budget=60, consistent=True) as s:
        halves(10)
    held = s.to_dict()["held"]
    assert held["threads"] > 0 and by_name(s.functions("cpu"))["halves"].total > 0.8


def test_one_block_at_a_time_and_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="hz: from"):
        tare.sample(hz=0)
    s = tare.sample(hz=50)
    with pytest.raises(RuntimeError, match="the block has not ended"):
        s.print()
    with s:
        with pytest.raises(RuntimeError, match="another block of this program is sampled already"), tare.sample():
            pass
        if os.fork() == 0:  # its child ends the parent's block for itself alone
            s.__exit__()
            os._exit(0)
        os.wait()
        halves(15)
    assert s.functions()
    with pytest.raises(ValueError, match="what to write is told by the end of the name"):
        s.save(tmp_path / "x.txt")
    with pytest.raises(ValueError, match="time: one of wall, cpu, gil, idle"):
        s.functions("walls")
    with s:  # again: a new record, of enough looks to meet it on a busy machine too
        for _ in range(25):
            work(loop)
    assert by_name(s.functions())["loop"].total > 0 and "calls" not in by_name(s.functions())


def test_a_command_that_cannot_look_is_told(monkeypatch, tmp_path):
    fake = tmp_path / "tare"
    fake.write_text("#!/bin/sh\necho 'tare attach: may not' >&2\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setattr(tare._command, "_CARRIED", str(fake))
    with pytest.raises(RuntimeError, match="tare.sample: tare attach: may not"), tare.sample():
        pass
    monkeypatch.undo()
    with tare.sample() as s:
        for _ in range(10):
            work(loop)
    assert s.functions()


def test_nothing_is_left_behind():
    import glob
    import tempfile

    before = set(glob.glob(os.path.join(tempfile.gettempdir(), "tare-sample-*")))
    with tare.sample() as s:
        work(loop)
    assert set(glob.glob(os.path.join(tempfile.gettempdir(), "tare-sample-*"))) - before
    del s
    assert not set(glob.glob(os.path.join(tempfile.gettempdir(), "tare-sample-*"))) - before
