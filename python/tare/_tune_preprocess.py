# SPDX-License-Identifier: MIT
"""tare.PreprocessingOptimizer: which functions of a pipeline take the time, and the pipeline run over batches, in threads, in processes or
from a cache where that gives the same results, is proved to, and is proved faster. Otherwise it is left alone, and says why."""

from __future__ import annotations

import concurrent.futures as futures
import contextlib
import copy
import functools
import itertools
import math
import multiprocessing
import os
import pickle
import resource
import statistics
import sys
import threading
import time
import types
import weakref
from collections import OrderedDict
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Sequence

from tare import _tune
from tare._tare import in_sentence
from tare._tune import Tuned, first_difference, setting
from tare._tune_files import in_windows
from tare._unknown import Unknown, known

TARGET = (2.0, 3.0)  # what users hope for
SAMPLES_MOST = 256
WAITERS_MOST = 16
WINDOW = 256  # samples of a batch, and of a round of the pools
WORK_S = 0.1  # a pass over the work that is measured

# Names that a function's own code calls: what it does beside giving a result. Words for the refusal.
_TOUCHES = {
    "random": "draws random numbers", "randint": "draws random numbers", "rand": "draws random numbers", "randn": "draws random numbers",
    "urandom": "draws random numbers", "uuid4": "draws random numbers", "time": "reads the clock", "perf_counter": "reads the clock",
    "monotonic": "reads the clock", "datetime": "reads the clock", "now": "reads the clock", "environ": "reads the environment",
    "getenv": "reads the environment", "open": "reads files", "read_bytes": "reads files", "read_text": "reads files",
    "print": "prints", "write": "writes", "write_text": "writes", "write_bytes": "writes", "input": "asks the user",
    "remove": "removes things", "unlink": "removes things", "system": "starts programs", "Popen": "starts programs",
}  # fmt: skip
_ORDER_MATTERS = ("draws random numbers", "prints", "writes", "asks the user", "removes things", "starts programs")


def vectorized(batch: Callable[[list], Sequence]) -> Callable[[Callable], Callable]:
    """Says of a function of one sample how it is done for a list of them: @tare.vectorized(of_many). It is still compared on the sample."""

    def mark(function: Callable) -> Callable:
        function.__tare_batch__ = batch  # type: ignore[attr-defined]
        return function

    return mark


# ---- what a function does ----


class Raised(NamedTuple):
    """A sample for which a function raised: as much of a result as any."""

    kind: type
    text: str


class Stage:
    """One function: seconds of each call, and what is known against running it otherwise."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.name = getattr(function, "__qualname__", None) or type(function).__name__
        self.wall: list[float] = []  # running and waiting, less others' load
        self.cpu: list[float] = []
        self.changes_input = False
        self.order: str | None = None  # why the order or number of calls matters; None: no sign of it
        self.varies: str | None = None  # why a result must not be kept; None: no sign of it

    def look(self, inputs: list, give_up: float) -> list:
        """Results of every sample, the functions called three times: in order twice, then from the end."""
        touched = touches(self.function)
        state, drawn = _state_of(self.function), _random_states()
        first = [self._call(x, weigh=True, give_up=give_up) for x in inputs]
        again = [self._call(x, give_up=give_up) for x in inputs]
        back = [self._call(x, give_up=give_up) for x in reversed(inputs)][::-1]
        if (difference := first_difference(state, _state_of(self.function), "its state")) is not None:
            self.order = f"keeps something from call to call: {difference}"
        elif first_difference(_random_states(), drawn) is not None:
            self.order = "draws random numbers"
        elif (difference := first_difference(first, again)) is not None:
            self.order = f"gives another result when it is called again: {difference}"
        elif (difference := first_difference(first, back)) is not None:
            self.order = f"gives other results in another order: {difference}"
        else:
            self.order = next((word for word in touched if word in _ORDER_MATTERS), None)
        self.varies = self.order or next(iter(touched), None)
        return first

    def _call(self, x: Any, give_up: float, weigh: bool = False) -> Any:
        if isinstance(x, Raised):
            return x
        if time.monotonic() > give_up:
            raise TimeoutError
        given = copy.deepcopy(x)
        queued, ways, begun, cpu = _tune.queued_seconds(), _times_given_way(), time.perf_counter(), time.thread_time()
        try:
            y = self.function(given)
        except Exception as raised:  # noqa: BLE001 - whatever it is, it is the result
            y = Raised(type(raised), str(raised))
        wall, cpu = time.perf_counter() - begun, time.thread_time() - cpu
        if weigh:  # without the time in which others, or the host of a virtual machine, had the processor: more workers would not use it
            waited = _times_given_way() > ways
            self.wall.append(max(cpu, wall - (_tune.queued_seconds() - queued)) if waited else cpu)
            self.cpu.append(cpu)
            self.changes_input = self.changes_input or first_difference(x, given) is not None
        return copy.deepcopy(y)


def _times_given_way() -> int:
    """How often this thread gave its processor away by itself: whoever waits for anything does."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def touches(function: Callable) -> list[str]:
    """What the function's code, and that of functions of the same module it calls, does beside giving a result, by the names in it."""
    seen: set[int] = set()
    out: list[str] = []
    todo: list[Any] = [function]
    while todo:
        f = todo.pop()
        f = getattr(f, "__func__", getattr(f, "func", f))
        code = getattr(f, "__code__", None) or getattr(getattr(type(f), "__call__", None), "__code__", None)
        if code is None or id(code) in seen:
            continue
        seen.add(id(code))
        codes = [code]
        for c in codes:
            codes += [k for k in c.co_consts if isinstance(k, types.CodeType)]
            out += [_TOUCHES[name] for name in c.co_names if name in _TOUCHES and _TOUCHES[name] not in out]
            named = getattr(f, "__globals__", {})
            todo += [named[n] for n in c.co_names if isinstance(named.get(n), types.FunctionType) and named[n].__module__ == f.__module__]
    return out


