# SPDX-License-Identifier: MIT
"""Memory of a model on a GPU, as PyTorch's allocator gives it out: over runs, by layer through forward hooks, and by the line of the
program that asked for it. The counters are the allocator's own and exact; what it keeps for later use is `reserved`. Its peaks are set back here, which ends whatever the program
itself was counting by torch.cuda.max_memory_allocated()."""

from __future__ import annotations

import os
import statistics
import sys
from array import array
from typing import Any, Callable

from tare import _memory
from tare._gpu import allocator
from tare._unknown import Unknown

_COUNTS = {"allocations": "allocation.all.allocated", "allocated_bytes": "allocated_bytes.all.allocated", "freed_bytes": "allocated_bytes.all.freed"}


def can_tell() -> bool:
    return allocator() is not None


def _peak_of(run: Callable[[], Any], device: str) -> int:
    cuda = allocator()
    cuda.reset_peak_memory_stats(device)
    run()
    return cuda.max_memory_allocated(device)


def memory_of_runs(run: Callable[[], Any], runs: int, device: str, snapshots: bool) -> dict[str, Any]:
    """Bytes given out before, after each run and at most in it, and whether they grow for good. After warm-up: the runs that weighed the
    host came before."""
    cuda = allocator()
    seen, peaks = [cuda.memory_allocated(device)], []
    counts = cuda.memory_stats(device)
    for _ in range(runs):
        peaks.append(_peak_of(run, device))
        seen.append(cuda.memory_allocated(device))
    after = cuda.memory_stats(device)
    return {
        "before": seen[0],
        "after_warmup": seen[0],
        "peak": max(peaks),
        "average": round(statistics.fmean(seen)),
        "after": seen[-1],
        "reserved": cuda.memory_reserved(device),
        "per_run": {name: (after[key] - counts[key]) / runs for name, key in _COUNTS.items()},
        "growth": _memory.growth_of_runs(array("d", seen)),
        "snapshots": [
            {"run": number, "allocated": size, "peak": peak} for number, (size, peak) in enumerate(zip(seen, [seen[0], *peaks]))
        ] if snapshots else [],
    }


class _Watch:
    """Peaks while hooks are on. Modules nest: a peak within a layer is one of those around it, too."""

    def __init__(self, device: str) -> None:
        self.cuda, self.device = allocator(), device
        self.rows: dict[str, dict[str, int]] = {}
        self.open: list[list[int]] = []  # given out at its begin, peak so far

    def _mark(self) -> int:
        """What was reached since the last mark goes to the innermost that is open."""
        peak = self.cuda.max_memory_allocated(self.device)
        self.cuda.reset_peak_memory_stats(self.device)
        if self.open:
            self.open[-1][1] = max(self.open[-1][1], peak)
        return self.cuda.memory_allocated(self.device)

    def begin(self, *_: Any) -> None:
        now = self._mark()
        self.open.append([now, now])

    def end(self, name: str) -> None:
        now = self._mark()
        before, peak = self.open.pop()
        row = self.rows.setdefault(name, {"calls": 0, "before": before, "peak": 0, "own_peak": 0, "kept": 0})
        row["calls"] += 1
        row["peak"] = max(row["peak"], peak)
        row["own_peak"] = max(row["own_peak"], peak - before)
        row["kept"] += now - before
        if self.open:
            self.open[-1][1] = max(self.open[-1][1], peak)


def memory_of_layers(module: Any, run: Callable[[], Any], device: str) -> dict[str, dict[str, int]]:
    """Layer -> "peak": most bytes given out while it ran, everything counted; "own_peak": of them, above what was there when it began;
    "before": when it first began; "kept": what was left of it at its end (its result, and what the backward pass needs); "calls"."""
    watch = _Watch(device)
    handles = []
    for name, layer in module.named_modules():
        handles.append(layer.register_forward_pre_hook(watch.begin))
        handles.append(layer.register_forward_hook(lambda *_, name=name: watch.end(name)))
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return {name or "(model itself)": row for name, row in watch.rows.items()}


# ---- by allocation ----

_RECORDED, _ROWS = 200_000, 50


def _folder(name: str) -> str:
    return os.path.dirname(sys.modules[name].__file__) + os.sep


def _site(frames: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the innermost line of the program within the run, which one of ours began; where there is none, of PyTorch's own innermost; all None:
    memory that no Python line asked for."""
    found = None
    for frame in frames:
        if frame["filename"].startswith(_folder("tare")):
            break
        if not frame["filename"].startswith(("<", "??")):
            found = found or frame
            if not frame["filename"].startswith(_folder("torch")):
                found = frame
                break
    return {"file": found["filename"], "line": found["line"], "function": found["name"]} if found else dict.fromkeys(("file", "line", "function"))


def _peak_of_record(record: list[dict[str, Any]]) -> tuple[int, dict[int, dict[str, Any]]]:
    """After how many entries the most was given out, and what was then: by its address. What was freed was counted when it was asked for, as
    the allocator's own counters do."""
    now = most = at = 0
    sizes: dict[int, int] = {}
    for number, entry in enumerate(record, 1):
        if entry["action"] == "alloc":
            sizes[entry["addr"]] = entry["size"]
            now += entry["size"]
        elif entry["action"] == "free_requested":
            now -= sizes.pop(entry["addr"], entry["size"])
        if now > most:
            most, at = now, number
    live: dict[int, dict[str, Any]] = {}
    for entry in record[:at]:
        if entry["action"] == "alloc":
            live[entry["addr"]] = entry
        elif entry["action"] == "free_requested":
            live.pop(entry["addr"], None)
    return most, live


def memory_by_site(run: Callable[[], Any], device: str) -> list[dict[str, Any]] | Unknown:
    """Who had asked for what one run had at its peak, beyond what was there before: file, line, function, bytes (as asked for) and pieces, the
    most first, from PyTorch's own record of its allocator. A program that keeps such a record itself is not disturbed."""
    torch = sys.modules["torch"]
    memory = allocator().memory
    if getattr(torch._C, "_cuda_isHistoryEnabled", lambda: False)():
        return Unknown("the program itself records what PyTorch's allocator does, which can be done once")
    try:
        memory._record_memory_history("all", context="alloc", stacks="python", max_entries=_RECORDED)
    except (AttributeError, TypeError, RuntimeError) as why:
        return Unknown(f"this PyTorch does not record its allocator: {why}")
    try:
        run()
        record = memory._snapshot()["device_traces"][torch.device(device).index or 0]
    finally:
        memory._record_memory_history(None)
    if len(record) >= _RECORDED:
        return Unknown(f"one run makes more than {_RECORDED:,} allocations and frees")
    rows: dict[tuple, dict[str, Any]] = {}
    for entry in _peak_of_record(record)[1].values():
        site = _site(entry.get("frames", []))
        row = rows.setdefault(tuple(site.values()), {**site, "bytes": 0, "pieces": 0})
        row["bytes"] += entry["size"]
        row["pieces"] += 1
    return sorted(rows.values(), key=lambda row: -row["bytes"])[:_ROWS]
