# SPDX-License-Identifier: MIT
"""Results of ModelProfiler: views of run documents (tare.run/1) in milliseconds and bytes; baselines and regressions.

The document is the truth and is kept whole; nothing is judged here: verdicts are those of `tare compare`.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from typing import Any, Iterable

from tare import _command
from tare._unknown import Unknown, known
from tare._whole_file import write_text

_PERCENTILES = ("p50", "p90", "p95", "p99", "p999")


class ProfileResults(dict):
    """One case of a run: results["latency"]["mean"] in ms, ["throughput"]["samples_per_second"], ["memory"]["peak"] in bytes.

    What was not measured is an Unknown (prints as "unknown") with its reason. `document` is the run document, `case` this case."""

    def __init__(self, document: dict[str, Any], case: dict[str, Any], more: dict[str, Any] | None = None) -> None:
        self.document = document
        self.case = case
        reasons = case.get("unknown") or {}
        super().__init__(
            name=case["name"],
            params=case["params"],
            runs=case["samples"],
            latency=latency_of(case, reasons),
            throughput=_throughput(case, reasons),
            memory=_memory(case, reasons),
            cpu=case.get("cpu"),
            io=case.get("io"),
            gpu=case.get("gpu") or Unknown(reasons.get("gpu", "no GPU was watched")),
            load_ms=_ms(case.get("load_ns"), reasons, "load_ns"),
            first_run_ms=_ms(case.get("first_run_ns"), reasons, "first_run_ns"),
            findings=[f for f in document["findings"] if f.get("case") in (None, case["name"])],
            self=case.get("self"),
            unknown=reasons,
        )
        self.update(more or {})

    def __str__(self) -> str:
        return "\n".join(_summary(self))

    def save(self, path: str | os.PathLike) -> str:
        """Writes the run document, for load_baseline and `tare compare`. The path."""
        return write_text(path, json.dumps(self.document, indent=1))

    def to_dict(self) -> dict[str, Any]:
        return dict(self)


def _ms(ns: float | None, reasons: dict[str, str], path: str) -> float:
    return Unknown(reason_for(reasons, path)) if ns is None else ns / 1e6


def reason_for(reasons: dict[str, str], path: str) -> str:
    """The reason recorded for `path`, or for what it lies in."""
    while path:
        if path in reasons:
            return reasons[path]
        path = path.rpartition(".")[0]
    return "not measured"


def latency_of(case: dict[str, Any], reasons: dict[str, str]) -> dict[str, Any]:
    times = case.get("latency_ns") or {}
    out = {key: _ms(times.get(key), reasons, "latency_ns." + key) for key in ("mean", "min", "max")}
    out["std"] = _ms(times.get("stddev"), reasons, "latency_ns.stddev")
    out["intervals"] = {}
    for name in _PERCENTILES:
        estimate = times.get(name)
        out[name] = _ms(estimate and estimate["value"], reasons, "latency_ns." + name)
        if estimate:
            out["intervals"][name] = tuple(_ms(estimate.get(b), reasons, f"latency_ns.{name}.{b}") for b in ("lo", "hi"))
    return out


def _throughput(case: dict[str, Any], reasons: dict[str, str]) -> dict[str, Any]:
    found = case.get("throughput")
    if not found:
        return {"samples_per_second": Unknown(reason_for(reasons, "throughput"))}
    units = case.get("units_per_run") or 1
    return {
        "samples_per_second": found["value"],
        "interval": (found.get("lo"), found.get("hi")),
        "requests_per_second": found["value"] / units,
        "unit": found["unit"],
    }


def _memory(case: dict[str, Any], reasons: dict[str, str]) -> dict[str, Any]:
    found = case.get("memory") or {}

    def value(key: str) -> Any:
        number = found.get(key)
        return Unknown(reason_for(reasons, "memory." + key)) if number is None else number

    return {
        "peak": value("rss_peak"),
        "average": value("rss_mean"),
        "before": value("rss_before"),
        "delta": value("delta"),
        "per_sample": value("per_unit"),
        "growth_per_run": value("growth"),
        "fragmentation": value("fragmentation"),
    }


def _summary(results: ProfileResults) -> Iterable[str]:
    latency, rate, memory = results["latency"], results["throughput"], results["memory"]
    yield f"{results.document['subject']['name']}, {results['name']}: {results['runs']} runs"
    yield "  latency     " + ", ".join(f"{key} {latency[key]:.4g}" for key in ("mean", "p50", "p95", "p99", "max")) + " ms"
    yield f"  throughput  {rate['samples_per_second']:.1f} {rate.get('unit', 'samples/s')}"
    yield f"  memory      peak {_bytes(memory['peak'])}, {_bytes(memory['per_sample'])} a sample"
    yield f"  load        {results['load_ms']:.1f} ms, first run {results['first_run_ms']:.4g} ms"
    if "end_to_end" in results:
        yield "  end to end  " + ", ".join(f"{key} {results['end_to_end'][key]:.4g}" for key in ("mean", "p50", "p95")) + " ms"
    if "model" in results:
        model = results["model"]
        yield f"  model       {model['parameters']:,} parameters, {_flops(model)} a run, {_bytes(model['size_bytes'])}"
    for finding in results["findings"]:
        yield f"  {finding['severity']:<11} {finding['title']}"


def _bytes(number: float) -> str:
    return f"{number / 2**20:.2f} MiB" if known(number) else "unknown"


def _flops(model: dict[str, Any]) -> str:
    least = "at least " if model.get("uncounted") else ""
    return f"{least}{_large(model['flops'])}FLOPs"


def _large(number: float) -> str:
    """1.23 M, 4.5 G: for a unit to follow."""
    if not known(number):
        return "unknown "
    return next((f"{number / size:.3g} {letter}" for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if number >= size), f"{number} ")


def load_baseline(path: str | os.PathLike) -> ProfileResults:
    """Results saved by export_json, ProfileResults.save, `python -m tare profile` or `tare bench`. ValueError names what is wrong."""
    path = os.fspath(path)
    _command.call("report", path, "--json")  # the reader that checks the whole document and names file, place and cause
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if not document["cases"]:
        raise ValueError(f"{path}: the run holds no cases")
    return ProfileResults(document, document["cases"][0])


class Regression(dict):
    """One metric of one case that got worse: metric, case, ratio, verdict ("regressed", or "unverified"), why."""

    def __repr__(self) -> str:
        change = f"{100 * (self['ratio'] - 1):+.1f} %"
        doubt = f" (unverified: {self['why']})" if self["verdict"] == "unverified" else ""
        return f"{self['case']} {self['metric']} {change}{doubt}"


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
    time, can be told from the machine's mood. With fewer the verdict is "unverified": such metrics are listed only where the two
    runs' own intervals already lie apart, and say so."""
    with tempfile.TemporaryDirectory() as folder:
        sides = [*_side("--base", baseline, folder), *_side("--new", current, folder)]
        limits = [word for limit in fail_on for word in ("--fail-on", limit)]
        said = _command.call("compare", *sides, *limits, *["--force"] * force, "--json", "--no-save", "--no-history")
    comparison = json.loads(said)
    if comparison["verdict"] in ("unverified", "inconclusive"):
        notes = [note["text"] for note in comparison["notes"] if note["id"] == comparison["verdict"]]
        warnings.warn(": ".join(["detect_regressions", comparison["verdict"], *notes]), RuntimeWarning, stacklevel=2)
    return _regressions(comparison)


def _side(flag: str, side: Any, folder: str) -> list[str]:
    runs = side if isinstance(side, (list, tuple)) else [side]
    out: list[str] = []
    for number, run in enumerate(runs):
        path = run if isinstance(run, (str, os.PathLike)) else run.save(os.path.join(folder, f"{flag[2:]}-{number}.json"))
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
                        baseline=metric["base"]["value"],
                        current=metric["new"]["value"],
                        unit=metric["unit"],
                        ratio=metric["ratio"]["value"],
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
