# SPDX-License-Identifier: MIT
"""Whether a loader gives the same data: replay, compared bit by bit, and what must be refused before anything is tried.

Levels: `bitwise` the same bytes in the same order, and the same random state after; `order` the same samples in the same order, where
only what is drawn at random may differ; `multiset` the same batches, each once, in any order. docs/tuning.md has the contract."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import itertools
import multiprocessing
import pickle
import random
import signal
import socket
import sys
import threading
import time
from collections import Counter
from typing import Any, Callable, Iterator, NamedTuple

from tare._tune import first_difference

LEVELS = ("bitwise", "order", "multiset")
_REPLAYED = 64  # batches of an epoch that are compared, when the epoch is longer


# ---- random states ----


def _random_parts() -> list[tuple[str, Callable[[], Any], Callable[[Any], Any], Callable[[int], Any]]]:
    """(name, state, set state, seed) of the generators that this process has loaded."""
    parts: list = [("random", random.getstate, random.setstate, random.seed)]
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        parts.append(("numpy.random", numpy.random.get_state, numpy.random.set_state, lambda s: numpy.random.seed(s % 2**32)))
    if torch is not None:
        parts.append(("torch", torch.get_rng_state, torch.set_rng_state, torch.random.default_generator.manual_seed))
    return parts


def seed_all(seed: int) -> None:
    for _, _, _, start in _random_parts():
        start(seed)


def sample_seed(base: int, index: Any) -> int:
    """A sample's own seed: the same whoever makes the sample, and when."""
    return int.from_bytes(hashlib.blake2b(f"{base}:{index!r}".encode(), digest_size=8).digest(), "little") >> 1


@contextlib.contextmanager
def random_kept(generator: Any = None) -> Iterator[None]:
    """Leaves every random state as it was, that of a loader's own generator included."""
    kept = [(put, get()) for _, get, put, _ in _random_parts()]
    own = generator.get_state() if generator is not None else None
    try:
        yield
    finally:
        for put, state in kept:
            put(state)
        if own is not None:
            generator.set_state(own)


class Seeded:
    """A data set whose samples draw from a generator of their own, so that who makes them does not matter (`bitwise`)."""

    def __init__(self, dataset: Any, seed: int) -> None:
        self.dataset, self.seed, self.epoch = dataset, seed, 0

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        with random_kept():
            seed_all(sample_seed(self.seed + self.epoch, index))
            return self.dataset[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "dataset":
            raise AttributeError(name)
        return getattr(self.dataset, name)


# ---- a deadline for other people's code ----


class Hangs(Exception):
    """Nothing came back in time."""


@contextlib.contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Raises Hangs in the main thread when the time is over. Elsewhere there is no way to interrupt a call: no deadline."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(*_: Any) -> None:
        raise Hangs(f"{what} did not end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    left, every = signal.setitimer(signal.ITIMER_REAL, seconds)
    begun = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, left - (time.monotonic() - begun)), every)


# ---- replay ----


class Replay(NamedTuple):
    batches: list
    error: BaseException | None
    random: dict[str, str]  # state after, by generator
    ended: bool  # False: there is more than was replayed


def replay(loader: Any, seed: int = 0, most: int = _REPLAYED) -> Replay:
    """The first batches of an epoch, begun with known random states."""
    generator = getattr(loader, "generator", None)
    with random_kept(generator):
        seed_all(seed)
        if generator is not None:
            generator.manual_seed(seed)
        batches, error, ended, source = [], None, False, None
        try:
            source = iter(loader)
            for batch in itertools.islice(source, most + 1):
                batches.append(batch)
            ended = len(batches) <= most
        except Hangs:
            raise
        except Exception as raised:  # what a loader raises is part of what it gives
            error = raised
        states = {name: hashlib.blake2b(repr(_plain(get())).encode(), digest_size=8).hexdigest() for name, get, _, _ in _random_parts()}
        close(source)
    return Replay(batches[:most], error, states, ended)


