# SPDX-License-Identifier: MIT
"""What the text profilers call: a function, an object with .encode or .predict (as sentence-transformers has them), a name that says
where to find one, or a synthetic model of a known shape with random weights. Nothing here measures."""

from __future__ import annotations

import inspect
import os
import re
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from typing import Any, Callable

from tare import _command
from tare._bench import function_name, is_async

# The order in which cross-encoder/nli-deberta-v3-base answers.
NLI_LABELS = ("contradiction", "entailment", "neutral")
_RANKS = {"encode": 3, "predict": 2}  # dimensions of the first output
_DEFAULTS = {"encode": "minilm-l6", "predict": "deberta-v3-nli"}
_LIBRARIES = ("torch", "onnxruntime", "transformers", "sentence_transformers", "numpy")


class TextModelError(ValueError):
    """A model that cannot be used, and why."""


@dataclass
class TextModel:
    """A model ready to be called with one batch."""

    name: str
    call: Callable[[list], Any]
    device: str | None
    weights: str | None  # what they are, where the model is synthetic
    labels: tuple = ()  # names of its classes, in the order of its scores
    versions: dict = field(default_factory=dict)


def text_model(model: Any, method: str, name: str | None = None) -> TextModel:
    """`model`: something with `method`, a function of a list, or text for load_model(); None: a synthetic one."""
    if model is None:
        model = f"synth:{_DEFAULTS[method]}"
    if isinstance(model, (str, os.PathLike)):
        spec = os.fspath(model)
        model = load_model(spec, method)
        name = name or getattr(model, "name", None) or spec
    call = _call_of(model, method)
    return TextModel(
        name=name or _name_of(model),
        call=call,
        device=_device_of(model),
        weights=getattr(model, "weights", None),
        labels=_labels_of(model),
        versions=_versions(),
    )


def _call_of(model: Any, method: str) -> Callable[[list], Any]:
    bound = getattr(model, method, None)
    if bound is None and not callable(model):
        raise TextModelError(f"{type(model).__name__} can be profiled neither by .{method}(batch) nor by calling it with a batch")
    function = bound or model
    if is_async(function):
        raise TextModelError(f"{function_name(function)} is async: wrap it in a function that waits for its answer")
    return _with_options(function) if bound is not None else function


def _with_options(function: Callable[..., Any]) -> Callable[[list], Any]:
    """sentence-transformers cuts what it is given into batches of 32 unless it is told otherwise."""
    try:
        takes = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return function
    quiet = {"show_progress_bar": False} if "show_progress_bar" in takes else {}
    if "batch_size" in takes:
        return lambda batch: function(batch, batch_size=len(batch), **quiet)
    return (lambda batch: function(batch, **quiet)) if quiet else function


def _name_of(model: Any) -> str:
    given = getattr(model, "name", None)
    return given if isinstance(given, str) else function_name(model) if callable(model) else type(model).__name__


def _device_of(model: Any) -> str | None:
    device = getattr(model, "device", None)
    return None if device is None else str(device)


def _labels_of(model: Any) -> tuple:
    """Names of classes, where the model tells them as transformers does."""
    for holder in (model, getattr(model, "model", None)):
        names = getattr(getattr(holder, "config", None), "id2label", None)
        if names:
            return tuple(str(names[key]).lower() for key in sorted(names, key=int))
    return ()


def _versions() -> dict[str, str]:
    loaded = ((name, sys.modules.get(name)) for name in _LIBRARIES)
    return {name: str(module.__version__) for name, module in loaded if hasattr(module, "__version__")}


# ---- by name ----


