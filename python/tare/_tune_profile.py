# SPDX-License-Identifier: MIT
"""ProfilingOptimizer: where the time of a function or a block goes, what could be won there at most, and whether a change is one.

Functions are timed by tare.functions (its own cost taken out), blocks and the machine by PerformanceProfiler."""

from __future__ import annotations

import functools
import json
import os
import re
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Iterator

from tare._diagnose import diagnose_performance_issues
from tare._functions import functions
from tare._metrics import MB, Metrics
from tare._performance import PerformanceProfiler
from tare._tare import in_sentence
from tare._tune import Tuned, confirm, first_difference, in_bytes, log, setting
from tare._tune_child import limits
from tare._unknown import Unknown, known, plain

WORTH_A_WORD = 0.1  # a function's share of the time from which it is a bottleneck


@dataclass(frozen=True)
class Bottleneck:
    """A function and its part of the time; `bound`: how many times as fast the whole were if it took no time at all."""

    name: str
    file: str
    line: int
    calls: int
    self_s: float
    waited_s: float
    share: float
    bound: float

    def __str__(self) -> str:
        return f"{self.name} ({os.path.basename(self.file)}:{self.line}) {self.share:.0%}, {in_sentence(self.self_s, 's')}"


@dataclass
class ProfileResult:
    """What profile_code() found. `value` is what the function returned; `functions` those above min_time_threshold, the longest first."""

    name: str
    value: Any = field(repr=False)
    seconds: float
    metrics: Metrics | None = field(default=None, repr=False)
    functions: list[Bottleneck] = field(default_factory=list, repr=False)
    recommendations: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)

    @property
    def bottleneck_functions(self) -> list[Bottleneck]:
        return [row for row in self.functions if row.share >= WORTH_A_WORD]

    @property
    def bound(self) -> float:
        """The most that the one slowest function could give."""
        return self.functions[0].bound if self.functions else Unknown("no function took long enough to be listed")

    def to_dict(self) -> dict[str, Any]:
        """Without the value."""
        return {
            "schema": "tare.profile_code/1", "name": self.name, "seconds": plain(self.seconds), "bound": plain(self.bound),
            "functions": [{k: plain(v) for k, v in asdict(row).items()} for row in self.functions],
            "recommendations": self.recommendations, "trouble": self.trouble,
            "metrics": self.metrics.to_dict() if self.metrics else None,
        }  # fmt: skip

    def __str__(self) -> str:
        rows = [f"{self.name}: {in_sentence(self.seconds, 's')}; the slowest function could give {_at_most(self.bound)}"]
        rows += [f"  {row}" for row in self.bottleneck_functions] or ["  no function stands out"]
        return "\n".join(rows + [f"  - {text}" for text in self.recommendations])


