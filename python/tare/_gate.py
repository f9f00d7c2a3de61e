# SPDX-License-Identifier: MIT
"""What the command lines of the package share with `tare bench`: an earlier run to compare with, what may fail, the history."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from typing import Any

from tare import _command
from tare._model_results import detect_regressions
from tare._run import Run

EXIT = "Exit status: 0 good, 1 {what}, a case failed, or a regression; 2 bad input, 3 could not measure, or undecided under --strict."


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baseline", nargs="+", action="extend", default=[], metavar="RUN", help="earlier results to compare with")
    limit = "fail only if this metric is worse by more than this, with confidence, as in latency.p95>5%%"
    parser.add_argument("--fail-on", action="append", default=[], metavar="LIMIT", help=limit)
    parser.add_argument("--strict", action="store_true", help="exit 3 when a limit or the comparison is undecided")
    parser.add_argument("--history", metavar="FILE", help="the history (default: as `tare bench`)")
    parser.add_argument("--no-history", action="store_true", help="keep this run out of the history")


def history(asked: argparse.Namespace) -> Any:
    """As Run.save() takes it."""
    return False if asked.no_history else asked.history or True


def check(asked: argparse.Namespace, folder: str) -> None:
    """The files that are read, and where results go: now, and not when all has been measured. ValueError names what is wrong."""
    for place in (folder, *([os.path.dirname(asked.history) or "."] if asked.history and not asked.no_history else [])):
        there = os.path.abspath(place)
        while not os.path.lexists(there):
            there = os.path.dirname(there)
        try:  # nothing but doing it tells: /proc is a folder that root may write to
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as why:
            raise ValueError(f"{place}: results cannot go there: {why.strerror}") from None
    for path in asked.baseline:
        if not os.access(path, os.R_OK):
            raise ValueError(f"--baseline {path}: there is no such file, or it may not be read")
        try:
            _command.call("report", path, "--json")
        except RuntimeError as why:
            raise ValueError(f"--baseline {why}") from None
    if asked.fail_on and not asked.baseline:
        raise ValueError("--fail-on goes with --baseline")
    for limit in asked.fail_on:  # read by who judges it: the baseline against itself
        try:
            _command.call("compare", asked.baseline[0], asked.baseline[0], "--fail-on", limit, "--force", "--no-history", "--no-save", "--json")
        except RuntimeError as why:
            if "--fail-on" in str(why):
                raise ValueError(str(why).replace("tare compare: ", "", 1)) from None


def judge(asked: argparse.Namespace, run: Run, targets: list[dict[str, Any]], failed: bool = False) -> int:
    """The exit status, by the verdicts of the targets, by what `tare compare` says of the baseline; under --strict what is open counts."""
    verdicts = {target["verdict"] for target in targets}
    verdict = None
    if asked.baseline:
        found = detect_regressions(asked.baseline, run, fail_on=asked.fail_on)
        verdict = found.verdict
        print(f"against the baseline: {verdict}", file=sys.stderr)
        for one in found:
            print(f"  {one!r}", file=sys.stderr)
        for case in found.comparison["cases"] if asked.fail_on else ():
            for metric in case["metrics"]:
                if metric["role"] == "gate" and metric["verdict"] in ("unverified", "inconclusive"):
                    print(f"  --fail-on {metric['metric']} is not decided for {case['name']}: {metric['why']}", file=sys.stderr)
    for case in run.cases:
        if case.failure:
            some = "some runs of " if case.samples else ""
            print(f"tare: {some}{case.name} failed: {case.failure}", file=sys.stderr)
            failed = True
    if failed or "fail" in verdicts or verdict == "regressed":
        return 1
    undecided = verdict in ("unverified", "inconclusive") or verdicts - {"pass"}
    return 3 if asked.strict and undecided else 0
