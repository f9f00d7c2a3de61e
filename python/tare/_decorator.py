# SPDX-License-Identifier: MIT
"""profile_function: a function profile of single calls, saved as pairs of files when its conditions hold.

The decorated function behaves as without tare: what it raises passes through, and trouble with profiling or with the disk is at
most a warning. A call that is not profiled costs a counter and a clock reading.
"""

import atexit
import functools
import inspect
import itertools
import os
import pstats
import re
import sys
import threading
import types
import warnings
import weakref
from time import monotonic, perf_counter, time

from tare._functions import functions
from tare._scoped import within

_ALIVE = weakref.WeakSet()
_UNSAVED = set()  # keeps what is still to be saved alive when the function itself is gone
# One profile runs at a time in the process: a second one, in another thread or further down the same stack, would record the first.
_RUNNING = threading.Lock()
_worker = None
_TRIES = 10  # calls profiled after a slow one, until one is slow again


class FunctionProfile:
    """What profile_function knows of one function; `decorated.profile`. Counts: calls, profiled, dropped; files: saved."""

    def __init__(self, name, folder, every, slower_than, interval, batch, sure):
        self.name = name
        self.folder = folder
        self.every = every
        self.slower_than = slower_than
        self.interval = interval
        self.batch = batch
        self.arms = slower_than > 0 and not sure
        self.calls = 0
        self.profiled = 0
        self.dropped = 0
        self.saved = []
        self._counting = threading.Lock()
        self._next_pair = 0.0
        self._slot = threading.Lock()  # held by the one call that is being profiled
        self._profiler = None
        self._call = None  # with the profiler, while there is one
        self._gathered = 0
        self._folded = None
        self._armed = 0  # so many calls will be profiled: a slow one was seen
        self._warned = False
        _ALIVE.add(self)

    def __repr__(self):
        return f"<profile of {self.name}: {self.calls} calls, {self.profiled} profiled, {len(self.saved)} pairs saved>"

    def note(self, seconds):
        """Of a call that was not profiled: how long it took."""
        if seconds >= self.slower_than:
            self._armed = _TRIES

    def begin(self):
        """Counts a call. The _Call with the profiler if it is one to profile and can be: no other call of this function has it, and no
        other profile runs."""
        with self._counting:
            number = self.calls
            self.calls = number + 1
        if number % self.every or (self.arms and not self._armed):
            return None
        if not self._gathered and monotonic() < self._next_pair:
            return None
        if _RUNNING.locked() or not self._slot.acquire(False):
            return None
        call = self._call or self._new_call()
        if call is None:
            self._slot.release()
            return None
        call.complete = True
        call.recorded = False
        if self.slower_than:
            call.start = perf_counter()
        return call

    def _new_call(self):
        try:
            self._profiler = functions()
        except Exception as why:  # whatever it is, the program goes on without a profile
            self._warn(why)
            return None
        self._profiler._linger()
        self._call = _Call(self._profiler, self._slot)
        return self._call

    def end(self, call):
        """After the call of begin(): keep or drop what was recorded, write the pair when the batch is full."""
        if call.slot is not self._slot:  # forked within the call: the profile is the parent's
            return
        try:
            if self._armed:
                self._armed -= 1
            if call.complete and (not self.slower_than or perf_counter() - call.start >= self.slower_than):
                self._keep()
            else:
                self._drop(call)
        finally:
            self._slot.release()

    def _keep(self):
        self._armed = 0
        self.profiled += 1
        self._gathered += 1
        if self._gathered == 1:
            _save_at_the_end_of_workers()
            _UNSAVED.add(self)
        if self._gathered >= self.batch:
            self._write()
        elif self.slower_than:
            self._fold()

    def _drop(self, call):
        """With slower_than the profiler holds this call alone; otherwise half a call cannot be told from those before it."""
        self.dropped += 1
        if call.recorded:
            self._profiler.clear()
            if not self.slower_than:
                self.dropped += self._gathered
                self._gathered = 0

    def _fold(self):
        """Adds the call to those kept earlier, since the next one may have to be dropped alone."""
        latest = pstats.Stats(_Taken(self._profiler.stats))
        self._folded = latest if self._folded is None else self._folded.add(latest)
        self._profiler.clear()

    def save(self):
        """Writes what has been gathered and not yet saved, as at exit. The pair's two paths; None when there is nothing, or a call
        is being profiled and does not end within a second."""
        if not self._slot.acquire(timeout=1):
            return None
        try:
            return self._write() if self._gathered else None
        finally:
            self._slot.release()

    def _write(self):
        if self.slower_than and self._folded is not None and self._profiler.stats:
            self._fold()
        profiler, folded = self._profiler, self._folded
        self._profiler = self._call = self._folded = None
        self._gathered = 0
        _UNSAVED.discard(self)
        self._next_pair = monotonic() + self.interval
        try:
            pair = _save_pair(self.folder, self.name, profiler, folded)
        except (OSError, ValueError, RuntimeError) as why:
            self._warn(why)
            return None
        self.saved.append(pair)
        return pair

    def _warn(self, why):
        if not self._warned:
            self._warned = True
            warnings.warn(f"profile_function: no profile of {self.name} was saved: {why}", RuntimeWarning, stacklevel=2)

    def forget(self):
        """In a forked child: what was gathered belongs to the parent, which will save it."""
        self._counting = threading.Lock()
        self._slot = threading.Lock()
        self._profiler = self._call = self._folded = None
        self._gathered = 0


