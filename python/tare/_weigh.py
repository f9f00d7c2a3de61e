# SPDX-License-Identifier: MIT
"""What recording a call or a line costs on this machine: known loops, timed without and with recording, once per process (and mode).
Of several rounds the quickest counts, because everything else is the machine's noise."""

from __future__ import annotations

import math
import sys
from time import perf_counter_ns
from types import FunctionType
from typing import Any, Callable, NamedTuple, Tuple

from tare import _tare

_TIMES = tuple(range(100))


def _callee():
    pass


def _calls_python(times):
    for _ in times:
        _callee()


def _loops(times):
    for _ in times:
        pass


def _quickest(loops: tuple[Callable, ...], rounds: int) -> dict[str, float]:
    """ns a step of each of the loops, by its name."""
    best = dict.fromkeys(loops, 1 << 60)
    for _ in range(rounds):
        for loop in loops:
            start = perf_counter_ns()
            loop(_TIMES)
            best[loop] = min(best[loop], perf_counter_ns() - start)
    return {loop.__name__: ns / len(_TIMES) for loop, ns in best.items()}


def _median(values: list[float]) -> float:
    values = sorted(values)
    return (values[len(values) // 2] + values[(len(values) - 1) // 2]) / 2


def _quicker(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: min(ns, other[name]) for name, ns in one.items()}


# ---- calls: a call's cost falls in part into the callee's own time and in part into its caller's. It is told in gauges, a known piece
# of recording that is timed again and again while a program is profiled: what the machine does to one it does to the other. Where code
# lies in memory makes a difference, too, so each block of the weighing has copies of its own. ----

_BLOCKS, _CALL_ROUNDS, _CALL_TIMES = 12, 3, tuple(range(400))
_SLOWED = 1.1  # less is the machine's noise
# By trial (bench/py_truth): in programs a call costs that many times what it costs in these loops, and it may be that much more or less,
# as a share of it and in gauges, and in shares of how far these loops differ among themselves.
_IN_PROGRAMS, _ELSEWHERE = 1.1, (0.3, 0.1, 2.0)


_Part = Tuple[float, float, float, float]


class CallCost(NamedTuple):
    """By kind of call, in gauges: in the callee, in its caller, in doubt; then a gauge in ns. `site` is what the call of a Python function
    costs beside it where it stands in Python code (3.12+: such a site tells of itself, an operator, `sorted` or a property does not), `other`
    that of a class or an object, which is no function. And how many times slower code between calls runs while it is recorded."""

    python: _Part
    c: _Part
    resumed: _Part
    method: _Part
    site: _Part
    other: _Part
    slowdown: float


# Kinds as the recorder numbers them. Loops of the last two stand for others, where sites tell of themselves.
_PYTHON, _C, _RESUMED, _METHOD, _SITE, _OTHER = range(6)


def _calls_argument(times, callee):
    for i in times:
        callee(i)


def _argument(i):
    return i


class _Thing:
    def step(self, i):
        self.at = i
        return i


    @property
    def twice(self):
        return self.at * 2

    def __getitem__(self, i):
        return i


class _Made:
    def __init__(self, i):
        self.at = i


def _nothing():
    pass


def _calls_nothing(times, callee):
    for _ in times:
        callee()


def _keyword(a, b=2):
    return a + b


def _calls_keyword(times, callee):
    for i in times:
        callee(i, b=1)


def _asks_twice(times, thing):
    for _ in times:
        thing.twice


def _maps(times, callee):
    for _ in map(callee, times):
        pass


def _indexes(times, thing):
    for i in times:
        thing[i]


def _calls_step(times, thing):
    for i in times:
        thing.step(i)


def _calls_append(times, found):
    for i in times:
        found.append(i)


def _resumed(times):
    for _ in times:
        yield


def _resumes(times, resumed):
    for _ in resumed(times):
        pass


def _computes(times, _):
    total = 0
    for i in times:
        total += i * i % 7


def _idles(times, _):
    for i in times:
        pass


def _copy(function: Any) -> Any:
    return FunctionType(function.__code__.replace(), function.__globals__, function.__name__, function.__defaults__)


def _loops_of_a_block(sites: bool) -> list[tuple]:
    """(loop, its argument, kind of its calls)"""
    names = {"step": _copy(_Thing.step), "twice": property(_copy(_Thing.twice.fget)), "__getitem__": _copy(_Thing.__getitem__), "at": 1}
    thing, at_site = type("Thing", (), names)(), _SITE if sites else _PYTHON
    loops = [
        (_copy(_idles), None, None),
        (_copy(_computes), None, None),
        (_copy(_calls_argument), _copy(_argument), at_site),
        (_copy(_calls_step), thing, at_site),
        (_copy(_calls_nothing), _copy(_nothing), at_site),
        (_copy(_calls_keyword), _copy(_keyword), at_site),
        (_copy(_asks_twice), thing, _PYTHON),
        (_copy(_calls_argument), _tare.nothing, _C),
        (_copy(_resumes), _copy(_resumed), _RESUMED),
        (_copy(_calls_append), [], _METHOD),
    ]
    if sites:
        made = type("Made", (), {"__init__": _copy(_Made.__init__)})
        loops += [(_copy(_maps), _copy(_argument), _PYTHON), (_copy(_indexes), thing, _PYTHON)]
        loops += [(_copy(_calls_argument), called, _OTHER) for called in (made, int, str)]
    return loops


def _bare(loops: list[tuple]) -> list[list[float]]:
    """ns a step of each of the loops, round by round."""
    steps: list[list[float]] = [[] for _ in loops]
    for _ in range(_CALL_ROUNDS):
        for own, (loop, argument, _) in zip(steps, loops):
            start = perf_counter_ns()
            loop(_CALL_TIMES, argument)
            own.append((perf_counter_ns() - start) / len(_CALL_TIMES))
    return steps


def _rounds(depth, loops):
    """Each round runs one level deeper, so that the tree itself keeps the rounds apart."""
    for loop, argument, _ in loops:
        loop(_CALL_TIMES, argument)
    if depth:
        _rounds(depth - 1, loops)


def _recorded(recorder: Any, loops: list[tuple]) -> list[list[float]]:
    """[ns a step in the loop itself, ns a call in the callee] of each of the loops."""
    with recorder:
        _rounds(_CALL_ROUNDS, loops)
    steps: list[list[list[float]]] = [[[], []] for _ in loops]
    _, _, _, (parent, function, calls, own, _) = max(recorder._columns(), key=lambda tree: len(tree[3][0]))
    codes = recorder._codes()
    turn = {id(loop.__code__): i for i, (loop, _, _) in enumerate(loops)}
    for node, up in enumerate(parent):
        for at, which in ((node, 0), (up, 1)):
            i = turn.get(codes[function[at]]) if at >= 0 and function[at] >= 0 else None
            if i is not None:
                steps[i][which].append(own[node] / len(_CALL_TIMES))
    return [[_median(part) if part else 0.0 for part in both] for both in steps]


def _weigh_block(fast: bool, sites: bool) -> tuple[list[list[float]], float]:
    """By loop that calls: [kind, in the callee, in its caller, both in gauges, ns of a gauge, was the callee recorded]; and the slowdown. Of
    the call itself, which costs without us as well, and is slowed as all code is, half is taken to happen in the callee."""
    loops, recorder = _loops_of_a_block(sites), _tare.CallRecorder(fast=fast)
    before, recorded, after = _bare(loops), _recorded(recorder, loops), _bare(loops)
    bare, gauges = [_median(a + b) for a, b in zip(before, after)], recorder._status()["gauge_ns"]
    found, slowdown = [], recorded[1][0] / bare[1]
    for (_, _, kind), base, (own, callee) in zip(loops, bare, recorded):
        gauge = gauges[kind if kind in range(_SITE) else _PYTHON] if kind is not None else 0.0
        if gauge and (callee or kind == _OTHER):
            call = (base - bare[0]) * (slowdown if slowdown > _SLOWED else 1.0)
            in_callee = call / 2 if callee else 0.0
            found.append([kind, (callee - in_callee) / gauge, (own - recorded[0][0] - call + in_callee) / gauge, gauge, callee > 0])
    return found, slowdown


def _measure_calls(fast: bool) -> CallCost:
    """A weighing by which calls cost next to nothing went wrong."""
    tries = [_weigh_calls(fast)]
    while sum(tries[-1].python[:2]) < 0.1 and len(tries) < 4:
        tries.append(_weigh_calls(fast))
    return tries[-1]


def _weigh_calls(fast: bool) -> CallCost:
    sites = sys.version_info >= (3, 12) and not fast
    blocks = [_weigh_block(fast, sites) for _ in range(_BLOCKS)]
    rows, slowdown = [row for block in blocks for row in block[0]], max(_median([block[1] for block in blocks]), 1.0)
    more = _IN_PROGRAMS if slowdown < _SLOWED else 1.0  # where all code is slowed that is in it already

    def kind(number: int, within: float = 0.0) -> _Part:
        """`within`: what of a site's cost is that of the Python function which it calls: it falls to the function and its caller already."""
        own = [row for row in rows if row[0] == number] or [[number, 0.0, 0.0, 0.0, False]]
        if number >= _SITE:
            own = [[number, 0.0, row[1] + row[2] - within * row[4], *row[3:]] for row in own]
        inner, outer = (more * _median([row[part] for row in own]) for part in (1, 2))
        spread = _median([abs(more * (row[1] + row[2]) - inner - outer) for row in own])
        share, gauges, spreads = _ELSEWHERE
        doubt = math.hypot(share * (inner + outer), gauges, spreads * spread) if own[0][3] else 0.0
        return inner, outer, doubt, _median([row[3] for row in own])

    python = kind(_PYTHON)
    function = sum(python[:2]) / more
    return CallCost(python, *(kind(number) for number in (_C, _RESUMED, _METHOD)), kind(_SITE, function), kind(_OTHER, function), slowdown)


def most_slowed(cost: CallCost) -> float:
    """Where the interpreter runs recorded code slower, some of it is slowed more than the known loop: by as much again at most (bench/results.md)."""
    return 2 * cost.slowdown - 1 if cost.slowdown > _SLOWED else 1.0


# ---- lines ----

_LINE_ROUNDS = 30


class LineCost(NamedTuple):
    """Nanoseconds an event, and how many times slower code runs that is not watched at all."""

    line_ns: float
    call_ns: float
    slowdown: float


def _four_lines(times):
    for _ in times:
        a = 1
        b = a
        a = b


def _one_line(times):
    total = 0
    for i in times: total += i * i % 7 + (i ^ 3) * 5 % 11  # noqa: E701 - nothing to tell of


_LINED = (_four_lines, _calls_python, _one_line)


def _measure_lines() -> LineCost:
    recorder = _tare.LineRecorder()
    for watched in (_four_lines, _callee):
        recorder.add(watched.__code__, watched.__code__.co_firstlineno, watched.__code__.co_firstlineno + 4)
    before = _quickest(_LINED, _LINE_ROUNDS)
    recorder.enable()
    try:
        recorded = _quickest(_LINED, _LINE_ROUNDS)
    finally:
        recorder.disable()
    bare = _quicker(before, _quickest(_LINED, _LINE_ROUNDS))
    extra = {name: max(ns - bare[name], 0.0) for name, ns in recorded.items()}
    line = extra["_four_lines"] / 4
    return LineCost(line, max(extra["_calls_python"] - line, 0.0) / 2, max(recorded["_one_line"] / bare["_one_line"], 1.0))


# ---- once ----

_known: dict[tuple, NamedTuple] = {}


def _once(key: tuple, measure: Callable) -> NamedTuple | None:
    """None while it cannot be measured because another tool has the interpreter's hooks."""
    if key not in _known:
        try:
            _known[key] = measure(*key[1:])
        except RuntimeError:
            return None
    return _known[key]


def cost_of_calls(fast: bool) -> CallCost | None:
    """The cost in this mode; None while it cannot be measured because a profiler is active."""
    key = ("calls", fast)
    return None if key not in _known and _tare.functions_running() else _once(key, _measure_calls)


def cost_of_lines() -> LineCost | None:
    """The cost, or None while it cannot be measured because another tracer is active."""
    return _once(("lines",), _measure_lines)
