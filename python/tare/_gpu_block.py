# SPDX-License-Identifier: MIT
"""tare.gpu(): what the GPUs do while a block runs. libtare-gpu.so records it in this very process, the carried command judges the trace
(schema tare.gpu/1), and the object is a view of that document. What cannot be recorded is said; the block runs as ever."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from typing import Any, Callable, TextIO, TypeVar

from tare import _answers, _command, _gpu_names, _tare
from tare._scoped import within
from tare._unknown import Unknown

_F = TypeVar("_F", bound=Callable[..., Any])

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_lib", "libtare-gpu.so")
WITHOUT_CALLS, SHARED = 1, 4  # as in gpu/block.c

_one_at_a_time = threading.Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_one_at_a_time=threading.Lock()))


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not what a forked child leaves behind
        shutil.rmtree(folder, ignore_errors=True)


class gpu(_answers.Shown):  # noqa: N801 - used like a function: with tare.gpu() as g
    """Records all that CUDA does in this process while the block runs: kernels, copies, calls, NVTX ranges.

    modules  True: kernels know the PyTorch module that launched them; or a model, or {name: model}, for paths that begin with that name
    ops      True: and the operator; with both, kernels of the backward pass know their module, too
    calls    False: without the CUDA calls of the host, which is cheaper; why the GPU was idle, and what ran in a range, is then unknown
    graphs   "node": kernels of CUDA graphs one by one; another choice there is only for whole programs (`tare run --gpu-graphs graph`)
    path     keep the trace there: `tare report --gpu`, `tare export` and the page read it
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, modules: Any = False, ops: bool = False, calls: bool = True, graphs: str = "node"
    ) -> None:
        if graphs == "graph":
            raise ValueError("graphs='graph': CUPTI crashes a program that has CUDA graphs when this is switched on; run it by `tare run --gpu --gpu-graphs graph`")
        if graphs != "node":
            raise ValueError(f"graphs={graphs!r}: a block has node")
        self._kept = None if path is None else os.path.abspath(os.fspath(path))
        self._names = {"modules": modules, "ops": ops}
        self._calls = calls or self._named  # a kernel is joined to what launched it by the call
        self._forget: Callable[[], Any] = lambda: None
        self._what = 0 if self._calls else WITHOUT_CALLS
        self._clear()

    def _clear(self) -> None:
        self._forget()  # the trace of the block before, unless it was to be kept
        self.path: str | None = None
        self.seconds = 0.0
        self._document: dict[str, Any] | None = None
        self._text = ""
        self._why: str | None = "the block has not ended yet"
        self._memory: dict[str, Any] = {}
        self._naming: Any = None
        self._held: Any = None

    @property
    def _named(self) -> bool:
        return self._names["modules"] not in (False, None) or self._names["ops"]

    # ---- the block ----

    def __enter__(self) -> "gpu":
        if self._held:
            raise RuntimeError("this tare.gpu() is open already: make another for a block within it")
        self._clear()
        self._why = self._begin()
        self._memory = _gpu_names.memory_now()
        self._started = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> bool:
        held, self._held = self._held, None
        after = _gpu_names.memory_now() if held else {}
        if held:
            self._why = self._end(held)
            self._memory = _gpu_names.memory_between(self._memory, after)
        self.seconds = time.perf_counter() - self._started
        return False

    def __call__(self, function: _F) -> _F:
        """As a decorator: each call is a block, and the results are those of the last one."""
        return functools.update_wrapper(within(lambda: self, function), function)

    def _begin(self) -> str | None:
        """None: it is recorded. Else why not."""
        why = _gpu_names.owner()
        if why:
            return why
        lock = _one_at_a_time
        if not lock.acquire(blocking=False):
            return "another tare.gpu() block of this process is being recorded"
        try:
            why = self._start()
        except OSError as missing:
            why = f"the library that records cannot be loaded: {missing}"
        except BaseException:
            lock.release()
            raise
        if why is not None:
            lock.release()
        self._held = lock if why is None else None
        return why

    def _start(self) -> str | None:
        _tare.gpu_load(LIBRARY)
        self.path = self._kept or self._temporary()
        naming = _gpu_names.Naming(LIBRARY, **self._names)
        naming.prepare()
        why = _tare.gpu_start(self.path, self._what)
        if why and _gpu_names.is_left_by_torch(why):
            why = _tare.gpu_start(self.path, self._what | SHARED)
            naming.notes.append("torch.profiler was used before and still has CUPTI, unused: recorded beside it")
        if why is None:
            naming.begin()
            self._naming = naming
        else:
            naming.end()
        return why

    def _temporary(self) -> str:
        folder = tempfile.mkdtemp(prefix="tare-gpu-")
        self._forget = weakref.finalize(self, _remove, folder, os.getpid())
        return os.path.join(folder, "gpu.tare")

    def _end(self, lock: threading.Lock) -> str | None:
        self._naming.end()
        try:
            return _tare.gpu_stop()
        finally:
            if lock is _one_at_a_time:  # not in a forked child, which has another
                lock.release()

    # ---- what it says ----

    @property
    def unknown(self) -> dict[str, str]:
        """Why there is nothing, or what of it cannot be known; empty: all is known."""
        if self._why:
            return {"gpu": self._why}
        document = self.document
        reasons = {f"devices.{d['number']}.{path}": why for d in document["devices"] for path, why in (d.get("unknown") or {}).items()}
        if not document["devices"]:
            reasons["devices"] = "no kernel, copy or fill ran in the block"
        return {**reasons, **self._naming.unknown}

    @property
    def notes(self) -> list[str]:
        """What the recorder had to say."""
        return [] if self._why else [note["text"] for note in self.document["notes"]] + self._naming.notes

    @property
    def document(self) -> dict[str, Any]:
        """The document (schema tare.gpu/1). RuntimeError with the reason where nothing was recorded."""
        if self._why:
            raise RuntimeError(f"nothing of the GPU was recorded: {self._why}")
        if self._document is None:
            self._text = _command.call("report", "--gpu", "--json", self.path)
            self._document = json.loads(self._text)
        return self._document

    def to_json(self) -> str:
        """The document as text."""
        return json.dumps(self.document, indent=1) if not self._text else self._text

    def _part(self, name: str) -> Any:
        return Unknown(self._why) if self._why else self.document[name]

    def _of_devices(self, name: str) -> Any:
        if self._why:
            return Unknown(self._why)
        found = [(d["number"], d[name]) for d in self.document["devices"] if d.get(name)]
        rows = [(number, row) for number, part in found for row in (part if isinstance(part, list) else [part])]
        return [{"device": number, **row} for number, row in rows]

    @property
    def devices(self) -> Any:
        """Of each GPU that was used: busy and idle time, launches, steps."""
        return self._part("devices")

    @property
    def kernels(self) -> Any:
        """By name, the one with the most time first. With modules or ops each has "origins": where it was launched."""
        rows = self._part("kernels")
        if isinstance(rows, Unknown) or not self._named:
            return rows
        origins: dict[str, list[dict[str, Any]]] = {}
        for origin in self.document["origins"]:
            origins.setdefault(origin["kernel"], []).append(origin)
        return [{**row, "origins": origins.get(row["name"], [])} for row in rows]

    @property
    def copies(self) -> Any:
        """By direction and kind of host memory; and fills."""
        return self._part("copies")

    memory_transfers = copies

    @property
    def calls(self) -> Any:
        """CUDA calls of the host: those that launch, copy, wait or take memory."""
        return self._part("calls")

    @property
    def ranges(self) -> Any:
        """NVTX ranges, by name."""
        rows = self._part("ranges")
        return rows if self._calls or not rows else Unknown("calls=False: what ran in a range is joined to it by the call that launched it")

    nvtx_ranges = ranges

    @property
    def idle(self) -> Any:
        """Time in which a GPU had nothing to do, by cause."""
        return self._of_devices("idle")

    @property
    def steps(self) -> Any:
        """What repeats, of each GPU where something does."""
        return self._of_devices("steps")

    @property
    def busy(self) -> Any:
        """Share of the time in which a GPU worked, from its first operation to its last: the mean over the GPUs used."""
        if self._why:
            return Unknown(self._why)
        devices = self.document["devices"]
        for device in devices:  # the mean of some is not that of all
            if device.get("busy") is None:
                why = (device.get("unknown") or {}).get("busy", "the record does not tell it")
                return Unknown(f"GPU {device['number']}: {why}")
        return sum(d["busy"] for d in devices) / len(devices) if devices else Unknown("no kernel, copy or fill ran in the block")

    @property
    def modules(self) -> Any:
        """Time of kernels by module, the most first."""
        return self._by("module", "modules")

    @property
    def operators(self) -> Any:
        """Time of kernels by operator, the most first."""
        return self._by("operator", "ops")

    def _by(self, field: str, option: str) -> Any:
        if self._why:
            return Unknown(self._why)
        if not self._names[option]:
            return Unknown(f"tare.gpu({option}=True) tells it")
        sums: dict[tuple, dict[str, Any]] = {}
        for origin in self.document["origins"]:
            row = sums.setdefault((origin.get(field), origin.get("phase")), {field: origin.get(field), "phase": origin.get("phase"), "count": 0, "total_ns": 0})
            row["count"] += origin["count"]
            row["total_ns"] += origin["total_ns"]
        return sorted(sums.values(), key=lambda row: -row["total_ns"])

    @property
    def memory(self) -> Any:
        """Bytes that PyTorch's allocator had given out, by GPU: before, after, and the peak; Unknown without it."""
        return Unknown(self._why) if self._why else self._memory or Unknown(_gpu_names.NO_MEMORY)

    # ---- output ----

    def text(self) -> str:
        """The report, as `tare report --gpu` prints it."""
        if self._why:
            return f"gpu: unknown: {self._why}"
        notes = [f"note       {note}" for note in self._naming.notes]
        return "\n".join([_command.call("report", "--gpu", self.path).rstrip("\n"), *notes])

    def print(self, file: TextIO | None = None) -> None:
        """Prints the report."""
        print(self.text(), file=file or sys.stdout)

    def html(self, path: str | os.PathLike[str]) -> str:
        """A page that needs nothing else. The path."""
        self.document  # noqa: B018 - RuntimeError where there is none
        _command.call("report", self.path, "--html", os.fspath(path))
        return os.fspath(path)

    def save(self, path: str | os.PathLike[str]) -> str:
        """The trace, for `tare report --gpu` and `tare export`, into a file. The path."""
        self.document  # noqa: B018
        shutil.copyfile(self.path, path)
        return os.fspath(path)

    def _shown(self) -> str:
        return self.text()
