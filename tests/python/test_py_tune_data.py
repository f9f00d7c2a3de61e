# SPDX-License-Identifier: MIT
"""DataLoadingOptimizer: the model from Python, mutants of data sets and loaders of which none may pass for the same, refusals with their
reason, bad data sets, and that nothing is left behind. No test depends on how fast the machine is."""

import gc
import importlib.util
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

import tare
from tare import _tare
from tare import _tune_data as data
from tare import _tune_data_run as run
from tare import _tune_data_same as same

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="no torch (make deps)")
if HAS_TORCH:
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
else:
    Dataset = IterableDataset = object


@pytest.fixture(autouse=True)
def no_threads_of_the_test_before():
    """A thread that feeds a queue of worker processes ends a moment after its loader: it would be a reason to refuse, and rightly."""
    gc.collect()
    until = time.monotonic() + 30
    while any("QueueFeeder" in t.name for t in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)


# ---- the model ----

def test_the_model_from_python():
    pipe = {"stages": {"fetch": (0.004, 0.0), "step": (0.001, 0.001)}, "cores": 2, "batch": 8}
    alone = _tare.loader_predict(pipe, "processes", 0)
    assert (alone["rate"], alone["limit"], alone["longest"]) == (pytest.approx(200), "workers", "fetch")
    plan = _tare.loader_plan(pipe, "processes", 0)
    assert plan["bound"] == pytest.approx(5) and plan["best"]["workers"] == 4 and plan["depth"] == 2
    assert plan["best"]["waiting"] == pytest.approx(0) and "nothing to gain" in plan["best"]["why"]
    nothing = _tare.loader_plan({"stages": {}, "cores": 1}, "threads", 2)
    assert nothing["now"]["rate"] is None and nothing["bound"] == 1


@pytest.mark.parametrize(
    "pipe, mode, workers, text",
    [
        ({}, "processes", 0, "has stages"),
        ({"stages": {"bake": (1, 1)}, "cores": 1}, "processes", 0, "no stage 'bake'"),
        ({"stages": {"fetch": 3}, "cores": 1}, "processes", 0, "both in seconds"),
        ({"stages": {}, "cores": 0}, "processes", 0, "0 cores"),
        ({"stages": {"fetch": (-1, 0)}, "cores": 1}, "processes", 0, "neither can be"),
        ({"stages": {}, "cores": 1}, "fibres", 0, "processes or threads"),
        ({"stages": {}, "cores": 1}, "threads", -1, "0 or more"),
        ({"stages": {}, "cores": 1, "batch": -3}, "threads", 1, "not a count"),
    ],
)
def test_bad_pipelines_say_why(pipe, mode, workers, text):
    with pytest.raises(ValueError, match=text):
        _tare.loader_plan(pipe, mode, workers)


def test_noise_of_the_clocks_is_no_wait():
    costs = run.Costs()
    costs.samples, costs.batches = 100, 10
    for i in range(100):
        costs.add("fetch", 1e-6 if i % 2 else -1e-6, 0.0)
        costs.add("decode", 5e-6, 5e-6)
    stages = costs.pipeline(10, None, 8)["stages"]
    assert stages["fetch"] == (pytest.approx(0, abs=1e-12), 0.0) and stages["decode"] == pytest.approx((5e-6, 5e-6))
    costs.add("fetch", -1.0, 0.0)
    assert costs.pipeline(10, None, 8)["stages"]["fetch"] == (0.0, 0.0)


# ---- mutants of loaders ----


class Rows(Dataset):
    """Rows that tell their index. Mutants change one thing."""

    def __init__(self, n=23):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return {"x": numpy.arange(6, dtype=numpy.float32) + i, "id": i, "tag": f"row {i}"}


class Listed:
    """A loader that is a list of batches."""

    def __init__(self, batches, raises=None):
        self.batches, self.raises = batches, raises

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        yield from self.batches
        if self.raises is not None:
            raise self.raises


def batches(n=5, dtype=numpy.float32):
    return [{"x": numpy.arange(8, dtype=dtype).reshape(2, 4) + 10 * i, "y": [i, 2.0 * i], "name": f"b{i}"} for i in range(n)]


def changed(at, key, change):
    out = batches()
    out[at][key] = change(out[at][key])
    return out


def moved(item):
    item["x"][1, 2] = numpy.nextafter(item["x"][1, 2], numpy.float32(99))
    return item["x"]