def _state_of(function: Callable) -> dict[str, Any]:
    """Copies of what a function can keep between calls: its object's attributes, its own, its closure, the globals it names."""
    kept: dict[str, Any] = {}
    for owner in (getattr(function, "__self__", None), function):
        if hasattr(owner, "__dict__") and not isinstance(owner, (type, types.ModuleType)):
            kept.update({f"{type(owner).__name__}.{name}": value for name, value in vars(owner).items()})
    plain = getattr(function, "__func__", function)
    code = getattr(plain, "__code__", None)
    for name, cell in zip(code.co_freevars if code else (), getattr(plain, "__closure__", None) or ()):
        kept[name] = cell.cell_contents if _is_filled(cell) else None
    named = getattr(plain, "__globals__", {})
    kept.update({name: named[name] for name in (code.co_names if code else ()) if name in named})
    out = {}
    for name, value in kept.items():
        if isinstance(value, (types.ModuleType, types.FunctionType, type, types.BuiltinFunctionType)):
            continue
        try:
            out[name] = copy.deepcopy(value)
        except Exception:  # noqa: BLE001 - a lock, a file: it cannot be looked into
            continue
    return out


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _random_states() -> list[Any]:
    loaded = sys.modules
    states: list[Any] = [loaded["random"].getstate()] if "random" in loaded else []
    if "numpy.random" in loaded:
        states.append(loaded["numpy.random"].get_state())
    if "torch" in loaded:
        states.append(loaded["torch"].get_rng_state())
    return states


def _set_random_states(states: list[Any]) -> None:
    loaded, left = sys.modules, list(states)
    for name, put in (("random", "setstate"), ("numpy.random", "set_state"), ("torch", "set_rng_state")):
        if name in loaded and left:
            getattr(loaded[name], put)(left.pop(0))


# ---- ways to run the pipeline; each gives the results in order and raises where the plain loop would ----


def _plain(functions: Sequence[Callable], x: Any) -> Any:
    for function in functions:
        x = function(x)
    return x


class Alone:
    """One sample after the other, as it was."""

    plan: dict[str, Any] = {}

    def __init__(self, functions: Sequence[Callable]) -> None:
        self.functions = tuple(functions)

    def run(self, samples: Iterable) -> Iterator:
        for x in samples:
            yield _plain(self.functions, x)

    def close(self) -> None:
        """Ends what it keeps running."""


