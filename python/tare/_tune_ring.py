# SPDX-License-Identifier: MIT
"""RingDataLoader: torch's DataLoader whose batches come through preallocated shared memory (python/_tare/ring_shared.h).

DataLoader maps, zeroes and faults fresh shared memory for every batch; here a worker stacks a batch right into a slot that has been used
before, and the main process sees it there. A batch's slot is free again when the last tensor of the batch is gone; when a program keeps
its batches, they are copied out instead, so that it never waits for itself. Workers are forked, and batch k is made by worker k mod n."""

from __future__ import annotations

import collections
import io
import multiprocessing
import os
import pickle
import signal
import sys
import time
import traceback
import weakref
from typing import Any, Iterator

from tare import _tare

_META, _ALIGN, _TICK_S, _END_S = 1 << 16, 64, 0.2, 1.0
_ALL = 2**32 - 1  # a place of a sample: all of a batch at once
_made: list[type] = []


class WorkerDied(RuntimeError):
    """A worker ended without having said why. `pid`, `signal` (None: it left by itself) and `index` (None: it made none) say what is known."""

    def __init__(self, pid: int, status: int | None, index: Any) -> None:
        self.pid, self.index = pid, index
        self.signal = -status if status is not None and status < 0 else None
        how = f"left with status {status}" if status is not None else "ended, nobody knows how (SIGCHLD is ignored)"
        if self.signal:
            how = f"was killed by {_signal_name(self.signal)}"
        super().__init__(f"worker {pid} {how} " + ("while it waited for work" if index is None else f"while it made sample {index!r}"))

    def __reduce__(self) -> tuple:
        return WorkerDied, (self.pid, -self.signal if self.signal else None, self.index)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# ---- batches into slots and out of them ----


class _Writer:
    """The memory of one slot, given out from its beginning."""

    def __init__(self, view: Any) -> None:
        import torch

        self.bytes = torch.frombuffer(memoryview(view), dtype=torch.uint8)
        self.first, self.next = self.bytes.data_ptr(), _META

    def room(self, size: int) -> Any:
        """That many bytes of the slot, as a tensor."""
        at = self.next
        if at + size > len(self.bytes):
            raise ValueError(f"a batch of more than {at + size} bytes does not fit the ring's slots of {len(self.bytes)}: give ring_bytes=")
        self.next = (at + size + _ALIGN - 1) // _ALIGN * _ALIGN
        return self.bytes[at : at + size]

    def like(self, dtype: Any, shape: tuple, itemsize: int) -> Any:
        """An empty tensor in the slot."""
        count = itemsize
        for n in shape:
            count *= n
        return self.room(count).view(dtype).view(shape) if count else self.bytes[:0].view(dtype).view(shape)

    def place(self, tensor: Any) -> tuple:
        """Where a tensor is in the slot; it is copied there unless it was made there."""
        inside = self.first <= tensor.data_ptr() < self.first + len(self.bytes)
        if not inside:
            target = self.like(tensor.dtype, tuple(tensor.shape), tensor.element_size())
            target.copy_(tensor)
            tensor = target
        return tensor.data_ptr() - self.first, tensor.dtype, tuple(tensor.shape)


class _Pickler(pickle.Pickler):
    """Tensors and arrays go into the slot; the description says where. All else is pickled as it is."""

    def __init__(self, file: Any, writer: _Writer) -> None:
        super().__init__(file, protocol=5)
        self.writer = writer

    def persistent_id(self, thing: Any) -> Any:
        import torch

        if type(thing) is torch.Tensor and thing.device.type == "cpu" and thing.layout is torch.strided and not thing.requires_grad and thing.is_contiguous():
            return "tensor", *(self.writer.place(thing) if thing.numel() else (0, thing.dtype, tuple(thing.shape)))
        numpy = sys.modules.get("numpy")
        if numpy is not None and type(thing) is numpy.ndarray and thing.dtype.kind in "biufc" and thing.nbytes and thing.flags.c_contiguous and thing.dtype.isnative:
            at = self.writer.place(torch.from_numpy(thing.reshape(-1).view(numpy.uint8)))[0]
            return "array", at, thing.dtype.str, thing.shape
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, memory: Any) -> None:
        super().__init__(file)
        self.memory = memory

    def persistent_load(self, place: Any) -> Any:
        kind, at, dtype, shape = place
        count = 1
        for n in shape:
            count *= n
        if kind == "array":
            import numpy

            return numpy.frombuffer(self.memory, dtype, count, at).reshape(shape)
        import torch

        return torch.frombuffer(self.memory, dtype=dtype, count=count, offset=at).view(shape) if count else torch.empty(shape, dtype=dtype)


def _describe(what: Any, writer: _Writer) -> bytes:
    """A batch's description; one that is too long for its place stands in the slot too."""
    file = io.BytesIO()
    _Pickler(file, writer).dump(what)
    text = file.getbuffer()
    if len(text) <= _META - 64:
        return b"N" + bytes(text)
    import torch

    room = writer.room(len(text))
    room.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
    return b"F" + pickle.dumps((room.data_ptr() - writer.first, len(text)))


