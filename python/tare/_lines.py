# SPDX-License-Identifier: MIT
"""tare.lines(): how long each line of chosen functions takes, what it calls included; in all threads."""

from __future__ import annotations

import atexit
import dis
import functools
import inspect
import json
import linecache
import sys
import types
import weakref
from typing import Any, Callable, Iterable, NamedTuple, TextIO

from tare import _answers, _weigh
from tare._tare import LineRecorder


class Line(NamedTuple):
    """One line of a function. Time in seconds, our own cost taken out; the share is of the function's time."""

    filename: str
    function: str
    line_number: int
    hits: int
    time_s: float
    time_percent: float
    source: str

    @property
    def per_hit_s(self) -> float | None:
        return self.time_s / self.hits if self.hits else None


class FunctionLines(NamedTuple):
    """One function: its lines that ran, and the time of all of them."""

    filename: str
    name: str
    first_line: int
    time_s: float
    own_cost_s: float
    lines: list[Line]


# ---- what is meant ----


def inner_codes(code: types.CodeType) -> Iterable[types.CodeType]:
    """The code and the functions written inside it; comprehensions and lambdas belong to the line they stand on."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType) and not const.co_name.startswith("<"):
            yield from inner_codes(const)


def _members(owner: Any, belongs: Callable[[Any], bool]) -> Iterable[types.CodeType]:
    for member in list(vars(owner).values()):
        if isinstance(member, (types.FunctionType, staticmethod, classmethod, property, type)) or hasattr(member, "__wrapped__"):
            if belongs(member):
                yield from codes_of(member)


def _of_module(module: types.ModuleType) -> Callable[[Any], bool]:
    return lambda member: getattr(member, "__module__", None) == module.__name__


def _of_class(owner: type) -> Callable[[Any], bool]:
    """All but classes that were written elsewhere and are only named there."""
    return lambda member: not isinstance(member, type) or member.__qualname__.startswith(owner.__qualname__ + ".")


def codes_of(what: Any) -> Iterable[types.CodeType]:
    """The code objects of a function, method, class, module, property, or code object; none of anything else."""
    if isinstance(what, types.CodeType):
        yield from inner_codes(what)
    elif isinstance(what, types.ModuleType):
        yield from _members(what, _of_module(what))
    elif isinstance(what, type):
        yield from _members(what, _of_class(what))
    elif isinstance(what, property):
        for function in filter(None, (what.fget, what.fset, what.fdel)):
            yield from codes_of(function)
    elif isinstance(what, functools.partial):
        yield from codes_of(what.func)
    else:
        function = inspect.unwrap(getattr(what, "__func__", what))
        code = getattr(function, "__code__", None)
        if code is not None:
            yield from inner_codes(code)


def _span(code: types.CodeType) -> tuple:
    numbers = [line for _, line in dis.findlinestarts(code) if line] + [code.co_firstlineno]
    return min(numbers), max(numbers)


# ---- the profile ----


class lines(_answers.Shown):  # noqa: N801 - used like a function: with tare.lines(step) as profile
    """Profiles the lines of functions, classes or modules: `with tare.lines(train_step) as profile: train()`.

    Also enable() and disable(), add(function) at any time, and @profile above a function."""

    def __init__(self, *what: Any):
        self._recorder = LineRecorder()
        self._cost = _weigh.cost_of_lines()
        for each in what:
            self.add(each)

    def add(self, what: Any) -> None:
        """Watches one more function, class or module. TypeError for what has no lines of Python."""
        found = list(codes_of(what))
        if not found:
            raise TypeError(f"tare.lines watches Python functions, classes and modules; {what!r} has no lines of Python")
        for code in found:
            self._recorder.add(code, *_span(code))

    def __call__(self, function: Any) -> Any:
        self.add(function)
        return function

    def enable(self) -> None:
        self._recorder.enable()
        _open.add(self)

    def disable(self) -> None:
        self._recorder.disable()
        _open.discard(self)

    def __del__(self) -> None:
        """Nobody could disable it any more: a notebook's cell that was run twice, an interrupt on the way into the block."""
        recorder = getattr(self, "_recorder", None)
        if recorder:
            recorder.disable()

    def __enter__(self) -> "lines":
        self.enable()
        return self

    def __exit__(self, *exc: Any) -> bool:
        self.disable()
        return False

    # ---- data ----

    @property
    def running(self) -> bool:
        return self._recorder.enabled

    @property
    def trouble(self) -> list[str]:
        """Why the results are incomplete; empty when they are not."""
        return [self._recorder.trouble] if self._recorder.trouble else []

    @property
    def self_cost(self) -> _weigh.LineCost | None:
        """Nanoseconds that an event of the recording costs; None: it could not be measured."""
        return self._cost

    def functions(self) -> list[FunctionLines]:
        """The functions of which a line ran, in the order in which they were chosen."""
        return [_function(code, rows, self._cost) for code, rows in self._recorder.results() if rows]

    def lines(self) -> list[Line]:
        """All lines that ran."""
        return [line for function in self.functions() for line in function.lines]

    # ---- output ----

    def text(self) -> str:
        """The source with hits, time, time per hit and share beside each line."""
        return _answers.lines_text(self)

    def print(self, file: TextIO | None = None) -> None:
        """Prints the text."""
        print(self.text(), file=file or sys.stdout)

    def to_dict(self) -> dict:
        """The same as data."""
        return {
            "self": self._cost._asdict() if self._cost else None,
            "trouble": self.trouble,
            "functions": [{**f._asdict(), "lines": [line._asdict() for line in f.lines]} for f in self.functions()],
        }

    def save(self, path: str) -> str:
        """Writes .txt or .json, by the ending; returns the path."""
        return _answers.write_text(path, writer(path)(self) + "\n")

    def _shown(self) -> str:
        return self.text()


def writer(path: Any) -> Callable[[lines], str]:
    """What makes the text of a file of that name; ValueError that names the endings."""
    return _answers.by_ending(path, {".txt": lines.text, ".json": lambda profile: json.dumps(profile.to_dict(), indent=1)})


_open: weakref.WeakSet = weakref.WeakSet()


@atexit.register
def _close() -> None:
    """The interpreter goes down: no events into what is taken apart."""
    for profile in list(_open):
        profile.disable()


def _net(row: tuple, cost: _weigh.LineCost | None) -> tuple:
    """(line, hits, seconds, own cost in seconds) of a recorded row."""
    number, hits, ns, inner_lines, inner_calls = row
    own = ((hits + inner_lines) * cost.line_ns + inner_calls * cost.call_ns) if cost else 0.0
    own = min(own, ns)
    return number, hits, (ns - own) / 1e9, own / 1e9


def _function(code: types.CodeType, rows: list, cost: _weigh.LineCost | None) -> FunctionLines:
    net = [_net(row, cost) for row in rows]
    total = sum(seconds for _, _, seconds, _ in net)
    name = getattr(code, "co_qualname", code.co_name)
    found = [
        Line(code.co_filename, name, number, hits, seconds, 100 * seconds / total if total else 0.0,
             linecache.getline(code.co_filename, number).rstrip("\n"))
        for number, hits, seconds, _ in net
    ]
    return FunctionLines(code.co_filename, name, code.co_firstlineno, total, sum(own for *_, own in net), found)
