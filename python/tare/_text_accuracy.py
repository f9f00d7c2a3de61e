# SPDX-License-Identifier: MIT
"""Are the answers still the same at another batch size, and right? Collects answers and lets src/analyze judge them; no clock."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from operator import mul
from typing import Any, Callable

from tare import _tare

SAME_COSINE = 0.999  # the least that an embedding may turn
MOST_COMPARED = 200  # items that are compared, at most: each with each, for neighbours


@dataclass
class Answers:
    """One row of numbers for each item."""

    values: array
    columns: int

    def row(self, number: int) -> array:
        return self.values[number * self.columns : (number + 1) * self.columns]

    def __len__(self) -> int:
        return len(self.values) // self.columns


def _as_row(answer: Any, labels: tuple) -> list[float]:
    if isinstance(answer, str):
        if answer.lower() not in labels:
            raise ValueError(f"the model answers {answer!r}, which is none of the labels {', '.join(labels) or '(there are none)'}")
        return [float(labels.index(answer.lower()))]
    plain = answer.tolist() if hasattr(answer, "tolist") else answer
    return [float(x) for x in plain] if isinstance(plain, (list, tuple)) else [float(plain)]


def collect(call: Callable[[list], Any], items: list, batch: int, labels: tuple = ()) -> Answers:
    """What the model answers to all items, `batch` at a time."""
    values, columns = array("d"), None
    for start in range(0, len(items), batch):
        asked = items[start : start + batch]
        given = call(asked)
        if not hasattr(given, "__len__") or len(given) != len(asked):
            count = len(given) if hasattr(given, "__len__") else "no list of"
            raise ValueError(f"the model gives {count} answers to a batch of {len(asked)}: one for each item is needed to compare them")
        for answer in given:
            row = _as_row(answer, labels)
            columns = columns or len(row)
            if len(row) != columns or not row:
                raise ValueError(f"the model gives answers of different sizes: {columns} and {len(row)} numbers")
            values.extend(row)
    return Answers(values, columns)


# ---- with labels ----


def nearest(answers: Answers, labels: list) -> Answers:
    """For each item the label (as a number) of the one whose answer points in the most similar direction."""
    rows = [answers.row(number) for number in range(len(answers))]
    lengths = [sum(map(mul, row, row)) ** 0.5 or 1.0 for row in rows]
    found = array("d")
    for number, row in enumerate(rows):
        cosines = [sum(map(mul, row, other)) / length for other, length in zip(rows, lengths)]
        cosines[number] = float("-inf")
        found.append(float(labels[max(range(len(rows)), key=cosines.__getitem__)]))
    return Answers(found, 1)


def agreement(answers: Answers, expected: list[int]) -> dict[str, Any]:
    """Share of items whose class is the expected one, with its interval."""
    return _tare.score_answers(answers.values, array("q", expected[: len(answers)]), answers.columns, "accuracy")


# ---- all batch sizes ----


def _same(metric: str, agree: dict[str, Any], max_drop: float) -> bool:
    if agree["nonfinite"]:
        return False
    return agree["worst"] >= SAME_COSINE if metric == "cosine" else agree["value"] >= 1 - max_drop


def compare(reference: Answers, got: Answers, metric: str, max_drop: float) -> dict[str, Any]:
    """How like the answers at the reference's batch size these are."""
    agree = _tare.score_answers(got.values, reference.values, got.columns, metric)
    apart = _tare.score_answers(got.values, reference.values, got.columns, "max-abs")
    return {
        "metric": metric,
        "consistency": agree["value"],
        "consistency_interval": [agree["lo"], agree["hi"]],
        "worst": agree["worst"],
        "max_difference": apart["value"],
        "examples": agree["examples"],
        "not_numbers": agree["nonfinite"],
        "consistent": _same(metric, agree, max_drop),
    }
