# SPDX-License-Identifier: MIT
"""tare.memory, tare.leaks and the plugin for pytest: blocks of known allocations, and a program that is afterwards as it was before."""

import asyncio
import ctypes
import gc
import json
import os
import subprocess
import sys
import threading

import pytest

tare = pytest.importorskip("tare")
HERE = __file__
OURS = {"PYTHONPATH": os.path.dirname(os.path.dirname(tare.__file__))}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def lines_of(m, least=100_000):
    return {(f.name, s.leaked > 0) for s in m.sites if s.peak >= least for f in s.frames[:1]}


def test_every_allocation_is_exact():
    with tare.memory(every=True) as m:
        kept = bytearray(1_000_000)
        gone = [bytearray(1000) for _ in range(1000)]
        del gone
    assert m.why is None and len(kept) == 1_000_000
    assert 1_000_000 <= m.leaked < 1_010_000
    assert 2_000_000 <= m.peak < 2_200_000
    assert m.intervals["peak"] == (m.peak, m.peak) and m.allocations >= 2000
    top = m.sites[0]
    assert any(f.file == HERE and f.kind == "python" for f in top.frames) and "test_py_memory_block.py:" in str(top)


def test_samples_have_intervals():
    with tare.memory() as m:
        kept = [bytearray(100_000) for _ in range(400)]
    low, high = m.intervals["leaked"]
    assert low < high and low < 60_000_000 and high > 30_000_000 and len(kept) == 400


def test_what_it_does_not_have_to_do_with():
    before = [bytearray(50_000) for _ in range(100)]
    with tare.memory(every=True) as m:
        before.clear()  # of before: no part of it
    assert m.leaked < 10_000 and m.peak < 100_000


def test_scopes(tmp_path):
    """Those of a session that began before the block."""
    script = "import tare\nkept = []\nwith tare.memory(every=True) as m:\n    with tare.scope('outer'):\n        kept.append(bytearray(300_000))\n        "
    script += "with tare.scope('inner'):\n            kept.append(bytearray(400_000))\nm.save('m.tare')\n"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, **OURS, "TARE_TRACE": "own.tare"}, check=True)
    told = subprocess.run([ROOT + "/build/tare", "report", "--memory", "--by", "scope", "--json", "m.tare"], cwd=tmp_path, check=True, capture_output=True, text=True)
    held = {g["name"]: g["at_end"]["bytes"] for g in json.loads(told.stdout)["processes"][0]["groups"]}
    assert 300_000 <= held["outer"] < 330_000 and 400_000 <= held["inner"] < 430_000


def test_threads_and_native_code():
    def work():
        keep.append(ctypes.create_string_buffer(300_000))

    keep = []
    with tare.memory(every=True) as m:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert any(f.name.endswith("work") for s in m.sites if s.leaked >= 300_000 for f in s.frames if f.kind == "python")


def test_a_library_that_comes_meanwhile(tmp_path):
    (tmp_path / "gets.c").write_text("#include <stdlib.h>\nvoid *gets_some(size_t n) { return malloc(n); }\n")
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-o", "libgets.so", "gets.c"], cwd=tmp_path, check=True)
    with tare.memory(every=True) as m:
        lib = ctypes.CDLL(str(tmp_path / "libgets.so"))
        lib.gets_some.restype, lib.gets_some.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        list(range(1000))
        assert lib.gets_some(777_777)
    assert any(s.leaked == 777_777 for s in m.sites)
    with tare.memory(every=True) as again:
        pass
    assert lib.gets_some(888_888) and not any(s.leaked == 888_888 for s in again.sites)


def test_again_and_again_in_both_modes():
    for i in range(6):
        with tare.memory(every=bool(i % 2)) as m:
            kept = bytearray(3_000_000)
        assert m.why is None and (i % 2 == 0 or 3_000_000 <= m.leaked < 3_010_000), (i, m.leaked)
        del kept
    gc.collect()


def test_one_within_another_says_so():
    with tare.memory(every=True) as outer:
        with tare.memory(every=True) as inner:
            pass
    assert outer.why is None and "another block" in inner.why and "another block" in inner.peak.reason
    with pytest.raises(RuntimeError, match="another block"):
        inner.html("x.html")


