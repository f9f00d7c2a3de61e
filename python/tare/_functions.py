# SPDX-License-Identifier: MIT
"""tare.functions(): how often functions are called, by whom, along which path, and how long they take; in all threads."""

from __future__ import annotations

import atexit
import sys
from typing import Any, Callable, NamedTuple, TextIO, Tuple

from tare import _answers, _calls_text, _weigh
from tare._tare import CallRecorder, functions_stop

atexit.register(functions_stop)

Key = Tuple[str, int, str]


class Function(NamedTuple):
    """One function, over all threads. Times in ns, our own cost taken out, and the time in which others had the processor; primitive and
    total as pstats defines them."""

    file: str
    line: int
    name: str
    calls: int
    primitive: int
    self_ns: float
    total_ns: float
    waited_ns: float | None  # for a lock, a file, a pause, the interpreter's lock; part of self_ns unless clock="cpu". None: not asked for
    self_doubt_ns: float  # how far off it may be for what was taken out
    total_doubt_ns: float

    @property
    def key(self) -> Key:
        return self.file, self.line, self.name


class Tree(NamedTuple):
    """One thread's call paths as columns, parents before children; node 0 is the thread. `function` indexes `labels`, -1: none."""

    name: str
    ident: int
    threads: int
    labels: list[Key]
    parent: list[int]
    function: list[int]
    calls: list[int]
    self_ns: list[int]
    total_ns: list[int]


def _sum_rows(rows, keys) -> dict[Any, list[float]]:
    """Functions of one file, line and name are one function, however often their code was made."""
    sums: dict[Any, list[float]] = {}
    for key, values in zip(keys, rows):
        before = sums.get(key)
        sums[key] = [a + b for a, b in zip(before, values)] if before else values
    return sums


def writer(path: Any) -> Callable[[Any, Any], Any]:
    """What writes a file of that name; ValueError that names the endings."""
    return _answers.by_ending(path, _WRITERS)


