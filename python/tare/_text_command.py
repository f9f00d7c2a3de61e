# SPDX-License-Identifier: MIT
"""python -m tare nli | nli-batch | embedding: the text profilers from the command line."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Callable

from tare import _gate, _inputs, _tare
from tare._asking import Parser, Progress, program, refusal
from tare._command import count, counts
from tare._text_models import TextModelError
from tare._text_profile import RESULTS, EmbeddingProfiler, NLIProfiler, TextProfile, TextProfiler

_MODEL_HELP = (
    "FILE.py:NAME or MODULE:NAME of a function or an object with .{method}, with () after it to call it first; a name or folder for "
    "sentence-transformers; synth:ARCHITECTURE[,layers=2,..] (default: synth:{default}, random weights)"
)
_STATUS = _gate.EXIT.format(what="a --target missed, answers changed, memory leaks")


def _setting(command: str, option: str) -> str | None:
    """TARE_<COMMAND>_<OPTION>, or else TARE_<OPTION>, as for the other commands."""
    word = option.upper().replace("-", "_")
    return _tare.environment(f"TARE_{command.upper().replace('-', '_')}_{word}") or _tare.environment(f"TARE_{word}") or None


def _parser(command: str, about: str) -> argparse.ArgumentParser:
    return Parser(prog=program(command), description=about, epilog=_STATUS)


def _common(parser: argparse.ArgumentParser, command: str, kind: type[TextProfiler]) -> None:
    model = _MODEL_HELP.format(method=kind.method, default={"encode": "minilm-l6", "predict": "deberta-v3-nli"}[kind.method])
    parser.add_argument("--model", default=_setting(command, "model"), metavar="MODEL", help=model)
    parser.add_argument("--inputs", metavar="FILE", help=f"{kind.unit} to use: .json with a list, or a text per line (default: built in)")
    parser.add_argument(f"--num-{kind.unit}", dest="count", type=count, metavar="N", help=f"how many {kind.unit}")
    parser.add_argument("--budget", default=_setting(command, "budget") or "5s", help="measuring time for each case (default %(default)s)")
    parser.add_argument("--target", action="append", metavar="TARGET", help="a limit, as in throughput>=2/s or memory.peak<=4GB")
    parser.add_argument("--output", metavar="FILE", help="write the result there, and the run document beside it")
    parser.add_argument("--output-dir", default=RESULTS, metavar="DIR", help="else: folder of the dated result (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    _gate.add_options(parser)


def _batches(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batch-sizes", type=counts, metavar="N,N,..", help="batch sizes to measure, in turns")
    parser.add_argument("--validate-accuracy", action="store_true", help="compare the answers of all batch sizes, and with labels")


# ---- inputs ----


def _pairs(rows: Any, path: str) -> tuple[list, list | None]:
    """[premise, hypothesis] or [premise, hypothesis, label], all alike; lines: separated by tabs."""
    split = [row.split("\t") if isinstance(row, str) else row for row in rows]
    for number, row in enumerate(split):
        if not isinstance(row, (list, tuple)) or len(row) not in (2, 3) or len(row) != len(split[0]):
            raise ValueError(f"{path}: item {number + 1} is not [premise, hypothesis] or [premise, hypothesis, label] as the first one is")
    return [tuple(row[:2]) for row in split], [row[2] for row in split] if len(split[0]) == 3 else None


def _read(kind: type[TextProfiler], path: str | None) -> tuple[list | None, list | None]:
    if path is None:
        return None, None
    rows = list(_inputs.read(path))
    if kind is NLIProfiler:
        return _pairs(rows, path)
    for number, row in enumerate(rows):
        if not isinstance(row, str) or not row.strip():
            raise ValueError(f"{path}: item {number + 1} is not a text with words")
    return rows, None


# ---- running ----


def _profiler(kind: type[TextProfiler], asked: argparse.Namespace) -> TextProfiler:
    items, labels = _read(kind, asked.inputs)
    if items and not asked.count:
        asked.count = len(items)
    return kind(asked.model, items, labels, targets=asked.target, budget=asked.budget, progress=Progress())


def _judge(profile: TextProfile, asked: argparse.Namespace) -> int:
    targets = [row for row in profile.get("targets", ()) if row["metric"] != "accuracy"] if asked.target else []
    failed = any(f["id"] in ("accuracy.changed", "accuracy.unknown", "memory.leak") for f in profile["bottlenecks"])
    try:
        return _gate.judge(asked, profile.run, targets, failed)
    except RuntimeError as why:  # not comparable
        print(f"tare: {why}", file=sys.stderr)
        return 3


def _answer(kind: type[TextProfiler], asked: argparse.Namespace, work: Callable[[Any, dict[str, Any]], TextProfile]) -> int:
    try:
        _gate.check(asked, (os.path.dirname(asked.output) or ".") if asked.output else asked.output_dir)
        profiler = _profiler(kind, asked)
        given = {f"num_{kind.unit}": asked.count, "batch_sizes": getattr(asked, "batch_sizes", None)}
        profile = work(profiler, {name: value for name, value in given.items() if value is not None})
        profiler.progress.close()
        path = profile.save(asked.output_dir, asked.output, _gate.history(asked))
    except (TextModelError, ValueError, TypeError, OSError) as why:
        print(f"tare: {refusal(why)}", file=sys.stderr)
        return 3 if isinstance(why, OSError) and not isinstance(why, FileNotFoundError) else 2
    except Exception as why:  # the model's own: anything may come
        print(f"tare: the model failed: {type(why).__name__}: {why}", file=sys.stderr)
        return 3
    if asked.json:
        with open(path, encoding="utf-8") as file:
            print(file.read(), end="")
    else:
        print(profile)
    print(f"\nResults saved to {path}", file=sys.stderr if asked.json else sys.stdout)
    return _judge(profile, asked)


def _pairs_word(argv: list[str], word: str, about: str, method: Callable[..., TextProfile]) -> int:
    parser = _parser(word, about)
    _common(parser, word, NLIProfiler)
    _batches(parser)
    asked = parser.parse_args(argv)
    return _answer(NLIProfiler, asked, lambda p, given: method(p, validate_accuracy=asked.validate_accuracy, **given))


def nli(argv: list[str]) -> int:
    """python -m tare nli"""
    about = "Profile a model that judges pairs of texts: throughput, latency, memory by batch size."
    return _pairs_word(argv, "nli", about, NLIProfiler.profile)


def nli_batch(argv: list[str]) -> int:
    """python -m tare nli-batch"""
    about = "Find the batch size to use; with --validate-accuracy none whose answers changed."
    return _pairs_word(argv, "nli-batch", about, NLIProfiler.optimize_batch_size)


# ---- embedding ----


def _embedding_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--iterations", type=count, default=10, metavar="N", help="over all texts (default %(default)s)")
    parser.add_argument("--batch-size", type=count, default=32, metavar="N", help="default %(default)s")


def _embedding_lengths(parser: argparse.ArgumentParser) -> None:
    words = "words in a text (default 8,16,32,64,128)"
    parser.add_argument("--lengths", type=counts, default=[8, 16, 32, 64, 128], metavar="N,N,..", help=words)
    parser.add_argument("--batch-size", type=count, default=16, metavar="N", help="default %(default)s")


# word: its options, what it does, what it is for
_EMBEDDING = {
    "batch-sizes": (
        _batches,
        lambda p, asked, given: p.profile(validate_accuracy=asked.validate_accuracy, **given),
        "throughput, latency, memory by batch size",
    ),
    "memory": (
        _embedding_memory,
        lambda p, asked, given: p.profile_memory(asked.iterations, asked.batch_size, **given),
        "memory over iterations, with a test for leaks",
    ),
    "text-lengths": (
        _embedding_lengths,
        lambda p, asked, given: p.profile_text_lengths(asked.lengths, asked.batch_size, **given),
        "what longer texts cost",
    ),
}


def embedding(argv: list[str]) -> int:
    """python -m tare embedding batch-sizes|memory|text-lengths"""
    parser = _parser("embedding", "Profile a model that turns texts into vectors.")
    words = parser.add_subparsers(dest="word", required=True, metavar="|".join(_EMBEDDING))
    for word, (options, _, about) in _EMBEDDING.items():
        one = words.add_parser(word, help=about, description=about.capitalize() + ".", epilog=_STATUS)
        _common(one, "embedding", EmbeddingProfiler)
        options(one)
    asked = parser.parse_args(argv)
    return _answer(EmbeddingProfiler, asked, lambda p, given: _EMBEDDING[asked.word][1](p, asked, given))
