# SPDX-License-Identifier: MIT
"""Memory of a model over runs, and what can be said of its GPU, as seen from outside: resident bytes, PyTorch's own counts, NVML
through `tare top`."""

from __future__ import annotations

import gc
import json
import os
import statistics
import threading
from typing import Any, Callable

from tare import _command, _tare
from tare._unknown import Unknown

NO_SITES = "allocation sites come with the memory agent, which this version does not have"


def resident() -> int:
    """Bytes of this process in memory now."""
    return round(_tare.memory_now()[0])


def memory_of_runs(run: Callable[[], Any], warmup: int, runs: int, snapshots: bool) -> dict[str, Any]:
    """Resident bytes before, after warm-up and after each run; growth per run by the slope over the second half of the runs."""
    gc.collect()
    before = resident()
    for _ in range(warmup):
        run()
    gc.collect()
    seen = [resident()]
    for _ in range(runs):
        run()
        seen.append(resident())
    return {
        "before": before,
        "after_warmup": seen[0],
        "peak": max(seen),
        "average": round(statistics.fmean(seen)),
        "after": seen[-1],
        "growth": _growth(seen[len(seen) // 2 :]),
        "snapshots": [{"run": number, "rss": rss} for number, rss in enumerate(seen)] if snapshots else [],
    }


def _growth(seen: list[int]) -> dict[str, Any]:
    """Bytes a run adds: the median of all slopes between two snapshots, with the quartiles beside it. A leak when even the lower
    quartile is above 0."""
    slopes = sorted((b - a) / (j - i) for i, a in enumerate(seen) for j, b in enumerate(seen) if j > i)
    if len(slopes) < 10:
        return {"per_run": Unknown("fewer than ten pairs of runs"), "leak": False}
    low, middle, high = (slopes[len(slopes) * quarter // 4] for quarter in (1, 2, 3))
    return {"per_run": middle, "lo": low, "hi": high, "leak": low > 0}


def torch_allocations(run: Callable[[], Any], wanted: dict[str, bool]) -> dict[str, Any]:
    """Bytes that PyTorch's allocator gave and took back in one run, by operator, from its own profiler."""
    from torch.profiler import ProfilerActivity, profile

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else PyTorch writes lines of its own to standard error
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    taken, given, by_operator = 0, 0, {}
    for event in seen.key_averages():
        size = event.self_cpu_memory_usage
        taken, given = taken + max(0, size), given + max(0, -size)
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