class Batched(Alone):
    """Stages that can take a batch at a time do. A window in which anything is unusual is done again one by one, and raises there."""

    def __init__(self, functions: Sequence[Callable], batch: dict[int, Callable[[list], Sequence]]) -> None:
        super().__init__(functions)
        self.batch = batch
        names = [getattr(functions[i], "__name__", str(i)) for i in batch]
        self.plan = {"way": "vectorised", "functions": names, "window": WINDOW}

    def run(self, samples: Iterable) -> Iterator:
        for window in in_windows(samples, WINDOW):
            try:
                done = self._window(window)
            except Exception:  # noqa: BLE001 - it is raised again below, by the sample that is to blame
                done = None
            yield from super().run(window) if done is None else done

    def _window(self, window: list) -> list:
        for i, function in enumerate(self.functions):
            many = self.batch.get(i)
            done = list(many(window)) if many else [function(x) for x in window]
            if len(done) != len(window):
                raise ValueError("a batch of another length")
            window = done
        return window


def _chunk(functions: Sequence[Callable], chunk: list) -> tuple[list, BaseException | None]:
    """In a worker: results up to the first that raises, and what it raised."""
    done: list = []
    try:
        for x in chunk:
            done.append(_plain(functions, x))
    except Exception as raised:  # noqa: BLE001 - it is raised again in its place
        return done, raised
    return done, None


def _chunk_apart(functions: Sequence[Callable], chunk: list) -> tuple[list, bool]:
    """The same in a process: the exception is raised again where it can be whole."""
    done, raised = _chunk(functions, chunk)
    return done, raised is not None


class Pooled(Alone):
    """Chunks of samples in threads or processes, a bounded number ahead. When a sample raises, those before it have been given, and a few
    after it may have run."""

    def __init__(self, functions: Sequence[Callable], way: str, workers: int, chunk: int) -> None:
        super().__init__(functions)
        self.way, self.workers, self.chunk = way, workers, chunk
        self.plan = {"way": way, "workers": workers, "chunk": chunk}
        self.wait_s: float | None = None  # for one chunk; None: as long as it takes
        self._pool: Any = None
        self._owner = 0
        self._lock = threading.Lock()

    def _submit(self, chunk: list) -> futures.Future:
        with self._lock:
            if self._pool is None or self._owner != os.getpid():
                made = futures.ThreadPoolExecutor if self.way == "threads" else _process_pool
                self._pool, self._owner = made(self.workers), os.getpid()
                weakref.finalize(self, self._pool.shutdown, wait=False)
            try:
                return self._pool.submit(_chunk if self.way == "threads" else _chunk_apart, self.functions, chunk)
            except futures.process.BrokenProcessPool as broken:  # known by now; it is told in the order of samples, by _take()
                failed: futures.Future = futures.Future()
                failed.set_exception(broken)
                return failed

    def run(self, samples: Iterable) -> Iterator:
        ahead: list[tuple[list, futures.Future]] = []
        chunks = in_windows(samples, self.chunk)
        try:
            while True:
                while len(ahead) < 2 * self.workers and (chunk := next(chunks, None)) is not None:
                    ahead.append((chunk, self._submit(chunk)))
                if not ahead:
                    return
                chunk, future = ahead.pop(0)
                yield from self._take(chunk, future)
        finally:
            for _, future in ahead:
                future.cancel()

    def _take(self, chunk: list, future: futures.Future) -> Iterator:
        try:
            done, raised = future.result(self.wait_s)
        except futures.process.BrokenProcessPool:
            self.kill()
            raise RuntimeError("preprocessing: a worker process ended (killed, out of memory, or os._exit in a function): "
                               f"one of these {len(chunk)} samples was with it: {chunk[0]!r:.60} ..") from None  # fmt: skip
        yield from done
        if raised is True:  # here, with its own traceback
            yield _plain(self.functions, chunk[len(done)])
            raise RuntimeError(f"preprocessing: sample {chunk[len(done)]!r:.60} raised in a worker process and not here")
        if raised:
            raise raised

    def close(self, wait: bool = True) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._owner == os.getpid():
            pool.shutdown(wait=wait, cancel_futures=True)

    def kill(self) -> None:
        """Ends workers that do not come back; threads cannot be ended, and are left behind."""
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.kill()
        if self.way == "processes":  # CPython before 3.12.1 goes on to write for ever what no worker reads any more (its issue 94777)
            with contextlib.suppress(AttributeError, OSError):
                self._pool._call_queue._reader.close()
        self.close(wait=self.way == "processes")


def _process_pool(workers: int) -> futures.ProcessPoolExecutor:
    return futures.ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"))


