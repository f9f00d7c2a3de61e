# SPDX-License-Identifier: MIT
"""ProfilingOptimizer, RealTimeProfiler, BatchSizeOptimizer and the training service, on programs whose answer is known.
No test depends on the machine's speed: times are slept, counted or made up."""

import asyncio
import json
import math
import os
import signal
import stat
import threading
import time

import pytest

import tare
from tare import _tare, _tune, _tune_batch, _tune_child, _tune_service

# ---- limits ----


def test_a_timeout_interrupts_a_blocking_call():
    begun = time.monotonic()
    with pytest.raises(tare.LimitExceeded, match="the wait took longer than its timeout of 0.1 s"), _tune_child.limits(0.1, what="the wait"):
        time.sleep(60)
    assert time.monotonic() - begun < 30 and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_memory_is_limited_and_threads_are_too():
    with pytest.raises(tare.LimitExceeded, match="MiB of memory, its limit is 4"), _tune_child.limits(60, 40 << 20):
        kept = []
        while True:
            kept.append(bytearray(b"x") * (1 << 20))
            time.sleep(0.001)
    said = []

    def work():
        try:
            with _tune_child.limits(0.1):
                while True:
                    time.sleep(0.01)
        except tare.LimitExceeded as error:
            said.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert said == ["the code took longer than its timeout of 0.1 s"]


def test_children_are_thrown_away():
    state = [1]
    assert _tune_child.in_child(lambda: state.append(2) or list(state), 30)[:2] == ("done", [1, 2]) and state == [1]
    assert _tune_child.in_child(lambda: {}["x"], 30)[:2] == ("failed", "KeyError: 'x'")
    assert _tune_child.in_child(lambda: time.sleep(60), 0.2).outcome == "late"
    assert _tune_child.in_child(lambda: os.kill(os.getpid(), 9), 30).outcome == "over"
    assert _tune_child.in_child(lambda: os.kill(os.getpid(), 15), 30)[:2] == ("failed", "the child ended by signal 15")
    held = _tare.memory_now()[0]
    big = _tune_child.in_child(lambda: len(bytearray(b"x") * (100 << 20)), 30)
    assert big.outcome == "done" and big.peak > held / 2 + (100 << 20)
    assert _tune_child.in_child(lambda: len(bytearray(b"x") * (100 << 20)), 30, held + (50 << 20)).outcome == "over"

    def exhausted():
        raise MemoryError

    assert _tune_child.in_child(exhausted, 30).outcome == "over"
    assert not list(_tune.descendants())


# ---- ProfilingOptimizer ----


def slow():
    time.sleep(0.1)
    return "result"


def outer():
    return middle() + 1


def middle():
    return sum(inner(i) for i in range(20000))


def inner(i):
    return i % 7


def test_profile_code_names_the_bottleneck(tmp_path):
    config = tare.ProfilingConfig(save_profiles=True, profile_dir=str(tmp_path / "profiles"))
    profiler = tare.ProfilingOptimizer(config)
    result = profiler.profile_code(slow)
    assert result.value == "result" and "sleep" in result.bottleneck_functions[0].name and result.bottleneck_functions[0].share > 0.9
    assert "it waits" in result.recommendations[0] and "sleep" in str(result) and result.bound > 5
    assert [path.rpartition(".")[2] for path in result.saved] == ["prof", "json"]
    said = json.loads(open(result.saved[1]).read())
    assert said["name"] == "slow" and said["functions"][0]["calls"] == 1
    assert stat.S_IMODE(os.stat(result.saved[1]).st_mode) == 0o600


def test_depth_and_threshold():
    deep = tare.ProfilingOptimizer(tare.ProfilingConfig(min_time_threshold=0.0, profile_depth=10)).profile_code(outer)
    names = {row.name: row for row in deep.functions}
    assert names["inner"].calls == 20000 and "calls of" in " ".join(deep.recommendations)
    flat = tare.ProfilingOptimizer(tare.ProfilingConfig(min_time_threshold=0.0, profile_depth=2)).profile_code(outer)
    assert {row.name for row in flat.functions} == {"outer", "middle"} and flat.functions[0].name == "middle" and flat.functions[0].share > 0.9
    none = tare.ProfilingOptimizer(tare.ProfilingConfig(min_time_threshold=1e6)).profile_code(outer)
    assert none.functions == [] and "no function stands out" in str(none) and not none.bound


