# SPDX-License-Identifier: MIT
"""Loaders made, run and weighed: one instrumented pass that tells what each stage costs, and streams of batches in units that are
compared. Where torch is missing, `Plain` loads sequences and arrays."""

from __future__ import annotations

import collections
import contextlib
import copy
import math
import os
import statistics
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable, Iterator

from tare._tune import cpu_seconds, queued_seconds
from tare._tune_data_cache import keeper
from tare._tune_data_same import Hangs, close, shallow, size_of
from tare._tune_data_watch import in_parts

_LEAST_BATCHES, _PASS_S, _TRANSPORT_S = 3, 1.0, 0.3
_DRAIN_S, _UNIT_MOST_S = 2.0, 3.0  # of emptying a queue, and of a unit for the sake of its queue alone


def cores() -> float:
    """Processors that this process may use: by affinity and by its cgroup."""
    most = float(len(os.sched_getaffinity(0)))
    with contextlib.suppress(OSError, ValueError):
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        if quota != "max":
            most = min(most, int(quota) / int(period))
    return most


def ready_threads() -> int | None:
    """Threads of the machine that have a processor or wait for one, this one not among them; None: the kernel does not say."""
    try:
        with open("/proc/loadavg") as file:
            return max(0, int(file.read().split()[3].partition("/")[0]) - 1)
    except (OSError, IndexError, ValueError):
        return None


def has_torch() -> bool:
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401

        return True
    return False


# ---- loaders ----


def ahead(jobs: Iterable, make: Callable[[Any], Any], workers: int, depth: int) -> Iterator[Any]:
    """Results of make(job) in order, made by threads, at most workers * depth of them ahead."""
    pool, hangs = ThreadPoolExecutor(workers, "tare-loader"), False
    waiting: collections.deque = collections.deque()
    source = iter(jobs)
    try:
        for job in source:
            waiting.append(pool.submit(make, job))
            if len(waiting) >= workers * depth:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except Hangs:
        hangs = True
        raise
    finally:
        for left in waiting:
            left.cancel()
        pool.shutdown(wait=not hangs)


class Plain:
    """Batches of a sequence or an array, without torch: rows are stacked with numpy where they are arrays or numbers."""

    def __init__(self, dataset: Any, batch_size: int = 1, shuffle: bool = False, drop_last: bool = False, collate_fn: Any = None, num_threads: int = 0, prefetch_factor: int = 2):
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.collate_fn, self.num_threads, self.prefetch_factor = collate_fn or stack, num_threads, prefetch_factor

    def __len__(self) -> int:
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)

    @property
    def _index_sampler(self) -> Any:
        return _Batches(self)

    def _batches(self) -> Iterator[list]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            import random

            random.shuffle(order)
        for at in range(0, len(self) * self.batch_size, self.batch_size):
            yield order[at : at + self.batch_size]

    def _make(self, indices: list) -> Any:
        return self.collate_fn([self.dataset[i] for i in indices])

    def __iter__(self) -> Iterator[Any]:
        if self.num_threads:
            return ahead(self._index_sampler, self._make, self.num_threads, self.prefetch_factor)
        return (self._make(indices) for indices in self._index_sampler)


class _Batches:
    """Indices of a Plain loader's batches, in another order each epoch where it shuffles."""

    def __init__(self, loader: Plain) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[list]:
        return self.loader._batches()

    def __len__(self) -> int:
        return len(self.loader)


def stack(samples: list) -> Any:
    """A batch of samples: tuples and dicts by their parts; arrays and numbers become one array; anything else stays a list."""
    first = samples[0]
    if isinstance(first, dict):
        return {key: stack([sample[key] for sample in samples]) for key in first}
    if isinstance(first, tuple):
        return tuple(stack(list(part)) for part in zip(*samples))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(first, (numpy.ndarray, numpy.generic, int, float)):
        return numpy.stack([numpy.asarray(sample) for sample in samples])
    return samples


_threads_class: list[type] = []


def threaded_class() -> type:
    """torch's DataLoader with threads instead of processes; made on first use, since it needs torch."""
    if _threads_class:
        return _threads_class[0]
    from torch.utils.data import DataLoader

    class ThreadDataLoader(DataLoader):
        """A DataLoader whose batches are made by `num_threads` threads of this process, in order."""

        num_threads, ahead_each = 1, 2

        def __iter__(self) -> Iterator[Any]:
            from torch.utils.data._utils.fetch import _MapDatasetFetcher

            import torch

            torch.empty((), dtype=torch.int64).random_(generator=self.generator)  # as DataLoader does: the same random state after
            fetch = _MapDatasetFetcher(self.dataset, self._auto_collation, self.collate_fn, self.drop_last).fetch
            return ahead(self._index_sampler, fetch, self.num_threads, self.ahead_each)

    _threads_class.append(ThreadDataLoader)
    return ThreadDataLoader


