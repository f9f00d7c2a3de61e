# SPDX-License-Identifier: MIT
"""tare.bench: weigh a callable with the harness of `tare bench`, in this process."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import re
import traceback
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter_ns
from typing import Any, Callable, Iterable, Mapping

from tare import _gpu, _inputs, _tare
from tare._run import Run

_NAME_MOST = 120  # the end of a longer one says more
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}


def duration_ns(value, what):
    """Nanoseconds of 10 (seconds), "500ms", "2m"."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", value)
        if not found or found.group(2) not in {"", *_SECONDS}:
            raise ValueError(f"{what}={value!r}: expected seconds, or text as in '500ms', '10s', '2m'")
        value = float(found.group(1)) * _SECONDS[found.group(2) or "s"]
    if not value > 0:
        raise ValueError(f"{what}={value!r}: must be above 0")
    return int(value * 1e9)


def function_name(function):
    """What reports call a callable: encode, Model.encode."""
    inner = function.func if isinstance(function, functools.partial) else function
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return name.replace("<locals>.", "")


def _code(function):
    inner = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    return getattr(getattr(inner, "__func__", inner), "__code__", None)


def function_path(function):
    """The file that a callable stands in; None when it is not Python code."""
    code = _code(function)
    return code.co_filename if code else None


def file_word(path):
    """As the user would write it: from the current folder on, or whole where that is no part of it; run_describe_model in C."""
    try:
        near = os.path.relpath(path)
    except (OSError, ValueError):  # the folder is gone
        return path
    return os.path.abspath(path) if near.startswith(os.pardir) else near


def subject_name(function):
    """What tells a function from all others in a history: its file, as in `tare bench py:embed.py:encode`, or the module of an
    installed package. One that has no file, as in a notebook, has its name alone."""
    name, path = function_name(function), function_path(function)
    if not path or path.startswith("<"):
        return name
    if name.endswith("<lambda>"):
        name = f"{name}:{_code(function).co_firstlineno}"
    module = getattr(function, "__module__", None)
    installed = module and module != "__main__" and not {"site-packages", "dist-packages"}.isdisjoint(path.split(os.sep))
    full = f"{module}.{name}" if installed else f"{file_word(path)}:{name}"
    return full if len(full) <= _NAME_MOST else "..." + full[3 - _NAME_MOST:]


def is_async(function):
    """Whether calling it gives something to await."""
    inner = function.func if isinstance(function, functools.partial) else function
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))


def run_in_loop(function, loop):
    """A callable that runs the async `function` in the loop and gives the nanoseconds it took there: what the loop does
    to start and end a task is not counted."""

    async def timed(args, keywords):
        start = perf_counter_ns()
        await function(*args, **keywords)
        return perf_counter_ns() - start

    return lambda *args, **keywords: loop.run_until_complete(timed(args, keywords))


class Timed:
    """A function whose result is the nanoseconds to count for the call, instead of those the harness sees."""

    def __init__(self, function):
        self.function = function


class Failed:
    """A call that is known to fail: its row with the reason is wanted, not the exception."""

    def __init__(self, error):
        traceback.clear_frames(error.__traceback__)  # what did not fit into memory must not stay there
        self.error = error

    def __call__(self, *args):
        raise self.error


def _sizes(values, what):
    """Batch sizes or lengths as a list; [0] when none were asked for."""
    if values is None:
        return [0]
    sizes = [values] if isinstance(values, int) else list(values)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{what}: {size!r} is not a whole number above 0")
    if not sizes or len(set(sizes)) != len(sizes):
        raise ValueError(f"{what}: {'empty' if not sizes else 'a value is named twice'}")
    return sizes


def case_name(batch, length):
    """As `tare bench` names cases."""
    parts = [f"{key}={value}" for key, value in (("batch", batch), ("length", length)) if value]
    return ",".join(parts) or "default"


class Feeder:
    """Makes the call of each case: make(batch, length) -> Work."""

    def __init__(self, function, args=(), **more):
        self.function = function
        self.args = args
        self.keywords = more.get("keywords")
        self.make_input = more.get("make_input")
        self.setup = more.get("setup")
        self.unit = more.get("unit")
        self.timed = more.get("timed", False)

    def arguments(self, batch, length):
        if self.make_input:
            made = self.make_input(batch, length)
            return made if isinstance(made, tuple) else (made,)
        if not (batch or length):
            return tuple(self.args)
        if not self.args:
            raise TypeError("batch sizes and lengths need something to cut: pass the items after the function, or make_input=")
        return (_inputs.fit(self.args[0], batch, length), *self.args[1:])

    def units(self, batch, arguments):
        """What one call counts as: its batch; all items when a unit is named for them; else one call."""
        if batch:
            return batch
        counts = self.unit and arguments and _inputs.is_batch(arguments[0])
        return len(arguments[0]) or 1 if counts else 1

    def once(self, batch, length):
        """One call of a case, for a look at it."""
        arguments = self.arguments(batch, length)

        def call():
            own = self.setup(*arguments) if self.setup else None
            return self.function(*(own if isinstance(own, tuple) else arguments), **(self.keywords or {}))

        return call

    def make(self, batch, length):
        arguments = self.arguments(batch, length)
        return _tare.Work(
            self.function, arguments, self.keywords, self.setup, self.units(batch, arguments), self.timed
        )


