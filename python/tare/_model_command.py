# SPDX-License-Identifier: MIT
"""python -m tare profile: a model's profile with thresholds, for CI."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from typing import Any

from tare import _gate, _tare
from tare._answers import recommendation_lines, target_words
from tare._asking import Parser, program
from tare._command import count, counts, keep_run
from tare._model import ModelProfiler
from tare._model_subject import PRECISIONS, DeviceError, ModelError
from tare._run import Run

RESULTS = "profiling_results"
# --threshold word: the metric of a target, and on which side of the value it must stay
_THRESHOLDS = {
    "latency": ("latency.p95", "<="),
    "throughput": ("throughput", ">="),
    "memory": ("memory.peak", "<="),
}
_INPUT = re.compile(r"(?:(?P<type>[a-z]+\d+):)?(?P<shape>\d+(?:x\d+)*)")


def parser() -> argparse.ArgumentParser:
    out = Parser(
        prog=program("profile"),
        description="Profile a model: an .onnx file, a saved PyTorch module, TorchScript, or a folder with one of them.",
        epilog=_gate.EXIT.format(what="a threshold missed"),
    )
    out.add_argument("--model-path", required=True, metavar="PATH", help="file or folder of the model")
    out.add_argument("--output-dir", metavar="DIR", help=f"where results go (default {RESULTS}), and the history with them, if given")
    out.add_argument(
        "--threshold", nargs="+", action="extend", default=[], metavar="METRIC:VALUE",
        help="limits: latency:100ms (the 95th percentile; latency.p50, latency.mean, .. are known too), "
        "throughput:1000samples/s, memory:4GB",
    )
    out.add_argument("--batch-size", type=counts, default=[None], metavar="N,..", help="batch sizes (default: that of the inputs)")
    out.add_argument("--precision", choices=PRECISIONS, help="default: as the model is")
    out.add_argument("--device", default="cpu", help="cpu, cuda, cuda:N (default %(default)s)")
    out.add_argument("--fallback", choices=["cpu"], help="where to go when the device is not there")
    out.add_argument("--num-runs", type=count, default=100, metavar="N", help="measured runs (default %(default)s)")
    out.add_argument("--warmup-runs", type=count, default=10, metavar="N", help="runs before them (default %(default)s)")
    out.add_argument("--input", metavar="TYPE:SHAPE", help="synthetic input, as in float32:8x3x224x224 or int64:32x128")
    out.add_argument("--inputs", metavar="FILE", help="real inputs: .npy or .npz")
    _gate.add_options(out)
    out.add_argument("--layers", action="store_true", help="print the layers too")
    out.add_argument("--html", action="store_true", help="write an HTML page too")
    out.add_argument("--json", action="store_true", help="print the run document")
    return out


def target_of(threshold: str) -> str:
    """'latency:100ms' -> 'latency.p95<=100ms', which the harness judges."""
    word, colon, value = threshold.partition(":")
    metric, op = _THRESHOLDS.get(word, (word, _THRESHOLDS.get(word.partition(".")[0], (None, None))[1]))
    if not colon or not value or op is None:
        known = ", ".join(f"{name}:VALUE" for name in _THRESHOLDS)
        raise ModelError(f"--threshold {threshold}: {known} are known")
    return f"{metric}{op}{value}"


def _made_input(text: str) -> Any:
    found = _INPUT.fullmatch(text)
    if not found:
        raise ModelError(f"--input {text}: expected TYPE:SHAPE, as in float32:8x3x224x224")
    import numpy

    kind, shape = found["type"] or "float32", tuple(map(int, found["shape"].split("x")))
    try:
        dtype = numpy.dtype(kind)
    except TypeError:
        raise ModelError(f"--input {text}: {kind} is no type of numbers") from None
    random = numpy.random.default_rng(0)
    return random.integers(0, 100, shape).astype(dtype) if dtype.kind in "iu" else random.standard_normal(shape).astype(dtype)


def _read_inputs(path: str) -> Any:
    import numpy

    try:
        found = numpy.load(path, allow_pickle=False)
    except (OSError, ValueError) as why:
        raise ModelError(f"{path}: {why}") from None
    return dict(found) if hasattr(found, "files") else found


def _inputs(asked: argparse.Namespace) -> Any:
    if asked.input and asked.inputs:
        raise ModelError("--input and --inputs: one of them")
    return _made_input(asked.input) if asked.input else _read_inputs(asked.inputs) if asked.inputs else None


def run(asked: argparse.Namespace) -> int:
    _gate.check(asked, asked.output_dir or RESULTS)
    targets = [target_of(threshold) for threshold in asked.threshold]
    inputs = _inputs(asked)
    profiler = ModelProfiler(asked.model_path, device=asked.device, precision=asked.precision, fallback=asked.fallback, targets=targets)
    results = profiler.profile_sizes(inputs, asked.batch_size, asked.num_runs, asked.warmup_runs)
    run = profiler.run
    path = _tare.save_run(asked.output_dir or RESULTS, "profile", run.subject, run.to_dict()["created"], run.to_json())
    keep_run(path, _gate.history(asked), asked.output_dir)
    if asked.json:
        print(run.to_json())
    else:
        print(*results, *recommendation_lines(run), *([profiler.profile_layers()] if asked.layers else []), sep="\n")
    print(f"saved {path}", file=sys.stderr)
    if asked.html:
        print(f"saved {profiler.generate_html_report(os.path.splitext(path)[0] + '.html')}", file=sys.stderr)
    _tell_targets(run, sys.stderr if asked.json else sys.stdout)
    return _gate.judge(asked, run, run.targets)


def _tell_targets(run: Run, out: Any) -> None:
    for target in run.targets:
        limit, achieved = target_words(target)
        where = f" ({target['case']})" if target.get("case") else ""
        why = f": {target['why']}" if target.get("why") else ""
        print(f"{target['verdict']:<13}{target['metric']} {target['op']} {limit}: {achieved}{where}{why}", file=out)


def main(argv: list[str]) -> int:
    asked = parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"tare profile: {message}", file=sys.stderr)
            return run(asked)
    except ValueError as why:  # ModelError, and what the harness says of a target
        print(f"tare profile: {why}", file=sys.stderr)
        return 2
    except (DeviceError, OSError) as why:
        print(f"tare profile: {why}", file=sys.stderr)
        return 3
    except Exception as why:  # the model's own: anything may come
        print(f"tare profile: the model failed: {type(why).__name__}: {why}", file=sys.stderr)
        return 3
