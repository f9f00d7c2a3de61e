# SPDX-License-Identifier: MIT
"""PerformanceRegressionDetector: a verdict with a confidence about blocks of code, against a file of earlier times.

The judgement is that of `tare compare` (docs/comparing.md): "regressed" only where the spread between runs says that the block takes
longer than the threshold allows. A run is one session, the life of one detector: the times within it share what the machine and the layout
of the process did to all of them, so their median counts once. Where the baseline has fewer than three sessions no spread is known, and
only what no plausible one explains is a verdict.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
import uuid
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable

from tare import _tare
from tare._performance import PerformanceProfiler
from tare._tare import in_column
from tare._unknown import Unknown
from tare._answers import write_text

KEPT_MOST = 200  # times of an operation in this session, newest last
SESSIONS_MOST = 30  # of an operation in the file, newest last
OBSERVED_LEAST = 3  # times of a session: the first is often cold
SAME_LEAST = 0.05  # what is surely less counts as the same, whatever the threshold
BUSY_SHARE = 0.95  # of the wall time on the processor: nobody was in the way
# How far sessions may lie apart (sd of ln) where nothing is known of it: of fewer times than OBSERVED_LEAST, of any block, of a block
# that nobody interrupted, on the machine of the baseline.
FEW, ANY, UNDISTURBED = 0.7, 0.4, 0.15


class RegressionWarning(UserWarning):
    """A block takes longer than its baseline."""

    def __init__(self, message: object) -> None:
        super().__init__(message)


class PerformanceRegression(AssertionError):
    """The same, where raise_on_regression is on."""

    def __init__(self, message: object) -> None:
        super().__init__(message)


@dataclass
class RegressionResult:
    operation: str
    threshold: float
    verdict: str = "open"  # "regressed", "improved", "same", "inconclusive", "unverified", "no baseline", "failed"
    confidence: float = field(default_factory=lambda: Unknown("not judged"))  # that it takes longer than the threshold allows
    ratio: float = field(default_factory=lambda: Unknown("not judged"))  # of this session's median to the baseline's, and its 95 % interval
    ratio_low: float = field(default_factory=lambda: Unknown("not judged"))
    ratio_high: float = field(default_factory=lambda: Unknown("not judged"))
    baseline_s: float = field(default_factory=lambda: Unknown("no baseline"))
    current_s: float = field(default_factory=lambda: Unknown("not measured"))
    observations: int = 0
    why: str = ""

    @property
    def regressed(self) -> bool:
        return self.verdict == "regressed"

    def __str__(self) -> str:
        return f"{self.operation}: {self.verdict}, median {in_column(self.current_s, 's')} against {in_column(self.baseline_s, 's')}, x {in_column(self.ratio)}. {self.why}"


class _Check:
    """`with detector.check_regression(name) as result`"""

    def __init__(self, detector: "PerformanceRegressionDetector", result: RegressionResult) -> None:
        self.detector, self.result = detector, result
        self.block = detector.profiler.profile(result.operation)

    def __enter__(self) -> RegressionResult:
        self.block.__enter__()
        self.cpu_ns = time.thread_time_ns()
        return self.result

    def __exit__(self, kind: Any, *exception: Any) -> None:
        cpu_ns = time.thread_time_ns() - self.cpu_ns
        self.block.__exit__(kind, *exception)
        if kind is None:
            self.detector._observe(self.result, self.block.wall_ns / 1e9, cpu_ns / 1e9)
        else:
            self.result.verdict = "failed"


class PerformanceRegressionDetector:
    """Checks blocks against a baseline file, in the form {"operation": {"wall_time_s": ..., "sessions": [{"median_s": ...}, ...]}}.

    Call check_regression() for the same operation three times or more: the verdict is of their median, which is one run.
    A file that does not exist is an empty baseline: measure, then save_baseline(), in three sessions or more.
    """

    def __init__(
        self, baseline_metrics_path: Any, profiler: PerformanceProfiler | None = None, confidence: float = 0.95,
        raise_on_regression: bool = False, on_regression: Callable | None = None,
    ) -> None:  # fmt: skip
        if not 0.5 <= confidence < 1:
            raise ValueError("confidence is between 0.5 and 1")
        self.path = os.fspath(baseline_metrics_path)
        self.baseline = self.load_baseline(self.path)
        self.profiler = profiler or PerformanceProfiler()
        self.confidence, self.raise_on_regression, self.on_regression = confidence, raise_on_regression, on_regression
        self.observed: dict[str, list[float]] = {}
        self.session = uuid.uuid4().hex
        self._on_cpu: dict[str, list[float]] = {}
        self.results: dict[str, RegressionResult] = {}

    def load_baseline(self, path: Any) -> dict[str, dict]:
        """The file's operations; none when there is no file. ValueError that names the place when it is damaged."""
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except FileNotFoundError:
            return {}
        except ValueError as damage:
            raise ValueError(f"{path}: not a baseline: {damage}") from None
        if not isinstance(document, dict):
            raise ValueError(f"{path}: not a baseline: an object of operations is expected")
        for operation, entry in document.items():
            _check_entry(path, operation, entry)
        return document

    def check_regression(self, operation_name: str, threshold: float = 0.2) -> _Check:
        """A context manager around the operation; gives its RegressionResult, which is judged when the block ends."""
        if not threshold >= 0:
            raise ValueError("threshold is a share of the baseline's time: 0.2 is 20 %")
        result = RegressionResult(operation_name, threshold)
        self.results[operation_name] = result
        return _Check(self, result)

    def save_baseline(self, path: Any = None, operations: Any = None, add: bool = True) -> str:
        """Put this session into the file (of all operations, or of those named), other operations kept. Whole or not at all. Earlier sessions of
        this machine stay beside it; add=False: this one alone, when a new level is accepted."""
        path = os.fspath(path) if path is not None else self.path
        document = self.load_baseline(path)
        for operation in operations if operations is not None else self.observed:
            times, created = self.observed[operation], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            own = {"id": self.session, "created": created, "median_s": statistics.median(times), "times": len(times)}
            entry = document.get(operation, {})
            kept = _sessions(entry) if add and entry and entry.get("host", platform.node()) == platform.node() else []
            sessions = [*(one for one in kept if one.get("id") != self.session), own][-SESSIONS_MOST:]
            median = statistics.median(one["median_s"] for one in sessions)
            document[operation] = {"wall_time_s": median, "sessions": sessions, "created": created, "host": platform.node()}
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n")
        return path

    def alert_regression(self, operation_name: str, baseline_time: float, current_time: float) -> None:
        """Called once for each verdict "regressed"; a warning unless on_regression was given. To be overridden."""
        result = self.results[operation_name]
        if self.on_regression is not None:
            self.on_regression(result)
        else:
            warnings.warn(f"performance regression: {result}", RegressionWarning, stacklevel=4)

    def _observe(self, result: RegressionResult, seconds: float, cpu_s: float) -> None:
        times = self.observed.setdefault(result.operation, [])
        times.append(seconds)
        self._on_cpu.setdefault(result.operation, []).append(cpu_s / max(seconds, 1e-9))
        del times[:-KEPT_MOST], self._on_cpu[result.operation][:-KEPT_MOST]
        entry = self.baseline.get(result.operation)
        result.observations, result.current_s = len(times), statistics.median(times)
        if entry is None:
            result.verdict, result.why = "no baseline", f"{self.path} does not have it; save_baseline() puts it there"
            return
        self._judge(result, entry, times)
        if result.regressed:
            self.alert_regression(result.operation, result.baseline_s, result.current_s)
            if self.raise_on_regression:
                raise PerformanceRegression(str(result))

    def _plausible(self, result: RegressionResult, entry: dict) -> float:
        if result.observations < OBSERVED_LEAST:
            return FEW
        here = entry.get("host") == platform.node()
        return UNDISTURBED if here and statistics.median(self._on_cpu[result.operation]) >= BUSY_SHARE else ANY

    def _judge(self, result: RegressionResult, entry: dict, times: list[float]) -> None:
        result.observations, result.current_s = len(times), statistics.median(times)
        base = [one["median_s"] for one in _sessions(entry)]
        doubt = math.exp(statistics.NormalDist().inv_cdf(self.confidence) * _median_error(times))
        few = len(times) < OBSERVED_LEAST  # then only what is far beyond: no session of a baseline is like this one
        known = base[:2] if few else base
        judged = _tare.judge_runs(
            known, [result.current_s], [] if few else base, (1 + result.threshold) * doubt - 1, 1 - self.confidence,
            self._plausible(result, entry), (1 + max(2 * result.threshold, SAME_LEAST)) / doubt - 1,
        )  # fmt: skip
        result.verdict, result.ratio = judged["verdict"], judged["ratio"]
        result.baseline_s = result.current_s / result.ratio  # what it is held against: the sessions' geometric mean
        if judged["method"] == "none":
            missing = f"{len(times)} time{'s' * (len(times) != 1)} in this session" if few else f"{len(base)} session{'s' * (len(base) != 1)} in the baseline"
            why = Unknown(f"{missing}: {OBSERVED_LEAST} are evidence")
            result.confidence = result.ratio_low = result.ratio_high = why
            over = judged["ratio"] > 1 + result.threshold
            result.why = ("Beyond the threshold, but " if over else "Within the threshold; ") + why.reason
        else:
            result.confidence, result.ratio_low, result.ratio_high = 1 - judged["p_worse"], judged["lo"], judged["hi"]
            result.why = f"Confidence {result.confidence:.3f} that it takes more than {result.threshold:.0%} longer."
        if judged["method"] == "far":
            result.why += " No plausible noise explains it."
        host = entry.get("host", platform.node())
        if host != platform.node():
            result.why += f" The baseline is of another machine ({host})."


