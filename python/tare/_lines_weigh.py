# SPDX-License-Identifier: MIT
"""What a recorded line costs on this machine: known loops, timed without and with recording. Measured once per process; the quickest round
of each counts, because everything else is the machine's noise."""

from time import perf_counter_ns
from typing import NamedTuple, Optional

from tare._tare import LineRecorder

_TIMES = tuple(range(100))
_ROUNDS = 30


class Cost(NamedTuple):
    """Nanoseconds an event, and how many times slower code runs that is not watched at all."""

    line_ns: float
    call_ns: float
    slowdown: float


def _four_lines(times):
    for _ in times:
        a = 1
        b = a
        a = b


def _callee():
    pass


def _calls(times):
    for _ in times:
        _callee()


def _computes(times):
    total = 0
    for i in times: total += i * i % 7 + (i ^ 3) * 5 % 11  # noqa: E701 - one line: nothing to tell of


_KNOWN = (_four_lines, _calls, _computes)


def _best() -> dict:
    """Quickest ns a step of each known loop."""
    best = dict.fromkeys(_KNOWN, 1 << 60)
    for _ in range(_ROUNDS):
        for known in _KNOWN:
            start = perf_counter_ns()
            known(_TIMES)
            best[known] = min(best[known], perf_counter_ns() - start)
    return {known: ns / len(_TIMES) for known, ns in best.items()}


def _measure() -> Cost:
    recorder = LineRecorder()
    for watched in (_four_lines, _callee):
        recorder.add(watched.__code__, watched.__code__.co_firstlineno, watched.__code__.co_firstlineno + 4)
    bare = _best()
    recorder.enable()
    try:
        recorded = _best()
    finally:
        recorder.disable()
    again = _best()
    extra = {known: max(recorded[known] - min(bare[known], again[known]), 0.0) for known in _KNOWN}
    line = extra[_four_lines] / 4
    slowdown = recorded[_computes] / min(bare[_computes], again[_computes])
    return Cost(line, max(extra[_calls] - line, 0.0) / 2, max(slowdown, 1.0))


_known: Optional[Cost] = None


def cost() -> Optional[Cost]:
    """The cost, or None while it cannot be measured because another tracer is active."""
    global _known
    if _known is None:
        try:
            _known = _measure()
        except RuntimeError:
            return None
    return _known
