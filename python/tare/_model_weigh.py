# SPDX-License-Identifier: MIT
"""Weighing one configuration of a model: the run document of `tare bench` for ONNX files, of tare.bench for what runs in Python."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import tempfile
from itertools import cycle
from time import perf_counter_ns
from typing import Any, Callable

from tare import _command, _gpu
from tare._bench import Failed, Timed, bench
from tare._model_inputs import Inputs
from tare._model_layers import LayerProfiles, group_row, warn_of_missing
from tare._model_results import latency_of
from tare._model_subject import DeviceError, ModelError
from tare._run import Case, Run
from tare._unknown import Unknown

_LONG = "1h"  # runs are counted, so the budget is only there to end what never would


def weigh(subject: Any, inputs: Inputs | None, settings: dict[str, Any]) -> Run:
    """A Run with one case. settings: runs, warmup (a number or "auto"), batch (None: that of the inputs), unit, targets."""
    document = (_weigh_onnx if subject.kind == "onnx" else _weigh_callable)(subject, inputs, settings)
    device = getattr(subject, "device", "cpu")
    return Run.of(document if device == "cpu" else _gpu.tell(document, device))


def failed(subject: Any, inputs: Inputs | None, error: Exception, settings: dict[str, Any]) -> Run:
    """The same of a configuration that raised: its case has the reason and no numbers. settings: batch, unit, targets."""
    units = settings["batch"] or (inputs and inputs.batch())
    sizes = {"batch_sizes": [units], "make_input": lambda batch, length: ()} if units else {}
    run = bench(Failed(error), name=subject.name, unit=settings["unit"], warmup=0, targets=settings["targets"], **sizes)
    document = run.to_dict()
    _complete(document, subject, inputs, units)
    return Run.of(document)


# ---- what runs in Python ---------------------------------------------------------------------------------------------------


def _weigh_callable(subject: Any, inputs: Inputs, settings: dict[str, Any]) -> dict[str, Any]:
    units = settings["batch"] or inputs.batch()
    run = bench(
        subject.function,
        make_input=lambda batch, length: inputs.args,
        kwargs=inputs.kwargs,
        name=subject.name,
        batch_sizes=[units],
        unit=settings["unit"],
        warmup=settings["warmup"],
        min_runs=settings["runs"],
        max_runs=settings["runs"],
        budget=_LONG,
        targets=settings.get("targets", ()),
    )
    document = run.to_dict()
    _complete(document, subject, inputs, units)
    return document


class Whole:
    """A subject with preprocess and postprocess around it. Each call tells the nanoseconds of the model alone, and keeps those of all
    three: both are of the same runs."""

    def __init__(self, subject: Any, prepare: Callable[[Any], Inputs] | None, finish: Callable[[Any], Any] | None) -> None:
        self._subject, self._prepare, self._finish = subject, prepare, finish
        self._seen: list[tuple[int, int, int]] = []  # ns of preprocess, model, postprocess
        self.function = Timed(self._call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._subject, name)

    def _call(self, *args: Any, **kwargs: Any) -> int:
        start = perf_counter_ns()
        if self._prepare:
            ready = self._prepare(self._subject)
            args, kwargs = ready.args, ready.kwargs
        ready_at = perf_counter_ns()
        out = self._subject.function(*args, **kwargs)
        done_at = perf_counter_ns()
        if self._finish:
            self._finish(out)
        end = perf_counter_ns()
        if not _gpu.recording:
            self._seen.append((ready_at - start, done_at - ready_at, end - done_at))
        return done_at - ready_at

    def end_to_end(self, case: Case) -> dict[str, Any]:
        """Latency of all three in the case's runs, and the mean time and share of each part."""
        seen = self._seen[-case.samples * (case.get("calls_per_sample") or 1) :]
        times = cycle([sum(parts) for parts in seen])
        run = bench(Timed(lambda: next(times)), warmup=0, min_runs=len(seen), max_runs=len(seen), budget=_LONG)
        whole = sum(map(sum, seen))
        parts = {name: sum(ns) for name, ns in zip(("preprocess", "model", "postprocess"), zip(*seen))}
        shares = {name: {"mean": ns / len(seen) / 1e6, "share": ns / whole} for name, ns in parts.items()}
        return {**latency_of(run.cases[0]), "parts": shares}