class Cached(Alone):
    """Results by the value of the sample, the latest `size` of them. What could be changed by who gets it is copied."""

    def __init__(self, functions: Sequence[Callable], size: int) -> None:
        super().__init__(functions)
        self.size = size
        self.plan = {"way": "cached", "entries": size}
        self.kept: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, samples: Iterable) -> Iterator:
        for x in samples:
            key = cache_key(x)
            with self._lock:
                known = key is not None and key in self.kept
                if known:
                    self.kept.move_to_end(key)
                    y = self.kept[key]
            if not known:
                y = _plain(self.functions, x)
                if key is not None:
                    self._keep(key, y)
                yield y
            else:
                yield y if _is_fixed(y) else copy.deepcopy(y)

    def _keep(self, key: Any, y: Any) -> None:
        y = y if _is_fixed(y) else copy.deepcopy(y)
        with self._lock:
            self.kept[key] = y
            if len(self.kept) > self.size:
                self.kept.popitem(last=False)

    def close(self) -> None:
        with self._lock:
            self.kept.clear()


def _is_fixed(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_fixed, value))
    return type(value) in (str, bytes, int, float, bool, complex, type(None))


def cache_key(x: Any) -> Any:
    """A key that is equal for samples of equal type and bits alone: 1, 1.0 and True are three. None: there is none."""
    kind = type(x)
    if kind in (str, bytes, int, bool):
        return kind, x
    if kind is tuple:
        parts = [cache_key(item) for item in x]
        return None if None in parts else (kind, *parts)
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray" and x.dtype != object:
        return kind, str(x.dtype), x.shape, x.tobytes()
    return None


# ---- vectorising, proved ----