class functions(CallRecorder, _answers.Shown):  # noqa: N801 - used like a function: with tare.functions() as prof
    """Profiles every call of every thread while it is enabled: `with tare.functions() as prof`, or prof.enable(), prof.disable().

    fast=True      Python functions only, at a fraction of the cost
    exact_c=False  from 3.12 on: cheaper; call sites that called Python functions only, 16 times, are switched off for up to two seconds
    clock="cpu"    without the time in which threads waited
    limit          call paths kept apart; beyond, only pairs of caller and function are
    """

    title = "tare functions"  # of the flame graph's page, where flame() is not given another
    shown: tuple[str, int | None] = ("self", 25)  # order and rows of the table where it is the last value of a cell
    written: tuple[str, int | None] = ("total", None)  # likewise in a .txt file
    left_out: tuple[str, ...] = ()  # names of threads that are in no result
    _n_left_out = 0

    def __init__(self, *, fast: bool = False, exact_c: bool = True, limit: int = 1_000_000, clock: str = "wall"):
        if clock not in ("wall", "cpu"):
            raise ValueError(f"clock={clock!r}: choose wall or cpu")
        super().__init__(fast=fast, exact_c=exact_c, limit=limit, cpu=clock == "cpu")
        self._fast = fast
        self._cost: _weigh.CallCost | None = None
        self._weigh()

    def _weigh(self) -> _weigh.CallCost | None:
        if self._cost is None:
            self._cost = _weigh.cost_of_calls(self._fast)
            if self._cost:
                self._set_cost(*self._cost[:-1], _weigh.most_slowed(self._cost))
        return self._cost

    def leave_out(self, idents: Any) -> None:
        """Threads (their `ident`) that are not the program's: no result has them, and the table names them."""
        names = self._leave_out(tuple(idents))
        self.left_out, self._n_left_out = tuple(name for name in names if name), len(names)  # without a name: it did nothing

    def _keys(self) -> list[Key]:
        """Read after the numbers: a profile that runs learns of new functions meanwhile."""
        return [label for label, _ in self._labels()]

    # ---- data ----

    @property
    def running(self) -> bool:
        return self._status()["running"]

    @property
    def seconds(self) -> float:
        """How long it was enabled, our own cost included."""
        return self._status()["ns"] / 1e9

    @property
    def trouble(self) -> list[str]:
        """Why the results are incomplete; empty when they are not."""
        status = self._status()
        found = [status["trouble"]] if status["trouble"] else []
        if status["folded"]:
            found.append(f"more than {status['paths']} call paths: beyond that, callers are known and longer paths are not")
        if status["sites_off"]:
            found.append("exact_c=False: call sites that had called Python functions only were switched off; C functions called there are missing")
        if status["lost"]:
            found.append(f"{status['lost']} calls were not recorded: no memory")
        return found

    @property
    def self_cost(self) -> dict[str, Any]:
        """The profiler's own cost, which is subtracted: ns a call by kind (in the callee, in its caller, in doubt), and of all calls; from 3.12
        on a call that stands in Python code costs `site` besides, that of a class or an object `other`. None where unknown."""
        cost = self._weigh()
        if not cost:
            return {**dict.fromkeys(_weigh.CallCost._fields), "total_ns": None, "doubt_ns": None}
        rows, status = self._sums()[0], self._status()
        gauges = [*status["gauge_ns"], *status["gauge_ns"][:1] * 2]
        parts = [tuple(gauge * part for part in kind[:3]) for kind, gauge in zip(cost[:-1], gauges)]
        unread = 0.0 if status["gauge_read"] else 0.5
        doubts = [doubt + unread * (inner + outer) for inner, outer, doubt in parts]
        kind_of = [kind for _, kind in self._labels()]
        doubt = sum(row[2] * doubts[kind_of[row[0]]] for row in rows) + sum(n * one for n, one in zip(status["sites"], doubts[-2:]))
        return {**dict(zip(cost._fields, parts)), "slowdown": cost.slowdown, "total_ns": sum(row[6] for row in rows), "doubt_ns": doubt}

    @property
    def preempted_s(self) -> float:
        """How long threads were ready to run while others had the processor: in no function's time."""
        return self._status()["preempted_ns"] / 1e9

    def functions(self) -> list[Function]:
        """All functions, in the order in which they were first called."""
        self._weigh()
        rows, keys = self._sums()[0], self._keys()
        asked = self._status()["asks_for_waiting"]
        sums = _sum_rows([row[1:] for row in rows], [keys[row[0]] for row in rows])
        return [
            Function(*key, int(n), int(primitive), own, total, waited if asked else None, doubt, total_doubt)
            for key, (primitive, n, own, total, waited, _, doubt, total_doubt) in sums.items()
        ]

    @property
    def stats(self) -> dict[Key, tuple]:
        """As pstats keeps it: {(file, line, name): (primitive, calls, self s, total s, {caller: (calls, primitive, s, s)})}."""
        self._weigh()
        rows, pairs = self._sums()
        keys = self._keys()
        callers: dict[Key, dict[Key, tuple]] = {}
        by_pair = _sum_rows([row[2:] for row in pairs], [(keys[row[0]], keys[row[1]]) for row in pairs])
        for (caller, callee), (primitive, n, own, total) in by_pair.items():
            callers.setdefault(callee, {})[caller] = (int(n), int(primitive), own / 1e9, total / 1e9)
        sums = _sum_rows([row[1:5] for row in rows], [keys[row[0]] for row in rows])
        return {
            key: (int(primitive), int(n), own / 1e9, total / 1e9, callers.get(key, {}))
            for key, (primitive, n, own, total) in sums.items()
        }

    @stats.setter
    def stats(self, ignored: dict[Key, tuple]) -> None:
        """pstats.Stats(prof) puts {} here when it has read them; what was recorded stays."""

    def create_stats(self) -> None:
        """pstats.Stats(prof) calls it before it reads `stats`."""
        self.disable()

    def trees(self) -> list[Tree]:
        """The call paths, one tree per thread."""
        self._weigh()
        trees, labels = self._columns(), self._keys()
        return [
            Tree(name or f"thread {ident}", ident, threads, labels, *columns)
            for name, ident, threads, columns in trees
            if len(columns[0]) > 1
        ]

    # ---- output ----

    def text(self, sort: str = "self", limit: int | None = None) -> str:
        """The table as text; sort: self, total, calls, name, file, or one of pstats' words."""
        return _answers.functions_text(self, sort, limit)

    def tree(self, everything: bool = False, rows: int = 40) -> str:
        """Call paths with their shares as text; calls of libraries within themselves are folded, unless everything=True."""
        return _calls_text.tree_text(self, _answers._seconds, everything, rows)

    def print(self, sort: str = "self", limit: int | None = None, file: TextIO | None = None) -> None:
        """Prints the table."""
        print(self.text(sort, limit), file=file or sys.stdout)

    def save(self, path: str) -> str:
        """Writes .prof (pstats, snakeviz), .txt, .json (speedscope), .folded or .html, by the ending; returns the path."""
        writer(path)(self, path)
        return path

    def flame(self, path: str, title: str | None = None) -> str:
        """Writes a flame graph as an HTML page of its own."""
        return _answers.profile_page(self, path, title or self.title)

    def _shown(self) -> str:
        return self.text(*self.shown)


_WRITERS: dict[str, Callable[[Any, Any], Any]] = {
    ".prof": _answers.write_prof,
    ".pstats": _answers.write_prof,
    ".txt": lambda profile, path: _answers.write_text(path, profile.text(*profile.written) + "\n"),
    ".json": _answers.write_speedscope,
    ".folded": _answers.write_folded,
    ".html": functions.flame,
}
