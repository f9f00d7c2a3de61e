# SPDX-License-Identifier: MIT
"""Configurations, the confirmation by pairs, and the form of results. Clocks are made up: no test depends on the machine's speed."""

import json
import math
import os
import re
import time

import pytest

import tare
from tare import _tune

# all keys of the text of seed 003
PROFILING = """enabled profile_cpu profile_memory profile_gpu profile_data_loading profile_preprocessing profile_depth min_time_threshold
min_memory_threshold save_profiles profile_dir auto_optimize optimization_threshold real_time_monitoring alert_threshold
monitoring_interval log_precision log_memory_usage""".split()
DATA = """optimize_loading prefetch_factor num_workers pin_memory persistent_workers memory_efficient max_memory_usage chunk_size
enable_caching cache_dir cache_size optimize_preprocessing batch_preprocessing parallel_preprocessing preprocessing_workers optimize_io
compression buffer_size async_io monitor_performance log_metrics alert_threshold streaming mixed_precision""".split()


@pytest.mark.parametrize("kind, keys", [(tare.ProfilingConfig, PROFILING), (tare.DataOptimizationConfig, DATA)])
def test_all_keys_of_the_seed_are_there(kind, keys):
    given = {key: getattr(kind(), key) for key in keys}
    assert kind(**given) == kind()
    assert all(f"{key}=" in repr(kind()) for key in keys)


def test_unknown_keys_name_the_nearest():
    with pytest.raises(TypeError, match="has no key 'prefetch_facter'; did you mean 'prefetch_factor'"):
        tare.DataOptimizationConfig(prefetch_facter=2)
    with pytest.raises(TypeError, match="ProfilingConfig has no key 'xyzzy'$"):
        tare.ProfilingConfig(xyzzy=1)
    with pytest.raises(AttributeError, match="did you mean 'num_workers'"):
        tare.DataOptimizationConfig().num_worker = 2


@pytest.mark.parametrize(
    "key, value, words",
    [("num_workers", -1, "0 or more"), ("num_workers", True, "whole number"), ("max_memory_usage", 1.5, "share"), ("budget_s", math.nan, "seconds"),
     ("optimize_io", 1, "True or False"), ("equivalence", "same", "bitwise or order"), ("apply", "always", "never or confirmed"), ("cache_dir", "", "path")],
)  # fmt: skip
def test_impossible_values_say_what_is_possible(key, value, words):
    with pytest.raises(ValueError, match=words):
        tare.DataOptimizationConfig(**{key: value})
    config = tare.DataOptimizationConfig()
    with pytest.raises(ValueError, match=f"{key} is .*{words}"):
        setattr(config, key, value)
    assert config == tare.DataOptimizationConfig()


def test_a_setting_of_either_configuration():
    assert _tune.setting(tare.ProfilingConfig(alert_threshold=2.0), "alert_threshold") == 2.0
    assert _tune.setting(tare.ProfilingConfig(), "num_workers") == 4
    assert _tune.setting(None, "profile_depth") == 10
    with pytest.raises(TypeError, match="not dict"):
        _tune.setting({}, "num_workers")
    with pytest.raises(AttributeError, match="'nothing'"):
        _tune.setting(None, "nothing")


def test_sizes():
    assert [_tune.in_bytes(s) for s in (5, "5", "2KB", "2KiB", "16GiB", "1.5MB")] == [5, 5, 2000, 2048, 16 << 30, 1_500_000]
    assert _tune.in_bytes("80%", 1000) == 800
    for bad in ("80%", "x", "-1", 0, "1QB", "nan", ""):
        with pytest.raises(ValueError, match="is no size above 0"):
            _tune.in_bytes(bad)


