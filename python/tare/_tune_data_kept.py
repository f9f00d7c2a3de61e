# SPDX-License-Identifier: MIT
"""Decisions about loaders, kept on disk for 30 days: by a mark of the data set's code, a sample's form, the step, the settings, and the host.
What is found there is proved again before it is used, so that the same program tunes without a search. A search that is not over keeps what
it measured in the same way, so that one that was killed goes on. One file each, for its owner alone; what is damaged or of something else
is ignored, with a word."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sys
import time
import types
from typing import Any

from tare import _tare
from tare._answers import write_private
from tare._tune import log
from tare._unknown import plain

SCHEMA, SEARCH_SCHEMA, DAYS = "tare.loader-decision/1", "tare.loader-search/1", 30
_MODES = ("processes", "threads", "ring")
_KINDS = {"mode": str, "workers": int, "depth": int, "batch_size": int, "cache": str, "pin_memory": bool}  # of a plan's values
_TIMES_MOST, _BLOCKS_MOST, _SEARCH_BYTES = 2000, 256, 32 << 20


def folder() -> str | None:
    """As `tare doctor` keeps what it knows of a host; None: there is no such place."""
    cache, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if cache.startswith("/"):
        return os.path.join(cache, "tare")
    return os.path.join(home, ".cache", "tare") if home.startswith("/") else None


# ---- the mark ----


def mark(settings: dict[str, Any], batch: Any, *more: Any) -> str:
    """What must be the same for a decision to hold, as text. `more`: functions by their code, all else by its words."""
    dataset, torch = settings["dataset"], sys.modules.get("torch")
    parts = [
        f"host {_tare.host_fingerprint()}, python {platform.python_version()}, torch {getattr(torch, '__version__', 'none')}",
        f"data {_code(dataset)}, {len(dataset)} samples, batch {_form(batch)}",
        f"settings {_code(settings.get('collate_fn'))}, {type(settings.get('sampler')).__name__}, {settings.get('batch_size')}, {settings.get('drop_last')}",
        *(_code(thing) if callable(thing) or thing is None else repr(thing) for thing in more),
    ]
    return "; ".join(parts)


def _code(thing: Any) -> str:
    """A name, and a digest of its class's own functions and of the functions that it holds."""
    out = hashlib.blake2b(digest_size=8)
    seen: set[int] = set()
    _feed_code(out, thing, seen)
    kind = thing if isinstance(thing, (type, types.FunctionType)) else type(thing)
    return f"{kind.__module__}.{kind.__qualname__} {out.hexdigest()}"


def _feed_code(out: Any, thing: Any, seen: set[int]) -> None:
    if id(thing) in seen or len(seen) > 1000:
        return
    seen.add(id(thing))
    thing = getattr(thing, "__func__", thing)
    if isinstance(thing, types.FunctionType):
        _feed_bytes(out, thing.__code__)
        return
    if isinstance(thing, (list, tuple)):
        for item in thing[:100]:
            _feed_code(out, item, seen)
        return
    kind = thing if isinstance(thing, type) else type(thing)
    if kind.__module__ in ("builtins", "numpy") or kind.__module__.split(".")[0] == "torch":
        out.update(kind.__qualname__.encode())
        return
    for base in kind.__mro__[:-1]:
        for value in vars(base).values():
            if isinstance(value, (types.FunctionType, staticmethod, classmethod)):
                _feed_code(out, value, seen)
    for name, value in getattr(thing, "__dict__", {}).items():
        if callable(value) or isinstance(value, (list, tuple)) and name in ("transform", "transforms"):
            _feed_code(out, value, seen)


def _feed_bytes(out: Any, code: types.CodeType) -> None:
    out.update(code.co_code + repr(code.co_names).encode())
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            _feed_bytes(out, const)
        else:
            out.update((repr(sorted(map(repr, const))) if isinstance(const, frozenset) else repr(const)).encode())


def _form(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_form(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)} {_form(value[0]) if value else ''}"
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{type(value).__name__} {value.dtype} {tuple(shape)}"


# ---- the files ----


def _path(text: str, place: str | None, ending: str = "json") -> str | None:
    return os.path.join(place, f"loader-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.{ending}") if place else None


def _read(path: str | None, most: int, wrong: Any) -> dict[str, Any] | None:
    """What a file says, with its day; None: there is none, or `wrong` names what is wrong with it."""
    try:
        with open(path or "", "rb") as file:
            read = file.read(most)
    except OSError:
        return None
    try:
        found = json.loads(read)
        why = wrong(found)
    except (ValueError, RecursionError) as error:
        found, why = None, f"it cannot be read: {error}"
    if why:
        log.warning("what is kept in %s is ignored: %s", path, why)
        return None
    return dict(found, day=time.strftime("%Y-%m-%d", time.gmtime(found["at"])))


def _write(path: str | None, schema: str, text: str, said: dict[str, Any]) -> bool:
    """Whether it could be kept; that it cannot is no failure."""
    if path is None:
        return False
    try:
        os.makedirs(os.path.dirname(path) or ".", 0o700, exist_ok=True)
        write_private(path, json.dumps({"schema": schema, "mark": text, "at": int(time.time()), **said}).encode())
    except OSError as why:
        log.debug("%s is not kept: %s", path, why)
        return False
    return True


