# SPDX-License-Identifier: MIT
"""What a recorded call costs on this machine: known calls, timed without and with recording. Measured once per process and mode.

A call's cost has two parts: what falls into the callee's own time, and what falls into its caller's. Each round runs one level
deeper, so that the tree itself keeps the rounds apart; the quickest round counts, because everything else is the machine's noise.
"""

from time import perf_counter_ns
from typing import Dict, NamedTuple, Optional, Tuple

from tare import _tare

_TIMES = tuple(range(100))
_ROUNDS = 60


class Cost(NamedTuple):
    """Nanoseconds a call, and how many times slower code between calls runs while it is recorded."""

    python: Tuple[float, float]
    c: Tuple[float, float]
    resumed: Tuple[float, float]
    slowdown: float


def _callee():
    pass


def _calls_python(times):
    for _ in times:
        _callee()


def _calls_c(times, nothing=_tare.nothing):
    for i in times:
        nothing(i)


def _resumed(times):
    for _ in times:
        yield


def _resumes(times):
    for _ in _resumed(times):
        pass


def _loops(times):
    for _ in times:
        pass


def _computes(times):
    total = 0
    for i in times:
        total += i * i % 7


_KNOWN = (_calls_python, _calls_c, _resumes, _loops, _computes)


def _rounds(depth):
    for known in _KNOWN:
        known(_TIMES)
    if depth:
        _rounds(depth - 1)


def _bare():
    """Quickest ns per step of each known function, not recorded."""
    best = dict.fromkeys(_KNOWN, 1 << 60)
    for _ in range(_ROUNDS):
        for known in _KNOWN:
            start = perf_counter_ns()
            known(_TIMES)
            best[known] = min(best[known], perf_counter_ns() - start)
    return {known.__name__: ns / len(_TIMES) for known, ns in best.items()}


def _recorded(fast, exact_c):
    """Quickest self ns by name of function, per step of the loop, or per call of the callee."""
    recorder = _tare.CallRecorder(fast=fast, exact_c=exact_c)
    with recorder:
        _rounds(_ROUNDS)
    best: Dict[str, float] = {}
    names = [label[2] for label, _ in recorder._labels()]
    for _, _, _, (_, functions, calls, own, _) in recorder._columns():
        for function, n, ns in zip(functions, calls, own):
            if function < 0 or not n:
                continue
            step = ns / (n if n > 1 else len(_TIMES))
            best[names[function]] = min(best.get(names[function], step), step)
    return best


def _parts(bare, recorded, caller, callee):
    """Of the call itself, which costs without us as well, half is taken to happen in the callee."""
    call = max(bare[caller] - bare["_loops"], 0.0)
    inner = recorded.get(callee, 0.0) - call / 2
    outer = recorded[caller] - recorded["_loops"] - call / 2
    return max(inner, 0.0), max(outer, 0.0)


def _measure(fast, exact_c):
    bare, recorded = _bare(), _recorded(fast, exact_c)
    again = _bare()
    bare = {name: min(ns, again[name]) for name, ns in bare.items()}
    return Cost(
        _parts(bare, recorded, "_calls_python", "_callee"),
        (0.0, 0.0) if fast else _parts(bare, recorded, "_calls_c", "<built-in method tare._tare.nothing>"),
        _parts(bare, recorded, "_resumes", "_resumed"),
        max(recorded["_computes"] / bare["_computes"], 1.0),
    )


_known_costs: Dict[Tuple[bool, bool], Cost] = {}


def cost(fast: bool, exact_c: bool) -> Optional[Cost]:
    """The cost in this mode; None while it cannot be measured because a profiler is active."""
    if (fast, exact_c) not in _known_costs:
        if _tare.functions_running():
            return None
        try:
            _known_costs[fast, exact_c] = _measure(fast, exact_c)
        except RuntimeError:
            return None
    return _known_costs[fast, exact_c]
