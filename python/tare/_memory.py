# SPDX-License-Identifier: MIT
"""Memory of this process over runs of a model, and what can be said of its GPU, as seen from outside: resident bytes, PyTorch's own
counts, NVML through `tare top`. No clock."""

from __future__ import annotations

import gc
import json
import os
import statistics
import threading
from array import array
from operator import attrgetter
from typing import Any, Callable

from tare import _command, _tare
from tare._metrics import MB
from tare._tare import in_sentence
from tare._unknown import Unknown, known

# The verdicts of src/analyze/watch/growth.h, the one judge of leaks.
LEAK = {"growing": True, "steady": False}

NO_SITES = "an ONNX file runs in a process of its own, in which allocations are not recorded (tare run --memory records any program)"


def mb(size: float | None) -> float | None:
    return None if size is None else round(size / MB, 3)


def resident() -> int:
    """Bytes of this process in memory now."""
    return round(_tare.memory_now()[0])


_NO_PEAK = "the kernel does not let the peak of resident memory be set back here, and these runs stay below an earlier one"


def peak_of(run: Callable[[], Any]) -> Any:
    """The most resident bytes while run() runs, with what it frees before it ends: the kernel keeps that."""
    earlier, was_reset = _tare.memory_peak(True)
    run()
    most, _ = _tare.memory_peak(False)
    return most if most and (was_reset or most > earlier) else Unknown(_NO_PEAK)


def memory_of_runs(run: Callable[[], Any], warmup: int, runs: int, snapshots: bool) -> dict[str, Any]:
    """Resident bytes before, after warm-up, after each run and at most in it, and whether they grow for good."""
    gc.collect()
    before = resident()
    for _ in range(warmup):
        run()
    gc.collect()
    seen, peaks = [resident()], []
    for _ in range(runs):
        peaks.append(peak_of(run))
        seen.append(resident())
    return {
        "before": before,
        "after_warmup": seen[0],
        "peak": max(filter(known, peaks), default=peaks[0]),
        "average": round(statistics.fmean(seen)),
        "after": seen[-1],
        "growth": growth_of_runs(array("d", seen)),
        "snapshots": [
            {"run": number, "rss": rss, "peak": peak} for number, (rss, peak) in enumerate(zip(seen, [seen[0], *peaks]))
        ] if snapshots else [],
    }


def growth_of_runs(seen: array) -> dict[str, Any]:
    """Bytes a run adds, with the interval; `leak` is None where it cannot be told."""
    tested = _tare.growth_of(array("d", range(len(seen))), seen)
    if isinstance(tested, str):
        return {"per_run": Unknown(tested), "leak": None, "verdict": "unknown"}
    verdict, _, rate, low, high, _, _ = tested
    return {"per_run": rate, "lo": low, "hi": high, "leak": LEAK.get(verdict), "verdict": verdict}


def torch_allocations(run: Callable[[], Any], wanted: dict[str, bool], where: str = "cpu") -> dict[str, Any]:
    """Bytes that PyTorch's allocator of the "cpu" or the "device" gave and took back in one run, by operator, from its own profiler."""
    from torch.profiler import ProfilerActivity, profile

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else PyTorch writes lines of its own to standard error
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    size_of = attrgetter(f"self_{where}_memory_usage")
    sizes = [size_of(event) for event in seen.events()]
    taken, given, by_operator = sum(filter(lambda size: size > 0, sizes)), -sum(filter(lambda size: size < 0, sizes)), {}
    for event in seen.key_averages():
        size = size_of(event)
        if size and event.key != "[memory]":  # PyTorch's name for what is freed between operators
            by_operator[event.key] = {"net_bytes": size, "calls": event.count}
    out: dict[str, Any] = {"by_operator": dict(sorted(by_operator.items(), key=lambda item: -abs(item[1]["net_bytes"]))[:50])}
    if wanted["allocations"]:
        out["allocated_bytes"] = taken
    if wanted["deallocations"]:
        out["freed_bytes"] = given
    return out


def gpu_now(run: Callable[[], Any] | None, seconds: float = 1.0) -> dict[str, Any]:
    """What NVML says of each GPU while `run` is repeated: {"devices": {...}} or {"why": ...}. NVML is read by `tare top`."""
    stop = threading.Event()
    said: dict[str, Any] = {}

    def look() -> None:
        try:
            said.update(json.loads(_command.call("top", "--once", "--json", "--interval", f"{round(seconds * 1000)}ms")))
        except RuntimeError as why:
            said["unknown"] = [{"probe": "gpu", "why": str(why)}]
        finally:
            stop.set()

    looker = threading.Thread(target=look)
    looker.start()
    while run and not stop.is_set():
        run()
    looker.join()
    return _gpu_part(said)


def _gpu_part(said: dict[str, Any]) -> dict[str, Any]:
    devices: dict[str, dict[str, Any]] = {}
    for name, metric in said.get("metrics", {}).items():
        if name.startswith("gpu"):
            for label, value in metric["values"].items():
                devices.setdefault(label, {})[name] = {"value": value, "unit": metric["unit"]}
    why = next((missing["why"] for missing in said.get("unknown", []) if missing["probe"] == "gpu"), None)
    return {"devices": devices} if devices else {"devices": {}, "why": why or "no GPU was seen"}


# ---- over iterations over all texts: does it grow for good (src/analyze/watch/growth.h)? ----

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
        "growth": _growth_of_iterations(_tare.growth_of(at, seen)),
        "samples": len(seen),
    }


def _growth_of_iterations(tested: Any) -> dict[str, Any]:
    if isinstance(tested, str):
        return {"verdict": "unknown", "leak": None, "why": tested}
    verdict, confidence, rate, low, high, rise, _ = tested
    return {
        "verdict": verdict,
        "leak": LEAK.get(verdict),
        "confidence": confidence,
        "mb_per_iteration": rate / MB,
        "interval": [low / MB, high / MB],
        "rise_mb": rise / MB,
    }


def not_steady_beside(growth: dict[str, Any], findings: list[dict[str, Any]]) -> None:
    """The runs that were measured before are many more than the calls of the test, and what they have kept is memory beside which little
    shows: where memory grew with them, the test alone does not make it steady."""
    if growth["verdict"] == "steady" and any(found["id"] == "memory.leak" for found in findings):
        growth.update(verdict="inconclusive", leak=None, why="memory grew with the runs measured before, see the bottlenecks")


def leak_finding(growth: dict[str, Any]) -> list[dict[str, Any]]:
    if growth["leak"] is not True:
        return []
    return [{
        "id": "memory.leak",
        "severity": "critical",
        "description": f"memory grew by {in_sentence(growth['rise_mb'], 'MB')} after the first third, "
                       f"{in_sentence(growth['mb_per_iteration'], 'MB')} an iteration, and was not flat at the end",
        "case": None,
        "evidence": growth,
        "action": "run with more iterations: a cache fills, a leak does not end; then look for results or graphs of gradients that are kept",
    }]  # fmt: skip