def _foreign(found: Any, text: str, schema: str) -> str | None:
    if not isinstance(found, dict) or found.get("schema") != schema:
        return f"it is no {schema}"
    if found.get("mark") != text:
        return "it is of another data set, program or host"
    at = found.get("at")
    if type(at) is not int or not 0 <= time.time() - at <= DAYS * 86400:
        return f"it is older than {DAYS} days, or from the future"
    return None


# ---- decisions ----


def recall(text: str) -> dict[str, Any] | None:
    """The decision for this mark: plan ({}: leave it as it is), seconds of a sample then, and its day. None: there is none that can be used."""
    return _read(_path(text, folder()), 1 << 16, lambda found: _foreign(found, text, SCHEMA) or _wrong(found))


def _wrong(found: dict[str, Any]) -> str | None:
    plan, seconds = found.get("plan"), found.get("sample_s")
    if type(seconds) is not float or not 0 < seconds < 1e6:
        return "its seconds of a sample cannot be"
    if plan == {}:
        return None
    if not isinstance(plan, dict) or sorted(plan) != ["depth", "mode", "workers"] or plan["mode"] not in _MODES:
        return "its plan is none of a loader"
    if any(type(plan[name]) is not int or not 1 <= plan[name] <= most for name, most in (("workers", 1024), ("depth", 64))):
        return "its plan cannot be"
    return None


def keep(text: str, plan: dict[str, Any], sample_s: float) -> None:
    """Keeps a decision; what is too old goes."""
    place = folder()
    if not sample_s > 0 or not _write(_path(text, place), SCHEMA, text, {"plan": plain(plan), "sample_s": float(sample_s)}):
        return
    for entry in os.scandir(place):
        with contextlib.suppress(OSError):
            if entry.name.startswith("loader-") and entry.name.endswith((".json", ".search")) and time.time() - entry.stat().st_mtime > DAYS * 86400:
                os.unlink(entry.path)


# ---- searches ----


class Search:
    """What a search has measured: blocks of (plan, answer) as it was told them, and the trials they came from. On disk after each block.
    `recalls`: begins with what an earlier one of this mark left; `keeps`: leaves it for the next."""

    def __init__(self, text: str, place: str | None, recalls: bool, keeps: bool) -> None:
        self.text, self.path, self.keeps = text, _path(text, place, "search"), keeps
        found = (_read(self.path, _SEARCH_BYTES, lambda found: _foreign(found, text, SEARCH_SCHEMA) or _no_search(found)) if recalls else None) or {}
        self.blocks: list[list[tuple[dict[str, Any], Any]]] = [[(plan, tuple(said) if isinstance(said, list) else said) for plan, said in block] for block in found.get("blocks", [])]
        self.trials: list[dict[str, Any]] = found.get("trials", [])
        self.day, self.done, self.budget_s = found.get("day"), found.get("done", False), found.get("budget_s", 0.0)

    def is_over(self, budget_s: float) -> bool:
        """It came to its end, and is not given more time than it had."""
        return self.done and budget_s <= self.budget_s

    def save(self, trials: list[dict[str, Any]], done: bool, budget_s: float) -> None:
        if self.keeps:
            trials = [dict(trial, times=trial["times"][-_TIMES_MOST:]) for trial in trials]
            _write(self.path, SEARCH_SCHEMA, self.text, {"blocks": self.blocks, "trials": trials, "done": done, "budget_s": float(budget_s)})

    def forget(self) -> None:
        """A decision has taken its place."""
        with contextlib.suppress(OSError):
            os.unlink(self.path or "")


def _is_plan(plan: Any) -> bool:
    return isinstance(plan, dict) and {"mode", "workers", "depth"} <= set(plan) <= set(_KINDS) and all(type(v) is _KINDS[name] for name, v in plan.items())


def _is_cost(said: Any) -> bool:
    if isinstance(said, list):
        return len(said) == 2 and said[0] == "over" and _is_cost(said[1])
    return said is None or (type(said) is float and 0 < said < 1e9)


def _is_trial(trial: Any) -> bool:
    if not isinstance(trial, dict) or set(trial) != {"plan", "times", "wall_s", "cpu_s", "memory", "failure"} or not _is_plan(trial["plan"]):
        return False
    times, memory, failure = trial["times"], trial["memory"], trial["failure"]
    numbers = isinstance(times, list) and all(type(t) is int and 0 <= t < 1 << 62 for t in times)
    return numbers and all(type(trial[n]) is float and 0 <= trial[n] < 1e9 for n in ("wall_s", "cpu_s")) and type(memory) in (int, type(None)) and type(failure) in (str, type(None))


def _no_search(found: dict[str, Any]) -> str | None:
    blocks, trials = found.get("blocks"), found.get("trials")
    if type(found.get("done")) is not bool or type(found.get("budget_s")) is not float:
        return "it does not say how far it came"
    if not isinstance(blocks, list) or len(blocks) > _BLOCKS_MOST or not all(isinstance(block, list) for block in blocks):
        return "it has no blocks of measurements"
    if not all(isinstance(pair, list) and len(pair) == 2 and _is_plan(pair[0]) and _is_cost(pair[1]) for block in blocks for pair in block):
        return "a measurement in it cannot be"
    if not isinstance(trials, list) or len(trials) > _BLOCKS_MOST or not all(map(_is_trial, trials)):
        return "a trial in it cannot be"
    return None