def _plain(state: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(_plain(item) for item in state)
    return state.tolist() if hasattr(state, "tolist") else state


def close(source: Any, at_once: bool = False) -> None:
    """Ends an iterator of a loader, its workers with it. `at_once`: workers that may hang are killed first; torch would wait 5 s for each."""
    if at_once and getattr(source, "_workers", None):
        from torch.utils.data._utils import signal_handling

        if getattr(source, "_worker_pids_set", False):  # else it would raise that they died
            signal_handling._remove_worker_pids(id(source))
            source._worker_pids_set = False
        for worker in source._workers:
            worker.kill()
    for end in ("_shutdown_workers", "close"):
        if hasattr(source, end):
            getattr(source, end)()
            return


def difference(base: Any, candidate: Any, level: str = "order", seed: int = 0, most: int = _REPLAYED) -> str | None:
    """The first way in which a loader differs from the one it is to replace; None: none was found."""
    if level not in LEVELS:
        raise ValueError(f"equivalence {level!r} is none of {', '.join(LEVELS)}")
    try:
        if len(base) != len(candidate):
            return f"{len(base)} batches an epoch, then {len(candidate)}"
    except TypeError:
        pass
    a, b = replay(base, seed, most), replay(candidate, seed, most)
    if level == "multiset" and not (a.ended and b.ended):
        return f"an epoch has more than {most} batches: that each comes once cannot be shown"
    found = _as_a_set(a.batches, b.batches) if level == "multiset" else _in_order(a, b)
    found = found or _error_difference(a.error, b.error)
    if found or level != "bitwise":
        return found
    return next((f"the random state of {name} differs after the epoch" for name in a.random if a.random[name] != b.random.get(name)), None)


def _in_order(a: Replay, b: Replay) -> str | None:
    for i, (x, y) in enumerate(zip(a.batches, b.batches)):
        found = first_difference(x, y, f"batch {i}")
        if found:
            return found
    if len(a.batches) != len(b.batches) and not (a.error and b.error):
        return f"{len(a.batches)} batches, then {len(b.batches)}" + (f" and {type(b.error).__name__}: {b.error}" if b.error else "")
    if len(a.batches) < len(b.batches):
        return f"{type(a.error).__name__} came after {len(a.batches)} batches, then after {len(b.batches)}"
    return None


def _as_a_set(a: list, b: list) -> str | None:
    """Batches by their bytes; how often each comes."""
    names, counts = [], []
    for batches in (a, b):
        names.append([digest(batch) for batch in batches])
        counts.append(Counter(names[-1]))
    for i, name in enumerate(names[0]):
        if counts[0][name] != counts[1][name]:
            return f"batch {i} comes {counts[0][name]} times, then {counts[1][name]}"
    for i, name in enumerate(names[1]):
        if name not in counts[0]:
            return f"batch {i} of the candidate does not come otherwise"
    return None


def _error_difference(a: BaseException | None, b: BaseException | None) -> str | None:
    if a is None and b is None:
        return None
    if a is None or b is None:
        return f"{_name(a)} is raised, then {_name(b)}"
    said = str(a).split("\n")[-1].strip()
    if type(a) is not type(b) or said not in str(b):
        return f"{_name(a)} is raised, then {_name(b)}"
    return None


def _name(error: BaseException | None) -> str:
    return "nothing" if error is None else f"{type(error).__name__} ({str(error)[:60]!r})"


def digest(value: Any) -> bytes:
    """Of type, structure, dtype, shape and bytes."""
    out = hashlib.blake2b(digest_size=16)
    _feed(out, value)
    return out.digest()


def _feed(out: Any, value: Any) -> None:
    out.update(type(value).__name__.encode() + b"\0")
    if isinstance(value, dict):
        for key, item in value.items():
            out.update(repr(key).encode() + b"\1")
            _feed(out, item)
    elif isinstance(value, (list, tuple)):
        out.update(b"%d\2" % len(value))
        for item in value:
            _feed(out, item)
    elif hasattr(value, "dtype") and hasattr(value, "shape"):
        from tare._tune import _bits

        out.update(f"{value.dtype}{tuple(value.shape)}".encode() + _bits(value))
    elif isinstance(value, float):
        out.update(value.hex().encode())
    else:
        out.update(value if isinstance(value, bytes) else repr(value).encode())


def size_of(value: Any) -> int:
    """Bytes of the data in a batch or a sample."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, dict):
        return sum(size_of(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return sum(size_of(item) for item in value)
    return len(value) if isinstance(value, (bytes, bytearray, str)) else 8


# ---- what reading a data set does ----


class Habits(NamedTuple):
    random: bool  # samples draw random numbers, from generators that can be seeded
    fickle: str | None  # why two readings of a sample differ although the seed is the same
    changes: str | None  # what reading changes in the data set itself


def habits(dataset: Any, indices: list, seed: int = 0) -> Habits:
    """Reads a few samples three times: in order, backwards with the same seeds, and with others. On a shallow copy, so that what is
    opened on first use is not open in the original when workers are forked from it."""
    probe = shallow(dataset)
    before = _snapshot(probe)
    with random_kept():
        first = {i: _read(probe, i, seed) for i in indices}
        again = {i: _read(probe, i, seed) for i in reversed(indices)}
        other = {i: _read(probe, i, seed + 1) for i in indices}
    found = next((d for i in indices if (d := first_difference(first[i], again[i], f"sample {i}"))), None)
    fickle = f"{found} (read again with the same seed)" if found else None
    drawn = fickle is None and any(first_difference(first[i], other[i]) for i in indices)
    return Habits(drawn, fickle, _changed(before, _snapshot(probe)))


def _read(dataset: Any, index: Any, seed: int) -> Any:
    seed_all(sample_seed(seed, index))
    return copy.deepcopy(dataset[index])


def shallow(dataset: Any) -> Any:
    try:
        return copy.copy(dataset)
    except Exception:
        return dataset


def _snapshot(thing: Any) -> dict[str, Any]:
    """What can be seen of an object's attributes: numbers and words as they are, containers by their length and identity."""
    out: dict[str, Any] = {}
    for name, value in getattr(thing, "__dict__", {}).items():
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            out[name] = value
        elif hasattr(value, "__len__") and isinstance(value, (list, dict, set, bytearray)):
            out[name] = (id(value), len(value))
        else:
            out[name] = id(value)
    return out


def _changed(before: dict, after: dict) -> str | None:
    for name, value in after.items():
        if name in before and before[name] is not None and before[name] != value:
            return f"reading changes its attribute {name!r}"
    return next((f"reading removes its attribute {name!r}" for name in before if name not in after), None)


# ---- refusals ----

_HANDLES = (io.IOBase, socket.socket, type(threading.Lock()), type(threading.RLock()), type(i for i in ()))


def processes_refused(dataset: Any, sample: Any, context: Any = None) -> list[str]:
    """Why worker processes are out of the question for this data set here; []: nothing is known against them."""
    out = []
    method = context if isinstance(context, str) else getattr(context, "_name", None)
    method = method or multiprocessing.get_start_method()
    torch = sys.modules.get("torch")
    if method == "fork":
        if torch is not None and torch.cuda.is_initialized():
            out.append("CUDA is in use in this process, and a forked worker cannot use it: make the loader first, or use spawn")
        running = [t.name for t in threading.enumerate() if t is not threading.current_thread() and t.is_alive()]
        if running:
            out.append(f"threads run here ({', '.join(running[:3])}): what they hold locked stays locked in a forked worker")
    else:
        try:
            pickle.dumps(dataset)
        except Exception as why:
            out.append(f"the data set cannot be pickled, which {method} needs: {why}")
    for name, value in getattr(dataset, "__dict__", {}).items():
        if isinstance(value, _HANDLES) or type(value).__name__ in ("Connection", "File", "Cursor", "Environment"):
            out.append(f"its attribute {name!r} is an open {type(value).__name__}, which workers would share: open it on first use")
    if on_gpu(sample):
        out.append("its samples are tensors on a GPU, which workers cannot hand over")
    return out


def on_gpu(sample: Any) -> bool:
    if isinstance(sample, dict):
        return any(on_gpu(item) for item in sample.values())
    if isinstance(sample, (list, tuple)):
        return any(on_gpu(item) for item in sample)
    return bool(getattr(sample, "is_cuda", False))
