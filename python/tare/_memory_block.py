# SPDX-License-Identifier: MIT
"""Who allocates in a block of code: `with tare.memory() as m:`, `@tare.memory`, and `tare.leaks(f)`. The agent of `tare run --memory` records
this very process for a while; the command reads what it wrote. No clock, no statistics of its own."""

from __future__ import annotations

import functools
import gc
import inspect
import json
import os
import sys
import tempfile
import threading
from collections import namedtuple
from typing import Any, Callable

from tare import _command, _tare
from tare._unknown import Unknown

_AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_lib", "libtare-agent.so")
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
EVERY = 512 << 10  # bytes between samples, on average, as of tare run --memory
FRAMES = 64

_lock = threading.Lock()
_now: "memory | None" = None  # the block that records; one at a time


def supported() -> str | None:
    """None, or why frames of this Python cannot be read."""
    name = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
    if sys.implementation.name != "cpython":
        return f"{name}: allocations are recorded in CPython only"
    if not (3, 9) <= sys.version_info[:2] <= (3, 13):
        return f"{name}: where it keeps its frames is not known to this tare, which knows CPython 3.9 to 3.13"
    if hasattr(sys, "gettotalrefcount"):
        return f"{name}: a debug build keeps its frames in another way"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return f"{name}: a free-threaded build keeps its frames in another way"
    return None


class Frame(namedtuple("Frame", "kind name file line")):
    """kind: "python", "native", "scope" or "cut" (frames further out are missing)."""

    __slots__ = ()

    def __str__(self) -> str:
        place = os.path.basename(self.file) if self.file else ""
        line = f":{self.line}" if self.line else ""
        return " ".join(filter(None, (self.name or "unknown", place + line)))


class Site(namedtuple("Site", "peak leaked allocated allocations churn frames")):
    """A stack that allocated: bytes that it held at the peak, at the end of the block, in all; how many; freed within 1 ms. Innermost frame first."""

    __slots__ = ()

    def __str__(self) -> str:
        shown = " < ".join(map(str, self.frames[:4]))
        return (shown or "unknown") + (" < .." if len(self.frames) > 4 else "")


def _frame(f: dict[str, Any]) -> Frame:
    native = f["kind"] == "native"
    return Frame(f["kind"], f["name"], f.get("source") or f["file"] if native else f["file"], f["line"])


def _site(s: dict[str, Any]) -> Site:
    return Site(*(s[k]["bytes"] for k in ("at_peak", "at_end", "allocated")), s["allocations"], s["churn"]["bytes"], tuple(map(_frame, s["frames"])))


def _is_ours(site: Site) -> bool:
    python = next((f for f in site.frames if f.kind == "python"), None)
    return bool(python and python.file and python.file.startswith(_OURS))


