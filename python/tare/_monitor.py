# SPDX-License-Identifier: MIT
"""ModelMonitor: latency, memory and processor use of a model while it serves. Costs a few microseconds a call; looks at /proc at most
ten times a second, and never from a thread of its own."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import threading
import time
from array import array
from typing import Any, Callable

from tare._model_memory import resident
from tare._model_results import write_text
from tare._unknown import Unknown, plain

_LOOK_EVERY = 0.1
_PERCENTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))


class ModelMonitor:
    """System metrics during model inference.

        monitor = tare.ModelMonitor("retriever")
        with monitor.inference(units=len(texts)):
            model.encode(texts)
        print(monitor); monitor.save()

    Or as a decorator of a function or coroutine: @monitor. Percentiles are of the latest `window` calls, sums of all. Calls may
    overlap, in threads and tasks. slower_than: seconds; calls above it are counted as slow."""

    def __init__(self, name: str = "model", *, folder: str = "profiling_results", window: int = 10_000, slower_than: float | None = None):
        if window < 1:
            raise ValueError(f"ModelMonitor: window must be at least 1, not {window}")
        self.name = name
        self.folder = folder
        self.window = window
        self.slower_than = slower_than
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forgets all that was seen."""
        with self._lock:
            self._times = array("q")
            self._calls = self._errors = self._slow = self._units = 0
            self._total_ns = self._max_ns = 0
            self._under_way = self._most_at_once = 0
            self._busy_ns = self._busy_cpu_ns = 0
            self._began = (0, 0)
            self._first_ns = self._last_ns = None
            self._next_look = 0.0
            self._rss = {"first": 0, "last": 0, "peak": 0, "sum": 0, "looks": 0}
            self._machine: list[tuple[int, int]] = []

    def inference(self, units: int = 1) -> "_Inference":
        """A context manager around one inference of so many units (texts, images)."""
        return _Inference(self, units)

    def __call__(self, function: Callable) -> Callable:
        """Decorator: each call is one inference."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self.inference():
                    return await function(*args, **kwargs)

            return awaited

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with self.inference():
                return function(*args, **kwargs)

        return called

    def _begin(self) -> int:
        now = time.perf_counter_ns()
        with self._lock:
            if self._first_ns is None:
                self._first_ns = now
                self._look(now)
            if self._under_way == 0:
                self._began = (now, time.process_time_ns())
            self._under_way += 1
            self._most_at_once = max(self._most_at_once, self._under_way)
        return now

    def _end(self, start: int, units: int, failed: bool) -> None:
        now = time.perf_counter_ns()
        with self._lock:
            if self._under_way == 0:  # reset() came between
                return
            self._count(now - start, units, failed)
            self._last_ns = now
            self._under_way -= 1
            if self._under_way == 0:
                self._busy_ns += now - self._began[0]
                self._busy_cpu_ns += time.process_time_ns() - self._began[1]
            if now / 1e9 >= self._next_look:
                self._look(now)

    def _count(self, took: int, units: int, failed: bool) -> None:
        if len(self._times) < self.window:
            self._times.append(took)
        else:
            self._times[self._calls % self.window] = took
        self._calls += 1
        self._errors += failed
        self._units += 0 if failed else units
        self._slow += self.slower_than is not None and took > self.slower_than * 1e9
        self._total_ns += took
        self._max_ns = max(self._max_ns, took)

    def _look(self, now: int) -> None:
        """One reading of memory and of the whole machine's processors."""
        self._next_look = now / 1e9 + _LOOK_EVERY
        rss = resident()
        seen = self._rss
        seen["first"] = seen["first"] or rss
        seen["last"] = rss
        seen["peak"] = max(seen["peak"], rss)
        seen["sum"] += rss
        seen["looks"] += 1
        self._machine = [*self._machine[:1], _machine_ticks()]

    def summary(self) -> dict[str, Any]:
        """Calls, errors, latency in ms, throughput, memory in bytes, processors of the process and of the machine."""
        with self._lock:
            if not self._calls:
                raise ValueError(f"ModelMonitor {self.name}: no inference has been seen yet")
            self._look(time.perf_counter_ns())
            times = sorted(self._times)
            seconds = (self._last_ns - self._first_ns) / 1e9
            return {
                "schema": "tare.monitor/1",
                "name": self.name,
                "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "calls": self._calls,
                "errors": self._errors,
                "slow": self._slow,
                "most_at_once": self._most_at_once,
                "seconds": seconds,
                "latency": self._latency(times),
                "throughput": {"calls_per_second": self._calls / seconds, "units_per_second": self._units / seconds},
                "memory": self._memory(),
                "cpu": {
                    "during_inference": self._busy_cpu_ns / self._busy_ns if self._busy_ns else Unknown("no inference has ended"),
                    "seconds": self._busy_cpu_ns / 1e9,
                    "machine": _machine_share(self._machine),
                    "inference_share_of_time": self._busy_ns / 1e9 / seconds,
                },
                "gpu": Unknown("not watched; `tare top` and `tare run` show GPUs"),
            }

    def _latency(self, times: list[int]) -> dict[str, Any]:
        out: dict[str, Any] = {"mean": self._total_ns / self._calls / 1e6, "max": self._max_ns / 1e6, "of_latest": len(times)}
        for name, share in _PERCENTILES:
            beyond = len(times) * (1 - share)
            # A percentile with fewer than five times beyond it would be little more than the maximum.
            out[name] = times[int(len(times) * share)] / 1e6 if beyond >= 5 or name == "p50" else Unknown(f"{len(times)} calls are too few")
        return out

    def _memory(self) -> dict[str, Any]:
        seen = self._rss
        return {
            "peak": seen["peak"],
            "average": round(seen["sum"] / seen["looks"]),
            "growth": seen["last"] - seen["first"],
            "looks": seen["looks"],
        }

    def __str__(self) -> str:
        seen = self.summary()
        latency, memory, cpu = seen["latency"], seen["memory"], seen["cpu"]
        return "\n".join(
            [
                f"{self.name}: {seen['calls']} inferences in {seen['seconds']:.2f} s, {seen['errors']} failed, {seen['slow']} slow",
                "  latency     " + ", ".join(f"{key} {latency[key]:.3f}" for key in ("mean", "p50", "p95", "p99", "max")) + " ms",
                f"  throughput  {seen['throughput']['units_per_second']:.1f} units/s",
                f"  memory      peak {memory['peak'] / 2**20:.1f} MiB, grown by {memory['growth'] / 2**20:.1f} MiB",
                f"  processors  {cpu['during_inference']:.2f} busy during inference, machine {cpu['machine']:.0%} busy",
            ]
        )

    def save(self, path: str | os.PathLike | None = None) -> str:
        """Writes the summary as JSON, by default to folder/<name>_monitor_<unix time>.json. The path."""
        if path is None:
            os.makedirs(self.folder, exist_ok=True)
            path = os.path.join(self.folder, f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', self.name)}_monitor_{int(time.time())}.json")
        return write_text(path, json.dumps(_without_unknown(self.summary()), indent=1) + "\n")


class _Inference:
    """One call under way."""

    __slots__ = ("_monitor", "_start", "units")

    def __init__(self, monitor: ModelMonitor, units: int) -> None:
        self._monitor = monitor
        self.units = units

    def __enter__(self) -> "_Inference":
        self._start = self._monitor._begin()
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._monitor._end(self._start, self.units, kind is not None)


def _machine_ticks() -> tuple[int, int]:
    """Of all processors: ticks busy, ticks in all."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _machine_share(seen: list[tuple[int, int]]) -> float:
    if len(seen) < 2 or seen[1][1] == seen[0][1]:
        return Unknown("watched for less than a tick of the kernel's clock")
    return (seen[1][0] - seen[0][0]) / (seen[1][1] - seen[0][1])


def _without_unknown(value: Any) -> Any:
    """As documents have it: null for what is unknown."""
    return {key: _without_unknown(inner) for key, inner in value.items()} if isinstance(value, dict) else plain(value)