def _restore(meta: bytes, memory: Any) -> Any:
    text: Any = memoryview(meta)[1:]
    if meta[:1] == b"F":
        at, length = pickle.loads(text)
        text = memory[at : at + length]
    return _Unpickler(io.BytesIO(text), memory).load()


def _collate_into(writer: _Writer) -> Any:
    """torch's default_collate, which stacks right into the slot."""
    import torch
    from torch.utils.data._utils.collate import collate, default_collate_fn_map

    def stack(batch: list, *, collate_fn_map: Any = None) -> Any:
        first = batch[0]
        if first.layout is not torch.strided or first.is_nested or first.device.type != "cpu" or any(t.shape != first.shape or t.dtype != first.dtype for t in batch):
            return torch.stack(batch, 0)  # and its own errors
        return torch.stack(batch, 0, out=writer.like(first.dtype, (len(batch), *first.shape), first.element_size()))

    return lambda batch: collate(batch, collate_fn_map={**default_collate_fn_map, torch.Tensor: stack})


# ---- workers ----


def _work(ring: Any, loader: Any, worker: int, workers: int, seed: int) -> None:
    """A worker's life: jobs worker, worker + workers, ... until the ring is closed or its process is gone."""
    import random

    import torch
    from torch._utils import ExceptionWrapper
    from torch.utils.data._utils import worker as torch_worker
    from torch.utils.data._utils.collate import default_collate

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    random.seed(seed + worker)
    torch.manual_seed(seed + worker)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed((seed + worker) % 2**32)
    dataset = loader.dataset
    torch_worker._worker_info = torch_worker.WorkerInfo(id=worker, num_workers=workers, seed=seed + worker, dataset=dataset)
    plain, failed = loader.collate_fn is default_collate, None
    try:
        if loader.worker_init_fn is not None:
            loader.worker_init_fn(worker)
    except Exception:
        failed = ExceptionWrapper(where=f"in DataLoader worker process {worker}")
    job = worker
    while True:
        taken = ring.take(job, 1.0)
        if taken is False:
            return
        if taken is None:
            continue
        slot, posted = taken
        writer = _Writer(ring.view(slot, False))
        try:
            if failed is not None:
                failed.reraise()
            meta, kind = _describe(_batch(ring, slot, loader, pickle.loads(posted), _collate_into(writer) if plain else loader.collate_fn), writer), 0
        except Exception:
            meta, kind = _tell_error(failed or ExceptionWrapper(where=f"in DataLoader worker process {worker}"), len(writer.bytes)), 1
        ring.done(job, slot, kind, meta)
        job += workers


def _batch(ring: Any, slot: int, loader: Any, indices: Any, collate: Any) -> Any:
    if not loader._auto_collation:
        return collate(loader.dataset[indices])
    many = getattr(loader.dataset, "__getitems__", None)
    if many:
        ring.at(slot, _ALL)
        return collate(many(indices))
    samples = []
    for at, index in enumerate(indices):
        ring.at(slot, at)
        samples.append(loader.dataset[index])
    return collate(samples)


