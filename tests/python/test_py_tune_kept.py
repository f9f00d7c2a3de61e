# SPDX-License-Identifier: MIT
"""What DataLoadingOptimizer remembers: proved again without a search; nothing of what is damaged, foreign, old or of another program is used."""

import importlib.util
import json
import logging
import os
import stat
import time

import numpy
import pytest

import tare
from tare import _tune_data as data
from tare import _tune_data_kept as kept

HAS_TORCH = importlib.util.find_spec("torch") is not None
PLAN = {"mode": "processes", "workers": 3, "depth": 2}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tare"


def test_a_decision_comes_back_and_is_private(place):
    assert kept.recall("a program") is None
    kept.keep("a program", PLAN, 0.25)
    (path,) = place.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(place.stat().st_mode) == 0o700
    found = kept.recall("a program")
    assert found["plan"] == PLAN and found["sample_s"] == 0.25 and found["day"] == time.strftime("%Y-%m-%d", time.gmtime())
    assert kept.recall("another program") is None
    kept.keep("a program", {}, 0.5)
    assert kept.recall("a program")["plan"] == {}
    kept.keep("b", PLAN, 0.0)  # what took no time is no measurement
    assert kept.recall("b") is None


def test_what_is_damaged_or_foreign_is_ignored_with_a_word(place, caplog):
    kept.keep("a program", PLAN, 0.25)
    (path,) = place.iterdir()
    whole, good = path.read_bytes(), json.loads(path.read_bytes())
    bad = [whole[:at] for at in range(0, len(whole) - 1, 7)] + [b"\xff" * 30, b"[" * 60000, b"null", b"[]", b"NaN"]
    changes = [
        {"schema": "tare.run/1"}, {"mark": "b"}, {"at": int(time.time()) - 31 * 86400}, {"at": int(time.time()) + 3600}, {"at": "today"}, {"at": True},
        {"plan": None}, {"plan": []}, {"plan": {"mode": "ring"}}, {"plan": dict(PLAN, mode="fibres")}, {"plan": dict(PLAN, workers=-1)},
        {"plan": dict(PLAN, workers=10**9)}, {"plan": dict(PLAN, depth=2.5)}, {"plan": dict(PLAN, depth=True)}, {"plan": dict(PLAN, more=1)}, {"plan": dict(PLAN, mode=[])},
        {"sample_s": 0.0}, {"sample_s": None}, {"sample_s": float("nan")}, {"sample_s": float("inf")}, {"sample_s": 3},
    ]  # fmt: skip
    for text in bad + [json.dumps({**good, **change}).encode() for change in changes]:
        path.write_bytes(text)
        caplog.clear()
        assert kept.recall("a program") is None, text
        assert "is ignored" in caplog.text and str(path) in caplog.text, text
    path.write_bytes(whole)
    assert kept.recall("a program")["plan"] == PLAN


