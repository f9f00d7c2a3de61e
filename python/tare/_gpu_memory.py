# SPDX-License-Identifier: MIT
"""Memory of a model on a GPU, as PyTorch's allocator gives it out: over runs, and by layer through forward hooks. The counters are
the allocator's own and exact; what it keeps for later use is `reserved`. Its peaks are set back here, which ends whatever the program
itself was counting by torch.cuda.max_memory_allocated()."""

from __future__ import annotations

import statistics
from array import array
from typing import Any, Callable

from tare import _memory
from tare._gpu import allocator

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
