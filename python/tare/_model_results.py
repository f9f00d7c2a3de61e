# SPDX-License-Identifier: MIT
"""Results of ModelProfiler: views of a Run in milliseconds and bytes; baselines and regressions. Nothing is judged here: verdicts are
those of `tare compare`."""

from __future__ import annotations

import json
import os
import warnings
from contextlib import ExitStack
from typing import Any, Iterable

from tare import _answers, _command
from tare._run import Case, Run, load, named, written
from tare._tare import in_column
from tare._unknown import Unknown

_PERCENTILES = ("p50", "p90", "p95", "p99", "p999")
# name in the results: in the document
_MEMORY = {
    "peak": "rss_peak", "average": "rss_mean", "before": "rss_before", "delta": "delta", "per_sample": "per_unit",
    "growth_per_run": "growth", "fragmentation": "fragmentation", "gpu_peak": "gpu_peak",
}  # fmt: skip


class ProfileResults(dict):
    """One case of a run: results["latency"]["mean"] in ms, ["throughput"]["samples_per_second"], ["memory"]["peak"] in bytes.

    What was not measured is an Unknown (prints as "unknown") with its reason. `run`: the Run, `document` its document, `case` this case."""

    def __init__(self, run: Run, case: Case, more: dict[str, Any] | None = None) -> None:
        self.run = run
        self.case: dict[str, Any] = dict(case)
        super().__init__(
            name=case.name,
            params=case["params"],
            runs=case.samples,
            latency=latency_of(case),
            throughput=_throughput(case),
            memory={name: case.number("memory." + key) for name, key in _MEMORY.items()},
            cpu=case.get("cpu"),
            io=case.get("io"),
            gpu=case.get("gpu") or Unknown(case.reasons.get("gpu", "no GPU was watched")),
            load_ms=case.number("load_ns", 1e6),
            first_run_ms=case.number("first_run_ns", 1e6),
            findings=[f for f in run.findings if f.get("case") in (None, case.name)],
            self=case.get("self"),
            unknown=case.reasons,
        )
        self.update(more or {})

    @property
    def document(self) -> dict[str, Any]:
        return self.run.to_dict()

    def __str__(self) -> str:
        return "\n".join(_answers.profile_lines(self))

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes the run document, for load_baseline and `tare compare`. The path."""
        return _answers.write_text(path, self.run.to_json())

    def to_dict(self) -> dict[str, Any]:
        return dict(self)


class BenchmarkResults(list):
    """One ProfileResults per configuration, in the order asked for. `run`: all of them in one Run, `document` its document."""

    run: Run

    @property
    def document(self) -> dict[str, Any]:
        return self.run.to_dict()

    def __str__(self) -> str:
        return _answers.configurations_text(self)


def latency_of(case: Case) -> dict[str, Any]:
    """Milliseconds; intervals of those percentiles that are known."""
    out = {key: case.number("latency_ns." + key, 1e6) for key in ("mean", "min", "max", *_PERCENTILES)}
    out["std"] = case.number("latency_ns.stddev", 1e6)
    times = case.get("latency_ns") or {}
    bounds = {name: (f"latency_ns.{name}.lo", f"latency_ns.{name}.hi") for name in _PERCENTILES if times.get(name)}
    out["intervals"] = {name: tuple(case.number(path, 1e6) for path in paths) for name, paths in bounds.items()}
    return out


def _throughput(case: Case) -> dict[str, Any]:
    found, rate = case.get("throughput"), case.number("throughput")
    if not found:
        return {"samples_per_second": rate}
    return {
        "samples_per_second": rate,
        "interval": (found.get("lo"), found.get("hi")),
        "requests_per_second": rate / (case.get("units_per_run") or 1),
        "unit": found["unit"],
    }


def load_baseline(path: str | os.PathLike[str]) -> ProfileResults:
    """Results saved by export_json, ProfileResults.save, `python -m tare profile` or `tare bench`. ValueError names what is wrong."""
    run = load(path)
    _command.call("report", path, "--json")  # the reader that checks the whole document and names file, place and cause
    if not run.cases:
        raise ValueError(f"{path}: the run holds no cases")
    return ProfileResults(run, run.cases[0])


class Regression(dict):
    """One metric of one case that got worse: metric, case, ratio (None: the metric is unknown, and others tell), verdict ("regressed", or
    "unverified"), why."""

    def __repr__(self) -> str:
        change = "unknown" if self["ratio"] is None else in_column(self["ratio"], "change")
        doubt = "unverified: " if self["verdict"] == "unverified" else ""
        return f"{self['case']} {self['metric']} {change}" + (f" ({doubt}{self['why']})" if self["why"] else "")


class Regressions(list):
    """The regressions found; empty when there are none. `verified`: those a gate may act on. `comparison`: the whole document."""

    comparison: dict[str, Any]

    @property
    def verified(self) -> list[Regression]:
        return [found for found in self if found["verdict"] == "regressed"]

    @property
    def verdict(self) -> str:
        return self.comparison["verdict"]


def detect_regressions(baseline: Any, current: Any, *, force: bool = False, fail_on: Iterable[str] = ()) -> Regressions:
    """What got worse, judged by `tare compare`. A side is a result, a path, or a list of them: three runs a side, taken apart in
    time, can be told from noise between runs. With fewer the verdict is "unverified": such metrics are listed only where the two
    runs' own intervals already lie apart, and say so."""
    with ExitStack() as files:
        written_runs: list[tuple[str, Any]] = []
        sides = [word for flag, side in (("--base", baseline), ("--new", current)) for word in _side(flag, side, files, written_runs)]
        limits = [word for limit in fail_on for word in ("--fail-on", limit)]
        said = _command.call("compare", *sides, *limits, *["--force"] * force, "--json", "--no-save", "--no-history")
    comparison = json.loads(named(said, written_runs))
    if comparison["verdict"] in ("unverified", "inconclusive"):
        notes = [note["text"] for note in comparison["notes"] if note["id"] == comparison["verdict"]]
        warnings.warn(": ".join(["detect_regressions", comparison["verdict"], *notes]), RuntimeWarning, stacklevel=2)
    return _regressions(comparison)


