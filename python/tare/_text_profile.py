# SPDX-License-Identifier: MIT
"""EmbeddingProfiler and NLIProfiler: batch sizes, text lengths, memory and answers of a model that reads texts. All times come from
tare.bench; what could not be measured is None, with the reason under "unknown"."""

from __future__ import annotations

import json
import os
import platform
import traceback
from datetime import datetime
from itertools import cycle
from typing import Any, Callable, Iterable

from tare import _answers, _command, _gpu, _inputs
from tare._bench import bench
from tare._memory import leak_finding, mb, memory_course, not_steady_beside, resident, resident_over
from tare._run import Case, Run
from tare._tare import in_sentence
from tare._text_accuracy import MOST_COMPARED, Answers, agreement, collect, compare, nearest
from tare._text_choice import batch_of, bottlenecks_of, choose, insights_of, not_told_apart, notes_of, padding_finding, targets_of, why, with_recommendation
from tare._text_data import cycled, sample_pairs, sample_texts
from tare._text_models import NLI_LABELS, TextModel, text_model

RESULTS = "tare-results"
_LEAST_RUNS = 5
_NOT_ASKED = "not asked for: validate_accuracy"


class TextProfile(dict):
    """The document; print() shows it as tables; `run` is the Run that all its numbers come from."""

    def __init__(self, kind: str, run: Run, document: dict[str, Any]) -> None:
        super().__init__(document)
        self.kind = kind
        self.run = run

    def __str__(self) -> str:
        return _answers.text_profile(self)

    def save(
        self, folder: str | os.PathLike[str] = RESULTS, output: str | os.PathLike[str] | None = None,
        history: bool | str | os.PathLike[str] = True,
    ) -> str:  # fmt: skip
        """Write <kind>_<date>.json into the folder (a second one of the day is .._2.json), or `output`, which is replaced; and the run
        document beside it, which also goes into the history of `folder` (see Run.save). The path."""
        beside = (os.path.dirname(output) or ".") if output else os.fspath(folder)
        os.makedirs(beside, exist_ok=True)
        self["run"] = os.path.basename(self.run.save(beside, history=False))
        _command.keep_run(self.run.path, history, folder)
        text = json.dumps(self, indent=2) + "\n"
        if output:
            return _answers.write_text(output, text)
        return _answers.write_dated(folder, f"{self.kind}_{self['timestamp'][:10]}", text)