class ProfilingOptimizer:
    """profile_code(function, *args), `with profile_function(name)`, get_training_stats(), auto_optimize(function, *others).

    All keys of ProfilingConfig are taken; with enabled=False functions and blocks run as they are."""

    def __init__(self, config: Any = None) -> None:
        self.config = config
        self.enabled = setting(config, "enabled")
        gpu, memory = setting(config, "profile_gpu"), setting(config, "profile_memory")
        self.profiler = PerformanceProfiler(track_gpu=gpu, detailed_memory=memory, system_interval=min(1.0, setting(config, "monitoring_interval")))
        self.results: list[ProfileResult] = []
        self.tuned: list[Tuned] = []
        log.debug("ProfilingOptimizer %r", config)

    # ---- a function ----

    def profile_code(self, function: Callable, *args: Any, **named: Any) -> ProfileResult:
        """Calls it once. Its exceptions are its own; LimitExceeded beyond timeout_s or memory_limit of the configuration."""
        name = getattr(function, "__qualname__", type(function).__name__)
        if not self.enabled:
            return ProfileResult(name, function(*args, **named), Unknown("profiling is not enabled"))
        profile = functions() if setting(self.config, "profile_cpu") else None
        with self._limits(name) as ours, self.profile_function(name), profile or nullcontext():
            value = function(*args, **named)
        metrics = self.profiler.get_metrics(name)
        result = ProfileResult(name, value, profile.seconds if profile is not None else metrics.timing.wall_time_s, metrics)
        if profile is not None:
            profile.leave_out(ours)
            result.functions = self._functions(profile)
            result.trouble = profile.trouble
        result.recommendations = self._recommend(result)
        if setting(self.config, "save_profiles"):
            self._save(result, profile)
        self.results.append(result)
        log.debug("%s", result)
        return result

    def _limits(self, name: str) -> Any:
        memory = setting(self.config, "memory_limit")
        return limits(setting(self.config, "timeout_s"), in_bytes(memory, _all_memory()) if memory is not None else None, name)

    def _functions(self, profile: functions) -> list[Bottleneck]:
        """Of functions deeper than profile_depth the time is their caller's."""
        depth_most, least_ns = setting(self.config, "profile_depth"), setting(self.config, "min_time_threshold") * 1e9
        here, beside = {}, {}  # by function: calls and ns, in the thread that called, and in others
        for tree in profile.trees():
            _fold(tree, depth_most, here if tree.ident == threading.get_ident() else beside)
        waited = {row.key: row.waited_ns for row in profile.functions()}
        alone, whole = (sum(row[1] for part in parts for row in part.values()) for parts in ((here,), (here, beside)))
        rows = []
        for key in {**here, **beside}:
            (calls, own), (more_calls, elsewhere) = here.get(key, (0, 0.0)), beside.get(key, (0, 0.0))
            if own + elsewhere < max(least_ns, 1.0):
                continue
            bound = Unknown("it runs in several threads") if elsewhere else alone / max(alone - own, 1.0)
            pause = waited[key] / 1e9 if waited.get(key) is not None else Unknown("not asked for")
            rows.append(Bottleneck(key[2], key[0], key[1], calls + more_calls, (own + elsewhere) / 1e9, pause, (own + elsewhere) / whole, bound))
        return sorted(rows, key=lambda row: row.self_s, reverse=True)

    def _recommend(self, result: ProfileResult) -> list[str]:
        out = []
        for row in result.bottleneck_functions[:3]:
            if known(row.waited_s) and row.waited_s > 0.5 * row.self_s:
                how = "it waits: overlap it with other work (threads, asyncio, prefetching), or wait less"
            elif row.calls >= 1000:
                how = f"{row.calls} calls of {in_sentence(row.self_s / row.calls, 's')}: handle many at once, or remember results"
            else:
                how = "it computes: a better algorithm, vectorised code, or processes"
            out.append(f"{row}, {_at_most(row.bound)}: {how}")
        if result.metrics is not None:
            out += diagnose_performance_issues(result.metrics)
            grown = result.metrics.memory.growth_mb
            if setting(self.config, "profile_memory") and known(grown) and grown * MB >= setting(self.config, "min_memory_threshold"):
                out.append(f"memory grew by {grown:.1f} MB and stayed: see whether it is still needed")
        return out

    def _save(self, result: ProfileResult, profile: Any) -> None:
        folder = os.fspath(setting(self.config, "profile_dir"))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        stem = os.path.join(folder, f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', result.name)}_{int(time.time())}_{len(self.results)}")
        if profile is not None:
            result.saved.append(profile.save(stem + ".prof"))
        with open(os.open(stem + ".json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(result.to_dict(), file, indent=1)
        result.saved.append(stem + ".json")

    # ---- blocks ----

    @contextmanager
    def profile_function(self, name: str, samples: float | None = None) -> Iterator[Any]:
        """A block by that name; longer than alert_threshold: a warning in the log "tare"."""
        if not self.enabled:
            yield None
            return
        begun = time.perf_counter()
        try:
            with self.profiler.profile(name, samples) as block:
                yield block
        finally:
            took = time.perf_counter() - begun
            if took > setting(self.config, "alert_threshold"):
                log.warning("%s took %.2f s, alert_threshold is %g s", name, took, setting(self.config, "alert_threshold"))
            if setting(self.config, "log_memory_usage"):
                log.debug("%s: %.1f MB at its end", name, self.profiler.get_current_memory())

    def get_training_stats(self) -> dict[str, Any]:
        """The machine over the blocks so far, or now where there was none, in percent; seconds of each block. Unknown says why."""
        report = self.profiler.get_system_report()
        if report.blocks:
            cpu, memory = report.avg_cpu_percent, report.avg_memory_percent
            gpu = self.profiler.get_metrics().compute.gpu_utilization_percent
        else:
            now = self.profiler.get_current_system_stats()
            cpu, memory, gpu = now.cpu_percent, now.memory_percent, Unknown("no block has ended yet")
        return {
            "cpu_percent": cpu, "memory_percent": memory, "gpu_utilization": gpu,
            "gpu_memory_percent": 100 * self.profiler.get_current_gpu_memory(),
            "process_memory_mb": self.profiler.get_current_memory(),
            "blocks": self.profiler.get_timing_breakdown("total"), "seconds": report.seconds,
        }  # fmt: skip

    # ---- changing something ----

    def auto_optimize(self, function: Callable, *others: Callable, args: tuple = (), same: Callable = first_difference) -> tuple[Callable, Tuned]:
        """The fastest of functions that do the same, called with `args`: which to use, and the proof. Each that differs in its result is
        refused; the first is kept unless another is confirmed to be faster. With auto_optimize=False it is only said."""
        if not others:
            raise ValueError("auto_optimize: which other functions may do the work of the first?")
        best, kept = function, None
        for other in others:
            tuned = confirm(
                functools.partial(best, *args), functools.partial(other, *args), what=f"{_name(best)} or {_name(other)}",
                plan={"use": _name(other)}, threshold=setting(self.config, "optimization_threshold"),
                budget_s=setting(self.config, "budget_s") / len(others), same=same,
            )  # fmt: skip
            self.tuned.append(tuned)
            if tuned.worth(setting(self.config, "apply")):
                best, kept = other, tuned
            elif kept is None or kept.verdict == "no_gain":
                kept = kept or tuned
            if tuned is not kept:
                kept.rejected.append((tuned.plan, tuned.reasons[0] if tuned.reasons else tuned.verdict))
        kept.applied = best is not function and setting(self.config, "auto_optimize")
        return (best if kept.applied else function), kept


def _at_most(bound: float) -> str:
    return "nearly all of it" if bound > 100 else f"at most {bound:.2f}x"


def _fold(tree: Any, depth_most: int, out: dict[Any, tuple[int, float]]) -> None:
    kept, depth = list(range(len(tree.parent))), [0] * len(tree.parent)
    for node in range(1, len(tree.parent)):  # 0 is the thread
        parent = tree.parent[node]
        depth[node] = depth[parent] + 1
        kept[node] = node if depth[node] <= depth_most else kept[parent]
        label = tree.labels[tree.function[kept[node]]]
        calls, own = out.get(label, (0, 0.0))
        out[label] = calls + (tree.calls[node] if kept[node] == node else 0), own + tree.self_ns[node]


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _all_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def profiling_context(config: Any = None) -> Iterator[ProfilingOptimizer]:
    """`with profiling_context(config) as profiler`: the whole block under the name "profiling_context"."""
    profiler = ProfilingOptimizer(config)
    with profiler.profile_function("profiling_context"):
        yield profiler