def _complete(document: dict[str, Any], subject: Any, inputs: Inputs | None, units: int | None) -> None:
    """What the harness cannot know of a model: its file, framework, precision and loading time."""
    case = document["cases"][0]
    tokens = inputs and inputs.tokens()
    params = {
        "batch": units,
        "seq": tokens and tokens // inputs.batch(),
        "precision": getattr(subject, "precision", None),
        "device": getattr(subject, "device", None),
    }
    params = {key: value for key, value in params.items() if value is not None}
    renamed = {case["name"]: ",".join(f"{key}={value}" for key, value in params.items() if key != "device") or case["name"]}
    _rename(document, renamed)
    case["params"].update(params)
    document["subject"].update(_described(subject))
    if not case.get("samples"):
        return
    case["load_ns"] = subject.load_ns or None
    if not case["load_ns"]:
        case.setdefault("unknown", {})["load_ns"] = "it was in memory already"


def _rename(document: dict[str, Any], renamed: dict[str, str]) -> None:
    """Gives cases new names wherever the document speaks of them."""
    recommendation = document.get("recommendation") or {}
    for item in [*document["findings"], *document["targets"], recommendation]:
        if item.get("case") in renamed:
            item["case"] = renamed[item["case"]]
    for case in document["cases"]:
        case["name"] = renamed.get(case["name"], case["name"])


def _described(subject: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"name": subject.name}
    if subject.module is not None:
        import torch

        out.update(type=subject.kind, runtime={"name": "torch", "version": torch.__version__})
    if subject.path and os.path.isfile(subject.path):
        out.update(path=subject.path, size_bytes=os.path.getsize(subject.path), sha256=_sha256(subject.path))
    return out


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# ---- ONNX files ------------------------------------------------------------------------------------------------------------


def _weigh_onnx(subject: Any, inputs: Inputs | None, settings: dict[str, Any]) -> dict[str, Any]:
    runs = settings["runs"]
    words = ["--min-runs", runs, "--max-runs", runs, "--budget", _LONG, "--warmup", settings["warmup"], "--unit", settings["unit"]]
    words += [word for target in settings.get("targets", ()) for word in ("--target", target)]
    document = _bench(subject, inputs, settings["batch"], words)
    if subject.precision != "fp32":  # made from the file here, so that the file's name does not tell
        case = document["cases"][0]
        case["params"]["precision"] = subject.precision
        _rename(document, {case["name"]: f"{case['name']},precision={subject.precision}"})
    return document