LOADERS = {
    "two batches swapped": lambda b: [b[1], b[0], *b[2:]],
    "backwards": lambda b: b[::-1],
    "one comes twice": lambda b: [*b[:4], b[3]],
    "one more": lambda b: [*b, b[4]],
    "one less": lambda b: b[:4],
    "the last twice": lambda b: [b[0], b[0], *b[2:]],
    "none": lambda b: [],
    "one bit of one value": lambda b: [dict(b[0], x=moved(b[0])), *b[1:]],
    "minus zero": lambda b: [dict(b[0], x=numpy.where(b[0]["x"] == 0, numpy.float32(-0.0), b[0]["x"])), *b[1:]],
    "another nan": lambda b: [dict(b[0], y=[0, float("nan")]), *b[1:]],
    "double": lambda b: [dict(i, x=i["x"].astype(numpy.float64)) for i in b],
    "half": lambda b: [dict(i, x=i["x"].astype(numpy.float16)) for i in b],
    "integers": lambda b: [dict(i, x=i["x"].astype(numpy.int32)) for i in b],
    "other shape": lambda b: [dict(i, x=i["x"].reshape(4, 2)) for i in b],
    "transposed": lambda b: [dict(i, x=i["x"].T.copy()) for i in b],
    "rows swapped": lambda b: [dict(i, x=i["x"][::-1].copy()) for i in b],
    "a key less": lambda b: [{k: v for k, v in i.items() if k != "name"} for i in b],
    "a key more": lambda b: [dict(i, more=1) for i in b],
    "keys in another order": lambda b: [dict(reversed(list(i.items()))) for i in b],
    "tuple for list": lambda b: [dict(i, y=tuple(i["y"])) for i in b],
    "float for int": lambda b: [dict(i, y=[float(i["y"][0]), i["y"][1]]) for i in b],
    "bytes for text": lambda b: [dict(i, name=i["name"].encode()) for i in b],
    "list for array": lambda b: [dict(i, x=i["x"].tolist()) for i in b],
    "None": lambda b: [None, *b[1:]],
    "batches of one": lambda b: [dict(i, x=row[None]) for i in b for row in i["x"]],
}


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("level", ["order", "bitwise"])
def test_no_mutant_of_a_loader_passes(name, level):
    assert same.difference(Listed(batches()), Listed(batches()), level) is None
    found = same.difference(Listed(batches()), Listed(LOADERS[name](batches())), level)
    assert found, name


ANY_ORDER = {"two batches swapped", "backwards"}


@pytest.mark.parametrize("name", LOADERS)
def test_of_a_multiset_only_the_order_may_differ(name):
    found = same.difference(Listed(batches()), Listed(LOADERS[name](batches())), "multiset")
    assert (found is None) == (name in ANY_ORDER), (name, found)


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


@pytest.mark.parametrize(
    "a, b",
    [
        (ValueError("row 7 is bad"), None),
        (None, ValueError("row 7 is bad")),
        (ValueError("row 7 is bad"), KeyError("row 7 is bad")),
        (ValueError("row 7 is bad"), ValueError("row 8 is bad")),
        (TwoArguments("x", "y"), RuntimeError("x and y")),
        (StopAsyncIteration("x"), Exception("x")),
    ],
)
@pytest.mark.parametrize("level", same.LEVELS)
def test_other_errors_are_other_data(a, b, level):
    assert same.difference(Listed(batches(), a), Listed(batches(), b), level)
    assert same.difference(Listed(batches(), a), Listed(batches(), a), "order") is None


def test_an_error_that_comes_earlier_is_other_data():
    bad = ValueError("row 7 is bad")
    assert same.difference(Listed(batches(), bad), Listed(batches()[:3], bad), "order")
    assert same.difference(Listed(batches()[:3], bad), Listed(batches(), bad), "order")


def test_bitwise_wants_the_same_random_state_after():
    class Draws(Listed):
        def __iter__(self):
            random.random()
            return iter(self.batches)

    assert same.difference(Listed(batches()), Draws(batches()), "order") is None
    assert "random" in same.difference(Listed(batches()), Draws(batches()), "bitwise")


def test_a_multiset_is_shown_by_a_whole_epoch():
    assert "more than" in same.difference(Listed(batches(9)), Listed(batches(9)), "multiset", most=4)
    with pytest.raises(ValueError, match="none of"):
        same.difference(Listed([]), Listed([]), "roughly")


