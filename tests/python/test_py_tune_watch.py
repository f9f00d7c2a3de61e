# SPDX-License-Identifier: MIT
"""A loader that was tuned, watched in use: the same batches in the same order while both take turns, a gain that lasts, one that does not, and the
way back. What waits is faster with workers however fast the machine is; what waits in workers only is slower."""

import importlib.util
import logging
import random
import time

import numpy
import pytest

import tare
from tare import _tune_data as data
from tare import _tune_data_run as run
from tare import _tune_data_same as same
from tare import _tune_data_watch as watch

if importlib.util.find_spec("torch") is None:
    pytest.skip("no torch (make deps)", allow_module_level=True)
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

ALONE = {"mode": "processes", "workers": 0, "depth": 2}
PLANS = [{"mode": mode, "workers": 2, "depth": 2} for mode in ("processes", "threads", "ring")]


class Rows(Dataset):
    def __init__(self, n=600, here=0.0, in_worker=0.0):
        self.n, self.here, self.in_worker = n, here, in_worker

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(self.here if get_worker_info() is None else self.in_worker)
        return numpy.full(3, i)


def watched(rows, plan, *, shuffle=False, now=ALONE, **given):
    """A loader as DataLoadingOptimizer gives it, with what it was."""
    base = DataLoader(rows, batch_size=4, shuffle=shuffle, **given)
    settings = run.settings_of(base)
    task = data._Task(tare.DataOptimizationConfig(), settings, dict(now), None, "order", "auto")
    tuned = tare.Tuned("data loading", dict(plan), "confirmed", applied=True)
    loader = data.DataLoadingOptimizer()._applied(task, tuned, base)
    loader.tuned, loader.plan = tuned, plan
    return loader, base


def quick(monkeypatch, unit_s=0.002):
    monkeypatch.setattr(watch, "_UNIT_S", unit_s)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan["mode"])
@pytest.mark.parametrize("now", [ALONE, {"mode": "processes", "workers": 1, "depth": 2}], ids=["alone", "one worker"])
def test_in_turns_the_data_is_the_same(plan, now, monkeypatch):
    quick(monkeypatch)
    generator = torch.Generator().manual_seed(5) if now["workers"] else None
    loader, base = watched(Rows(200), plan, shuffle=True, now=now, generator=generator)
    assert loader.watch is not None and isinstance(loader, DataLoader) and len(loader) == 50 and loader.dataset.n == 200
    epochs = []
    for each in (base, loader):
        for start in (torch, *([generator] if generator else [])):
            start.manual_seed(3)
        epochs.append([[batch[:, 0].tolist() for batch in each] for _ in range(3)] + [torch.get_rng_state().tolist()])
    assert epochs[0] == epochs[1] and epochs[0][0] != epochs[0][1]
    assert loader.watch is None or all(loader.watch.units.values()), "both had their turn"
    loader.end_workers()
    assert not list(tare._tune.descendants())


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan["mode"])
def test_a_gain_that_lasts_is_kept(plan, caplog):
    loader, _ = watched(Rows(1200, here=0.005, in_worker=0.005 * (plan["mode"] == "threads")), dict(plan, workers=4))
    with caplog.at_level(logging.INFO, "tare"):
        for _ in range(4):
            ids = [i for batch in loader for i in batch[:, 0].tolist()]
            assert ids == list(range(1200))
            if loader.watch is None:
                break
    tuned = loader.tuned
    assert tuned.applied and tuned.verdict == "confirmed" and tuned.in_use[1] > 1, tuned
    assert "it lasts" in tuned.reasons[-1] and "it lasts" in caplog.text and '"in_use"' in tuned.to_json()
    assert tuned.undo() and loader.plan == ALONE and not tuned.applied
    assert next(iter(loader))[:, 0].tolist() == [0, 1, 2, 3]
    assert not list(tare._tune.descendants())


@pytest.mark.parametrize("plan", PLANS[::2], ids=lambda plan: plan["mode"])
def test_a_gain_that_does_not_last_is_taken_back(plan, caplog):
    loader, base = watched(Rows(2000, in_worker=0.02), plan)
    with caplog.at_level(logging.WARNING, "tare"):
        for _ in range(3):
            assert [i for batch in loader for i in batch[:, 0].tolist()] == list(range(2000))
            if loader.watch is None:
                break
    tuned = loader.tuned
    assert not tuned.applied and tuned.verdict == "no_gain" and tuned.in_use[2] < 1, tuned
    assert "does not last" in tuned.reasons[-1] and "does not last" in caplog.text
    assert loader.plan == ALONE and type(iter(loader)) is type(iter(base))
    assert not list(tare._tune.descendants())  # its workers have ended
    assert [i for batch in loader for i in batch[:, 0].tolist()] == list(range(2000))


def test_an_epoch_left_early_and_errors():
    loader, base = watched(Rows(600, here=0.001), PLANS[0])
    for seen, _ in enumerate(loader):
        if seen == 17:
            break
    assert [i for batch in loader for i in batch[:, 0].tolist()] == list(range(600))
    loader.end_workers()

    class Bad(Rows):
        def __getitem__(self, i):
            if i == 301:
                raise KeyError("row 301")
            return super().__getitem__(i)

    loader, base = watched(Bad(600), PLANS[0])
    assert same.difference(base, loader, "order", most=200) is None
    loader.end_workers()


def test_what_is_not_watched_says_so():
    loader, _ = watched(Rows(20), PLANS[0])
    assert loader.watch is None and "5 batches is too short" in loader.tuned.reasons[-1]
    with pytest.raises(TypeError, match="tuned already"):
        data.DataLoadingOptimizer().optimize_existing(loader)
    off = data.DataLoadingOptimizer(tare.DataOptimizationConfig(monitor_performance=False))
    task = data._Task(off.config, run.settings_of(DataLoader(Rows())), dict(ALONE), None, "order", "auto")
    loader = off._applied(task, tare.Tuned("data loading", PLANS[0], "confirmed"), None)
    assert loader.watch is None


def test_without_torch_loaders_are_watched_too(monkeypatch):
    monkeypatch.setattr(run, "has_torch", lambda: False)
    quick(monkeypatch)

    class Plain(list):
        def __getitem__(self, i):
            time.sleep(0.005)
            return super().__getitem__(i)

    rows = Plain(range(300))
    task = data._Task(tare.DataOptimizationConfig(), {"dataset": rows, "batch_size": 2, "shuffle": True}, dict(ALONE), None, "order", "auto")
    tuned = tare.Tuned("data loading", {"mode": "threads", "workers": 4, "depth": 2}, "confirmed", applied=True)
    base = run.make(task.settings, ALONE)
    loader = data.DataLoadingOptimizer()._applied(task, tuned, base)
    random.seed(1)
    order = [i for batch in base for i in batch.tolist()]
    for _ in range(8):
        random.seed(1)
        assert [i for batch in loader for i in batch.tolist()] == order
        if loader.watch is None:
            break
    assert tuned.in_use[1] > 1 and loader.watch is None