def _bench(subject: Any, inputs: Inputs | None, batch: int | None, words: list[Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        size = batch or (inputs.batch() if inputs else None)
        words = [*words, *(("--batch", size) if size else ()), *_runtime(), *_inputs_file(inputs, folder)]
        words += ["--provider", "cuda"] if subject.device.startswith("cuda") else []
        try:
            return json.loads(_command.call("bench", subject.path, *words, "--json", "--no-save"))
        except RuntimeError as why:
            raise (DeviceError if "Runtime" in str(why) else ModelError)(str(why)) from None


def _runtime() -> list[str]:
    """This interpreter's own onnxruntime, so that what is weighed is what the program would use."""
    found = importlib.util.find_spec("onnxruntime")
    folder = found and os.path.join(os.path.dirname(found.origin or ""), "capi")
    names = sorted(name for name in os.listdir(folder) if name.startswith("libonnxruntime.so")) if folder and os.path.isdir(folder) else []
    return ["--ort", os.path.join(folder, names[0])] if names else []


def _inputs_file(inputs: Inputs | None, folder: str) -> list[str]:
    """Named arrays as an .npz, the others as an ONNX test_data_set, which goes by position."""
    if inputs is None:
        return []
    try:
        import numpy
    except ImportError:
        raise ModelError("inputs for an ONNX file are handed over as arrays, which needs numpy") from None
    if inputs.kwargs:
        path = os.path.join(folder, "inputs.npz")
        numpy.savez(path, **{name: numpy.asarray(value) for name, value in inputs.kwargs.items()})
        return ["--inputs", path]
    for place, value in enumerate(inputs.args):
        with open(os.path.join(folder, f"input_{place}.pb"), "wb") as file:
            file.write(_tensor_proto(numpy.ascontiguousarray(value)))
    return ["--inputs", folder]


# numpy's names of element types: ONNX's numbers for them
_ELEMENTS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip


def _tensor_proto(array: Any) -> bytes:
    """An ONNX TensorProto without a name: dims (1), data_type (2), raw_data (9)."""
    element = _ELEMENTS.get(array.dtype.name)
    if element is None:
        raise ModelError(f"input_data: an ONNX model takes no {array.dtype.name}")
    raw = array.tobytes()
    dims = b"".join(b"\x08" + _varint(size) for size in array.shape)
    return dims + b"\x10" + _varint(element) + b"\x4a" + _varint(len(raw)) + raw


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def static_of_onnx(subject: Any, batch: int | None) -> dict[str, Any]:
    """What `tare inspect` says of the graph."""
    words = ["--batch", batch] if batch else []
    document = json.loads(_command.call("inspect", subject.path, *words, "--json"))
    static = document["subject"]["static"]
    why = static.get("unknown") or {}
    return {
        "parameters": static["parameters"],
        "size_bytes": document["subject"]["size_bytes"],
        "flops": _or_unknown(static["cost_per_run"], "flops", why),
        "macs": _or_unknown(static["cost_per_run"], "macs", why),
        "uncounted": static["unknown_ops"],
        "activation_bytes": _or_unknown(static, "activation_sum", why),
        "activation_peak_bytes": _or_unknown(static, "activation_peak", why),
    }


def _or_unknown(where: dict[str, Any], key: str, why: dict[str, str]) -> Any:
    value = where.get(key)
    return Unknown(why.get(key, "not known of this graph")) if value is None else value


def layers_of_onnx(subject: Any, inputs: Inputs | None, layer_names: list[str] | None, settings: dict[str, Any]) -> LayerProfiles:
    """The layers of `tare bench --layers`: from a pass of its own with ONNX Runtime's profiler. settings: runs, batch."""
    runs = settings["runs"]
    wanted = ["--layers" if layer_names is None else "--layers=" + ",".join(layer_names)]
    document = _bench(subject, inputs, settings["batch"], [*wanted, "--min-runs", runs, "--max-runs", runs, "--budget", _LONG])
    case = document["cases"][0]
    profile, layers = case.get("profile") or {}, case["layers"] or []
    out = LayerProfiles()
    out.runs = profile.get("runs") or runs
    out.self_ns = profile.get("node_ns") or 0
    # All of the profiled pass itself: the machine may have been faster or slower when latency was measured.
    out.profiled_ms = sum(layer.get("time_ns") or 0 for layer in layers) / 1e6
    covered = profile.get("covered")
    out.total_ms = out.profiled_ms / covered if covered else Unknown("the profiler's pass has no runs without it")
    out.params = case["params"]
    groups: dict[str, list[dict[str, Any]]] = {name: [] for name in layer_names or ()}
    for layer in layers:
        group = layer["name"] if layer_names is None else layer.get("group")
        if layer_names is None or group in groups:
            groups.setdefault(group, []).append(_node_row(layer, out.runs, out.self_ns))
    warn_of_missing(groups, sorted({layer["op"] for layer in layers if layer["op"]}))
    for group, nodes in groups.items():
        out[group] = group_row(nodes, out.profiled_ms)
    return out


def _node_row(layer: dict[str, Any], runs: int, node_ns: float) -> dict[str, Any]:
    def value(key: str, why: str) -> Any:
        return Unknown(why) if layer.get(key) is None else layer[key]

    calls, time_ms = (layer.get("calls") or 0) / runs, value("time_ns", "the runtime's profile has no such node") * 1e-6
    return {
        "name": layer["name"],
        "type": layer["op"],
        "calls": calls,
        "time_ms": time_ms,
        "time_most_ms": time_ms + calls * node_ns * 1e-6,
        "parameters": layer.get("parameters") or 0,
        "flops": value("flops", "no cost rule covers it"),
        "flops_complete": layer.get("flops") is not None,
        "activation_bytes": value("output_bytes", "its shape is not known"),
        "bound": layer.get("bound"),
    }