def _sessions(entry: dict) -> list[dict]:
    """Those of an entry; what has only times or a time is one."""
    return entry.get("sessions") or [{"median_s": statistics.median(entry.get("samples_s") or [entry["wall_time_s"]])}]


def _median_error(times: list[float]) -> float:
    """Of ln of the median of a session, by the spread of its times, and by how far its halves lie apart: times that follow one another are
    alike."""
    logs = [math.log(seconds) for seconds in times]
    if len(logs) < OBSERVED_LEAST:
        return 0.0
    half = len(logs) // 2
    apart = abs(statistics.median(logs[:half]) - statistics.median(logs[-half:])) / 2
    return max(1.2533 * statistics.stdev(logs) / math.sqrt(len(logs)), apart)


def _check_entry(path: Any, operation: str, entry: Any) -> None:
    parts = [entry.get(key, []) for key in ("samples_s", "sessions")] if isinstance(entry, dict) else [None]
    known = all(isinstance(part, list) for part in parts) and all(isinstance(one, dict) for one in parts[-1])
    numbers = [entry.get("wall_time_s"), *parts[0], *(one.get("median_s") for one in parts[1])] if known else [None]
    if not all(isinstance(x, (int, float)) and not isinstance(x, bool) and 0 < x < math.inf for x in numbers):
        raise ValueError(
            f'{path}: operation "{operation}": wall_time_s (and samples_s, or median_s of sessions, where it has them) must be seconds above 0'
        )