def test_decorators():
    @tare.memory(every=True)
    def plain(n):
        return bytearray(n)

    @tare.memory
    async def later(n):
        await asyncio.sleep(0)
        return bytearray(n)

    kept = plain(2_000_000)
    assert plain.__name__ == "plain" and 2_000_000 <= plain.memory.leaked < 2_010_000 and len(kept) == 2_000_000
    more = asyncio.run(later(40_000_000))
    assert later.memory.leaked >= 40_000_000 and len(more) == 40_000_000


def test_a_block_that_fails_ends():
    with pytest.raises(ZeroDivisionError):
        with tare.memory() as m:
            1 / 0
    assert m.why is None
    with tare.memory() as m:
        pass
    assert m.why is None


def test_children_are_not_in_it():
    with tare.memory(every=True) as m:
        pid = os.fork()
        if pid == 0:
            kept = [bytearray(1000) for _ in range(1000)]
            os._exit(0 if len(kept) == 1000 else 1)
        assert os.waitpid(pid, 0)[1] == 0
    assert m.leaked < 100_000


def test_what_makes_no_sense():
    for named in ({"every": 0}, {"every": "yes"}, {"frames": 0}, {"frames": 1000}):
        if named == {"every": 0}:
            continue  # False
        with pytest.raises(ValueError):
            tare.memory(**named)
    with pytest.raises(ValueError, match="24"):
        tare.leaks(lambda: None, runs=3)


def test_leaks_are_named_and_caches_are_not():
    kept, cache = [], {}

    def leaks():
        kept.append(bytearray(10_000))
        cache["x"] = bytearray(50_000)

    found = tare.leaks(leaks, runs=30)
    assert found and len(found.growing) == 1
    worst = found.growing[0]
    assert 9_000 < worst.bytes_per_call < 11_000 and worst.low < 10_057 < worst.high and worst.confidence > 0.95 and "leaks test_py_memory_block" in worst.where
    assert not tare.leaks(lambda: cache.update(x=bytearray(50_000)), runs=30)


def test_the_text_and_the_trace(tmp_path, capsys):
    with tare.memory(every=True) as m:
        kept = bytearray(1_000_000)
    m.print()
    assert "every allocation" in capsys.readouterr().out and len(kept) == 1_000_000
    m.save(tmp_path / "m.tare")
    assert (tmp_path / "m.tare").stat().st_size > 100


def test_the_profiler_names_sites():
    profiler = tare.PerformanceProfiler(track_gpu=False, detailed_memory=True)
    with profiler.profile("train"):
        kept = [bytearray(1_000_000) for _ in range(30)]
    sites = profiler.get_metrics("train").memory.sites
    assert sum(s.peak for s in sites) > 10_000_000 and len(kept) == 30


# ---- the plugin ----

PLUGIN = """
import pytest
KEPT = []

@pytest.mark.tare_memory("5MB")
def test_small():
    x = bytearray(1_000_000)

@pytest.mark.tare_memory("5MB")
def test_large():
    x = bytearray(9_000_000)

@pytest.mark.tare_memory(leaks="0")
def test_leaks():
    KEPT.append(bytearray(200_000))

@pytest.mark.tare_memory("100MB", leaks="1KB")
def test_keeps_nothing():
    x = [bytearray(1000) for _ in range(100)]

@pytest.mark.tare_memory("many")
def test_odd():
    pass

def test_common():
    x = bytearray(2_500_000)
"""


def run_pytest(tmp_path, *options):
    (tmp_path / "test_it.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tare._pytest_memory", "test_it.py", *options]
    return subprocess.run(command, cwd=tmp_path, env={**os.environ, **OURS}, capture_output=True, text=True, timeout=300, check=False)


def test_the_plugin(tmp_path):
    said = run_pytest(tmp_path, "--tare-memory-limit", "2MB")
    failed = {line.split("::")[1].split()[0] for line in said.stdout.splitlines() if line.startswith("FAILED")}
    assert failed == {"test_large", "test_leaks", "test_odd", "test_common"}, said.stdout
    assert "the test held 9.0 MB, more than 5.0 MB; the largest sites:" in said.stdout and "test_large test_it.py:11" in said.stdout
    assert "still held 0.2 MB" in said.stdout and "is no size" in said.stdout


def test_the_plugin_refuses_words(tmp_path):
    said = run_pytest(tmp_path, "--tare-memory-limit", "much")
    assert said.returncode == 4 and "'much' is no size" in said.stderr
