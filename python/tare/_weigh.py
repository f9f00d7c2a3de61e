# SPDX-License-Identifier: MIT
"""What recording a call or a line costs on this machine: known loops, timed without and with recording, once per process (and mode).
Of several rounds the quickest counts, because everything else is the machine's noise."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Callable, NamedTuple, Tuple

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


def _quicker(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: min(ns, other[name]) for name, ns in one.items()}


# ---- calls: a call's cost falls in part into the callee's own time and in part into its caller's. Each round runs one level deeper, so
# that the tree itself keeps the rounds apart. ----

_CALL_ROUNDS = 60


class CallCost(NamedTuple):
    """Nanoseconds a call (in the callee, in its caller), and how many times slower code between calls runs while it is recorded."""

    python: Tuple[float, float]
    c: Tuple[float, float]
    resumed: Tuple[float, float]
    slowdown: float


def _calls_c(times, nothing=_tare.nothing):
    for i in times:
        nothing(i)


def _resumed(times):
    for _ in times:
        yield


def _resumes(times):
    for _ in _resumed(times):
        pass


def _computes(times):
    total = 0
    for i in times:
        total += i * i % 7


_CALLING = (_calls_python, _calls_c, _resumes, _loops, _computes)


def _rounds(depth):
    for loop in _CALLING:
        loop(_TIMES)
    if depth:
        _rounds(depth - 1)


def _recorded(fast: bool, exact_c: bool) -> dict[str, float]:
    """Quickest self ns by name of function, per step of the loop, or per call of the callee."""
    recorder = _tare.CallRecorder(fast=fast, exact_c=exact_c)
    with recorder:
        _rounds(_CALL_ROUNDS)
    best: dict[str, float] = {}
    names = [label[2] for label, _ in recorder._labels()]
    for _, _, _, (_, functions, calls, own, _) in recorder._columns():
        for function, n, ns in zip(functions, calls, own):
            if function < 0 or not n:
                continue
            step = ns / (n if n > 1 else len(_TIMES))
            best[names[function]] = min(best.get(names[function], step), step)
    return best


def _parts(bare: dict[str, float], recorded: dict[str, float], caller: str, callee: str) -> tuple[float, float]:
    """Of the call itself, which costs without us as well, half is taken to happen in the callee."""
    call = max(bare[caller] - bare["_loops"], 0.0)
    inner = recorded.get(callee, 0.0) - call / 2
    outer = recorded[caller] - recorded["_loops"] - call / 2
    return max(inner, 0.0), max(outer, 0.0)


def _measure_calls(fast: bool, exact_c: bool) -> CallCost:
    before, recorded = _quickest(_CALLING, _CALL_ROUNDS), _recorded(fast, exact_c)
    bare = _quicker(before, _quickest(_CALLING, _CALL_ROUNDS))
    return CallCost(
        _parts(bare, recorded, "_calls_python", "_callee"),
        (0.0, 0.0) if fast else _parts(bare, recorded, "_calls_c", "<built-in method tare._tare.nothing>"),
        _parts(bare, recorded, "_resumes", "_resumed"),
        max(recorded["_computes"] / bare["_computes"], 1.0),
    )


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


def cost_of_calls(fast: bool, exact_c: bool) -> CallCost | None:
    """The cost in this mode; None while it cannot be measured because a profiler is active."""
    key = ("calls", fast, exact_c)
    return None if key not in _known and _tare.functions_running() else _once(key, _measure_calls)


def cost_of_lines() -> LineCost | None:
    """The cost, or None while it cannot be measured because another tracer is active."""
    return _once(("lines",), _measure_lines)