def test_old_files_go_and_no_place_is_no_failure(place, monkeypatch):
    kept.keep("old", PLAN, 1.0)
    (old,) = place.iterdir()
    os.utime(old, (0, 0))
    (place / "roof-h1-2.txt").write_text("of somebody else")
    os.utime(place / "roof-h1-2.txt", (0, 0))
    kept.keep("new", PLAN, 1.0)
    assert not old.exists() and (place / "roof-h1-2.txt").exists() and kept.recall("new")
    for cache in ("/proc/none", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
        monkeypatch.setenv("HOME", "/proc/none")
        kept.keep("new", PLAN, 1.0)
        assert kept.recall("new") is None
    monkeypatch.delenv("HOME")
    assert kept.folder() is None
    kept.keep("new", PLAN, 1.0)


TRIAL = {"plan": dict(PLAN, cache="memory"), "times": [1, 2], "wall_s": 0.5, "cpu_s": 0.25, "memory": None, "failure": None}


def test_a_search_comes_back_and_what_is_damaged_does_not(place, caplog):
    first = kept.Search("a program", str(place), True, True)
    assert not first.blocks and not first.is_over(1)
    first.blocks.append([(PLAN, 0.5), (dict(PLAN, workers=0), ("over", 0.25)), (TRIAL["plan"], None)])
    first.save([TRIAL], False, 20)
    second = kept.Search("a program", str(place), True, True)
    assert second.blocks == first.blocks and second.trials == [TRIAL] and not second.is_over(1) and second.day
    second.save([TRIAL], True, 20)
    over = kept.Search("a program", str(place), True, True)
    assert over.is_over(20) and not over.is_over(21) and not kept.Search("a program", str(place), False, True).blocks
    (path,) = place.iterdir()
    whole, good = path.read_bytes(), json.loads(path.read_bytes())
    bad = [whole[:at] for at in range(0, len(whole) - 1, 11)] + [b"[" * 60000, b"null"]
    changes = [
        {"schema": kept.SCHEMA}, {"mark": "b"}, {"at": 1}, {"done": 1}, {"budget_s": 20}, {"blocks": {}}, {"blocks": [3]}, {"blocks": [[[PLAN]]]}, {"blocks": [[[PLAN, 0.0]]]},
        {"blocks": [[[PLAN, ["under", 1.0]]]]}, {"blocks": [[[PLAN, "1"]]]}, {"blocks": [[[dict(PLAN, more=1), 1.0]]]}, {"blocks": [[[dict(PLAN, workers=True), 1.0]]]},
        {"blocks": [[[{"mode": "ring"}, 1.0]]]}, {"trials": None}, {"trials": [{}]}, {"trials": [dict(TRIAL, times=[-1])]}, {"trials": [dict(TRIAL, wall_s=-1.0)]},
        {"trials": [dict(TRIAL, memory="x")]}, {"trials": [dict(TRIAL, failure=7)]},
    ]  # fmt: skip
    for text in bad + [json.dumps({**good, **change}).encode() for change in changes]:
        path.write_bytes(text)
        caplog.clear()
        assert not kept.Search("a program", str(place), True, True).blocks, text
        assert "is ignored" in caplog.text, text
    first.forget()
    assert not list(place.iterdir())
    first.forget()
    off = kept.Search("a program", str(place), True, False)
    off.save([TRIAL], True, 1)
    assert not list(place.iterdir())


@pytest.mark.skipif(not HAS_TORCH, reason="no torch (make deps)")
def test_a_search_that_ended_early_goes_on(place, monkeypatch):
    """It is ended by a data set that gives up; the next one is told what was measured, and measures only the rest."""
    measured, cost = [], data._Task._cost

    def task(left):
        def stops(self, plan):
            measured.append(plan)
            if len(measured) > left:
                raise KeyboardInterrupt
            return cost(self, plan)

        monkeypatch.setattr(data._Task, "_cost", stops)
        monkeypatch.setattr(data._Task, "_proved", lambda self, plan, pipe: self.refused("not looked at"))
        settings, now = data._as_it_is(torch.utils.data.DataLoader(Waits(400), batch_size=4))
        return data._Task(tare.DataOptimizationConfig(budget_s=600, timeout_s=300), settings, now, None, "order", "queue")

    import torch

    first = task(8)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    (path,) = place.iterdir()
    told = [tuple(plan.items()) for block in json.loads(path.read_bytes())["blocks"] for plan, _ in block]
    assert 0 < len(told) < 9 and all(trial.times for trial in first.trials[:1])
    del measured[:]
    second = task(1000)
    found = second.run()
    assert second.recalled == len(told) and second.trials[0].plan == second.now and len(measured) == second.runs
    assert any("from an earlier search" in why for why in found.reasons), found.reasons


class Rows:
    def __init__(self, n=64, transform=None):
        self.n, self.transform = n, transform

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return numpy.zeros(3) if self.transform is None else self.transform(numpy.zeros(3))


def test_the_mark_is_of_code_form_and_settings():
    def mark(dataset=None, batch=numpy.zeros((4, 3)), step=None, **settings):
        return kept.mark({"dataset": dataset or Rows(), "batch_size": 4, **settings}, batch, step, "order")

    class Rows2(Rows):
        def __getitem__(self, i):
            return numpy.zeros(3) + 0

    Rows2.__module__, Rows2.__qualname__ = Rows.__module__, Rows.__qualname__
    first = mark()
    assert first == mark() and "h1-" in first and "float64 (4, 3)" in first
    others = [
        mark(Rows(65)), mark(Rows2()), mark(Rows(transform=lambda x: x + 1)), mark(Rows(transform=lambda x: x + 2)), mark(batch=numpy.zeros((4, 4))),
        mark(batch=numpy.zeros((4, 3), numpy.float32)), mark(step=lambda batch: batch), mark(step=lambda batch: None), mark(batch_size=8), mark(collate_fn=lambda s: s),
        mark(batch=[1, "a"]), mark(batch={"x": 1}), mark(drop_last=True),
    ]  # fmt: skip
    assert len({first, *others}) == 1 + len(others)
    assert mark(Rows(transform=lambda x: x + 1)) == others[2]


class Waits(Rows):
    def __getitem__(self, i):
        time.sleep(0.01)
        return super().__getitem__(i)


@pytest.mark.skipif(not HAS_TORCH, reason="no torch (make deps)")
def test_the_second_time_there_is_no_search(place, monkeypatch, caplog):
    searched = []
    search = data._Task._search
    monkeypatch.setattr(data._Task, "_search", lambda self, *a: searched.append(1) or search(self, *a))
    for attempt in range(3):  # a busy machine may leave it open
        opt = data.DataLoadingOptimizer(tare.DataOptimizationConfig(budget_s=30, timeout_s=300))
        first = opt.optimize_dataloader(Waits(400), batch_size=4, shuffle=False).tuned
        if first.verdict == "confirmed":
            break
    assert first.verdict == "confirmed" and searched, str(first)
    del searched[:]
    again = opt.optimize_dataloader(Waits(400), batch_size=4, shuffle=False).tuned
    if not searched:  # else it was not confirmed at once, and looked for again
        assert again.plan == first.plan and again.verdict == "confirmed" and "without a search" in " ".join(again.reasons)
        assert len(again.baseline) >= 8 and again.ci[0] > 1.1  # a proof as any other
    monkeypatch.setattr(kept, "recall", lambda mark: {"plan": {}, "sample_s": 0.0101, "day": "2026-01-01"})
    del searched[:]
    left = opt.optimize_dataloader(Waits(400), batch_size=4, shuffle=False).tuned
    assert left.verdict == "no_gain" and "2026-01-01" in left.reasons[0] and not searched
    off = data.DataLoadingOptimizer(tare.DataOptimizationConfig(budget_s=1, timeout_s=60, remember=False))
    off.optimize_dataloader(Waits(40), batch_size=4)
    assert searched


@pytest.mark.skipif(not HAS_TORCH, reason="no torch (make deps)")
def test_what_does_not_hold_any_more_is_searched_again(place, monkeypatch):
    searched = []
    monkeypatch.setattr(data._Task, "_search", lambda self, *a: searched.append(1))
    opt = data.DataLoadingOptimizer(tare.DataOptimizationConfig(budget_s=1, timeout_s=60))
    for before in ({"plan": {}, "sample_s": 1e-9}, {"plan": dict(PLAN, mode="carrier")}, {"plan": dict(PLAN, depth=64, workers=1024)}):
        monkeypatch.setattr(kept, "recall", lambda mark: {"sample_s": 0.01, "day": "2026-01-01", **before})
        monkeypatch.setattr(data._Task, "_memory", lambda self: 1e6)
        opt.optimize_dataloader(Waits(40), batch_size=4)
        assert opt.result.verdict == "no_gain" and "nothing that was tried" in opt.result.reasons[0]
    assert len(searched) == 3


def test_logging_says_what_is_ignored(place, caplog):
    kept.keep("x", PLAN, 1.0)
    (path,) = place.iterdir()
    path.write_text("{}")
    with caplog.at_level(logging.WARNING, "tare"):
        assert kept.recall("x") is None
    assert "no tare.loader-decision/1" in caplog.text