# ---- mutants of data sets ----


class Counter(Rows):
    seen = 0

    def __getitem__(self, i):
        Counter.seen += 1
        return {**super().__getitem__(i), "seen": Counter.seen}


class OwnCounter(Rows):
    def __init__(self):
        super().__init__()
        self.reads = 0

    def __getitem__(self, i):
        self.reads += 1
        return super().__getitem__(i)


class Log(Rows):
    def __init__(self):
        super().__init__()
        self.log = []

    def __getitem__(self, i):
        self.log.append(i)
        return super().__getitem__(i)


class Previous(Rows):
    def __init__(self):
        super().__init__()
        self.last = 0

    def __getitem__(self, i):
        before, self.last = self.last, i
        return {**super().__getitem__(i), "before": before}


class Clock(Rows):
    def __getitem__(self, i):
        return {**super().__getitem__(i), "at": time.perf_counter_ns()}


class SystemRandom(Rows):
    def __getitem__(self, i):
        return {**super().__getitem__(i), "noise": os.urandom(8)}


class OwnGenerator(Rows):
    def __init__(self):
        super().__init__()
        self.rng = numpy.random.default_rng(1)

    def __getitem__(self, i):
        return {**super().__getitem__(i), "noise": self.rng.random()}


class Consumes(Rows):
    def __init__(self):
        super().__init__()
        self.left = {i: [i] * 9 for i in range(self.n)}

    def __getitem__(self, i):
        return {"x": self.left[i].pop(), "left": len(self.left[i])}


class MutatesInPlace(Rows):
    def __init__(self):
        super().__init__()
        self.rows = [numpy.zeros(3) for _ in range(self.n)]

    def __getitem__(self, i):
        self.rows[i] += 1
        return self.rows[i]


class ProcessId(Rows):
    """The same however often this process reads it."""

    def __getitem__(self, i):
        return {**super().__getitem__(i), "pid": os.getpid()}


class ThreadName(Rows):
    def __getitem__(self, i):
        return {**super().__getitem__(i), "thread": threading.current_thread().name}


