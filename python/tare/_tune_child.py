# SPDX-License-Identifier: MIT
"""The user's code within limits: in this process with a time and a memory that it may not exceed, or in a child that is thrown away.

A child is a fork: it sees the same data and model, and what it does to them is gone with it. It works in a thread of its own, because
the thread pools of OpenMP do not survive a fork in the thread that used them."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import select
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple

from tare import _tare

LOOK_S = 0.01  # how often a child's memory is looked at


class LimitExceeded(RuntimeError):
    """The code took longer, or more memory, than its limit."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)


# ---- in this process ----


@contextmanager
def limits(seconds: float | None = None, more_bytes: float | None = None, what: str = "the code") -> Iterator[tuple[int, ...]]:
    """LimitExceeded is raised in this thread when the block takes longer, or makes the process grow by more. In the main thread a
    blocking call is interrupted (SIGALRM, where nobody else uses it); elsewhere the exception comes when the call returns. Gives the
    identifiers of threads that are not the program's."""
    if seconds is None and more_bytes is None:
        yield ()
        return
    main = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    over: list[str] = []
    done = threading.Event()

    def rise(*_: Any) -> None:
        raise LimitExceeded(over[0])

    watcher = threading.Thread(target=_watch, args=(threading.get_ident(), main, seconds, more_bytes, what, over, done), daemon=True)
    if main:
        signal.signal(signal.SIGALRM, rise)
    watcher.start()
    try:
        yield (watcher.ident,)
    except LimitExceeded as error:  # the asynchronous one has no text
        raise LimitExceeded(over[0] if over else str(error)) from None
    finally:
        done.set()
        watcher.join()
        if main:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _watch(ident: int, main: bool, seconds: float | None, more_bytes: float | None, what: str, over: list[str], done: threading.Event) -> None:
    begun, (first, _) = time.monotonic(), _tare.memory_now()
    while not done.wait(0.05):
        took, grown = time.monotonic() - begun, (_tare.memory_now()[0] or 0) - (first or 0)
        if seconds is not None and took > seconds:
            over.append(f"{what} took longer than its timeout of {seconds:g} s")
        elif more_bytes is not None and grown > more_bytes:
            over.append(f"{what} took {_tare.in_sentence(grown, 'B')} of memory, its limit is {_tare.in_sentence(more_bytes, 'B')}")
        else:
            continue
        if done.is_set():
            return
        if main:
            os.kill(os.getpid(), signal.SIGALRM)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(LimitExceeded))
        return


# ---- in a child ----


class Ran(NamedTuple):
    """What a child came to: "done" with what it returned; "over" a limit of memory (also when it was killed, or ran out of it), "late",
    or "failed" with the text of its exception."""

    outcome: str
    value: Any
    peak: int  # bytes, the most it held


def can_fork() -> str | None:
    """Why a child must not be forked here; None: it may."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "CUDA is in use in this process, which does not survive a fork"
    return None


def in_child(call: Callable[[], Any], timeout_s: float, memory_cap: float | None = None) -> Ran:
    """`call()` in a child; what it returns is pickled. The child is killed beyond the limits, and when this process is interrupted."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(here)
        _be_child(call, there)
    os.close(there)
    try:
        return _attend(pid, here, timeout_s, memory_cap)
    finally:
        os.close(here)
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def _be_child(call: Callable[[], Any], there: int) -> None:
    said: list[bytes] = []
    gc.freeze()  # a collection would write to every object of the parent's, and copy its memory
    for name in (signal.SIGINT, signal.SIGALRM):
        signal.signal(name, signal.SIG_DFL)
    worker = threading.Thread(target=lambda: said.append(_say(call)))
    worker.start()
    worker.join()
    try:
        with os.fdopen(there, "wb") as file:
            file.write(said[0])
    finally:
        os._exit(0)


def _say(call: Callable[[], Any]) -> bytes:
    try:
        return pickle.dumps(("done", call(), _resident("self")))
    except BaseException as error:  # the parent is told
        outcome = "over" if is_out_of_memory(error) else "failed"
        return pickle.dumps((outcome, f"{type(error).__name__}: {error}", _resident("self")))


def is_out_of_memory(error: BaseException) -> bool:
    """By the type, never by the text alone: PyTorch on a CPU has no type of its own for it."""
    torch = sys.modules.get("torch")
    kinds: tuple = (MemoryError,)
    if torch is not None:
        kinds += tuple(k for k in (getattr(torch.cuda, "OutOfMemoryError", None), getattr(torch, "OutOfMemoryError", None)) if k)
    return isinstance(error, kinds) or (torch is not None and type(error) is RuntimeError and "DefaultCPUAllocator: can't allocate" in str(error))


def _attend(pid: int, here: int, timeout_s: float, cap: float | None) -> Ran:
    end, said, peak = time.monotonic() + timeout_s, b"", 0
    while True:
        ready, _, _ = select.select([here], [], [], LOOK_S)
        peak = max(peak, _resident(pid))
        if cap is not None and peak > cap:
            return Ran("over", None, peak)
        if ready:
            part = os.read(here, 1 << 16)
            if part:
                said += part
                continue
            break
        if time.monotonic() > end:
            return Ran("late", None, peak)
    _, status = os.waitpid(pid, 0)
    if not said:
        ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        return Ran("over" if ended == signal.SIGKILL else "failed", f"the child ended by signal {ended}", peak)
    outcome, value, held = pickle.loads(said)
    peak = max(peak, held)
    return Ran(outcome, value, peak) if cap is None or peak <= cap else Ran("over", None, peak)


def _resident(pid: int | str) -> int:
    """The most it ever held (VmHWM), bytes; 0: it has ended."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")), 0)
    except OSError:
        return 0