class _Taken:
    """A profile's numbers in the form that pstats.Stats takes over, and empties."""

    def __init__(self, stats):
        self.stats = stats

    def create_stats(self):
        """Called by pstats before it reads `stats`, which are there already."""


def _save_pair(folder, name, profiler, folded):
    """folder/name_<seconds>.prof and .txt, never over another pair: then -2, -3, ... is added."""
    os.makedirs(folder, exist_ok=True)
    stem = _reserve(os.path.join(folder, f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)}_{int(time())}"))
    binary, text = stem + ".prof", stem + ".txt"
    try:
        if folded is None:
            profiler.save(text)
            profiler.save(stem + ".tmp.prof")
        else:
            with open(text, "w", encoding="utf-8") as out:
                folded.stream = out
                folded.sort_stats("cumulative").print_stats()
            folded.dump_stats(stem + ".tmp.prof")
        os.replace(stem + ".tmp.prof", binary)
    except BaseException:
        for path in (binary, text, stem + ".tmp.prof"):
            if os.path.exists(path):
                os.unlink(path)
        raise
    return binary, text


def _reserve(stem):
    for number in itertools.count(1):
        chosen = stem if number == 1 else f"{stem}-{number}"
        try:
            os.close(os.open(chosen + ".prof", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            return chosen
        except FileExistsError:
            continue


class _Call:
    """A profiled call, one after the other: runs pieces of it with the profiler on. A piece that another profile keeps from being
    recorded is run all the same; the profile is then incomplete and not kept."""

    __slots__ = ("enable", "disable", "slot", "complete", "recorded", "start")

    def __init__(self, profiler, slot):
        self.enable = profiler.enable
        self.disable = profiler.disable
        self.slot = slot

    def piece(self, function, *args, **kwargs):
        running = _RUNNING
        if not running.acquire(False):
            self.complete = False
            return function(*args, **kwargs)
        try:
            self.enable()
            self.recorded = True
        except (RuntimeError, ValueError):  # another profiler has the interpreter's hook
            self.complete = False
        try:
            return function(*args, **kwargs)
        finally:
            self.disable()
            running.release()


class _Timed:
    """Times a call that is not profiled, where slow ones matter."""

    __slots__ = ("profile", "start")

    def __init__(self, profile):
        self.profile = profile

    def __enter__(self):
        self.start = perf_counter()

    def __exit__(self, *unused):
        self.profile.note(perf_counter() - self.start)


def _timed(function, profile):
    """For calls that are not profiled."""
    return within(functools.partial(_Timed, profile), function) if profile.arms else function


def _wrap_function(function, profile):
    plain = _timed(function, profile)

    def wrapper(*args, **kwargs):
        call = profile.begin()
        if call is None:
            return plain(*args, **kwargs)
        try:
            return call.piece(function, *args, **kwargs)
        finally:
            profile.end(call)

    return wrapper


@types.coroutine
def _stepped(call, inner):
    """Drives a coroutine or a generator; each step is a piece, waiting between them is not recorded."""
    step, value = inner.send, None
    while True:
        try:
            wanted = call.piece(step, value)
        except StopIteration as end:
            return end.value
        try:
            step, value = inner.send, (yield wanted)
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as thrown:
            step, value = inner.throw, thrown


def _wrap_coroutine(function, profile):
    plain = _timed(function, profile)

    async def wrapper(*args, **kwargs):
        call = profile.begin()
        if call is None:
            return await plain(*args, **kwargs)
        try:
            return await _stepped(call, function(*args, **kwargs))
        finally:
            profile.end(call)

    return wrapper


def _wrap_generator(function, profile):
    plain = _timed(function, profile)

    def wrapper(*args, **kwargs):
        call = profile.begin()
        if call is None:
            return (yield from plain(*args, **kwargs))
        try:
            return (yield from _stepped(call, function(*args, **kwargs)))
        finally:
            profile.end(call)

    return wrapper


def _refuse_async_generator(function, profile):
    raise TypeError(f"profile_function: {profile.name} is an async generator; decorate the coroutine that consumes it")


_WRAPPERS = (
    (inspect.iscoroutinefunction, _wrap_coroutine),
    (inspect.isasyncgenfunction, _refuse_async_generator),
    (inspect.isgeneratorfunction, _wrap_generator),
)


def _checked(every, batch, slower_than, interval):
    for word, value in (("every", every), ("batch", batch)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"profile_function: {word} must be a whole number from 1, not {value!r}")
    for word, value in (("slower_than", slower_than), ("interval", interval)):
        if not isinstance(value, (int, float)) or not value >= 0:
            raise ValueError(f"profile_function: {word} must be seconds from 0, not {value!r}")


def profile_function(
    name=None, *, folder="profiling_results", every=1, slower_than=0.0, interval=1.0, batch=1, at_exit=False, sure=False
):
    """Decorator: profiles calls and saves pairs folder/<name>_<unix time>.prof and .txt.

    every: each n-th call is looked at. interval: seconds between two pairs at least; calls in between are not profiled. slower_than:
    seconds; a slow call has the next ones profiled, and the first of these that is slow again is saved; with `sure` all calls are
    profiled, at the profiler's cost, so that no slow one is missed. batch: calls gathered in one pair; the rest is saved at exit.
    at_exit: all in one pair, at exit. Works on functions, methods, coroutines and generators. `decorated.profile` tells and saves."""
    if callable(name):
        return profile_function()(name)
    _checked(every, batch, slower_than, interval)

    def decorate(function):
        if not callable(function) or inspect.isclass(function):
            kind = type(function).__name__
            raise TypeError(f"profile_function decorates functions, not a {kind}; put it below @staticmethod and @classmethod")
        called = name or getattr(function, "__name__", type(function).__name__)
        profile = FunctionProfile(called, folder, every, slower_than, interval, float("inf") if at_exit else batch, sure)
        wrap = next((wrap for is_kind, wrap in _WRAPPERS if is_kind(function)), _wrap_function)
        wrapper = functools.wraps(function)(wrap(function, profile))
        wrapper.profile = profile
        return wrapper

    return decorate


def _save_at_the_end_of_workers():
    """Workers of multiprocessing end without atexit: they have a list of their own, which a new worker starts empty."""
    global _worker
    workers = sys.modules.get("multiprocessing.util")
    if workers and _worker != os.getpid():
        _worker = os.getpid()
        workers.Finalize(None, _save_all, exitpriority=0)


def _save_all():
    for profile in list(_UNSAVED):
        profile.save()


def _forget_all():
    global _RUNNING
    _RUNNING = threading.Lock()
    _UNSAVED.clear()
    for profile in list(_ALIVE):
        profile.forget()


atexit.register(_save_all)
os.register_at_fork(after_in_child=_forget_all)