class InWorkers(Rows):
    """Gives something else in a worker: order, dtype, length, an error."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def __getitem__(self, i):
        row = super().__getitem__(i)
        here = get_worker_info() is None and threading.current_thread() is threading.main_thread()
        return row if here else self.how(self, row)


def fails(*_):
    raise ValueError("only in a worker")


def dies(*_):
    os.kill(os.getpid(), signal.SIGKILL)


IN_WORKERS = {
    "another row": lambda self, row: Rows.__getitem__(self, (row["id"] + 1) % self.n),
    "another dtype": lambda self, row: dict(row, x=row["x"].astype(numpy.float64)),
    "another shape": lambda self, row: dict(row, x=row["x"].reshape(2, 3)),
    "one bit": lambda self, row: dict(row, x=numpy.nextafter(row["x"], numpy.float32(99))),
    "another text": lambda self, row: dict(row, tag=row["tag"] + " "),
    "a key less": lambda self, row: {"x": row["x"], "id": row["id"]},
    "a key more": lambda self, row: dict(row, worker=1),
    "an error": fails,
    "another type": lambda self, row: dict(row, id=float(row["id"])),
}

FICKLE = [Counter, OwnCounter, Log, Previous, Clock, SystemRandom, OwnGenerator, Consumes, MutatesInPlace]


@pytest.mark.parametrize("kind", FICKLE)
def test_data_sets_with_hidden_state_are_read_by_this_process_only(kind):
    habits = same.habits(kind(), [0, 3, 7, 22])
    assert habits.fickle or habits.changes
    task = data._Task(tare.DataOptimizationConfig(timeout_s=60), {"dataset": kind(), "batch_size": 4}, dict(NOW), None, "order", "auto")
    modes, why = task._modes(run.Costs(), habits)
    assert modes == [] and "only this process" in why[0]


NOW = {"mode": "processes", "workers": 0, "depth": 2}


def differs(dataset, mode="processes", level="order", workers=2, **more):
    settings = run.settings_of(DataLoader(dataset, batch_size=4, **more))
    task = data._Task(tare.DataOptimizationConfig(timeout_s=60), settings, dict(NOW), None, level, "auto")
    task.batch_bytes = 1000
    return task._differs({"mode": mode, "workers": workers, "depth": 2})


@needs_torch
@pytest.mark.parametrize("name", IN_WORKERS)
@pytest.mark.parametrize("mode", ["processes", "threads"])
def test_no_data_set_that_differs_in_a_worker_passes(name, mode):
    assert differs(InWorkers(IN_WORKERS[name]), mode), name
    assert differs(InWorkers(lambda self, row: row), mode) is None


@needs_torch
def test_who_reads_can_be_seen():
    assert "pid" in differs(ProcessId())
    assert differs(ProcessId(), "threads") is None
    assert "thread" in differs(ThreadName(), "threads")
    assert differs(InWorkers(dies))  # a worker that is killed is an error, which the base does not raise


@needs_torch
def test_what_differs_only_at_the_end_is_found():
    class LastRow(Rows):
        def __getitem__(self, i):
            row = super().__getitem__(i)
            return row if i < self.n - 1 or get_worker_info() is None else dict(row, id=-1)

    class SecondHalf(Rows):
        def __getitem__(self, i):
            row = super().__getitem__(i)
            return row if i < self.n // 2 or get_worker_info() is None else dict(row, id=-1 if i < self.n - 100 else row["id"])

    assert "batch" in differs(LastRow(2000))
    assert "batch" in differs(SecondHalf(2000))
    assert differs(Rows(2000)) is None
    assert differs(Rows(2001), drop_last=True) is None


class Draws(Rows):
    def __getitem__(self, i):
        row = super().__getitem__(i)
        noise = torch.rand(2) if HAS_TORCH else 0
        return {**row, "a": random.random(), "b": numpy.random.rand(), "c": noise}


@needs_torch
def test_random_data_sets_are_known_and_made_repeatable():
    habits = same.habits(Draws(), [0, 5, 9])
    assert habits.random and not habits.fickle and not habits.changes
    assert not same.habits(Rows(), [0, 5, 9]).random
    assert differs(Draws(), level="order") is None  # the deterministic part is the same
    assert differs(Draws(), level="bitwise")  # the draws are not
    assert differs(same.Seeded(Draws(), 3), level="bitwise") is None  # unless each sample has its own generator
    assert differs(same.Seeded(Draws(), 3), level="bitwise", workers=3, shuffle=True) is None
    seeded, before = same.Seeded(Draws(), 3), random.getstate()
    assert seeded[4]["a"] == seeded[4]["a"] != seeded[5]["a"] and random.getstate() == before and seeded.n == 23


@needs_torch
@pytest.mark.parametrize("level", ["order", "multiset"])
def test_iterable_data_sets_without_parts_are_refused(level):
    class Whole(IterableDataset):
        def __iter__(self):
            return iter(range(40))

    opt = data.DataLoadingOptimizer(tare.DataOptimizationConfig(timeout_s=60))
    loader = opt.optimize_dataloader(Whole(), batch_size=8, equivalence=level)
    assert opt.result.verdict in ("refused", "different_data") and loader.num_workers == 0 and not opt.result.applied
    assert "worker" in opt.result.reasons[0]
    assert [b.tolist() for b in loader] == [list(range(i, i + 8)) for i in range(0, 40, 8)]


@needs_torch
def test_iterable_data_sets_with_parts_pass_as_a_multiset():
    class Parts(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            return itertools.islice(range(10), 0 if info is None else info.id, None, 1 if info is None else info.num_workers)

    base, split = DataLoader(Parts(), batch_size=None), DataLoader(Parts(), batch_size=None, num_workers=2)
    assert same.difference(base, split, "multiset") is None
    doubled = DataLoader(Parts(), batch_size=None, num_workers=2, worker_init_fn=lambda i: setattr(get_worker_info(), "num_workers", 1))
    assert same.difference(base, doubled, "multiset")


# ---- refusals ----


@needs_torch
def test_refusals_have_their_reason(monkeypatch, tmp_path):
    import multiprocessing

    assert same.processes_refused(Rows(), None, "fork") == []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert "CUDA" in same.processes_refused(Rows(), None, "fork")[0]
    monkeypatch.undo()
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="somebody")
    thread.start()
    assert "somebody" in same.processes_refused(Rows(), None, "fork")[0]
    done.set()
    thread.join()
    handle = Rows()
    handle.file = open(tmp_path / "f", "w+")
    assert "'file' is an open" in same.processes_refused(handle, None, "fork")[0]
    handle.file.close()
    local = Rows()
    local.f = lambda: 0
    assert "cannot be pickled" in same.processes_refused(local, None, "spawn")[0]
    assert "cannot be pickled" in same.processes_refused(local, None, multiprocessing.get_context("forkserver"))[0]

    class OnGpu:
        is_cuda = True

    assert "GPU" in same.processes_refused(Rows(), {"x": [OnGpu()]}, "fork")[0]


def quick(**more):
    return tare.DataOptimizationConfig(**{"budget_s": 1.0, "timeout_s": 60, **more})


class Raises(Rows):
    def __getitem__(self, i):
        raise KeyError("no such picture")


class Hangs(Rows):
    def __getitem__(self, i):
        time.sleep(60)


@needs_torch
def test_bad_data_sets():
    opt = data.DataLoadingOptimizer(quick())
    loader = opt.optimize_dataloader(Raises(), batch_size=4)
    assert opt.result.verdict == "refused" and "no such picture" in opt.result.reasons[0] and isinstance(loader, DataLoader)
    loader = opt.optimize_dataloader(Rows(0))
    assert "empty" in opt.result.reasons[0] and list(loader) == []

    class NoLength:
        def __getitem__(self, i):
            return i

    with pytest.raises(ValueError, match="no length"):
        opt.optimize_dataloader(NoLength())
    opt = data.DataLoadingOptimizer(quick(timeout_s=0.3))
    begun = time.monotonic()
    opt.optimize_dataloader(Hangs(), batch_size=4)
    assert time.monotonic() - begun < 30 and "did not end within 0.3 s" in opt.result.reasons[0]
    with pytest.raises(ValueError, match="equivalence"):
        opt.optimize_dataloader(Rows(), equivalence="tolerance")
    with pytest.raises(ValueError, match="transport"):
        opt.optimize_dataloader(Rows(), transport="pigeon")
    with pytest.raises(TypeError, match="configuration"):
        data.DataLoadingOptimizer({"num_workers": 3})

    class Own(DataLoader):
        pass

    with pytest.raises(TypeError, match="Own is not torch's own"):
        opt.optimize_existing(Own(Rows()))


# ---- whole ----


class Waits(Rows):
    """Each sample waits: the more wait at once, the better, however fast the machine is."""

    def __getitem__(self, i):
        time.sleep(0.01)
        return super().__getitem__(i)


@needs_torch
def test_what_waits_gets_workers_and_the_same_data():
    opt = data.DataLoadingOptimizer(tare.DataOptimizationConfig(budget_s=20, timeout_s=200))
    before = torch.get_rng_state(), random.getstate()
    loader = opt.optimize_dataloader(Waits(400), batch_size=4, shuffle=False)
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()
    tuned = opt.result
    assert loader.tuned is tuned and isinstance(loader, DataLoader) and loader.dataset.n == 400 and len(loader) == 100
    assert tuned.bound > 2 and tuned.plan["workers"] >= 1, str(tuned)
    assert tuned.verdict in ("confirmed", "likely", "over_budget"), str(tuned)
    assert "workers" in opt.identify_bottlenecks() and "fetch" in opt.identify_bottlenecks()["workers"]["why"]
    assert [i for _, b in zip(range(3), loader) for i in b["id"].tolist()] == list(range(12))
    assert '"verdict"' in tuned.to_json()


def test_what_is_loaded_once_is_no_cost_of_a_batch():
    """The first sample waits, as a cold disk makes it wait: the others tell what a sample costs. Where there is but one batch, it counts."""

    class Cold(list):
        def __getitem__(self, index):
            time.sleep(0.2 if index == 0 else 0)
            return index

    def fetched(batches):
        return run.instrumented({"dataset": Cold(range(8))}, iter(batches), None, 0).stages["fetch"][0]

    assert fetched([[0, 1], [2, 3], [4, 5], [6, 7]]) < 0.1 < fetched([[0, 1]])


@needs_torch
def test_a_step_that_is_the_limit_is_left_alone():
    opt = data.DataLoadingOptimizer(tare.DataOptimizationConfig(budget_s=5, timeout_s=100))
    loader = DataLoader(Rows(), batch_size=4)
    assert opt.optimize_existing(loader, step_fn=lambda batch: time.sleep(0.05)) is loader
    assert opt.result.verdict == "no_gain" and "at most 1.0" in opt.result.reasons[0], str(opt.result)


@needs_torch
def test_more_than_the_bound_is_no_gain_and_cpu_is_a_veto():
    task = data._Task(quick(), {"dataset": Rows()}, dict(NOW), None, "order", "auto")
    unit = tare._tune.Unit(1.0, 1.9, None)
    out = tare.Tuned("x", {"workers": 4}, "confirmed", gain=2.0, ci=(1.9, 2.1), candidate=[unit] * 3, cpu=(1.4, 1.3, 1.5), uses_more_cpu=True)
    task.bound = 1.2
    task._too_good(out)
    assert out.verdict == "no_gain" and "gave way" in out.reasons[0]
    out.verdict, task.bound = "confirmed", 4.0
    task._too_good(out)
    assert out.verdict == "confirmed"
    task._veto(out, {"cores": 8})
    assert out.verdict == "confirmed"
    task._veto(out, {"cores": 2})
    assert out.verdict == "refused" and "taken from others" in out.reasons[0]


@needs_torch
def test_as_the_seed_calls_it():
    config = tare.DataOptimizationConfig(optimize_loading=True, memory_efficient=True, enable_caching=True, budget_s=1, timeout_s=60)
    dataset = tare.optimize_dataset(Rows(64), config)
    optimizer = tare.DataLoadingOptimizer(config)
    loader = optimizer.optimize_dataloader(dataset, batch_size=32, shuffle=True)
    assert sorted(i for b in loader for i in b["id"].tolist()) == list(range(64))
    assert all(isinstance(details, dict) for details in optimizer.identify_bottlenecks().values())
    analysis = optimizer._analyze_dataset(dataset)
    assert analysis["complexity"] in ("simple", "complex") and analysis["size"] == 64 and analysis["random"] is False
    assert isinstance(optimizer.optimize_dataloader(dataset, config), DataLoader)
    assert optimizer._analyze_dataset(Rows(0))["complexity"] == "unknown"
    off = tare.DataLoadingOptimizer(tare.DataOptimizationConfig(optimize_loading=False))
    off.optimize_dataloader(Rows())
    assert off.result.reasons == ["optimize_loading is off"]


def test_samples_are_kept_only_where_that_is_right():
    class Costly(Rows):
        def __getitem__(self, i):
            time.sleep(0.002)
            return super().__getitem__(i)

    kept, rows = tare.optimize_dataset(Costly(), quick(budget_s=30)), Rows()
    assert type(kept).__name__ == "Cached" and len(kept) == 23 and kept.n == 23
    kept[3]["x"][:] = -1  # a reader's own copy
    assert same.first_difference(kept[3], rows[3]) is None
    for dataset, why in ((Counter(), "seen"), (Draws(), "random"), (Clock(), "at"), (Rows(0), "none at all"), (Rows(5000), "cache_size"), (Raises(), "no such picture")):
        opt = data.DataLoadingOptimizer(quick())
        assert opt.optimize_dataset(dataset) is dataset
        assert opt.result.verdict == "refused" and why in opt.result.reasons[0], opt.result.reasons
    limited = data.DataLoadingOptimizer(quick(memory_limit=100))
    big = Rows()
    assert limited.optimize_dataset(big) is big and "bytes are more" in limited.result.reasons[0]


class Compose:
    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, value):
        for transform in self.transforms:
            value = transform(value)
        return value


def _costly(x):
    time.sleep(0.002)
    return x * 2


def _noise(x):
    return x + random.random()


def _shift(x):
    return x + 1


class Augmented(list):
    """Costly and always the same, then random, then the same again."""

    form = staticmethod(lambda x, i: (x, i))

    def __init__(self, *transforms):
        super().__init__(range(23))
        self.transform = Compose(*transforms or (_costly, _shift, _noise, _shift))

    def __getitem__(self, i):
        return self.form(self.transform(numpy.full(8, float(super().__getitem__(i)))), i)


def test_samples_are_kept_up_to_the_first_random_function():
    """Two of the four functions; the numbers that are drawn stay those that would have been, in tuples, dicts, lists and bare samples."""
    for form in (lambda x, i: (x, i), lambda x, i: {"x": x, "i": i}, lambda x, i: [i, x], lambda x, i: x):
        dataset = Augmented()
        dataset.form = form
        opt = data.DataLoadingOptimizer(quick(budget_s=30))
        kept = opt.optimize_dataset(dataset)
        assert opt.result.plan == {"cache": "prefix-2"} and opt.result.verdict == "confirmed", str(opt.result)
        for i in (3, 3, 22):
            random.seed(i)
            plain = dataset[i]
            random.seed(i)
            assert same.first_difference(plain, kept[i]) is None
        assert same.first_difference(kept[3], kept[3]) is not None, "what is random stays so"


def test_what_hides_its_transform_is_not_kept():
    for form, why in ((lambda x, i: (x.sum(), i), "does not hold"), (lambda x, i: (x, x), "does not hold"), (lambda x, i: (x, random.random()), "before any")):
        dataset = Augmented()
        dataset.form = form
        opt = data.DataLoadingOptimizer(quick())
        assert opt.optimize_dataset(dataset) is dataset
        assert opt.result.verdict == "refused" and why in opt.result.reasons[0], opt.result.reasons
    hidden = Augmented(_costly, _noise)
    hidden.form = lambda x, i: (x, float(x[0]))  # beside the sample, what the random function gave: kept, it would be of another drawing
    opt = data.DataLoadingOptimizer(quick())
    assert opt.optimize_dataset(hidden) is hidden and opt.result.verdict == "different_data", str(opt.result)


@needs_torch
def test_a_prefix_is_kept_in_a_loader():
    loader = DataLoader(Augmented(), batch_size=4)
    out = data.DataLoadingOptimizer(quick()).apply(loader, {"cache": "prefix-2"})
    found = [same.difference(loader, made) for made in (out, data.DataLoadingOptimizer(quick()).apply(DataLoader(Augmented(_shift), batch_size=4), {"cache": "prefix-0"}))]
    assert found[0] is None and found[1] is not None, found


def test_without_torch_sequences_and_arrays_load():
    code = """