def _tell_error(wrapped: Any, room: int) -> bytes:
    try:
        text, why = pickle.dumps(wrapped), "does not fit the ring's slots"
        pickle.loads(text)
        if len(text) <= room:
            return text
    except Exception:
        why = "cannot be pickled"
    from torch._utils import ExceptionWrapper

    error = RuntimeError(f"{wrapped.exc_type.__name__}, which {why}:\n{wrapped.exc_msg}"[: _META // 8])  # 4 bytes a letter at most
    return pickle.dumps(ExceptionWrapper((RuntimeError, error, None), "in DataLoader worker process"))


def _exit_status(process: Any) -> int | None:
    """Of one that has ended. Who else asks at the same time, a thread or a handler, may take it from the kernel between our look and our call:
    then multiprocessing has it the second time."""
    status = process.exitcode
    return process.exitcode if status is None else status


class _Team:
    """A ring and its workers. Lives as long as its loader, over epochs."""

    def __init__(self, loader: Any, workers: int, depth: int, slot_bytes: int, seed: int) -> None:
        slots = workers * depth + 2
        self.pid, self.workers, self.ahead = os.getpid(), workers, workers * depth
        self.ring = _tare.Ring(slots, max(slot_bytes, _META))
        self.waiting: collections.deque = collections.deque()  # (job, slot, indices)
        context = multiprocessing.get_context("fork")
        self.processes = [context.Process(target=_work, args=(self.ring, loader, i, workers, seed), daemon=True, name=f"tare-ring-{i}") for i in range(workers)]
        try:
            for process in self.processes:
                process.start()
                try:
                    self.ring.watch(process.pid)
                except OSError:
                    process.kill()  # nobody else would
                    raise
        except BaseException:
            self.close()
            raise

    def post(self, indices: Any) -> None:
        self.waiting.append((*self.ring.post(pickle.dumps(indices)), indices))

    def receive(self, timeout: float = 0.0) -> Any:
        """The next batch, in order; what its worker raised; WorkerDied."""
        job, slot, indices = self.waiting[0]
        begun = time.monotonic()
        while True:
            said = self.ring.wait(job, slot, _TICK_S)
            if isinstance(said, int):
                raise self._died(said)
            if said is not None:
                break
            if timeout and time.monotonic() - begun > timeout:
                self.close()  # else the next epoch would wait for what hangs
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        kind, meta = said
        view = self.ring.view(slot, True)  # first: were it interrupted after popleft(), nobody would free the slot
        self.waiting.popleft()
        if kind:
            del view  # an error that is kept keeps its frames
            pickle.loads(meta).reraise()
        batch = _restore(meta, memoryview(view))
        spare = self.ring.free() + len(self.waiting) >= self.ahead  # what is kept by the program must not stop the workers
        return batch if spare else _own(batch)

    def _died(self, pid: int) -> WorkerDied:
        status = _exit_status(next(p for p in self.processes if p.pid == pid))
        index = None
        for job, slot, indices in self.waiting:
            owner, at = self.ring.state(slot)
            if owner == pid and self.ring.wait(job, slot, 0.0) in (None, pid):
                index = indices[at] if isinstance(indices, list) and at < len(indices) else indices
                break
        self.close()
        return WorkerDied(pid, status, index)

    def drain(self, timeout: float) -> None:
        """What an epoch that was left early still has under way."""
        while self.waiting:
            try:
                self.receive(timeout)
            except WorkerDied:
                raise
            except Exception:
                traceback.clear_frames(sys.exc_info()[2])

    def close(self) -> None:
        """Ends the workers, whatever they do; those of a process that this one was forked from are not ours to end. Not by
        join(): what a worker has forked may hold its pipe open."""
        self.ring.end(_END_S)
        for process in self.processes:
            if process.pid is not None and self.pid == os.getpid() and process.exitcode is not None:
                process.join(0)
        self.waiting.clear()
        self.processes = []


def _own(batch: Any) -> Any:
    """The batch in memory of its own: its slot is wanted."""
    import copy

    return copy.deepcopy(batch)


def ring_class() -> type:
    """RingDataLoader; made on first use, since it needs torch."""
    if _made:
        return _made[0]
    import torch
    from torch.utils.data import DataLoader, IterableDataset

    class RingDataLoader(DataLoader):
        """A DataLoader with the same arguments and batches; `ring_bytes` is the most that a batch may take (default 1 GiB; only what is used
        takes memory)."""

        def __init__(self, dataset: Any, *args: Any, ring_bytes: int = 1 << 30, **named: Any) -> None:
            if isinstance(dataset, IterableDataset):
                raise ValueError("the ring takes data sets with an index: an iterable one keeps its place in each worker")
            if not named.get("num_workers"):
                raise ValueError("the ring needs num_workers=1 or more")
            named["multiprocessing_context"] = None
            super().__init__(dataset, *args, **named)
            self.ring_bytes, self._team, self._end = ring_bytes, None, None

        def __iter__(self) -> Iterator[Any]:
            seed = torch.empty((), dtype=torch.int64).random_(generator=self.generator).item()  # as DataLoader draws it
            if self._team is not None and (not self._team.processes or self._team.pid != os.getpid()):
                self.close()
            if self._team is None:
                self._team = _Team(_Bare(self), self.num_workers, self.prefetch_factor or 2, self.ring_bytes, seed)
                self._end = weakref.finalize(self, _Team.close, self._team)
            self._team.drain(self.timeout)
            return self._epoch(self._team)

        def _epoch(self, team: _Team) -> Iterator[Any]:
            from torch.utils.data._utils.pin_memory import pin_memory

            pinned = self.pin_memory and torch.cuda.is_available()
            for indices in self._index_sampler:
                team.post(indices)
                if len(team.waiting) >= team.ahead:
                    batch = team.receive(self.timeout)
                    yield pin_memory(batch) if pinned else batch
                    del batch
            while team.waiting:
                batch = team.receive(self.timeout)
                yield pin_memory(batch) if pinned else batch
                del batch

        def close(self) -> None:
            """Ends its workers; the next epoch starts new ones."""
            if self._end is not None:
                self._end()  # once; it also lets go of the team, whose ring goes with its last batch
            self._team = self._end = None

    _made.append(RingDataLoader)
    return RingDataLoader


class _Bare:
    """What a worker needs of a loader."""

    def __init__(self, loader: Any) -> None:
        self.dataset, self.collate_fn, self.worker_init_fn = loader.dataset, loader.collate_fn, loader.worker_init_fn
        self._auto_collation = loader._auto_collation