def _side(flag: str, side: Any, files: ExitStack, made: list[tuple[str, Any]]) -> list[str]:
    """The options that name a side's runs; what is no file yet is one, in `made`, for as long as `files` is open."""
    out: list[str] = []
    for run in side if isinstance(side, (list, tuple)) else [side]:
        path = run
        if not isinstance(run, (str, os.PathLike)):
            run = getattr(run, "run", run)
            (path,) = files.enter_context(written(run))
            made.append((path, run))
        out += [flag, os.fspath(path)]
    return out


def _regressions(comparison: dict[str, Any]) -> Regressions:
    out = Regressions()
    out.comparison = comparison
    for case in comparison["cases"]:
        for metric in case["metrics"]:
            if metric["verdict"] == "regressed" or (metric["verdict"] == "unverified" and _looks_worse(metric)):
                out.append(
                    Regression(
                        case=case["name"],
                        metric=metric["metric"],
                        baseline=(metric["base"] or {}).get("value"),
                        current=(metric["new"] or {}).get("value"),
                        unit=metric["unit"],
                        ratio=(metric["ratio"] or {}).get("value"),
                        verdict=metric["verdict"],
                        why=metric["why"],
                    )
                )
    return out


def _looks_worse(metric: dict[str, Any]) -> bool:
    """Whether the intervals within the two runs lie apart by more than what counts as no change."""
    evidence = metric.get("evidence") or {}
    low, high = evidence.get("within_runs_lo"), evidence.get("within_runs_hi")
    if low is None or high is None:
        return False
    return low > 1 + metric["min_effect"] if metric["better"] == "less" else high < 1 - metric["min_effect"]