import sys; sys.modules["torch"] = None
import numpy, tare
opt = tare.DataLoadingOptimizer(tare.DataOptimizationConfig(budget_s=1, timeout_s=60))
loader = opt.optimize_dataloader(numpy.arange(10), batch_size=4, shuffle=False)
assert [b.tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] and len(loader) == 3, list(loader)
rows = [(i, {"a": i * 2.0, "t": str(i)}) for i in range(7)]
loader = opt.optimize_dataloader(rows, batch_size=3, shuffle=True)
assert sorted(v for ids, _ in loader for v in ids.tolist()) == list(range(7))
from tare._tune_data_run import Plain
threads = Plain(rows, 3, num_threads=3)
assert [ids.tolist() for ids, _ in threads] == [[0, 1, 2], [3, 4, 5], [6]]
print("good")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert done.stdout == "good\n", done.stderr


@needs_torch
def test_batches_that_cannot_be_handed_over_stay_in_this_process():
    class Learned(Rows):
        def __getitem__(self, i):
            time.sleep(0.002)
            return torch.full((4,), float(i)).requires_grad_()  # a stack of them is no leaf: neither copied nor sent

    loader = tare.DataLoadingOptimizer(quick()).optimize_dataloader(Learned(200), 8, False)
    assert any("cannot be handed over" in why for why in loader.tuned.reasons)
    assert loader.plan["mode"] == "threads" or not loader.plan["workers"]


