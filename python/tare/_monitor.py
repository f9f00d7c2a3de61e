# SPDX-License-Identifier: MIT
"""ModelMonitor: latency, memory, processor and GPU use of a model while it serves. A call costs a few microseconds; the machine is
watched by the sampling thread of the extension, which never takes the GIL."""

from __future__ import annotations

import functools
import json
import os
import re
import time
from array import array
from typing import Any, Callable

from tare import _tare
from tare._forks import keep_lock
from tare._metrics import Seen
from tare._scoped import within
from tare._tare import in_column
from tare._unknown import Unknown, known, plain
from tare._answers import write_text

# What is watched: this process's memory and GPUs ten times a second, the machine twice
_PROBES = ("self", "gpu", "system")
_PACES_S = (0.1, 1.0, 0.5)
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
        keep_lock(self)
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
            self._first_rss = None
            self._watch: Any = None
            self._folds: dict[str, tuple] = {}

    def inference(self, units: int = 1) -> "_Inference":
        """A context manager around one inference of so many units (texts, images)."""
        return _Inference(self, units)

    def __call__(self, function: Callable) -> Callable:
        """Decorator: each call is one inference; of a generator, from its first item asked for to its end."""
        return functools.wraps(function)(within(self.inference, function))

    def _begin(self) -> int:
        now = time.perf_counter_ns()
        with self._lock:
            if self._first_ns is None:
                self._first_ns, self._first_rss = now, _tare.memory_now()[0]
            if self._watch is None:
                self._watch = _tare.Watch(_PROBES, *_PACES_S)
            if self._under_way == 0:
                self._began = (now, time.process_time_ns())
            self._under_way += 1
            self._most_at_once = max(self._most_at_once, self._under_way)
        return now

    def _end(self, start: int, units: int, failed: bool) -> None:
        now = time.perf_counter_ns()
        with self._lock:
            if self._first_ns is None or start < self._first_ns:  # reset() came between
                return
            self._count(now - start, units, failed)
            self._last_ns = now
            self._under_way -= 1
            if self._under_way == 0:
                self._busy_ns += now - self._began[0]
                self._busy_cpu_ns += time.process_time_ns() - self._began[1]

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

    def _settle(self) -> None:
        """Adds what the sampling thread saw to what it saw before; the next inference begins a new watch. Waits for the last sample, and
        no inference waits with it."""
        with self._lock:
            watch, self._watch, folds = self._watch, None, self._folds
        seen = watch.take() if watch is not None else {}
        with self._lock:
            for name, fold in seen.items():
                if isinstance(fold, tuple) and name != "growth":
                    folds[name] = _joined(folds.get(name), fold)

    def summary(self) -> dict[str, Any]:
        """Calls, errors, latency in ms, throughput, memory in bytes, processors of the process and of the machine."""
        self._settle()
        with self._lock:
            if not self._calls:
                raise ValueError(f"ModelMonitor {self.name}: no inference has been seen yet")
            seen = Seen(self._folds, {})
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
                "memory": self._memory(seen),
                "cpu": {
                    "during_inference": self._busy_cpu_ns / self._busy_ns if self._busy_ns else Unknown("no inference has ended"),
                    "seconds": self._busy_cpu_ns / 1e9,
                    "machine_percent": _of_all_processors(seen),
                    "inference_share_of_time": self._busy_ns / 1e9 / seconds,
                },
                "gpu": {"memory_peak": seen.most("gpu.memory.process"), "temperature_c": seen.most("gpu.temperature")},
            }

    def _latency(self, times: list[int]) -> dict[str, Any]:
        out: dict[str, Any] = {"mean": self._total_ns / self._calls / 1e6, "max": self._max_ns / 1e6, "of_latest": len(times)}
        for name, share in _PERCENTILES:
            beyond = len(times) * (1 - share)
            # A percentile with fewer than five times beyond it would be little more than the maximum.
            out[name] = times[int(len(times) * share)] / 1e6 if beyond >= 5 or name == "p50" else Unknown(f"{len(times)} calls are too few")
        return out

    def _memory(self, seen: Seen) -> dict[str, Any]:
        now, _ = _tare.memory_now()
        readings = [rss for rss in (self._first_rss, now, seen.most("self.memory.rss")) if known(rss)]
        return {
            "peak": round(max(readings)),
            "average": seen.mean("self.memory.rss"),
            "growth": round(now - self._first_rss),
            "samples": seen.samples("self.memory.rss"),
        }

    def __str__(self) -> str:
        seen = self.summary()
        latency, memory, cpu = seen["latency"], seen["memory"], seen["cpu"]
        return "\n".join(
            [
                f"{self.name}: {seen['calls']} inferences in {in_column(seen['seconds'], 's')}, {seen['errors']} failed, {seen['slow']} slow",
                "  latency     " + ", ".join(f"{key} {in_column(latency[key] * 1e-3, 's')}" for key in ("mean", "p50", "p95", "p99", "max")),
                f"  throughput  {in_column(seen['throughput']['units_per_second'], 'units/s')}",
                f"  memory      peak {in_column(memory['peak'], 'B')}, grown by {in_column(memory['growth'], 'B')}",
                f"  processors  {in_column(cpu['during_inference'])} busy during inference, machine {cpu['machine_percent']:.0f} % busy",
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
        self._monitor._end(self._start, self.units, kind is not None and kind is not GeneratorExit)


def _joined(before: tuple | None, fold: tuple) -> tuple:
    """Two folds (samples, least, most, mean, change, seconds) as one."""
    if before is None:
        return fold
    count = before[0] + fold[0]
    mean = (before[3] * before[0] + fold[3] * fold[0]) / count if count else before[3]
    least, most = (pick(values) for pick, values in ((min, (before[1], fold[1])), (max, (before[2], fold[2]))))
    return count, least, most, mean, _added(before[4], fold[4]), _added(before[5], fold[5])


def _added(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else a + b


def _of_all_processors(seen: Seen) -> float:
    processors = seen.most("cpu.count")
    return seen.percent("cpu.busy", 100.0 / processors) if known(processors) else processors


def _without_unknown(value: Any) -> Any:
    """As documents have it: null for what is unknown."""
    return {key: _without_unknown(inner) for key, inner in value.items()} if isinstance(value, dict) else plain(value)
