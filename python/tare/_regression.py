# SPDX-License-Identifier: MIT
"""PerformanceRegressionDetector: a verdict with a confidence about blocks of code, against a file of earlier times.

The judgement is that of `tare compare` (docs/comparing.md): "regressed" only where the spread between runs says that the block takes
longer than the threshold allows. One time against one time is "unverified", however large the difference.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable

from tare import _tare
from tare._performance import PerformanceProfiler
from tare._unknown import Unknown
from tare._answers import write_text

KEPT_MOST = 200  # times of an operation in the file, newest last


class RegressionWarning(UserWarning):
    """A block takes longer than its baseline."""


class PerformanceRegression(AssertionError):
    """The same, where raise_on_regression is on."""


@dataclass
class RegressionResult:
    operation: str
    threshold: float
    verdict: str = "open"  # "regressed", "improved", "same", "inconclusive", "unverified", "no baseline", "failed"
    confidence: float = field(default_factory=lambda: Unknown("not judged"))  # that it takes longer than the threshold allows
    ratio: float = field(default_factory=lambda: Unknown("not judged"))  # of the geometric means of the times, and its 95 % interval
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
        medians = f"median {self.current_s:.6f} s against {self.baseline_s:.6f} s"
        return f"{self.operation}: {self.verdict}, {medians}, geometric means x {self.ratio:.3f}. {self.why}"


class _Check:
    """`with detector.check_regression(name) as result`"""

    def __init__(self, detector: "PerformanceRegressionDetector", result: RegressionResult) -> None:
        self.detector, self.result = detector, result
        self.block = detector.profiler.profile(result.operation)

    def __enter__(self) -> RegressionResult:
        self.block.__enter__()
        return self.result

    def __exit__(self, kind: Any, *exception: Any) -> None:
        self.block.__exit__(kind, *exception)
        if kind is None:
            self.detector._observe(self.result, self.block.wall_ns / 1e9)
        else:
            self.result.verdict = "failed"


class PerformanceRegressionDetector:
    """Checks blocks against a baseline file, in the form {"operation": {"wall_time_s": ..., "samples_s": [...]}}.

    Call check_regression() for the same operation three times or more: each time counts, and the verdict is of all of them.
    A file that does not exist is an empty baseline: measure, then save_baseline().
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

    def save_baseline(self, path: Any = None, operations: Any = None) -> str:
        """Put what was observed into the file (of all operations, or of those named), other operations kept. Whole or not at all."""
        path = os.fspath(path) if path is not None else self.path
        document = self.load_baseline(path)
        for operation in operations if operations is not None else self.observed:
            times = self.observed[operation][-KEPT_MOST:]
            document[operation] = {
                "wall_time_s": statistics.median(times),
                "samples_s": times,
                "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "host": platform.node(),
            }
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n")
        return path

    def alert_regression(self, operation_name: str, baseline_time: float, current_time: float) -> None:
        """Called once for each verdict "regressed"; a warning unless on_regression was given. To be overridden."""
        result = self.results[operation_name]
        if self.on_regression is not None:
            self.on_regression(result)
        else:
            warnings.warn(f"performance regression: {result}", RegressionWarning, stacklevel=4)

    def _observe(self, result: RegressionResult, seconds: float) -> None:
        times = self.observed.setdefault(result.operation, [])
        times.append(seconds)
        del times[:-KEPT_MOST]
        result.observations, result.current_s = len(times), statistics.median(times)
        entry = self.baseline.get(result.operation)
        if entry is None:
            result.verdict, result.why = "no baseline", f"{self.path} does not have it; save_baseline() puts it there"
            return
        self._judge(result, entry, times)
        if result.regressed:
            self.alert_regression(result.operation, result.baseline_s, result.current_s)
            if self.raise_on_regression:
                raise PerformanceRegression(str(result))

    def _judge(self, result: RegressionResult, entry: dict, times: list[float]) -> None:
        base = entry.get("samples_s") or [entry["wall_time_s"]]
        judged = _tare.judge_runs(base, times, base, result.threshold, 1 - self.confidence)
        result.baseline_s, result.verdict, result.ratio = entry["wall_time_s"], judged["verdict"], judged["ratio"]
        if judged["method"] == "none":
            why = Unknown(f"{len(base)} times in the baseline and {len(times)} now: 3 and 3, or 8 and 1, are evidence")
            result.confidence = result.ratio_low = result.ratio_high = why
            over = judged["ratio"] > 1 + result.threshold
            result.why = ("Beyond the threshold, but " if over else "Within the threshold; ") + why.reason
        else:
            result.confidence, result.ratio_low, result.ratio_high = 1 - judged["p_worse"], judged["lo"], judged["hi"]
            result.why = f"Confidence {result.confidence:.3f} that it takes more than {result.threshold:.0%} longer."
        host = entry.get("host", platform.node())
        if host != platform.node():
            result.why += f" The baseline is of another machine ({host})."


def _check_entry(path: Any, operation: str, entry: Any) -> None:
    times = entry.get("samples_s", []) if isinstance(entry, dict) else None
    numbers = [entry.get("wall_time_s"), *times] if isinstance(times, list) else [None]
    if not all(isinstance(x, (int, float)) and x > 0 for x in numbers):
        raise ValueError(f'{path}: operation "{operation}": wall_time_s (and samples_s, where it has them) must be seconds above 0')