@needs_torch
def test_an_interrupt_leaves_no_process_and_no_memory(tmp_path):
    script = tmp_path / "tuned.py"
    script.write_text("""
import time, torch, tare
class Waits(torch.utils.data.Dataset):
    def __len__(self): return 4000
    def __getitem__(self, i):
        time.sleep(0.01)
        return torch.zeros(1000)
print("begun", flush=True)
tare.DataLoadingOptimizer().optimize_dataloader(Waits(), batch_size=4)
""")
    before = set(os.listdir("/dev/shm"))
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    child.stdout.readline()
    seen, end = set(), time.monotonic() + 60
    while not seen and time.monotonic() < end:
        seen = set(tare._tune.descendants(child.pid))
    time.sleep(0.3)
    seen |= set(tare._tune.descendants(child.pid))
    child.send_signal(signal.SIGINT)
    error = child.communicate(timeout=60)[1]
    assert child.returncode != 0 and "KeyboardInterrupt" in error, error
    end = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}") for pid in seen) and time.monotonic() < end:
        time.sleep(0.05)
    assert seen and not [pid for pid in seen if os.path.exists(f"/proc/{pid}")]
    assert not {name for name in set(os.listdir("/dev/shm")) - before if name.startswith(tuple(f"torch_{pid}_" for pid in (child.pid, *seen)))}