def settings_of(loader: Any) -> dict[str, Any]:
    """What makes an equal DataLoader."""
    own = {name: getattr(loader, name) for name in ("dataset", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "generator")}
    if not getattr(loader, "in_order", True):
        own["in_order"] = False
    if _is_iterable(loader.dataset):
        own.update(batch_size=loader.batch_size, drop_last=loader.drop_last)
    elif loader.batch_size is not None:
        own.update(batch_size=loader.batch_size, sampler=loader.sampler, drop_last=loader.drop_last)
    elif loader.batch_sampler is not None:
        own["batch_sampler"] = loader.batch_sampler
    else:
        own.update(batch_size=None, sampler=loader.sampler)
    return own


def _is_iterable(dataset: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(dataset, torch.utils.data.IterableDataset)


def make(settings: dict[str, Any], plan: dict[str, Any], timeout: float = 0, watched: bool = False) -> Any:
    """A loader with `plan` (mode, workers, depth; perhaps batch_size, cache, pin_memory) over these settings; `watched`: of a class that can be watched in use."""
    workers, mode, own = plan["workers"], plan["mode"], dict(settings)
    kind = in_parts if watched else lambda cls: cls
    own.update({name: plan[name] for name in ("batch_size", "pin_memory") if name in plan and own.get("batch_sampler") is None})
    if plan.get("cache"):
        own["dataset"] = keeper(own["dataset"], plan["cache"])
    if not has_torch():
        return kind(Plain)(**own, num_threads=workers, prefetch_factor=plan.get("depth") or 2)
    from torch.utils.data import DataLoader

    if mode == "ring" and workers:
        from tare._tune_ring import ring_class

        return kind(ring_class())(**own, num_workers=workers, prefetch_factor=plan["depth"])
    if mode == "threads" and workers:
        own["multiprocessing_context"] = None
        loader = kind(threaded_class())(**own)
        loader.num_threads, loader.ahead_each = workers, plan["depth"]
        return loader
    if not workers:
        own["multiprocessing_context"] = None
        own["timeout"] = 0
        return kind(DataLoader)(**own)
    own["timeout"] = own.get("timeout") or timeout
    with warnings.catch_warnings():  # that there are more workers than processors: what waits may have them, and it is measured
        warnings.filterwarnings("ignore", "This DataLoader will create")
        return kind(DataLoader)(**own, num_workers=workers, prefetch_factor=plan["depth"], persistent_workers=True)


# ---- one instrumented pass ----


class _Timed:
    """A callable that adds up what it takes."""

    def __init__(self, call: Callable) -> None:
        self.call, self.wall, self.cpu = call, 0.0, 0.0

    def __call__(self, *args: Any, **named: Any) -> Any:
        wall, cpu = time.perf_counter(), time.thread_time()
        try:
            return self.call(*args, **named)
        finally:
            self.wall += time.perf_counter() - wall
            self.cpu += time.thread_time() - cpu


class Costs:
    """Seconds of the stages, and what else the model wants, of one process alone. Fetching is what a sample waits, decoding what it
    computes outside of its `transform`."""

    def __init__(self) -> None:
        self.stages: dict[str, list[float]] = {}
        self.samples, self.batches, self.each, self.bytes = 0, 0, [], 0
        self.batch: Any = None
        self.last: list = []  # the samples of a batch
        self.ready: list[int] = []  # threads of others that want a processor, sample by sample
        self.queued = 0.0  # seconds that this thread was ready and others had the processors
        self.clocks = _clocks_cost()

    def add(self, stage: str, wall: float, cpu: float) -> None:
        """Differences of clocks may be below 0; of their sums only what is above counts, else noise would add up to a wait."""
        was = self.stages.setdefault(stage, [0.0, 0.0])
        was[0] += wall
        was[1] += cpu

    def waited(self, since: float) -> float:
        """Seconds for a processor since then; they are no cost of the loader's own."""
        queued = queued_seconds() - since
        self.queued += queued
        return queued

    def forget(self) -> None:
        """What was seen so far was of a first time."""
        self.stages, self.samples, self.batches, self.each, self.queued = {}, 0, 0, [], 0.0

    def pipeline(self, batch_size: int, memory: float | None, most_workers: int) -> dict[str, Any]:
        n, each = max(1, self.samples), sorted(self.each)
        ran = sum(max(0.0, cpu) for name, (_, cpu) in self.stages.items() if name in ("fetch", "decode", "transform", "collate"))
        spread = each[min(len(each) - 1, int(0.99 * len(each)))] - statistics.median(each) if each else None
        return {
            "stages": {name: (max(0.0, wall / n, cpu / n), max(0.0, cpu / n)) for name, (wall, cpu) in self.stages.items()},
            "cores": cores(), "spread": spread, "batch_bytes": self.bytes, "memory": memory, "batch": batch_size, "most_workers": most_workers,
            "others": statistics.mean(self.ready) * cores() / (os.cpu_count() or 1) if self.ready else None,
            "share": ran / (ran + self.queued) if ran > 0 else None,
            "delayed": self.queued / n,
        }  # fmt: skip


def instrumented(settings: dict[str, Any], batches: Iterator[list], step: Callable | None, seconds: float = _PASS_S, most_s: float = math.inf) -> Costs:
    """Three batches or more, made by this process; fewer where they take longer than `most_s`. The first counts only where no other comes: what is
    loaded once with it, from a cold disk (13 s were seen), is no cost of a batch."""
    costs, dataset, first = Costs(), shallow(settings["dataset"]), True
    timed = []
    for name in ("transform", "target_transform", "transforms"):
        inner = getattr(dataset, name, None)
        if dataset is not settings["dataset"] and callable(inner):
            timed.append(_Timed(inner))
            setattr(dataset, name, timed[-1])
    collate = settings.get("collate_fn") or stack
    begun = time.perf_counter()
    for indices in batches:
        if costs.batches and first:
            costs.forget()
            first = False
        samples = [_one(costs, dataset, index, timed) for index in (indices if isinstance(indices, list) else [indices])]
        queued, wall, cpu = queued_seconds(), time.perf_counter(), time.thread_time()
        costs.batch = collate(samples) if isinstance(indices, list) else collate(samples[0])
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        costs.last = samples
        costs.add("collate", wall - costs.waited(queued), cpu)
        if step is not None:
            wall, cpu = time.perf_counter(), time.process_time()
            step(costs.batch)
            costs.add("step", time.perf_counter() - wall, time.process_time() - cpu)
        costs.batches += 1
        costs.bytes = max(costs.bytes, size_of(costs.batch))
        took = time.perf_counter() - begun
        if (costs.batches >= _LEAST_BATCHES and took >= seconds) or took >= most_s:
            break
    return costs


def _clocks_cost() -> tuple[float, float]:
    """Seconds and processor seconds that reading the clocks around nothing shows."""
    seen = []
    for _ in range(64):
        wall, cpu = time.perf_counter(), time.thread_time()
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        seen.append((wall, cpu))
    return statistics.median(wall for wall, _ in seen), statistics.median(cpu for _, cpu in seen)


def _one(costs: Costs, dataset: Any, index: Any, timed: list) -> Any:
    before = sum(t.wall for t in timed), sum(t.cpu for t in timed)
    queued, wall, cpu = queued_seconds(), time.perf_counter(), time.thread_time()
    sample = dataset[index]
    cpu, wall = time.thread_time() - cpu - costs.clocks[1], time.perf_counter() - wall - costs.clocks[0]
    wall -= costs.waited(queued)
    inside = sum(t.wall for t in timed) - before[0], sum(t.cpu for t in timed) - before[1]
    costs.each.append(max(0.0, wall))
    costs.samples += 1
    costs.add("transform", *inside)
    costs.add("fetch", wall - cpu - (inside[0] - inside[1]), 0.0)
    costs.add("decode", cpu - inside[1], cpu - inside[1])
    if costs.samples % 4 == 1 and (ready := ready_threads()) is not None:
        costs.ready.append(ready)
    return sample


class _Again:
    """The same batch, a copy each time: what it costs to hand it over, and nothing else."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> Any:
        return copy.deepcopy(self.batch)


def add_transport(costs: Costs, settings: dict[str, Any]) -> None:
    """What one worker process costs for each batch it hands over: its processor time and this process's."""
    from torch.utils.data import DataLoader

    begun = time.thread_time()
    for _ in range(3):
        copy.deepcopy(costs.batch)
    copied = (time.thread_time() - begun) / 3
    source = iter(DataLoader(_Again(costs.batch), batch_size=None, num_workers=1, multiprocessing_context=settings.get("multiprocessing_context")))
    try:
        send, receive = _handed_over(source, lambda: source._workers[0].pid)
    finally:
        close(source)
    for stage, seconds in (("send", max(0.0, send - copied)), ("receive", receive)):
        costs.add(stage, seconds * costs.batches, seconds * costs.batches)


class _Same:
    """The samples of one batch again and again."""

    def __init__(self, samples: list) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> Any:
        return self.samples[index % len(self.samples)]


def through_ring(costs: Costs, settings: dict[str, Any], pipe: dict[str, Any]) -> dict[str, Any]:
    """The pipeline with the ring: batches are stacked in its memory, so collating is part of what is measured by one worker."""
    from tare._tune_ring import ring_class

    size = len(costs.last) if settings.get("batch_size") or settings.get("batch_sampler") else None
    loader = ring_class()(_Same(costs.last), batch_size=size, collate_fn=settings["collate_fn"], num_workers=1)
    try:
        made, receive = _handed_over(iter(loader), lambda: loader._team.processes[0].pid)
    finally:
        loader.close()
    n = max(1, costs.samples / max(1, costs.batches))
    own = {"collate": (made / n, made / n), "send": (0.0, 0.0), "receive": (receive / n, receive / n)}
    return dict(pipe, stages={**pipe["stages"], **own})


def _handed_over(source: Iterator[Any], worker: Callable[[], int]) -> tuple[float, float]:
    """Processor seconds for a batch of one worker, and of this thread."""
    for _ in range(4):
        next(source)
    clock = (~worker() << 3) | 2  # the worker's processor clock, as clock_getcpuclockid(3) names it
    own, theirs, begun, n = time.thread_time(), time.clock_gettime(clock), time.perf_counter(), 0
    while n < 4 or (time.perf_counter() - begun < _TRANSPORT_S and n < 200):
        next(source)
        n += 1
    return (time.clock_gettime(clock) - theirs) / n, (time.thread_time() - own) / n


# ---- streams of batches ----


class Stream:
    """Batches of a loader without end, epoch after epoch. A call is a unit of some batches, with the step; `work` is what they hold, `per`
    for each batch. `settle`, before a unit: the other stream's workers have come to rest, and the queue is emptied, so that a unit has
    only what was made in its time. `times` are those of all batches that were measured, in nanoseconds."""

    def __init__(self, loader: Any, queue: int, step: Callable | None, per: int = 1) -> None:
        self.loader, self.queue, self.step, self.per = loader, queue, step, per
        self.times: list[int] = []
        self.wall_s = self.cpu_s = 0.0  # of what was measured last
        self.source: Any = None
        self.other: Stream | None = None
        self.batches, self.rest_s, self.left = 1, 0.0, 0.0
        try:
            self.epoch = len(loader)
        except TypeError:
            self.epoch = 0
        self.short = 0 < self.epoch < 2 * queue + 4  # whole epochs are the unit: there is no steady state within one

    def one(self) -> None:
        if self.source is None:
            self.source = iter(self.loader)
        batch = next(self.source, self)
        if batch is self:
            if not getattr(self.loader, "persistent_workers", False):
                close(self.source)
            self.source = iter(self.loader)
            batch = next(self.source)
        if self.step is not None:
            self.step(batch)

    @property
    def work(self) -> int:
        return self.batches * self.per

    def timed(self) -> None:
        begun = time.perf_counter_ns()
        self.one()
        self.times.append(time.perf_counter_ns() - begun)

    def __call__(self) -> None:
        for _ in range(self.batches):
            self.timed()
        self.left = time.monotonic()

    def settle(self) -> None:
        if self.short:
            self.source = None  # a unit begins with an epoch
            return
        if self.other is not None:
            time.sleep(max(0.0, self.other.rest_s - (time.monotonic() - self.other.left)))
        end = time.monotonic() + _DRAIN_S
        for _ in range(self.queue):
            self.one()
            if time.monotonic() > end:  # the step is what takes the time: the queue is full whenever it looks
                break

    def sized(self, least_s: float, most_s: float = _UNIT_MOST_S) -> float:
        """Settles how many batches a unit has, for the sake of its queue at most `most_s` of them; seconds of a batch."""
        seconds = seconds_a_batch(self)
        each = max(seconds, 1e-9)
        self.batches = max(4, min(4 * self.queue, math.ceil(min(most_s, _UNIT_MOST_S) / each)), math.ceil(least_s / each))
        if self.short:
            self.batches = self.epoch * max(1, round(self.batches / self.epoch))
        self.rest_s = min(2.0, 1.2 * self.queue * seconds)
        return seconds

    def end(self, at_once: bool = False) -> None:
        close(self.source, at_once)
        close(getattr(self.loader, "_iterator", None) or getattr(self.loader, "_team", None), at_once)
        self.source = None


def seconds_a_batch(stream: Stream, least_s: float = 0.2, most: int = 2000, most_s: float = math.inf) -> float:
    """Of batches made in their time, after the queue is filled; of a whole epoch where that is short. Not many more than `most_s`
    seconds: then of fewer."""
    end = time.monotonic() + most_s
    if not stream.short:
        for _ in range(stream.queue + 1):
            stream.one()
            if time.monotonic() > end:
                break
    n, cpu, begun = 0, cpu_seconds(), time.perf_counter()
    least = stream.epoch if stream.short else max(4, stream.queue)
    while (n < least and (n == 0 or time.monotonic() < end)) or (not stream.short and time.perf_counter() - begun < least_s and n < most):
        stream.timed()
        n += 1
    stream.wall_s, stream.cpu_s = time.perf_counter() - begun, cpu_seconds() - cpu
    return stream.wall_s / n