def test_what_the_function_raises_is_its_own_and_limits_hold():
    with pytest.raises(ZeroDivisionError):
        tare.ProfilingOptimizer().profile_code(lambda: 1 / 0)
    with pytest.raises(tare.LimitExceeded, match="timeout of 0.1 s"):
        tare.ProfilingOptimizer(tare.ProfilingConfig(timeout_s=0.1)).profile_code(time.sleep, 60)
    off = tare.ProfilingOptimizer(tare.ProfilingConfig(enabled=False)).profile_code(slow)
    assert off.value == "result" and not off.functions and off.seconds != off.seconds


def test_training_stats_and_blocks(caplog):
    profiler = tare.ProfilingOptimizer(tare.ProfilingConfig(alert_threshold=0.01))
    stats = profiler.get_training_stats()
    assert 0 <= stats["cpu_percent"] <= 100 and 0 < stats["memory_percent"] <= 100 and {"gpu_utilization"} <= set(stats)
    with profiler.profile_function("loading"):
        time.sleep(0.05)
    assert profiler.get_training_stats()["blocks"]["loading"] >= 0.05
    assert "loading took" in caplog.text
    with tare.profiling_context() as inside:
        pass
    assert "profiling_context" in inside.profiler.get_timing_breakdown()


def test_auto_optimize_keeps_the_first_unless_another_is_proved():
    words = [str(i) for i in range(3000)]

    def plain(words):
        time.sleep(0.02)
        return "".join(words)

    def quick(words):
        time.sleep(0.005)
        return "".join(words)

    def wrong(words):
        return "".join(words[1:])

    profiler = tare.ProfilingOptimizer(tare.ProfilingConfig(budget_s=30))
    best, tuned = profiler.auto_optimize(plain, wrong, quick, args=(words,))
    assert best is quick and tuned.verdict == "confirmed" and tuned.applied
    assert profiler.tuned[0].verdict == "different_data"
    best, tuned = profiler.auto_optimize(plain, wrong, args=(words,))
    assert best is plain and tuned.verdict == "different_data" and not tuned.applied
    advise = tare.ProfilingOptimizer(tare.ProfilingConfig(auto_optimize=False, budget_s=30))
    best, tuned = advise.auto_optimize(plain, quick, args=(words,))
    assert best is plain and tuned.verdict == "confirmed" and not tuned.applied
    with pytest.raises(ValueError, match="which other"):
        advise.auto_optimize(plain)


# ---- RealTimeProfiler ----


def test_alerts_begin_above_and_end_below_the_lower_threshold():
    told = []
    profiler = tare.RealTimeProfiler(tare.ProfilingConfig())
    profiler.add_alert_callback(lambda alert, metrics: told.append((alert, metrics["cpu_percent"])))
    course = [(0, 90), (5, 85), (9, 79), (10, 85), (19, 81), (20, 82), (21, 75), (40, 75), (41, 69), (50, 69), (51, 60), (60, 95)]
    seen = [(at, alert.began) for at, cpu in course for alert in profiler.judge(at, {"cpu_percent": cpu})]
    assert seen == [(20, True), (51, False)]
    assert [str(alert) for alert, _ in told] == ["High CPU usage: 82 %, above 80 for 10 s - reduce workers"] and told[0][1] == 82
    summary = profiler.get_performance_summary()
    assert summary["cpu_percent"]["max"] == 95 and summary["samples"] == len(course) and len(summary["alerts"]) == 1
    assert summary["gpu_memory_percent"]["mean"] != summary["gpu_memory_percent"]["mean"]


@pytest.mark.parametrize("key, high, action", [
    ("memory_percent", 81, "memory optimization"), ("gpu_memory_percent", 81, "reduce batch size"),
    ("loading_ms_per_batch", 101, "increase workers"), ("preprocessing_ms_per_sample", 1.1, "parallel preprocessing"),
])  # fmt: skip
def test_the_thresholds_of_the_seed(key, high, action):
    profiler = tare.RealTimeProfiler(hold_s=10)
    assert not profiler.judge(0, {key: high}) and not profiler.judge(9.9, {key: high})
    assert not profiler.judge(9.95, {key: tare.Unknown("lost")})  # neither begins nor ends
    (alert,) = profiler.judge(10, {key: high})
    assert action in alert
    calm = tare.RealTimeProfiler(hold_s=0)
    assert not calm.judge(0, {key: math.nan}) and not calm.judge(1, {key: high * 0.9})