def proved_batch(function: Callable, inputs: list) -> Callable[[list], Sequence] | None:
    """f over a stack of samples, where that gives, bit by bit, what f gives one by one: on the sample as it is, and on samples made
    unlike each other, so that a function of the whole batch (its maximum, its mean) is found out."""
    numpy = sys.modules.get("numpy")
    if numpy is None or len(inputs) < 2 or not all(type(x) is numpy.ndarray and x.dtype != object for x in inputs):
        return None
    if len({(x.dtype, x.shape) for x in inputs}) != 1 or inputs[0].ndim < 1:
        return None

    def of_many(batch: list) -> list:
        if len({(x.dtype, x.shape) for x in batch}) != 1:
            raise ValueError("shapes differ")
        out = function(numpy.stack(batch))
        if type(out) is not numpy.ndarray or out.shape[:1] != (len(batch),):
            raise ValueError("no batch came out")
        return [numpy.array(row) for row in out]

    unlike = [(x * ((i + 1) / len(inputs))).astype(x.dtype) if x.dtype.kind in "iuf" else x[::-1].copy() for i, x in enumerate(inputs)]
    zero = [numpy.zeros_like(x) if i % 2 else x for i, x in enumerate(inputs)]
    for batch in (inputs, inputs[::-1], inputs[:1], inputs[: len(inputs) // 2 + 1], unlike, zero):
        try:
            with numpy.errstate(all="ignore"):
                if first_difference([function(copy.deepcopy(x)) for x in batch], of_many(batch)) is not None:
                    return None
        except Exception:  # noqa: BLE001 - what raises for either is not proved
            return None
    return of_many


# ---- the optimizer ----


class Bottleneck(NamedTuple):
    """One function of the pipeline: seconds per sample, and its share of the time of all."""

    function: str
    median_s: float
    p5_s: float
    p95_s: float
    share: float
    waits: float  # share of its time in which the processor did not work for it
    alert: bool  # over 1 ms per sample, the seed's limit

    def __str__(self) -> str:
        return (f"{self.function}: {self.share:.0%} of the time, {in_sentence(self.median_s, 's')} per sample "
                f"({in_sentence(self.p5_s, 's')} to {in_sentence(self.p95_s, 's')}), {self.waits:.0%} of it waiting")  # fmt: skip


class Pipeline:
    """The functions as one: pipeline(samples) is [h(g(f(x))) for x in samples], in the chosen way. stream(samples) gives the results as they
    come; what a sample raises is raised in its place, after the results before it."""

    def __init__(self, way: Alone, tuned: Tuned, plain: Alone) -> None:
        self._way, self.tuned, self._plain = way, tuned, plain
        tuned._undo = self._go_back if way is not plain else None

    @property
    def plan(self) -> dict[str, Any]:
        """What was chosen; {}: as it was."""
        return dict(self._way.plan)

    def __call__(self, samples: Iterable) -> list:
        return list(self._way.run(samples))

    def stream(self, samples: Iterable) -> Iterator:
        return self._way.run(samples)

    def _go_back(self) -> None:
        self._way.close()
        self._way = self._plain

    def undo(self) -> bool:
        return self.tuned.undo()

    def close(self) -> None:
        self._way.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self.tuned)


def processors() -> int:
    """As many as this process may use at once: its mask, and what its cgroup allows."""
    n = len(os.sched_getaffinity(0))
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return n if quota == "max" else max(1, min(n, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):
        return n


class PreprocessingOptimizer:
    """PreprocessingOptimizer(config).optimize_preprocessing_pipeline([f, g, h], sample): a callable that gives the same results."""

    def __init__(self, config: Any = None) -> None:
        setting(config, "budget_s")  # a configuration, or an error
        self.config = config
        self._stages: list[Stage] = []

    def identify_bottlenecks(self) -> list[Bottleneck]:
        """The functions of the last pipeline, the slowest first."""
        total = sum(sum(stage.wall) for stage in self._stages)
        out = []
        for stage in self._stages:
            if not stage.wall:
                continue
            cut = statistics.quantiles(stage.wall, n=20) if len(stage.wall) > 1 else [stage.wall[0]] * 19
            wall, middle = sum(stage.wall), statistics.median(stage.wall)
            waits = max(0.0, 1 - sum(stage.cpu) / wall) if wall else 0.0
            out.append(Bottleneck(stage.name, middle, cut[0], cut[-1], wall / total if total else 0.0, waits, middle > 1e-3))
        return sorted(out, key=lambda b: -b.share)

    def optimize_preprocessing_pipeline(self, funcs: Sequence[Callable], sample: Iterable) -> Pipeline:
        """The functions are called on copies of the sample, three times each; random generators are set back. See docs/tuning.md."""
        functions = list(funcs)
        for f in functions:
            if not callable(f):
                raise TypeError(f"a pipeline is made of functions, not of {f!r:.60}")
        plain = Alone(functions)
        self._stages = []
        begun, budget = time.monotonic(), setting(self.config, "budget_s")
        refuse = functools.partial(self._left_alone, plain)
        if not functions or not setting(self.config, "optimize_preprocessing"):
            return refuse("no functions" if not functions else "optimize_preprocessing is off")
        try:
            inputs = [copy.deepcopy(x) for x in itertools.islice(sample, SAMPLES_MOST)]
        except Exception as cannot:  # noqa: BLE001 - any class of sample may refuse to be copied in its own way
            return refuse(f"the samples cannot be copied: {type(cannot).__name__}: {cannot}")
        if not inputs:
            return refuse("the sample is empty: nothing can be measured or compared")
        random_states = _random_states()
        try:
            inputs = self._look(functions, inputs, min(setting(self.config, "timeout_s"), max(1.0, budget / 4)))
        except TimeoutError as slow:
            return refuse(str(slow))
        finally:
            _set_random_states(random_states)
        if not inputs:
            return refuse("the functions raise for every sample")
        return self._choose(plain, inputs, begun + budget)

    def _left_alone(self, plain: Alone, why: str) -> Pipeline:
        return Pipeline(plain, Tuned("preprocessing", {}, "refused", target=TARGET, reasons=[why]), plain)

    def _look(self, functions: list[Callable], inputs: list, limit_s: float) -> list:
        """The samples for which nothing raises. In a thread, so that a function that hangs is left behind and named."""
        stages = [Stage(f) for f in functions]
        at: list[Stage] = []
        failed: list[BaseException] = []
        others_are_through = threading.Lock()

        def work() -> None:
            with others_are_through:  # who started it waits by now, and no call waits for the interpreter's lock on its account
                pass
            try:
                values, give_up = inputs, time.monotonic() + limit_s
                for stage in stages:
                    at.append(stage)
                    values = stage.look(values, give_up)
                at.append(Stage(_plain))
                results.extend(values)
            except BaseException as raised:  # noqa: BLE001 - it is raised below, in the caller's thread
                failed.append(raised)

        results: list = []
        thread = threading.Thread(target=work, name="tare-look", daemon=True)
        with others_are_through:
            thread.start()
        thread.join(limit_s + 0.5)
        self._stages = stages[: len(at)]
        if thread.is_alive() or (failed and isinstance(failed[0], TimeoutError)):
            raise TimeoutError(f"{at[-1].name}: did not come back within {limit_s:g} s" if at else "the sample took too long")
        if failed:
            raise failed[0]
        return [x for x, y in zip(inputs, results) if not isinstance(y, Raised)]

    # ---- candidates ----

    def _candidates(self, plain: Alone, inputs: list) -> tuple[list[tuple[Alone, float]], list[tuple[dict, str]]]:
        """(way, the most it can gain) of those that may be tried, and why the others may not."""
        stages, out, rejected = self._stages, [], []
        order = next((f"{s.name} {s.order}" for s in stages if s.order), None)
        if order is None and stages[0].changes_input:
            order = f"{stages[0].name} changes its input"
        wall = sum(sum(s.wall) for s in stages)
        for name, switch in (("vectorised", "batch_preprocessing"), ("threads", "parallel_preprocessing"),
                             ("processes", "parallel_preprocessing"), ("cached", "enable_caching")):  # fmt: skip
            why = order or (None if setting(self.config, switch) else f"{switch} is off")
            made = None if why else getattr(self, "_make_" + name)(plain, inputs, wall)
            if isinstance(made, tuple):
                out.append(made)
            else:
                rejected.append(({"way": name}, why or made))
        return out, rejected

    def _make_vectorised(self, plain: Alone, inputs: list, wall: float) -> tuple[Alone, float] | str:
        batch, values, saved = {}, inputs, 0.0
        for i, stage in enumerate(self._stages):
            said = getattr(stage.function, "__tare_batch__", None)
            many = said or (None if stage.changes_input else proved_batch(stage.function, values))
            if many is not None:
                batch[i] = many
                saved += sum(stage.wall)
            values = [stage.function(copy.deepcopy(x)) for x in values]
        if not batch:
            return "no function says how it takes a batch, or is proved to by the sample"
        if len(batch) == len(self._stages):
            return Batched(plain.functions, batch), math.inf
        return Batched(plain.functions, batch), wall / (wall - saved)

    def _workers(self) -> tuple[int, float]:
        """As many as keep the processors busy, and what that can gain at most."""
        wall, cpu = sum(sum(s.wall) for s in self._stages), sum(sum(s.cpu) for s in self._stages)
        most = min(WAITERS_MOST, processors() * wall / max(cpu, wall / WAITERS_MOST))
        return max(2, min(WAITERS_MOST, math.ceil(most))), most

    def _chunk_of(self, inputs: list) -> int:
        """Samples that take about 5 ms: less is lost in handing them over."""
        wall = sum(sum(s.wall) for s in self._stages) / len(inputs)
        return max(1, min(1024, round(0.005 / max(wall, 1e-9))))

    def _make_threads(self, plain: Alone, inputs: list, _: float) -> tuple[Alone, float]:
        workers, most = self._workers()
        return Pooled(plain.functions, "threads", workers, self._chunk_of(inputs)), most

    def _make_processes(self, plain: Alone, inputs: list, _: float) -> tuple[Alone, float] | str:
        torch = sys.modules.get("torch")
        if "fork" not in multiprocessing.get_all_start_methods():
            return "there is no fork here"
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            return "CUDA is in use: a forked process could not use it"
        try:
            pickle.dumps(plain.functions)
            pickle.loads(pickle.dumps([_plain(plain.functions, copy.deepcopy(x)) for x in inputs[:2]]))
            pickle.dumps(inputs[:2])
        except Exception as cannot:  # noqa: BLE001 - pickle raises whatever a class raises
            return f"cannot be sent to a process: {type(cannot).__name__}: {cannot}"
        if threading.active_count() > 1:
            return "threads are running: a fork would copy their locks"
        workers, most = self._workers()
        return Pooled(plain.functions, "processes", workers, self._chunk_of(inputs)), most

    def _make_cached(self, plain: Alone, inputs: list, _: float) -> tuple[Alone, float] | str:
        varies = next((f"{s.name} {s.varies}" for s in self._stages if s.varies), None)
        keys = [cache_key(x) for x in inputs]
        known = {key for key in keys if key is not None}
        if varies or not known or not setting(self.config, "cache_size"):
            return varies or "samples have no value that could be a key, or cache_size is 0"
        repeated = len([key for key in keys if key is not None]) - len(known)
        if not repeated:
            return f"no sample comes twice among {len(inputs)}"
        return Cached(plain.functions, setting(self.config, "cache_size")), len(inputs) / (len(inputs) - repeated)

    # ---- choosing ----

    def _choose(self, plain: Alone, inputs: list, end: float) -> Pipeline:
        candidates, rejected = self._candidates(plain, inputs)
        threshold = setting(self.config, "optimization_threshold")
        bound = max((most for _, most in candidates), default=1.0)
        told = bound if math.isfinite(bound) else Unknown("every function takes a batch: trying it tells")
        tuned = Tuned("preprocessing", {}, "no_gain", bound=told, target=TARGET, rejected=rejected)
        slowest = next(iter(self.identify_bottlenecks()), None)
        if slowest:
            tuned.reasons.append(str(slowest))
        if not candidates:
            tuned.verdict = "refused"
            tuned.reasons.append(rejected[0][1] if rejected else "nothing may be tried")
            return Pipeline(plain, tuned, plain)
        if bound < 1 + threshold:
            tuned.reasons.append(f"at most {bound:.2f}x can be gained, below the {threshold:.0%} that a change is worth")
            return Pipeline(plain, tuned, plain)
        raced = self._race(plain, candidates, inputs, rejected, end)
        if raced is None:
            tuned.reasons.append("no other way was faster")
            return Pipeline(plain, tuned, plain)
        return self._confirm(plain, raced, inputs, tuned, end)

    def _work_for(self, way: Alone, inputs: list) -> list:
        """Samples for a pass of WORK_S; a cache gets the sample as it is, where a repeat is a repeat."""
        if isinstance(way, Cached):
            return inputs
        wall = sum(sum(s.wall) for s in self._stages)
        return inputs * max(1, min(10_000, math.ceil(WORK_S / max(wall, 1e-6))))

    def _race(self, plain: Alone, candidates: list, inputs: list, rejected: list, end: float) -> Alone | None:
        """The one that looks fastest in two rounds, each beside the plain way; the results of all are compared."""
        best, best_ratio = None, 1.0
        for way, _ in candidates:
            work = self._work_for(way, inputs)
            way.wait_s = max(1.0, end - time.monotonic())
            ratios, why = [], None
            try:
                want = list(plain.run(work))
                why = first_difference(want, list(way.run(work)))
                for _ in range(2 if why is None else 0):
                    ratios.append(_pass(way, work) / _pass(plain, work))
            except Exception as raised:  # noqa: BLE001 - a way that fails is not taken
                why = "it did not come back" if isinstance(raised, futures.TimeoutError) else f"{type(raised).__name__}: {raised}"
                getattr(way, "kill", way.close)()
            ratio = min(ratios, default=math.inf)
            if why is None and ratio < best_ratio:
                loser, best, best_ratio = best, way, ratio
            else:
                loser = way
            if loser is not None:
                loser.close()
                rejected.append((loser.plan, why or f"{1 / ratio:.2f}x in the race" if loser is way else "another way looked faster"))
        return best

    def _confirm(self, plain: Alone, way: Alone, inputs: list, found: Tuned, end: float) -> Pipeline:
        work = self._work_for(way, inputs)

        def run() -> list:
            if isinstance(way, Cached):
                way.close()
            return list(way.run(work))

        tuned = _tune.confirm(lambda: list(plain.run(work)), run, what="preprocessing", plan=way.plan, same=first_difference,
                              threshold=setting(self.config, "optimization_threshold"), budget_s=max(1.0, end - time.monotonic()),
                              bound=found.bound if known(found.bound) else None, target=TARGET)  # fmt: skip
        tuned.bound, tuned.rejected, tuned.reasons = found.bound, found.rejected, found.reasons + tuned.reasons
        tuned.applied = tuned.worth(setting(self.config, "apply"))
        if isinstance(way, Pooled):
            way.wait_s = None
        if not tuned.applied:
            way.close()
            tuned.rejected.append((way.plan, tuned.verdict))
        return Pipeline(way if tuned.applied else plain, tuned, plain)


def _pass(way: Alone, work: list) -> float:
    if isinstance(way, Cached):
        way.close()
    begun = time.perf_counter()
    for _ in way.run(work):
        pass
    return time.perf_counter() - begun