class Clock:
    """A clock that only work moves: `costs` seconds in turn for each call."""

    def __init__(self, monkeypatch):
        self.now = self.cpu = 0.0
        monkeypatch.setattr(_tune.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(_tune.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(_tune, "cpu_seconds", lambda: self.cpu)
        monkeypatch.setattr(_tune, "pss_bytes", lambda: 1000)

    def work(self, seconds, cpu=None, result=None):
        calls = iter(range(10**9))

        def call():
            wobble = 1 + 0.01 * math.sin(next(calls))
            self.now += seconds * wobble
            self.cpu += (seconds if cpu is None else cpu) * wobble
            return result

        return call


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_a_gain_is_confirmed_with_its_interval(clock):
    tuned = tare.confirm(clock.work(0.3), clock.work(0.2, 0.45), plan={"workers": 2}, bound=2.0, target=(1.5, 2))
    assert tuned.verdict == "confirmed" and tuned.ci[0] <= 1.5 <= tuned.ci[1] and tuned.ci[1] - tuned.ci[0] < 0.1
    assert tuned.uses_more_cpu and 1.4 < tuned.cpu[0] < 1.6 and tuned.memory[0] == 1
    assert len(tuned.baseline) == len(tuned.candidate) >= 8
    assert tuned.worth() and not tuned.worth("never")
    lines = str(tuned).splitlines()
    assert len(lines) == 5 and lines[0] == "change: bound on this run at most 2.00x; target 1.5-2x" and "workers=2" in lines[1]


@pytest.mark.parametrize("seconds, words", [(0.3, "surely gains less"), (0.45, "slower")])
def test_no_gain_is_a_normal_answer(clock, seconds, words):
    tuned = tare.confirm(clock.work(0.3), clock.work(seconds))
    assert tuned.verdict == "no_gain" and words in tuned.reasons[0] and not tuned.worth("likely")


def test_units_are_long_enough_and_alternate(clock):
    order = []
    base, candidate = clock.work(0.003), clock.work(0.002)
    tuned = tare.confirm(lambda: order.append("b") or base(), lambda: order.append("c") or candidate(), unit_s=0.3)
    assert tuned.verdict == "confirmed" and abs(tuned.baseline[0].wall_s - 0.003) < 1e-4
    times = len(order[-1 - order[::-1].index("b" if order[-1] == "c" else "c") :]) - 1
    units = "".join(order)[-2 * len(tuned.baseline) * times :][::times]
    assert times >= 100 and units == ("bccb" * 10)[: 2 * len(tuned.baseline)]


def test_work_that_differs_is_taken_into_account(clock):
    one, many = clock.work(0.01), clock.work(0.08)
    many.work = 16
    tuned = tare.confirm(one, many)
    assert tuned.verdict == "confirmed" and abs(tuned.gain - 2) < 0.05 and abs(tuned.candidate[0].wall_s - 0.005) < 1e-4


def test_a_bound_below_the_threshold_measures_nothing(clock):
    tuned = tare.confirm(None, None, bound=1.05, plan={"workers": 8})
    assert tuned.verdict == "no_gain" and tuned.plan == {} and "at most 1.05x" in tuned.reasons[0] and not tuned.baseline


def test_other_results_are_refused_with_the_difference(clock):
    tuned = tare.confirm(clock.work(1, result=[1, 2.0]), clock.work(0.1, result=[1, -2.0]), same=_tune.first_difference)
    assert tuned.verdict == "different_data" and tuned.reasons == ["the results differ: result[1] is 2.0, then -2.0"]
    assert not tuned.worth("likely")


def test_the_budget_ends_it(clock):
    tuned = tare.confirm(clock.work(1), clock.work(0.99), budget_s=6)
    assert tuned.verdict == "over_budget" and 0 < len(tuned.baseline) < 8 and "budget of 6 s" in tuned.reasons[0]
    assert tuned.ci is None and "Infinity" not in tuned.to_json()  # too few pairs bound nothing
    assert tare.confirm(clock.work(10), clock.work(5), budget_s=1).verdict == "over_budget"


def test_a_budget_that_was_not_kept_is_said(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_tune.time, "monotonic", lambda: now[0])
    spent = _tune.Spent(10)
    for what, seconds in (("looking", 2), ("the search", 6), ("looking", 1), ("the proof", 2)):
        spent.on(what)
        now[0] += seconds
    assert spent.said() is None and spent.took_s() == 11 and spent.left_s() == -1 and spent.left_s(2) == 9  # within a tenth
    now[0] += 1
    assert spent.said() == "took 12 s of a budget of 10 s: looking 3 s, the search 6 s, the proof 3 s"
    assert _tune.Spent(None).said() is None


def test_documents_have_null_for_unknown_and_undo_is_once():
    undone = []
    tuned = _tune.Tuned("loading", {"workers": 2}, "refused", reasons=["unseeded"], applied=True, _undo=lambda: undone.append(1))
    said = json.loads(tuned.to_json())
    assert said["gain"] is None and said["bound"] is None and said["verdict"] == "refused" and "_undo" not in said
    assert tuned.undo() and not tuned.undo() and undone == [1]
    with pytest.raises(ValueError, match="none of confirmed"):
        _tune.Tuned("x", {}, "great")


def test_children_count_in_processor_time_and_memory():
    before, alone = _tune.cpu_seconds(), _tune.pss_bytes()
    pid = os.fork()
    if pid == 0:
        kept = bytearray(os.urandom(1)) * 30_000_000
        while time.process_time() < 60 and len(kept):
            pass
        os._exit(0)
    try:
        assert pid in list(_tune.descendants())
        while _tune.cpu_seconds() - before < 0.2:
            time.sleep(0.01)
        assert alone is None or _tune.pss_bytes() > alone + 25_000_000
        living = _tune.cpu_seconds()
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert _tune.cpu_seconds() >= living - 0.02  # ended: counted among those that were waited for


class Plain:
    def __init__(self, x):
        self.x = x


@pytest.mark.parametrize(
    "a, b, words",
    [
        ([1, 2], [1, 2], None), (1, 1.0, "result is int, then float"), ([1], [1, 2], "1 items, then 2"), ({"a": 1}, {"b": 1}, "keys"),
        ({"a": [1]}, {"a": [2]}, r"result\['a'\]\[0\] is 1, then 2"), (math.nan, float("nan"), None), (0.0, -0.0, "0.0, then -0.0"),
        (Plain(1), Plain(1), None), (Plain(1), Plain(2), r"result\['x'\]"), ("a", "b", "'a', then 'b'"), (None, None, None),
    ],
)  # fmt: skip
def test_first_difference(a, b, words):
    said = _tune.first_difference(a, b)
    assert said is None if words is None else re.search(words, said)


def test_first_difference_of_arrays():
    np = pytest.importorskip("numpy")
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = a.copy()
    assert _tune.first_difference(a, b) is None
    b[1, 1] = 9
    assert "from element 4 on" in _tune.first_difference(a, b)
    assert "dtype" in _tune.first_difference(a, a.astype(np.float64)) and "shape" in _tune.first_difference(a, a.T)
    objects = np.array(["x", None], dtype=object)
    assert "[1]" in _tune.first_difference(objects, np.array(["x", 1], dtype=object))
    torch = pytest.importorskip("torch")
    t = torch.arange(4)
    assert _tune.first_difference(t, t.clone()) is None and "element 2" in _tune.first_difference(t, torch.tensor([0, 1, 5, 3]))


def test_a_share_taken_from_others_is_no_gain():
    """Two threads on a busy machine: 1.4 times as fast with 1.75 times the processor time, while half of the base's time was waiting for a processor."""
    from tare._tune import Unit, _refuse_theft

    def tuned(gain, queued):
        base = [Unit(1.0, 1.0 - queued, None, queued)] * 8
        return tare.Tuned("x", {"threads": 2}, "confirmed", gain=gain + 0.1, ci=(gain, gain + 0.2), baseline=base, candidate=base, uses_more_cpu=True)

    for gain, queued, verdict in ((1.4, 0.5, "no_gain"), (2.0, 0.5, "no_gain"), (2.3, 0.5, "confirmed"), (1.4, 0.0, "confirmed"), (8.0, 0.8, "confirmed")):
        out = tuned(gain, queued)
        _refuse_theft(out, 0.1)
        assert out.verdict == verdict and ("gave way" in " ".join(out.reasons)) == (verdict == "no_gain"), (gain, queued, out)