class memory:
    """with tare.memory() as m: ..       m.peak, m.leaked, m.sites, m.print(), m.html("x.html")
    @tare.memory                        each call is such a block; f.memory is that of the last one. Also of async functions and methods.

    every=True      every allocation and free, exact; else one of each 512 KiB, on average, and sums are estimates with intervals
    frames=64       of a stack at most
    What was there before the block is not in it: a free of such memory changes nothing. Recorded are all threads of this process, not its children.
    One block at a time: one within another, or in a program under `tare run --memory`, records nothing, and says so (`m.why`).
    """

    def __new__(cls, f: Callable | None = None, **options: Any):
        if f is None:
            return super().__new__(cls)
        return cls(**options)(f)

    def __init__(self, f: Callable | None = None, *, every: bool | int = False, frames: int = FRAMES) -> None:
        if not isinstance(frames, int) or not 1 <= frames <= 127:
            raise ValueError("frames: a number from 1 to 127")
        if every is not True and every is not False and (not isinstance(every, int) or every < 1):
            raise ValueError("every: True for each allocation, or the bytes between samples")
        self._every = 0 if every is True else every or EVERY
        self._frames, self._folder, self._read_doc = frames, None, None
        self.why: str | None = "the block has not ended" if f is None else None

    # ---- the block ----
    def __enter__(self) -> "memory":
        global _now
        refused = supported()
        if refused:
            raise RuntimeError(f"tare.memory: {refused}")
        self._forget()
        with _lock:
            if _now is not None:
                self.why = "another block of this program is recorded already: it has what this one allocates"
                return self
            self._folder = tempfile.mkdtemp(prefix="tare-memory-")
            self._trace = os.path.join(self._folder, "memory.tare")
            self.why = _tare.memory_begin(_AGENT, self._trace, self._every, self._frames)
            if self.why is None:
                _now = self
        return self

    def __exit__(self, *ignored: Any) -> None:
        global _now
        with _lock:
            if _now is self:
                self.why = _tare.memory_end()
                _now = None

    def __call__(self, f: Callable) -> Callable:
        every, frames = self._every or True, self._frames

        def block() -> memory:
            wrapped.memory = m = memory(every=every, frames=frames)
            return m

        if inspect.iscoroutinefunction(f):

            @functools.wraps(f)
            async def wrapped(*args: Any, **named: Any) -> Any:
                with block():
                    return await f(*args, **named)
        else:

            @functools.wraps(f)
            def wrapped(*args: Any, **named: Any) -> Any:
                with block():
                    return f(*args, **named)

        wrapped.memory = None
        return wrapped

    def _forget(self) -> None:
        folder, self._folder, self._read_doc = self._folder, None, None
        if folder:
            import shutil

            shutil.rmtree(folder, ignore_errors=True)

    def __del__(self) -> None:
        try:
            self._forget()
        except Exception:  # at the end of the interpreter there may be nothing left to do it with
            pass

    # ---- what it means ----
    def _document(self) -> dict[str, Any] | Unknown:
        if self._read_doc is None:
            if self.why is not None:
                return Unknown(self.why)
            told = json.loads(_command.call("report", "--memory", "--json", self._trace))
            mine = [p for p in told["processes"] if p["pid"] == os.getpid()] or told["processes"]
            self._read_doc = mine[0] if mine else Unknown("nothing was allocated")
        return self._read_doc

    def _bytes(self, key: str) -> Any:
        told = self._document()
        return told if isinstance(told, Unknown) else round(told[key]["bytes"])

    @property
    def peak(self) -> Any:
        """Bytes of the block's own at the moment when it held most."""
        return self._bytes("peak")

    @property
    def leaked(self) -> Any:
        """Bytes that the block allocated and that were still held at its end: what it returned or kept, too."""
        told = self.sites
        return told if isinstance(told, Unknown) else round(sum(s.leaked for s in told))

    @property
    def intervals(self) -> Any:
        """{"peak": (low, high), "leaked": (low, high), "allocated": ..}: 95 %; equal where every allocation was recorded."""
        told = self._document()
        if isinstance(told, Unknown):
            return told
        return {name: (told[key]["lo"], told[key]["hi"]) for name, key in (("peak", "peak"), ("leaked", "at_end"), ("allocated", "allocated"))}

    @property
    def allocations(self) -> Any:
        told = self._document()
        return told if isinstance(told, Unknown) else round(told["allocations"])

    @property
    def sites(self) -> Any:
        """Stacks that allocated, largest at the peak first."""
        told = self._document()
        return told if isinstance(told, Unknown) else [s for s in map(_site, told["sites"]) if not _is_ours(s)]

    @property
    def notes(self) -> list[str]:
        told = self._document()
        return [] if isinstance(told, Unknown) else list(told["notes"])

    def _ask(self, *options: str) -> str:
        if self.why is not None:
            raise RuntimeError(f"tare.memory: {self.why}")
        return _command.call("report", "--memory", *options, self._trace)

    def print(self, file: Any = None) -> None:
        """As `tare report --memory` says it."""
        print(self._ask() if self.why is None else f"memory: unknown: {self.why}", end="\n" if self.why else "", file=file)

    def html(self, path: Any) -> None:
        """A page with flame graphs of it."""
        self._ask("--html", os.fspath(path))

    def save(self, path: Any) -> None:
        """The trace itself, for `tare report`, `tare export` and `tare compare`."""
        import shutil

        if self.why is not None:
            raise RuntimeError(f"tare.memory: {self.why}")
        shutil.copyfile(self._trace, path)

    def __repr__(self) -> str:
        return f"<tare.memory: {self.why}>" if self.why else f"<tare.memory: peak {self.peak} bytes, {self.leaked} still held at its end>"