def load_model(spec: str, method: str) -> Any:
    """synth:ARCHITECTURE[,layers=2,..] | FILE.py:NAME or MODULE:NAME, with () to call it first | what sentence-transformers can load."""
    if spec.startswith("synth:"):
        return SynthModel(spec[len("synth:") :], method)
    if re.search(r":[A-Za-z_][\w.]*(\(\))?$", spec):
        return _load_object(spec)
    try:
        import sentence_transformers
    except ImportError:
        raise TextModelError(
            f"{spec}: models are loaded by name with sentence-transformers, which is not installed here (pip install "
            "sentence-transformers); without it: FILE.py:NAME, MODULE:NAME, or synth:ARCHITECTURE"
        ) from None
    kind = sentence_transformers.SentenceTransformer if method == "encode" else sentence_transformers.CrossEncoder
    try:
        return kind(spec)
    except Exception as why:  # a model's own code may run
        raise TextModelError(f"{spec}: {kind.__name__} cannot load it: {type(why).__name__}: {why}") from why


def _load_object(spec: str) -> Any:
    from tare._worker import BadInput, locate

    try:
        found = locate(spec[:-2] if spec.endswith("()") else spec)[1]
        return found() if spec.endswith("()") else found
    except BadInput as why:
        raise TextModelError(str(why)) from None


# ---- synthetic ----


class SynthModel:
    """A known architecture with seeded random weights, written by `tare synth` and run by ONNX Runtime. Texts become tokens by hashing
    words: times and memory are those of the shape, answers mean nothing."""

    device = "cpu"

    def __init__(self, spec: str, method: str) -> None:
        numpy, onnxruntime = _runtime()
        architecture, *changes = spec.split(",")
        sizes = dict(change.split("=", 1) for change in changes if "=" in change)
        self._numpy = numpy
        self.max_length = int(sizes.get("positions", 512))
        self.vocabulary = int(sizes.get("vocab", 30000))  # no original knows fewer
        self.name = f"{architecture} shape" + (f" ({', '.join(changes)})" if changes else "")
        self.weights = "random, seed 1: answers mean nothing"
        with tempfile.TemporaryDirectory(prefix="tare-synth-") as folder:
            path = os.path.join(folder, "model.onnx")
            _write_synth(architecture, changes, path)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._takes = [entry.name for entry in self._session.get_inputs()]
        if self._takes[0] != "input_ids" or len(self._session.get_outputs()[0].shape) != _RANKS[method]:
            raise TextModelError(f"synth:{spec}: it does not {method} texts; synth:{_DEFAULTS[method]} does")

    def encode(self, texts: list[str]) -> Any:
        """Mean of the last hidden states over the tokens, of length 1."""
        feed = self._feed([self._ids(text) for text in texts])
        hidden = self._session.run(None, feed)[0]
        mask = feed["attention_mask"][:, :, None]
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return mean / self._numpy.linalg.norm(mean, axis=1, keepdims=True)

    def predict(self, pairs: list[tuple[str, str]]) -> Any:
        """Three scores for each pair, in the order of NLI_LABELS."""
        return self._session.run(None, self._feed([self._ids(*pair) for pair in pairs]))[0]

    def _ids(self, *texts: str) -> list[int]:
        first, last = 1, 2  # [CLS] and [SEP]
        ids = [first]
        for text in texts:
            words = re.findall(r"\w+|[^\w\s]", text.lower())
            ids += [3 + zlib.crc32(word.encode()) % (self.vocabulary - 3) for word in words] + [last]
        return ids[: self.max_length]

    def _feed(self, rows: list[list[int]]) -> dict[str, Any]:
        numpy = self._numpy
        ids = numpy.zeros((len(rows), max(map(len, rows))), dtype=numpy.int64)
        mask = numpy.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        made = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        return {name: made[name] for name in self._takes}


def _runtime() -> tuple[Any, Any]:
    try:
        import numpy
        import onnxruntime
    except ImportError as missing:
        raise TextModelError(
            f"no model was given, and the synthetic one needs {missing.name}, which is not installed here: pip install numpy "
            "onnxruntime, or give a model"
        ) from None
    return numpy, onnxruntime


def _write_synth(architecture: str, changes: list[str], path: str) -> None:
    options = [word for change in changes for word in ("--" + change).split("=", 1)]
    try:
        _command.call("synth", architecture, "-o", path, *options)
    except RuntimeError as why:
        raise TextModelError(f"synth:{','.join([architecture, *changes])}: {why}") from None