class TextProfiler:
    """What both profilers share. model: an object with .encode (embeddings) or .predict (pairs), as sentence-transformers has them; a
    function of a list of items; the name of one (load_model); None: a synthetic model of known shape with random weights."""

    method = ""  # of objects
    unit = ""  # what a batch counts
    one = ""
    agree_by = ""  # metric of answers without labels
    kinds: dict[str, str] = {}
    default_targets: tuple = ()

    def __init__(
        self,
        model: Any = None,
        items: list[Any] | None = None,
        labels: list[Any] | None = None,
        *,
        name: str | None = None,
        targets: Iterable[str] | None = None,
        budget: Any = 5,
        precision: float = 0.02,
        max_drop: float = 0.01,
        seed: int = 0,
        progress: Callable[[str, int, int], Any] | None = None,
    ) -> None:
        if labels is not None and (items is None or len(labels) != len(items)):
            raise ValueError(f"{len(labels)} labels for {0 if items is None else len(items)} {self.unit}: one for each is needed")
        self._given = model
        self._name = name
        self._model: TextModel | None = None
        self._items, self._labels = items, labels
        self._mute: dict[int, str] = {}  # batch sizes whose answers could not be had, and why
        self.targets = list(self.default_targets if targets is None else targets)
        self.budget, self.precision, self.max_drop, self.seed, self.progress = budget, precision, max_drop, seed, progress

    @property
    def model(self) -> TextModel:
        """Loaded when first used."""
        if self._model is None:
            self._model = text_model(self._given, self.method, self._name)
        return self._model

    # ---- what it is fed with ----

    def samples(self, count: int) -> tuple[list[Any], list[Any]]:
        """Built-in items and their labels."""
        raise NotImplementedError

    def expected(self, labels: list[Any]) -> list[int]:
        """Labels as the numbers of classes."""
        raise NotImplementedError

    def classes(self, answers: Answers, expected: list[int]) -> Answers:
        """Answers in which the class of each item can be read."""
        raise NotImplementedError

    def _data(self, count: int) -> tuple[list[Any], list[Any] | None]:
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"the number of {self.unit} is {count!r}: a whole number from 1 is needed")
        if self._items is None:
            return self.samples(count)
        return cycled(self._items, count), cycled(self._labels, count) if self._labels is not None else None

    # ---- measuring ----

    def _measure(self, items: list[Any], batches: list[int], lengths: list[int] | None = None) -> Run:
        call = self.model.call

        def run(feed: Any) -> Any:
            return call(next(feed))

        def make_input(batch: int, length: int) -> Any:
            fitted = [_inputs.fit_text(item, length) for item in items] if length else items
            return cycle(_cut(fitted, batch))

        passes = max(len(_cut(items, batch)) for batch in batches)
        measured = bench(
            run,
            batch_sizes=batches,
            lengths=lengths,
            make_input=make_input,
            unit=self.unit,
            targets=self.targets,
            budget=self.budget,
            precision=self.precision,
            min_runs=max(_LEAST_RUNS, passes) if passes < 30 else None,
            seed=self.seed,
            name=self.model.name,
            progress=self.progress,
        )
        device = self.model.device or "cpu"
        return Run.of(_gpu.tell(measured.to_dict(), device)) if device.startswith("cuda") else measured

    def _answers(self, items: list[Any], labels: list[Any] | None, batches: list[int]) -> dict[int, dict[str, Any]]:
        """For each batch size: are the answers those of the smallest one, and right?"""
        items, expected = items[:MOST_COMPARED], self.expected(labels[:MOST_COMPARED]) if labels else None
        names = self.model.labels or NLI_LABELS
        answers, reference, first = self._collected(items, batches, names)
        out = {}
        for batch, got in answers.items():
            out[batch] = {"reference_batch_size": reference, **compare(first, got, self.agree_by, self.max_drop), "label_agreement": None}
            if expected:
                right = agreement(self.classes(got, expected), expected)
                out[batch]["label_agreement"] = right["value"]
                out[batch]["label_agreement_interval"] = [right["lo"], right["hi"]]
        return {batch: self._judge(row, out[reference]) for batch, row in out.items()}

    def _collected(self, items: list[Any], batches: list[int], names: tuple) -> tuple[dict[int, Answers], int, Answers]:
        """The answers of each batch size that gives some, the smallest of these, and its answers. Why another has none is kept."""
        answers: dict[int, Answers] = {}
        errors: list[Exception] = []
        self._mute = {}
        for batch in sorted(batches):
            try:
                answers[batch] = collect(self.model.call, items, batch, names)
            except Exception as error:  # the model's own: anything may come
                traceback.clear_frames(error.__traceback__)
                errors.append(error)
                self._mute[batch] = " ".join(f"{type(error).__name__}: {error}".split())
        if not answers:
            raise errors[0]
        return answers, min(answers), answers[min(answers)]

    def _judge(self, row: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
        if row["label_agreement"] is not None and reference["label_agreement"] - row["label_agreement"] > self.max_drop:
            row["consistent"] = False
        return row

    # ---- documents ----

    def _sweep(self, kind: str, batches: Iterable[int], count: int, validate: bool) -> TextProfile:
        batches = [batches] if isinstance(batches, int) else list(batches)
        items, labels = self._data(count)
        accuracy = self._answers(items, labels, batches) if validate else {}
        run = self._measure(items, batches)
        mute = self._mute if validate else {}
        changed = {f"batch={batch}" for batch in mute} | {f"batch={batch}" for batch, row in accuracy.items() if not row["consistent"]}
        chosen = choose(run.cases, changed)
        run = self._judged(run, accuracy, chosen)
        document = self._head(run, {f"num_{self.unit}": len(items), "batch_sizes": batches, "validate_accuracy": validate})
        document["batch_profiles"] = [self._row(case, accuracy.get(batch_of(case)), mute.get(batch_of(case))) for case in run.cases]
        rivals = not_told_apart(chosen["recommended"], run.cases, changed) if chosen else []
        document.update(self._verdicts(run, items, accuracy, chosen))
        silent = [case for case in run.cases if batch_of(case) in mute and not case.failure]
        document["bottlenecks"] += [_no_answers(case.name, mute[batch_of(case)]) for case in silent]
        if rivals:
            document["choices"]["recommended"]["not_told_apart_from"] = rivals
            document["recommendations"].insert(1, self._doubt(rivals))
        return TextProfile(self.kinds[kind], run, document)

    def _verdicts(self, run: Run, items: list[Any], accuracy: dict[int, dict], chosen: dict[str, Case]) -> dict[str, Any]:
        recommended = chosen.get("recommended")
        found = bottlenecks_of(run) + [_changed_answers(batch, row) for batch, row in accuracy.items() if not row["consistent"]]
        padding = recommended and padding_finding(items, batch_of(recommended))
        found += [padding] if padding else []
        targets = targets_of(run, recommended, self.one) + _accuracy_target(accuracy, recommended, self.max_drop)
        return {
            "choices": {word: {"batch_size": batch_of(case), self._rate: case.throughput} for word, case in chosen.items()},
            "targets": targets,
            "bottlenecks": found,
            "insights": insights_of(run, chosen),
            "measurement": notes_of(run),
            "recommendations": self._recommendations(chosen, found, targets),
        }

    @staticmethod
    def _doubt(rivals: list[int]) -> str:
        names = ", ".join(map(str, rivals))
        return f"batch_size={names} may still be faster, the intervals do not tell: measure with a larger budget"

    def _recommendations(self, chosen: dict[str, Case], found: list[dict], targets: list[dict]) -> list[str]:
        said = []
        if "recommended" in chosen:
            said.append(f"use batch_size={batch_of(chosen['recommended'])}: {why(chosen, self.unit)}")
        over = next((t for t in targets if t["metric"] == "throughput" and t["verdict"] == "pass" and t["ratio"] >= 2), None)
        if over and self.model.device == "cpu":
            said.append(f"the throughput target is met {in_sentence(over['ratio'])} times over without a GPU")
        return said + list(dict.fromkeys(f["action"] for f in found if f["action"]))

    def _judged(self, run: Run, accuracy: dict[int, dict[str, Any]], chosen: dict[str, Case]) -> Run:
        """The run document with the answers' scores and with this recommendation."""
        document = run.to_dict()
        for case in document["cases"]:
            row = accuracy.get(case["params"]["batch"])
            if row:
                case["accuracy"] = self._accuracy_record(row, accuracy[row["reference_batch_size"]])
                case["unknown"].pop("accuracy", None)
        if len(document["cases"]) > 1 and chosen:
            document["recommendation"] = {"objective": "throughput", "case": chosen["recommended"].name, "why": why(chosen, self.unit)}
        return Run.of(document)

    def _accuracy_record(self, row: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
        labelled = row["label_agreement"] is not None
        key = "label_agreement" if labelled else "consistency"
        low, high = row[f"{key}_interval"]
        return {
            "metric": "accuracy" if labelled else self.agree_by,
            "value": row[key],
            "lo": low,
            "hi": high,
            "baseline": reference[key],
            "examples": row["examples"],
            "dataset": "given" if self._items is not None else "built-in samples of tare",
        }

    @property
    def _rate(self) -> str:
        return f"throughput_{self.unit}_per_sec"

    def _row(self, case: Case, accuracy: dict[str, Any] | None, why_none: str | None = None) -> dict[str, Any]:
        """A case in the words of the profile; why_none: of its accuracy."""
        rate, self_cost = case["throughput"] or {}, case["self"] or {}
        return {
            "batch_size": batch_of(case),
            self._rate: rate.get("value"),
            "throughput_interval": [rate.get("lo"), rate.get("hi")],
            f"latency_ms_per_{self.one}": 1000 / rate["value"] if rate.get("value") else None,
            "latency_ms_per_batch": {which: case.latency_ms(which) for which in ("p50", "p95", "p99")},
            "memory_delta_mb": mb(case.memory_delta),
            "memory_peak_mb": mb(case.memory_peak),
            "accuracy_metrics": accuracy,
            "calls": case.samples,
            "self_ns_per_call": self_cost.get("ns_per_run"),
            "failure": case.failure,
            "unknown": _reasons(case, accuracy, why_none),
        }

    def _head(self, run: Run, settings: dict[str, Any]) -> dict[str, Any]:
        document = run.to_dict()
        return {
            "timestamp": datetime.now().astimezone().isoformat(timespec="milliseconds"),
            "system": self._system(document["host"]),
            "settings": {**settings, "budget_s": document["config"]["budget_s"], "precision": self.precision, "seed": self.seed},
            "run": None,
        }

    def _system(self, host: dict[str, Any]) -> dict[str, Any]:
        model = self.model
        return {
            "device": model.device,
            "model": model.name,
            "weights": model.weights,
            "cpu": host["cpu"]["model"],
            "processors": host["cpu"]["usable"],
            "memory_mb": mb(host["memory_bytes"]),
            "virtual": host["virtual"],
            "os": host["os"],
            "kernel": host["kernel"],
            "load1": host["load1"],
            "python": platform.python_version(),
            "libraries": model.versions,
            "unknown": {} if model.device else {"device": "the model does not tell"},
        }

    # ---- lengths and memory ----

    def _lengths(self, lengths: Iterable[int], batch: int, count: int) -> TextProfile:
        items, _ = self._data(count)
        lengths = sorted(lengths)
        run = with_recommendation(self._measure(items, [batch], lengths), self.unit)
        document = self._head(run, {f"num_{self.unit}": len(items), "batch_size": batch, "text_lengths": lengths})
        rows = [self._length_row(case, items) for case in run.cases]
        measured = [row for row in rows if row[self._rate]]
        for row in rows:
            row["relative_throughput"] = row[self._rate] / measured[0][self._rate] if row[self._rate] else None
        document["length_profiles"] = rows
        document["bottlenecks"] = bottlenecks_of(run) + self._long_texts(measured)
        document["measurement"] = notes_of(run)
        document["recommendations"] = list(dict.fromkeys(f["action"] for f in document["bottlenecks"] if f["action"]))
        return TextProfile(self.kinds["lengths"], run, document)

    def _length_row(self, case: Case, items: list[Any]) -> dict[str, Any]:
        words = case.params["length"]
        fitted = (_inputs.fit_text(item, words) for item in items)
        sizes = [len("".join(item)) for item in fitted]  # a pair: both together
        return {"text_length_words": words, "mean_characters": round(sum(sizes) / len(sizes), 1), **self._row(case, None)}

    def _long_texts(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Told when the longest texts surely run at less than half the rate of the shortest."""
        if not rows:
            return []
        shortest, longest = rows[0], rows[-1]
        low, high = shortest["throughput_interval"][0], longest["throughput_interval"][1]
        if low is None or high is None or high > low / 2:
            return []
        drop = 1 - longest["relative_throughput"]
        words, few = longest["text_length_words"], shortest["text_length_words"]
        per_word = shortest[self._rate] * few / (longest[self._rate] * words)
        return [{
            "id": "text.long",
            "severity": "warn",
            "description": f"{words} words a text lower throughput by {drop:.0%} against {few}; a word costs {in_sentence(per_word)} times as much there",
            "case": None,
            "evidence": {"drop": drop, "words": words, "against": few, "cost_of_a_word": per_word},
            "action": "cut texts to what the task needs before the model sees them, and check its accuracy with that",
        }]  # fmt: skip

    def _memory(self, iterations: int, batch: int, count: int) -> TextProfile:
        if not isinstance(iterations, int) or iterations < 1:
            raise ValueError(f"iterations={iterations!r}: a whole number from 1 is needed")
        items, _ = self._data(count)
        loaded = resident()
        run = self._measure(items, [batch])
        seen = resident_over(self.model.call, _cut(items, batch), iterations)
        document = self._head(run, {f"num_{self.unit}": len(items), "batch_size": batch, "iterations": iterations})
        document["batch_profiles"] = [self._row(case, None) for case in run.cases]
        document["memory"] = {"before_mb": mb(loaded), **memory_course(seen, iterations)}
        growth, found = document["memory"]["growth"], bottlenecks_of(run)
        not_steady_beside(growth, found)
        document["bottlenecks"] = found + leak_finding(growth)
        document["measurement"] = notes_of(run)
        document["recommendations"] = [f["action"] for f in document["bottlenecks"] if f["action"]]
        return TextProfile(self.kinds["memory"], run, document)


def _cut(items: list[Any], batch: int) -> list[list[Any]]:
    """All items in full batches; the last one is filled up from the start."""
    return [[items[(start + i) % len(items)] for i in range(batch)] for start in range(0, len(items), batch)]


def _reasons(case: Case, accuracy: dict[str, Any] | None, why_none: str | None = None) -> dict[str, str]:
    """Why something of a row is None."""
    told = case.get("unknown") or {}
    out = {"throughput": told["throughput"]} if "throughput" in told else {}
    out.update({"throughput_interval": told[key] for key in ("throughput.lo",) if key in told})
    out.update({f"latency_ms_per_batch.{p}": told[f"latency_ns.{p}"] for p in ("p50", "p95", "p99") if f"latency_ns.{p}" in told})
    for name, key in (("latency_ms_per_batch", "latency_ns"), ("memory_delta_mb", "memory"), ("memory_peak_mb", "memory"), ("calls", "samples")):
        out.update({name: told[key]} if key in told else {})
    if accuracy is None:
        out["accuracy_metrics"] = why_none or _NOT_ASKED
    return out


def _no_answers(case: str, why_none: str) -> dict[str, Any]:
    return {
        "id": "accuracy.unknown",
        "severity": "critical",
        "description": f"its answers could not be had: {why_none}",
        "case": case,
        "evidence": {},
        "action": "do not use this batch size before the cause is known",
    }


def _changed_answers(batch: int, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "accuracy.changed",
        "severity": "critical",
        "description": f"batch_size={batch} answers otherwise than batch_size={row['reference_batch_size']}: {row['metric']} "
        f"{row['consistency']:.6f}, largest difference {in_sentence(row['max_difference'])}",
        "case": f"batch={batch}",
        "evidence": {key: row[key] for key in ("consistency", "worst", "max_difference", "not_numbers", "label_agreement")},
        "action": "do not use this batch size before the cause is known: padding that is not masked, or batch statistics",
    }


def _accuracy_target(accuracy: dict[int, dict[str, Any]], case: Case | None, max_drop: float) -> list[dict[str, Any]]:
    if not accuracy or case is None:
        return []
    row = accuracy[batch_of(case)]
    reference = accuracy[row["reference_batch_size"]]
    key = "label_agreement" if row["label_agreement"] is not None else "consistency"
    return [{
        "metric": "accuracy", "op": ">=", "value": reference[key] - max_drop, "unit": "", "case": case.name, "achieved": row[key],
        "ratio": None, "verdict": "pass" if row["consistent"] else "fail", "confidence": None,
    }]  # fmt: skip


class NLIProfiler(TextProfiler):
    """Profiles a model that judges pairs of texts: .predict(pairs), or a function of a list of pairs.

    pairs: (premise, hypothesis); labels: what each is, as words of the model's classes or as their numbers. budget: seconds of measuring
    for each batch size. targets: as `tare bench` takes them. max_drop: share of answers that may change with the batch size."""

    method, unit, one, agree_by = "predict", "pairs", "pair", "top1"
    kinds = {"batches": "nli_profile", "optimize": "nli_batch_analysis", "lengths": "nli_length_profile", "memory": "nli_memory_analysis"}
    default_targets = ("throughput>=2/s", "memory.peak<=4GB")

    def __init__(self, model: Any = None, pairs: list[Any] | None = None, labels: list[Any] | None = None, **settings: Any) -> None:
        super().__init__(model, pairs, labels, **settings)

    def samples(self, count: int) -> tuple[list[Any], list[Any]]:
        return sample_pairs(count, self.seed)

    def expected(self, labels: list[Any]) -> list[int]:
        names = self.model.labels or NLI_LABELS
        unknown = {label for label in labels if isinstance(label, str) and label.lower() not in names}
        if unknown:
            raise ValueError(f"labels {', '.join(sorted(unknown))}: the model's are {', '.join(names)}")
        return [names.index(label.lower()) if isinstance(label, str) else int(label) for label in labels]

    def classes(self, answers: Answers, expected: list[int]) -> Answers:
        return answers

    def profile_batch_size(self, batch_size: int = 16, num_pairs: int = 100, validate_accuracy: bool = False) -> dict[str, Any]:
        """One batch size: the row of "batch_profiles"."""
        return self.profile_batch_sizes([batch_size], num_pairs, validate_accuracy)["batch_profiles"][0]

    def profile_batch_sizes(
        self, batch_sizes: Iterable[int] = (1, 4, 8, 16, 32), num_pairs: int = 100, validate_accuracy: bool = False
    ) -> TextProfile:
        """All batch sizes, measured in turns, with targets, bottlenecks and recommendations."""
        return self._sweep("batches", batch_sizes, num_pairs, validate_accuracy)

    profile = profile_batch_sizes

    def optimize_batch_size(
        self, batch_sizes: Iterable[int] = (1, 4, 8, 16, 32), num_pairs: int = 100, validate_accuracy: bool = True
    ) -> TextProfile:
        """The same, as the batch analysis: never recommends a batch size whose answers changed."""
        return self._sweep("optimize", batch_sizes, num_pairs, validate_accuracy)

    def profile_text_lengths(self, lengths: Iterable[int] = (8, 16, 32, 64), batch_size: int = 8, num_pairs: int = 32) -> TextProfile:
        """Words in each of the two texts."""
        return self._lengths(lengths, batch_size, num_pairs)

    def profile_memory(self, iterations: int = 10, batch_size: int = 8, num_pairs: int = 40) -> TextProfile:
        return self._memory(iterations, batch_size, num_pairs)


class EmbeddingProfiler(TextProfiler):
    """Profiles a model that turns texts into vectors: .encode(texts), or a function of a list of texts.

    labels: a topic of each text; validate_accuracy then also counts how often the nearest other text has the same one."""

    method, unit, one, agree_by = "encode", "texts", "text", "cosine"
    kinds = {"batches": "batch_size_profile", "lengths": "text_length_profile", "memory": "memory_analysis"}
    default_targets = ("throughput>=500/s", "memory.peak<=2GB")

    def __init__(self, model: Any = None, texts: list[str] | None = None, labels: list[Any] | None = None, **settings: Any) -> None:
        super().__init__(model, texts, labels, **settings)

    def samples(self, count: int) -> tuple[list[Any], list[Any]]:
        return sample_texts(count, self.seed)

    def expected(self, labels: list[Any]) -> list[int]:
        numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        return [numbers[label] for label in labels]

    def classes(self, answers: Answers, expected: list[int]) -> Answers:
        return nearest(answers, expected)

    def profile_batch_size(self, batch_size: int = 64, num_texts: int = 256, validate_accuracy: bool = False) -> dict[str, Any]:
        """One batch size: the row of "batch_profiles"."""
        return self.profile_batch_sizes([batch_size], num_texts, validate_accuracy)["batch_profiles"][0]

    def profile_batch_sizes(
        self, batch_sizes: Iterable[int] = (8, 16, 32, 64, 128), num_texts: int = 256, validate_accuracy: bool = False
    ) -> TextProfile:
        """All batch sizes, measured in turns, with targets, bottlenecks and recommendations."""
        return self._sweep("batches", batch_sizes, num_texts, validate_accuracy)

    profile = profile_batch_sizes

    def profile_text_lengths(self, lengths: Iterable[int] = (8, 16, 32, 64, 128), batch_size: int = 16, num_texts: int = 64) -> TextProfile:
        """Words in a text."""
        return self._lengths(lengths, batch_size, num_texts)

    def profile_memory(self, iterations: int = 10, batch_size: int = 32, num_texts: int = 256) -> TextProfile:
        """Memory of the process over iterations over all texts, with a test of its slope."""
        return self._memory(iterations, batch_size, num_texts)