def sites_of(call: Callable[[], Any]) -> Any:
    """Who had asked for what one call held at its peak: file, line, function, bytes and pieces, the most first. Every allocation is recorded."""
    refused = supported()
    if refused:
        return Unknown(refused)
    try:
        with memory(every=True) as m:
            call()
        found = m.sites
    except (OSError, RuntimeError) as why:
        return Unknown(str(why))
    if isinstance(found, Unknown):
        return found
    rows: dict[tuple, dict[str, Any]] = {}
    for site in (s for s in found if s.peak > 0):
        f = next((f for f in site.frames if f.kind == "python"), site.frames[0] if site.frames else Frame("cut", None, None, None))
        row = rows.setdefault(f[1:], {"file": f.file, "line": f.line, "function": f.name, "bytes": 0, "pieces": 0})
        row["bytes"] += round(site.peak)
        row["pieces"] += round(site.allocations)
    return sorted(rows.values(), key=lambda row: -row["bytes"])


# ---- tare.leaks ----

class Growth(namedtuple("Growth", "verdict confidence bytes_per_call low high where")):
    """What one line of the program, with its callers, holds more after each call; low and high: 95 %."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.bytes_per_call:,.0f} bytes a call ({self.low:,.0f} to {self.high:,.0f}), {self.confidence:.1%} sure: {self.where}"


class Leaks:
    """growing: sites that hold more after each call, the largest first; steady: bool(leaks) is False."""

    def __init__(self, runs: int, growing: list[Growth], total: Growth | None, undecided: list[Growth]) -> None:
        self.runs, self.growing, self.total, self.undecided = runs, growing, total, undecided

    def __bool__(self) -> bool:
        return bool(self.growing)

    def print(self, file: Any = None) -> None:
        print(self, file=file)

    def __str__(self) -> str:
        if not self.growing:
            return f"no site grows with each call ({self.runs} calls)"
        return "\n".join([f"{len(self.growing)} of the sites grow with each call ({self.runs} calls)", *("  " + str(g) for g in self.growing)])


def _key(site: Site) -> tuple[str, ...]:
    return tuple(map(str, site.frames))


def _held(trace: str) -> dict[tuple[str, ...], float]:
    """Bytes held now by site, while it is recorded; what is allocated to ask is not part of it."""
    told = json.loads(_command.call("report", "--memory", "--json", trace))
    out: dict[tuple[str, ...], float] = {}
    for site in (_site(s) for p in told["processes"] if p["pid"] == os.getpid() for s in p["sites"]):
        if site.leaked and not any(f.name == "_held" and f.file == __file__ for f in site.frames) and not _is_ours(site):
            out[_key(site)] = out.get(_key(site), 0) + site.leaked
    return out


# Every byte is known here, so that the judge's least rise, which is for readings of pages, does not hold: it judges these times the bytes.
_SCALE = float(1 << 20)


def _judge(calls: list[int], values: list[float], where: str) -> Growth | None:
    from array import array

    told = _tare.growth_of(array("d", calls), array("d", [v * _SCALE for v in values]))
    if isinstance(told, str):
        return None
    verdict, confidence, rate, low, high, _, _ = told
    return Growth(verdict, confidence, rate / _SCALE, low / _SCALE, high / _SCALE, where)


SNAPSHOTS = 24


def leaks(f: Callable[[], Any], runs: int = 50, *, warmup: int = 5, frames: int = FRAMES) -> Leaks:
    """Calls f again and again, every allocation recorded, and judges what is still held after the calls, site by site, by the one judge of
    leaks that tare has (docs/judgement.md#leaks): what fills and then stays, or comes and goes, is not growth. Garbage is collected before each look."""
    if not isinstance(runs, int) or runs < SNAPSHOTS:
        raise ValueError(f"runs: {SNAPSHOTS} at least, or nobody can tell growth from chance")
    for _ in range(warmup):
        f()
    looks = sorted({round((i + 1) * runs / SNAPSHOTS) for i in range(SNAPSHOTS)})
    seen: list[dict[tuple[str, ...], float]] = []
    with memory(every=True, frames=frames) as m:
        if m.why is not None:
            raise RuntimeError(f"tare.leaks: {m.why}")
        for call in range(1, runs + 1):
            f()
            if call in looks:
                gc.collect()
                seen.append(_held(m._trace))
    growing, undecided = [], []
    for key in {k for one in seen for k in one}:
        judged = _judge(looks, [one.get(key, 0.0) for one in seen], " < ".join(key[:4]) or "unknown")
        if judged and judged.verdict == "growing":
            growing.append(judged)
        elif judged and judged.verdict == "inconclusive":
            undecided.append(judged)
    total = _judge(looks, [sum(one.values()) for one in seen], "all sites together")
    growing.sort(key=lambda g: -g.bytes_per_call)
    return Leaks(runs, growing, total, undecided)