def test_monitoring_sees_the_machine_and_the_input(caplog):
    profiler = tare.RealTimeProfiler(tare.ProfilingConfig(monitoring_interval=0.05))

    def broken(alert, metrics):
        raise ValueError("mine")

    profiler.add_alert_callback(broken)
    profiler.start_monitoring()
    profiler.start_monitoring()

    def loader():
        for i in range(3):
            time.sleep(0.15)
            yield i

    assert list(profiler.batches(loader())) == [0, 1, 2]
    with profiler.preprocessing(samples=10):
        time.sleep(0.05)
    profiler.stop_monitoring()
    profiler.stop_monitoring()
    summary = profiler.get_performance_summary()
    assert summary["loading_ms_per_batch"]["mean"] >= 150 and summary["preprocessing_ms_per_sample"]["mean"] >= 5
    assert summary["cpu_percent"]["samples"] > 0 and 0 < summary["memory_percent"]["mean"] <= 100 and summary["seconds"] >= 0.45
    assert not [t for t in threading.enumerate() if t.name == "tare-monitor"]
    profiler.judge(1e6, {"cpu_percent": 99})
    profiler.judge(1e6 + 11, {"cpu_percent": 99})
    assert "alert callback" in caplog.text and "mine" in caplog.text
    with pytest.raises(TypeError, match="cannot be called"):
        profiler.add_alert_callback(3)


def test_rules_of_the_extension_are_checked():
    for rule, error in (((80, 90, 1), ValueError), ((80, 70, -1), ValueError), ((math.nan, 1, 1), ValueError), (3, TypeError)):
        with pytest.raises(error):
            _tare.Alerts([rule])
    with pytest.raises(IndexError, match="1 rules"):
        _tare.Alerts([(80, 70, 0)]).tell(1, 5.0, 0.0)
    with pytest.raises(ValueError, match="2 to 64"):
        _tare.fit([(1, 1)])
    with pytest.raises(TypeError):
        _tare.fit([1, 2])
    assert _tare.fit([(1, 13), (2, 16), (4, 22)]) == (10, 3, 0)


# ---- BatchSizeOptimizer: a machine that is made up ----


class Machine:
    """Memory and time of a batch as formulas, in place of the child."""

    def __init__(self, memory, seconds, cap):
        self.memory, self.seconds, self.cap, self.tried, self.remarks = memory, seconds, cap, [], []

    def probe(self, size, steps, latency_ms):
        self.tried.append((size, steps))
        times = (self.seconds(size),) * (steps - 1)
        if self.memory(size, steps) > self.cap:
            return _tune_batch.Probe(size, "over", self.cap, ())
        slow = latency_ms is not None and times[0] * 1e3 > latency_ms
        return _tune_batch.Probe(size, "slow" if slow else "done", self.memory(size, steps), times)

    def search(self, latency_ms=None, objective="throughput", base=1, most=1 << 16, effective=None):
        self.found = _tune_batch._Search(self, latency_ms, _tune_batch._sizes(base, most, effective), objective, [])
        return self.found.run()


def test_the_knee_ends_the_search():
    machine = Machine(lambda n, _: 100 + n, lambda n: 0.010 + 0.001 * n, 1 << 40)
    size, why = machine.search()
    # rate(n) = n / (10 + n): 95 % at 190; the least within 3 % of the best tried
    assert 64 <= size <= 256 and "gives less than 5%" in why and max(n for n, _ in machine.tried) <= 512
    assert 9 < machine.found.bound(1) < 13


@pytest.mark.parametrize("limit", [3, 17, 100, 777, 5000])
def test_the_largest_that_fits_is_found_without_passing_it_when_the_line_holds(limit):
    machine = Machine(lambda n, _: 1000 + 10 * n, lambda n: 0.01 + 0.001 * n, 1000 + 10 * limit)
    size, _ = machine.search(objective="largest")
    assert 0.85 * limit <= size <= limit
    over = [n for n, _ in machine.tried if n > limit]
    assert len(over) <= (1 if limit >= 17 else 2) and all(n <= max(4, 1.1 * limit) for n in over)


