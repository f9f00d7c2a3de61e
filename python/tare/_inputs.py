# SPDX-License-Identifier: MIT
"""What a callable is fed with in one case: so many items, so many words each. Shared by tare.bench and the worker of
`tare bench py:..`. Never shuffles: the same case always gets the same input."""

import json
import os
from itertools import cycle, islice


def fit_text(item, length):
    """A text of `length` words, or a list of `length` elements: cut, or repeated from its start."""
    if isinstance(item, str):
        words = item.split()
        if not words:
            raise ValueError("an input text without words cannot be given a length")
        return " ".join(islice(cycle(words), length))
    if isinstance(item, (list, tuple)):
        if not item:
            raise ValueError("an empty input cannot be given a length")
        if all(isinstance(part, str) for part in item):  # a pair of texts, as a cross-encoder takes them
            return type(item)(fit_text(part, length) for part in item)
        return type(item)(islice(cycle(item), length))
    raise TypeError(f"lengths are for texts and lists, not for {type(item).__name__}: give make_input=")


def _take(items, batch):
    """The first `batch` items, from the start again when there are fewer."""
    if hasattr(items, "shape"):  # an array or tensor of numpy, torch, ..: rows
        return items[:batch] if batch <= len(items) else items[[i % len(items) for i in range(batch)]]
    return list(islice(cycle(items), batch))


def is_batch(value):
    """Whether a value is many items rather than one: a list, a tuple, an array with a first axis."""
    return isinstance(value, (list, tuple)) or bool(getattr(value, "shape", ()))


def fit(items, batch, length):
    """The input of one case. batch 0: all items; length 0: as they are. One text alone is fitted in length only."""
    if not is_batch(items):
        if batch:
            raise TypeError(
                f"batch sizes need a list, tuple or array of items to cut batches from, not {type(items).__name__}: "
                "give make_input="
            )
        return fit_text(items, length) if length else items
    if not len(items):
        raise ValueError("there are no inputs: the list of items is empty")
    chosen = _take(items, batch) if batch else items
    if not length:
        return chosen
    if hasattr(chosen, "shape"):
        raise TypeError("lengths are for texts and lists, not for arrays: give make_input=")
    return [fit_text(item, length) for item in chosen]


# ---- files ----


def _read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line.strip()]


def _read_json(path):
    with open(path, encoding="utf-8") as file:
        items = json.load(file)
    if not isinstance(items, list):
        raise ValueError(f"{path}: expected a list, got {type(items).__name__}")
    return items


def _read_npy(path):
    import numpy

    return numpy.load(path, allow_pickle=False)


_READERS = {".json": _read_json, ".npy": _read_npy}


def read(path):
    """Items of a file: .json a list, .npy an array, anything else a text per line. ValueError or OSError names the file."""
    reader = _READERS.get(os.path.splitext(path)[1].lower(), _read_lines)
    try:
        items = reader(path)
    except ImportError:
        raise ValueError(f"{path}: reading .npy needs numpy, which this Python does not have") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as bad:
        raise ValueError(f"{path}: {bad}") from None
    except ValueError as bad:
        raise ValueError(str(bad) if path in str(bad) else f"{path}: {bad}") from None
    if not len(items):
        raise ValueError(f"{path}: holds no inputs")
    return items
