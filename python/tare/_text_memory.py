# SPDX-License-Identifier: MIT
"""Memory of this process over iterations over all texts, and whether it grows for good (src/analyze/watch/growth.h). No clock."""

from __future__ import annotations

import gc
from array import array
from typing import Any, Callable

from tare import _tare
from tare._metrics import MB
from tare._text_choice import mb

# Growth below the greater of both is not called a leak, as in `tare bench`: a cache that fills up looks the same.
LEAST_BYTES, LEAST_SHARE = MB, 0.005


def resident() -> float:
    """Bytes of this process in memory."""
    return float(_tare.memory_now()[0])


def resident_over(call: Callable[[list], Any], batches: list[list[Any]], iterations: int) -> array:
    """Bytes of this process after every call. Room for all of them is there before the first, so that keeping them adds nothing."""
    seen = array("d", bytes(8 * len(batches) * iterations))
    gc.collect()
    for number in range(len(seen)):
        call(batches[number % len(batches)])
        seen[number] = resident()
    return seen


def memory_course(seen: array, iterations: int) -> dict[str, Any]:
    """What memory did, iteration by iteration, and the test of its slope over all calls."""
    calls = len(seen) // iterations
    at = array("d", ((number + 1) / calls for number in range(len(seen))))
    most = [max(seen[number * calls : (number + 1) * calls]) for number in range(iterations)]
    return {
        "iterations": [{"iteration": number + 1, "memory_mb": mb(size), "delta_mb": mb(size - seen[0])} for number, size in enumerate(most)],
        "peak_mb": mb(max(seen)),
        "growth": _growth(_tare.growth_of(at, seen), iterations, max(LEAST_BYTES, LEAST_SHARE * seen[0])),
        "samples": len(seen),
    }


def _growth(tested: Any, iterations: int, matters: float) -> dict[str, Any]:
    """The slope test, per iteration. Growth is no leak as long as it does not matter: neither a rise that the first iterations alone
    made, which a slope over all of them does not show, nor a slope that would come to little by the end."""
    if isinstance(tested, str):
        return {"verdict": "unknown", "leak": None, "why": tested}
    verdict, confidence, slope, low, high, rise, _ = tested
    if verdict == "growing" and min(rise, slope * iterations) < matters:
        verdict = "steady" if high * iterations < matters else "inconclusive"
    return {
        "verdict": verdict,
        "leak": {"growing": True, "steady": False}.get(verdict),
        "confidence": confidence,
        "mb_per_iteration": slope / MB,
        "interval": [low / MB, high / MB],
        "rise_mb": rise / MB,
        "matters_mb": matters / MB,
    }


def leak_finding(growth: dict[str, Any]) -> list[dict[str, Any]]:
    if growth["leak"] is not True:
        return []
    return [{
        "id": "memory.leak",
        "severity": "critical",
        "description": f"memory grows by {growth['mb_per_iteration']:.3g} MB an iteration and does not stop",
        "case": None,
        "evidence": growth,
        "action": "look for results, caches or graphs of gradients that are kept from call to call; run with more iterations",
    }]  # fmt: skip