def test_memory_that_is_not_a_line_is_bracketed():
    steps = {1: 300, 2: 311, 4: 448, 8: 402, 16: 700, 32: 650, 64: 1300, 128: 1250}  # peaks of glibc: not monotone
    machine = Machine(lambda n, _: steps.get(n, 300 + 12 * n), lambda n: 0.05 + 0.0001 * n, 1000)
    size, why = machine.search(objective="largest")
    assert 32 <= size <= 58 and ("over the memory" in why) and machine.memory(size, 4) <= 1000


def test_latency_limits_the_batch():
    machine = Machine(lambda n, _: n, lambda n: 0.010 + 0.001 * n, 1 << 40)
    size, why = machine.search(latency_ms=50)
    assert 34 <= size <= 40 and "beyond the l" in why and len(machine.tried) <= 12


def test_sizes_are_multiples_of_today_or_divisors_of_the_effective_batch():
    assert _tune_batch._sizes(4, 16, None) == [1, 2, 4, 8, 12, 16]
    assert _tune_batch._sizes(8, 1000, 48) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 48]


def test_a_batch_that_only_fails_later_is_taken_back():
    machine = Machine(lambda n, steps: 10 * n * (2 if steps == _tune_batch.VERIFIED else 1), lambda n: 0.05 + 0.0001 * n, 10 * 64)
    finder = tare.BatchSizeOptimizer()
    search = _tune_batch._Search(machine, None, _tune_batch._sizes(1, 4096, None), "largest", finder.probes)
    tuned = finder._answer(search, machine, None, 1, None)
    assert 20 <= tuned.plan["batch_size"] <= 32 and any("in 20 steps" in why for _, why in tuned.rejected)


def megabytes(n):
    return bytearray(b"x") * (n << 20)


def test_find_in_a_child_within_its_memory():
    finder = tare.BatchSizeOptimizer(tare.DataOptimizationConfig(budget_s=60))
    held = []

    def step(batch):
        held.append(bytes(batch))  # would be kept for good in this process
        time.sleep(0.02)
        held.clear()

    cap = _tare.memory_now()[0] + (200 << 20)
    tuned = finder.find(step, megabytes, memory=cap, margin=0, most=4096)
    assert tuned.verdict == "confirmed" and tuned.gain > 2 and 8 <= tuned.plan["batch_size"] <= 110  # a child holds some MB less than this process
    assert held == [] and _tare.memory_now()[0] < cap and not list(_tune.descendants())
    assert "20 steps at" in tuned.reasons[1]
    largest = finder.find(step, megabytes, memory=cap, margin=0, most=4096, objective="largest")
    assert 85 <= largest.plan["batch_size"] <= 115  # pages that are not touched after the fork do not count


def test_what_cannot_be_is_said():
    finder = tare.BatchSizeOptimizer(tare.DataOptimizationConfig(timeout_s=0.3))
    with pytest.raises(RuntimeError, match="batch of 1 failed: ZeroDivisionError"):
        finder.find(lambda batch: 1 / 0, megabytes)
    with pytest.raises(TimeoutError, match="timeout_s=0.3"):
        finder.find(lambda batch: time.sleep(60), megabytes)
    with pytest.raises(ValueError, match="already"):
        finder.find(print, megabytes, memory="1MB")
    for bad in ({"objective": "fast"}, {"base": 0}, {"base": 3, "effective": 8}, {"margin": 1}, {"latency_ms": 0}, {"memory": "much"}):
        with pytest.raises(ValueError):
            finder.find(print, megabytes, **bad)
    small = finder.find(lambda batch: None, lambda n: megabytes(100 * n), memory=_tare.memory_now()[0] + (20 << 20))
    assert small.verdict == "refused" and "no batch size fits" in small.reasons[-1] and small.plan == {}


@pytest.mark.parametrize("metric, words", [(lambda n: math.nan, "metric is nan"), (lambda n: -n, "metric falls from -1"), (lambda n: {}["x"], "KeyError")])
def test_a_worse_metric_refuses(metric, words):
    finder = tare.BatchSizeOptimizer()
    tuned = finder.find(lambda batch: time.sleep(0.01), lambda n: n, metric=metric, most=16)
    assert tuned.verdict == "refused" and words in " ".join(tuned.reasons) and tuned.plan == {}


def test_training_on_pytorch_in_a_child():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(batch):
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    step(torch.randn(4, 64))
    before = model.weight.detach().clone()
    tuned = tare.BatchSizeOptimizer(tare.DataOptimizationConfig(budget_s=5)).find(step, lambda n: torch.randn(n, 64), base=8, effective=32)
    assert tuned.plan["batch_size"] * tuned.plan["accumulation"] == 32
    assert torch.equal(before, model.weight)