def _name_place(error):
    """Say in which case an exception came: a note where Python has notes, its cause elsewhere."""
    where = getattr(error, "tare_case", None)
    if where is None:
        return
    text = f"while tare.bench weighed it: {where}"
    if hasattr(error, "add_note"):
        error.add_note(text)
    elif error.__cause__ is None:
        error.__cause__ = RuntimeError(text)


def _measure(feeder, cases, settings):
    loop = None
    if is_async(feeder.function):
        loop = asyncio.new_event_loop()
        feeder.function = run_in_loop(feeder.function, loop)
        feeder.timed = True
    try:
        run = Run(*_tare.bench(make=feeder.make, cases=cases, timed=feeder.timed, **settings))
        if not _gpu.is_open():
            return run
        document = run.to_dict()
        calls = {name: feeder.once(batch, length) for name, batch, length in cases if run.case(name).samples}
        return Run.of(_gpu.tell(_gpu.record(document, calls)))
    except BaseException as error:
        _name_place(error)
        raise
    finally:
        if loop:
            loop.close()


def _in_running_loop():
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _known_objective(word):
    if word not in ("throughput", "latency", "memory"):
        raise ValueError(f"objective={word!r}: expected 'throughput', 'latency' or 'memory'")
    return word


def _warmup_runs(warmup):
    if warmup == "auto":
        return -1
    if isinstance(warmup, bool) or not isinstance(warmup, int) or warmup < 0:
        raise ValueError(f"warmup={warmup!r}: expected 'auto' or a number of runs")
    return warmup


def bench(
    function: Callable[..., Any],
    *args: Any,
    batch_sizes: int | Iterable[int] | None = None,
    lengths: int | Iterable[int] | None = None,
    unit: str | None = None,
    targets: str | Iterable[str] = (),
    budget: float | str = 10,
    warmup: int | str = "auto",
    setup: Callable[..., tuple[Any, ...] | None] | None = None,
    make_input: Callable[[int, int], Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
    precision: float = 0.02,
    percentile: float | None = None,
    min_runs: int | None = None,
    max_runs: int | None = None,
    objective: str = "throughput",
    latency_limit: float | str | None = None,
    seed: int = 0,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Run:
    """Weigh function(*args, **kwargs): warm it up until it is steady, then measure until the median is known to within
    `precision` or the `budget` (seconds of each case, or text as in "500ms") is spent. Gives a Run.

    With batch_sizes, args[0] is a list, tuple or array of items, and a case batch=n calls the function with the first n
    of them (from the start again when there are fewer); with lengths, its texts are cut or repeated to so many words.
    make_input(batch, length) makes the arguments itself (0: not asked for). setup(*args) is called before each run and
    not timed; a tuple that it returns is that run's arguments. Cases are measured in turns, in random order.
    A run that raises an Exception is counted (`failed_runs`, what the first said is the case's `failure`) and the next one is made; a
    case has failed, and is a row without numbers, when three more runs failed than were served (a batch that does not fit into memory).
    Where all cases fail, the first exception comes out as it is, with a note that names the case; what is no Exception
    (KeyboardInterrupt, SystemExit) comes out at once.
    """
    timed = isinstance(function, Timed)
    function = function.function if timed else function
    if not callable(function):
        raise TypeError(f"tare.bench weighs a callable, not {type(function).__name__}")
    unit = unit or ("items" if batch_sizes is not None else "calls")
    counted = unit if unit != "calls" else None
    feeder = Feeder(function, args, keywords=kwargs, make_input=make_input, setup=setup, unit=counted, timed=timed)
    cases = [
        (case_name(batch, length), batch, length)
        for length in _sizes(lengths, "lengths")
        for batch in _sizes(batch_sizes, "batch_sizes")
    ]
    settings = {
        "targets": [targets] if isinstance(targets, str) else list(targets),
        "name": name or subject_name(function),
        "path": function_path(function),
        "unit": unit,
        "budget_ns": duration_ns(budget, "budget"),
        "precision": float(precision),
        "percentile": (percentile or 0) / 100,
        "min_runs": min_runs or 0,
        "max_runs": max_runs or 0,
        "warmup": _warmup_runs(warmup),
        "seed": seed,
        "objective": _known_objective(objective),
        "latency_limit_ns": duration_ns(latency_limit, "latency_limit") if latency_limit else 0,
        "setup": setup is not None,
        "progress": progress,
        "keep_failed": isinstance(function, Failed),
    }
    if is_async(function) and _in_running_loop():  # as in a notebook: a loop of its own needs a thread of its own
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(_measure, feeder, cases, settings).result()
    return _measure(feeder, cases, settings)
