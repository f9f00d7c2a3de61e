# SPDX-License-Identifier: MIT
"""Decisions about loaders, kept on disk for 30 days: by a mark of the data set's code, a sample's form, the step, the settings, and the host.
What is found there is proved again before it is used, so that the same program tunes without a search. One file each, for its owner
alone; what is damaged or of something else is ignored, with a word."""

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

SCHEMA, DAYS = "tare.loader-decision/1", 30
_MODES = ("processes", "threads", "ring")


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


def _path(text: str) -> str | None:
    place = folder()
    return os.path.join(place, f"loader-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.json") if place else None


def recall(text: str) -> dict[str, Any] | None:
    """The decision for this mark: plan ({}: leave it as it is), seconds of a sample then, and its day. None: there is none that can be used."""
    path = _path(text)
    try:
        with open(path or "", "rb") as file:
            read = file.read(1 << 16)
    except OSError:
        return None
    try:
        found = json.loads(read)
        why = _wrong(found, text)
    except (ValueError, RecursionError) as error:
        found, why = None, f"it cannot be read: {error}"
    if why:
        log.warning("the decision in %s is ignored: %s", path, why)
        return None
    return dict(found, day=time.strftime("%Y-%m-%d", time.gmtime(found["at"])))


def _wrong(found: Any, text: str) -> str | None:
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        return f"it is no {SCHEMA}"
    if found.get("mark") != text:
        return "it is of another data set, program or host"
    at, plan, seconds = found.get("at"), found.get("plan"), found.get("sample_s")
    if type(at) is not int or not 0 <= time.time() - at <= DAYS * 86400:
        return f"it is older than {DAYS} days, or from the future"
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
    """Keeps a decision; what is too old goes. That it cannot be kept is no failure."""
    path = _path(text)
    if path is None or not sample_s > 0:
        return
    said = {"schema": SCHEMA, "mark": text, "at": int(time.time()), "plan": plain(plan), "sample_s": float(sample_s)}
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        write_private(path, json.dumps(said, indent=1).encode())
    except OSError as why:
        log.debug("the decision is not kept: %s", why)
        return
    for entry in os.scandir(os.path.dirname(path)):
        with contextlib.suppress(OSError):
            if entry.name.startswith("loader-") and entry.name.endswith(".json") and time.time() - entry.stat().st_mtime > DAYS * 86400:
                os.unlink(entry.path)