# ---- the service ----


def test_stall_of_known_times():
    stall = _tune_service.stall_of([0.03] * 40, [0.01] * 40)
    assert stall.share == pytest.approx(0.75) and stall.low == pytest.approx(0.75) and stall.bound == pytest.approx(4)
    assert "input-bound: 75%" in _tune_service._bound_by(stall)
    none = _tune_service.stall_of([0.0001] * 40, [0.01] * 40)
    assert none.bound < 1.02 and "compute-bound" in _tune_service._bound_by(none)
    wide = _tune_service.stall_of([0.0, 0.02], [0.01, 0.01])
    assert wide.low == 0 and wide.high > 0.9


def test_the_loop_counts_waiting_apart_from_work():
    def loader():
        for _ in range(10):
            time.sleep(0.02)
            yield 1

    class Loader:
        def __iter__(self):
            return loader()

    service = tare.OptimizedFineTuningService()
    seen = []
    stall = service.stall(Loader(), lambda batch: seen.append(batch) or time.sleep(0.005), seconds=0.5)
    assert 0.4 < stall.share < 0.95 and stall.batches >= 2 and seen == []  # the steps were a child's
    with pytest.raises(ValueError, match="too few"):
        service.stall([], print)
    with pytest.raises(RuntimeError, match="failed: ValueError: bad"):
        service.stall([1, 2, 3], lambda batch: (_ for _ in ()).throw(ValueError("bad")))


class Waits:
    """A loader that waits so long for each batch."""

    def __init__(self, seconds, **plan):
        self.seconds, self.plan = seconds, plan

    def __iter__(self):
        for _ in range(20):
            time.sleep(self.seconds)
            yield 1


def test_training_without_its_stall_is_measured_as_a_whole():
    service = tare.OptimizedFineTuningService()
    stall = _tune_service.stall_of([0.02] * 10, [0.002] * 10)
    tuned = service._whole(lambda batch: time.sleep(0.002), Waits(0.02), Waits(0.001, workers=4), stall)
    assert tuned.verdict == "confirmed" and tuned.plan == {"workers": 4} and 1.5 < tuned.gain and tuned.bound == pytest.approx(11)
    report = _tune_service.Report(targets=[_tune_service.target_row("training", tuned)])
    assert "training              1.5-2x      11.00x" in str(report) and "confirmed" in str(report)
    none = _tune_service.stall_of([0.0] * 10, [0.002] * 10)
    left = service._whole(print, Waits(9), Waits(9), none)
    assert left.verdict == "no_gain" and not left.baseline and "at most 1.00x" in left.reasons[0]


def test_mixed_precision_is_advised_only_where_the_losses_agree():
    torch = pytest.importorskip("torch")
    service = tare.OptimizedFineTuningService(tare.DataOptimizationConfig(budget_s=3))
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    assert service.mixed_precision(lambda batch: None, a).verdict == "refused"
    chaotic = service.mixed_precision(lambda batch: (a @ b).sum() - (a.double() @ b.double()).sum().float() + 1e-9, a)
    assert chaotic.verdict == "refused" and "differ by" in chaotic.reasons[0]
    fine = service.mixed_precision(lambda batch: (a @ b).pow(2).mean(), a)
    assert fine.verdict in ("confirmed", "likely", "no_gain", "over_budget") and fine.baseline


def test_batch_norm_keeps_its_micro_batch():
    torch = pytest.importorskip("torch")
    service = tare.OptimizedFineTuningService()

    def step(batch):
        return 0.0

    step.model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    service._batches(step, None, {"batch_size": 8}, {"gradient_accumulation": 4})
    assert service.results[0][1].verdict == "refused" and "BatchNorm" in service.results[0][1].reasons[0]


def test_unknown_models_and_bad_steps_say_so():
    async def ask(**config):
        service = tare.OptimizedFineTuningService()
        return await service.profile_and_optimize_training("gpt9", [1, 2], config, profile_data_loading=False)

    report = asyncio.run(ask())
    assert report["targets"] == [] and report["optimization_plan"] == {}
    assert "no model 'gpt9' is registered" in report["recommendations"][0] and "preprocessing_functions" in report["recommendations"][1]
    with pytest.raises(TypeError, match="not int"):
        asyncio.run(ask(step=3))
