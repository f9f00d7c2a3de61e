# SPDX-License-Identifier: MIT
"""The search and the judge of pairs from Python: known answers, and what bad input says."""

import math
import random

import pytest

from tare import _tare

KNOBS = [("batch", 8, True, True), ("threads", 4, True, False), ("mode", 2, False, False)]


def cost(at):
    batch, threads, mode = 2 ** at[0], 2 ** at[1], at[2]
    return (1.5 + 0.15 * threads + 0.4 * batch / (threads / (1 + 0.05 * (threads - 1)))) / batch * (1.1 if mode else 1)


def run(search, answer=cost):
    rng, asked = random.Random(1), 0
    while block := search.ask():
        assert block[0] == (0, 0, 0)
        search.tell(block, [answer(at) if answer(at) is None or isinstance(answer(at), tuple) else answer(at) * math.exp(rng.gauss(0, 0.01)) for at in block])
        asked += len(block)
    return asked


def test_finds_the_best_with_a_quarter_of_the_grid():
    search = _tare.Search(KNOBS, (0, 0, 0), 16, 3)
    assert run(search) <= 16
    tried, best = search.tried()
    at, outcome, n, ratio = tried[best]
    assert outcome == "measured" and n >= 1
    assert cost(at) <= 1.05 * min(cost((b, t, 0)) for b in range(8) for t in range(4))
    assert ratio[1] <= cost(at) / cost((0, 0, 0)) * 1.03 and ratio[2] >= cost(at) / cost((0, 0, 0)) * 0.97


def test_limits_failures_and_what_is_not_allowed():
    search = _tare.Search(KNOBS, (0, 0, 0), 20, 3, allowed=lambda at: at[2] == 0)
    run(search, lambda at: ("over", cost(at)) if at[0] > 4 else None if at[1] == 3 else cost(at))
    tried, best = search.tried()
    assert all(at[2] == 0 for at, *_ in tried)
    assert tried[best][0][0] <= 4 and tried[best][0][1] < 3
    assert {outcome for _, outcome, *_ in tried} >= {"measured"}


def test_a_model_leads_the_search():
    search = _tare.Search(KNOBS, (0, 0, 0), 8, 3, predict=lambda at: math.log(cost(at)))
    first = search.ask()
    best = min(((b, t, m) for b in range(8) for t in range(4) for m in range(2)), key=cost)
    assert best in first


def test_what_a_callable_raises_comes_out():
    with pytest.raises(ZeroDivisionError):
        _tare.Search(KNOBS, (0, 0, 0), 8, 3, predict=lambda at: 1 / 0).ask()
    with pytest.raises(ZeroDivisionError):
        _tare.Search(KNOBS, (0, 0, 0), 8, 3, allowed=lambda at: 1 / 0)


@pytest.mark.parametrize(
    "knobs, base, most, text",
    [
        ([], (), 8, "0 knobs"),
        (KNOBS, (0, 0), 8, "has not 3 values"),
        (KNOBS, (8, 0, 0), 8, "batch has no value 8"),
        (KNOBS, (0, 0, 0), 1, "1 measurements"),
        ([("a", 0, True, False)], (0,), 8, "a has no value 0"),
    ],
)
def test_bad_searches_say_why(knobs, base, most, text):
    with pytest.raises(ValueError, match=text):
        _tare.Search(knobs, base, most)


def test_confirm_known_answers():
    rng = random.Random(2)
    faster = [math.exp(-0.3 + rng.gauss(0, 0.03)) for _ in range(8)]
    said = _tare.confirm(faster, [1.4 * math.exp(rng.gauss(0, 0.01)) for _ in faster])
    assert said["verdict"] == "confirmed" and said["uses_more_cpu"] and said["memory"] is None and said["next"] == 0
    assert said["gain"][1] < math.exp(0.3) < said["gain"][2]
    assert _tare.confirm([1.0, 1.01])["verdict"] == "going on"
    assert _tare.confirm([1.0 + 0.001 * i for i in range(8)])["verdict"] == "no gain"
    assert _tare.confirm([1.3 + 0.001 * i for i in range(8)])["verdict"] == "worse"


@pytest.mark.parametrize("args", [([1.0, 0.0],), ([1.0, float("nan")],), ([1.0], [1.0, 2.0])])
def test_bad_pairs_say_why(args):
    with pytest.raises(ValueError, match="ratio"):
        _tare.confirm(*args)
