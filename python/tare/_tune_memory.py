# SPDX-License-Identifier: MIT
"""tare.MemoryOptimizer: memory given back to the system and measured, data in smaller types where not a bit of it is lost, and work in
chunks that stays under a cap. What is refused is named with its reason."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import math
import re
import sys
import time
from typing import Any, Callable, Iterator, Sequence

from tare import _tare
from tare._memory import resident
from tare._tare import in_sentence
from tare._tune import Tuned, Unit, in_bytes, pss_bytes, setting
from tare._tune_child import can_fork, in_child
from tare._unknown import Unknown, known

TARGET = (1 / 0.7, 1 / 0.5)  # 30 to 50 % less: what users hope for
POLICY = 1 << 20  # blocks from 1 MiB on go back to the system when they are freed
MOVES_TO = 32 << 20  # the highest threshold that glibc sets by itself on 64 bits
MARGIN = 0.9  # of a cap
PART = 1 << 18  # values that are looked at together
_KEYS = re.compile(r"(^|[_\W])(ids?|keys?|labels?|targets?|class(es)?|ind(ex|ices)|timestamps?|times?|hash(es)?|uuid)($|[_\W])", re.IGNORECASE)


# ---- a block of the program ----


@dataclasses.dataclass
class MemoryBlock:
    """What a memory_context() did. Bytes; Unknown where the kernel does not say. Filled when the block has ended."""

    before: Any = Unknown("the block has not ended")
    peak: Any = Unknown("the block has not ended")  # resident, while it ran
    after: Any = Unknown("the block has not ended")  # PSS before memory was given back
    kept: Any = Unknown("the block has not ended")  # PSS afterwards
    returned: Any = Unknown("the block has not ended")  # what trimming gave back: after - kept
    policy: dict[str, Any] = dataclasses.field(default_factory=dict)
    findings: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        sizes = {name: value for name, value in vars(self).items() if name not in ("policy", "findings")}
        say = {name: in_sentence(value, "B") if known(value) else "unknown" for name, value in sizes.items()}
        return "memory: {before} before, {peak} at most, {after} after; {returned} given back, {kept} kept".format(**say) + "".join(
            f"\n  {line}" for line in self.findings)  # fmt: skip


def _pss() -> Any:
    size = pss_bytes()
    return Unknown("the kernel does not tell memory split by sharing (smaps_rollup)") if size is None else size


# ---- smaller types ----


@dataclasses.dataclass
class Slimming:
    """What optimize_memory_usage() did: bytes of data before and after, each change and each refusal with its place."""

    before: int = 0
    after: int = 0
    changes: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    refused: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    @property
    def saved(self) -> float:
        """The share of the bytes that is gone."""
        return 1 - self.after / self.before if self.before else 0.0

    def __str__(self) -> str:
        lines = [f"memory: {in_sentence(self.before, 'B')} of data, now {in_sentence(self.after, 'B')}: {self.saved:.0%} less; target 30-50 %"]
        lines += [f"  {c['where']}: {c['what']}, {in_sentence(c['saved'], 'B')} less" for c in self.changes]
        lines += [f"  {where}: left as it is: {why}" for where, why in self.refused]
        return "\n".join(lines)


# From which kind to which: signed stays signed (differences may be below 0), and floats stop at 32 bits (a sum of a few thousand halves
# overflows).
_SMALLER = {"i": ("int8", "int16", "int32"), "u": ("uint8", "uint16", "uint32"), "f": ("float32",), "c": ("complex64",)}


def smaller_type(array: Any, name: str = "data", tolerance: float = 0.0) -> tuple[str | None, str]:
    """The smallest dtype that holds a numpy array without loss, or None; and why. The rules of docs/tuning.md."""
    import numpy

    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind not in _SMALLER:
        return None, f"{array.dtype} has no smaller type that is safe"
    if array.size == 0:
        return None, "nothing in it"
    if _KEYS.search(name):
        return None, "its name says keys, ids, labels or times: they are compared and used as indices, not computed with"
    choices = [c for c in _SMALLER[kind] if numpy.dtype(c).itemsize < size]
    if not choices:
        return None, f"{array.dtype} is small already"
    if kind in "iu":
        return _smaller_int(numpy, array, choices)
    return _smaller_float(numpy, array, choices[0], tolerance)


def _smaller_int(numpy: Any, array: Any, choices: list[str]) -> tuple[str | None, str]:
    low, high = int(array.min()), int(array.max())
    if array.size > 1 and high - low >= array.size - 1 and numpy.unique(array).size == array.size:
        return None, "all its values are distinct: they may be keys or ids"
    if max(abs(low), abs(high)) * array.size >= 1 << 63:
        return None, "its sum could overflow"
    for choice in choices:
        info = numpy.iinfo(choice)
        if 2 * low >= info.min and 2 * high <= info.max:
            return choice, f"values {low} to {high}, and the sum of any two, fit"
    return None, f"values {low} to {high} do not fit a smaller type together with the sum of two"


def _smaller_float(numpy: Any, array: Any, choice: str, tolerance: float) -> tuple[str | None, str]:
    worst, total = 0.0, 0.0
    for part in _parts(numpy, array):
        with numpy.errstate(all="ignore"):
            back = part.astype(choice).astype(array.dtype)
            total += float(numpy.abs(part[numpy.isfinite(part)]).sum())
        if back.tobytes() != part.tobytes():
            worst = max(worst, _worst_error(numpy, part, back) or sys.float_info.min)
            if tolerance <= 0 and worst == math.inf:
                break
    if worst and tolerance <= 0:
        return None, f"values do not come back exactly from {choice}: off by up to {worst:.2g} of a value"
    if not worst <= tolerance:
        return None, f"off by up to {worst:.2g} of a value, above the tolerance of {tolerance:g}"
    if total > float(numpy.finfo(choice).max):
        return None, "its sum would overflow"
    if not worst:
        return choice, "every value comes back bit by bit"
    was, now = numpy.unique(array).size, numpy.unique(array.astype(choice)).size
    if was != now:
        return None, f"{was} distinct values would become {now}"
    return choice, f"within {worst:.2g} of every value, all {was} distinct values kept"


def _parts(numpy: Any, array: Any) -> Iterator[Any]:
    """One piece after the other, so that looking takes no more memory than a few MiB."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        flat = array.reshape(-1, order="A")
        yield from (flat[at : at + PART] for at in range(0, flat.size, PART))
    else:
        rows = max(1, PART * len(array) // max(1, array.size))
        yield from (numpy.ascontiguousarray(array[at : at + rows]) for at in range(0, len(array), rows))


def _worst_error(numpy: Any, array: Any, back: Any) -> float:
    if (numpy.isfinite(array) != numpy.isfinite(back)).any() or (numpy.isnan(array) != numpy.isnan(back)).any():
        return math.inf
    there = numpy.isfinite(array) & (array != 0)
    if (back[numpy.isfinite(array) & (array == 0)] != 0).any():
        return math.inf
    return float((numpy.abs(back[there] - array[there]) / numpy.abs(array[there])).max()) if there.any() else 0.0


class _Slimmer:
    """One walk over the data; containers are made anew, the user's stay as they are."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance, self.report = tolerance, Slimming()
        self.seen: dict[int, tuple[Any, Any]] = {}  # an object that is there twice stays one
        self.texts: dict[Any, Any] = {}
        self.text_ids: set[int] = set()
        self.text_saved = 0

    def walk(self, value: Any, where: str) -> Any:
        kind = type(value)
        if kind in (str, bytes):
            return self._text(value)
        if id(value) in self.seen:
            return self.seen[id(value)][1]
        if kind is dict:
            out: Any = self._later(value, {})
            for key, item in value.items():
                out[key] = self.walk(item, f"{where}[{key!r}]")
            return out
        if kind is list:
            out = self._later(value, [])
            out.extend(self.walk(item, f"{where}[{i}]") for i, item in enumerate(value))
            return out
        if kind is tuple:
            return tuple(self.walk(item, f"{where}[{i}]") for i, item in enumerate(value))
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None and kind is numpy.ndarray:
            return self._later(value, self._array(numpy, value, where))
        if torch is not None and kind is torch.Tensor:
            return self._later(value, self._tensor(torch, value, where))
        return value

    def _later(self, value: Any, out: Any) -> Any:
        self.seen[id(value)] = (value, out)
        return out

    def _text(self, value: Any) -> Any:
        """Equal texts become one object."""
        first = self.texts.setdefault((type(value), value), value)
        if id(value) not in self.text_ids:
            self.text_ids.add(id(value))
            self.report.before += sys.getsizeof(value)
            self.report.after += sys.getsizeof(value) if first is value else 0
            self.text_saved += 0 if first is value else sys.getsizeof(value)
        return first

    def _array(self, numpy: Any, array: Any, where: str) -> Any:
        held = _held(array)
        choice, why = smaller_type(array, where, self.tolerance)
        out = array.astype(choice) if choice else array
        what = f"{array.dtype} to {choice} ({why})" if choice else ""
        if not choice and not (array.flags.c_contiguous or array.flags.f_contiguous):
            out, what = numpy.ascontiguousarray(array), "copied into one piece"
        if not choice:
            self.report.refused.append((where, why))
        return self._count(out, where, what, held, out.nbytes)

    def _tensor(self, torch: Any, tensor: Any, where: str) -> Any:
        held = tensor.untyped_storage().nbytes() if hasattr(tensor, "untyped_storage") else tensor.storage().nbytes()
        choice: str | None = None
        if tensor.device.type != "cpu" or tensor.requires_grad or tensor.is_sparse or tensor.is_quantized:
            why = "it is on a device, sparse, quantised, or part of a gradient"
        elif not tensor.dtype.is_floating_point and not tensor.dtype.is_complex:
            why = "whole numbers of torch are indices and labels: losses and embeddings want them as they are"
        elif tensor.dtype in (torch.float64, torch.complex128):
            choice, why = smaller_type(tensor.numpy(), where, self.tolerance)
        else:
            why = f"{tensor.dtype} is small already"
        out = tensor.to(getattr(torch, choice)) if choice else tensor
        what = f"{tensor.dtype} to torch.{choice} ({why})" if choice else ""
        if not choice:
            self.report.refused.append((where, why))
            if tensor.device.type == "cpu" and not tensor.requires_grad and tensor.layout is torch.strided and not tensor.is_contiguous():
                out, what = tensor.contiguous(), "copied into one piece"
        return self._count(out, where, what, held, held if out is tensor else out.numel() * out.element_size())

    def _count(self, out: Any, where: str, what: str, held: int, now: int) -> Any:
        self.report.before += held
        self.report.after += now if what else held
        if what:
            self.report.changes.append({"where": where, "what": what, "saved": held - now})
        return out


def _held(array: Any) -> int:
    """Bytes that an array keeps alive: of a view those of what it looks into."""
    while getattr(array, "base", None) is not None and hasattr(array.base, "nbytes"):
        array = array.base
    return int(array.nbytes)


# ---- the optimizer ----


class MemoryOptimizer:
    """MemoryOptimizer(config): memory_context(), optimize_memory_usage(data), process_in_chunks(function, data)."""

    def __init__(self, config: Any = None) -> None:
        setting(config, "memory_efficient")  # a configuration, or an error
        self.config = config
        self.last: MemoryBlock | Slimming | None = None

    @contextlib.contextmanager
    def memory_context(self) -> Iterator[MemoryBlock]:
        """Within it, blocks from 1 MiB on are given back to the system as soon as they are freed; at its end what was freed is given back
        and the allocator is set as it was found. Threads share it. The peak is that of the process."""
        block = self.last = MemoryBlock()
        gc.collect()
        block.before = _pss()
        was = self._set_policy(block)
        earlier, was_reset = _tare.memory_peak(True)
        try:
            yield block
        finally:
            most, _ = _tare.memory_peak(False)
            block.peak = most if most and (was_reset or most > earlier) else Unknown("the kernel does not let the peak be set back")
            gc.collect()
            block.after = _pss()
            gave = _tare.malloc_trim()
            if was is not None:
                _tare.malloc_policy(was, 2 * was)
                block.policy["restored"] = was
                block.findings.append(f"the allocator's threshold is {in_sentence(was, 'B')} now; it moves it no more by itself")
            block.kept = _pss()
            block.returned = block.after - block.kept if known(block.after) and known(block.kept) else block.after
            if gave is None:
                block.findings.append("this C library has no malloc_trim: what was freed stays with the process")

    def _set_policy(self, block: MemoryBlock) -> int | None:
        """What the threshold is to be afterwards, where it was changed: as found, or, where glibc would still have moved it, as far as it does. A low
        one is no policy: glibc raises it with the first larger block that is freed, and from then on keeps such blocks."""
        if not setting(self.config, "memory_efficient"):
            block.findings.append("memory_efficient is off: the allocator is left as it is")
            return None
        was = _tare.malloc_threshold()
        if was is None:
            block.findings.append("the allocator's threshold is not known here")
            return None
        if not _tare.malloc_policy(POLICY, POLICY):
            block.findings.append("the allocator takes no thresholds here")
            return None
        block.policy["mmap_threshold"] = POLICY
        return was if was > POLICY else MOVES_TO

    def optimize_memory_usage(self, data: Any, *, tolerance: float = 0.0) -> Any:
        """The data with smaller types where not a bit is lost (or, with a tolerance, where no two values become one), equal texts shared,
        arrays in one piece. Lists, tuples and dicts are made anew; what is left as it is, and why, is in .last, which prints."""
        if not (isinstance(tolerance, (int, float)) and 0 <= tolerance < 1):
            raise ValueError(f"tolerance is a share of a value from 0 up to 1, not {tolerance!r}")
        slimmer = _Slimmer(tolerance)
        out = slimmer.walk(data, "data")
        if slimmer.text_saved:
            slimmer.report.changes.append({"where": "data", "what": "equal texts are one", "saved": slimmer.text_saved})
        self.last = slimmer.report
        return out

    def confirm(
        self, base: Callable[[], Any], candidate: Callable[[], Any], *, what: str = "memory", plan: dict[str, Any] | None = None,
        same: Callable[[Any, Any], str | None] | None = None, bound: Any = None,
    ) -> Tuned:  # fmt: skip
        """Does `candidate` take less memory than `base`? Each call in a child that is thrown away, in turns: the most that it held beyond what it
        began with. `same` says what differs between the first results; `bound`, base over candidate, what can be saved at most. The speed is
        among the reasons."""
        unknown = Unknown("how much of it could go is not known") if bound is None else bound
        tuned = Tuned(what, dict(plan or {}), "refused", bound=unknown, target=TARGET, less=True)
        why = can_fork()
        if why:
            tuned.reasons.append(f"memory is compared in children: {why}")
            return tuned
        threshold, rule = setting(self.config, "optimization_threshold"), {"least": 8, "most": 12}
        begun, said, sides = time.monotonic(), {"verdict": "going on", "next": 1}, ((base, tuned.baseline), (candidate, tuned.candidate))
        while said["next"] > len(tuned.baseline):
            first: list[Any] = []
            for call, units in sides if len(tuned.baseline) % 2 == 0 else sides[::-1]:
                ran = in_child(functools.partial(weighed, call, same is not None and not units), setting(self.config, "timeout_s"))
                if ran.outcome != "done":
                    tuned.reasons.append(f"{'the base' if call is base else 'the candidate'} ended as {ran.outcome}: {ran.value}")
                    return tuned
                units.append(ran.value[0])
                first.append(ran.value[1])
            difference = same(*first) if same is not None and len(tuned.baseline) == 1 else None
            if difference:
                tuned.verdict = "different_data"
                tuned.reasons.append(f"the results differ: {difference}")
                return tuned
            if time.monotonic() - begun > setting(self.config, "budget_s"):
                break
            said = self._said(tuned, threshold, rule) if len(tuned.baseline) >= 8 else {"verdict": "going on", "next": 8}
        return self._judge(tuned, threshold, rule)

    @staticmethod
    def _said(tuned: Tuned, threshold: float, rule: dict[str, int]) -> dict[str, Any]:
        pairs = list(zip(tuned.baseline, tuned.candidate))
        return _tare.confirm([c.memory / b.memory for b, c in pairs], [c.wall_s / b.wall_s for b, c in pairs], threshold=threshold, **rule)

    def _judge(self, tuned: Tuned, threshold: float, rule: dict[str, int]) -> Tuned:
        said = self._said(tuned, threshold, rule)
        words = {"confirmed": "confirmed", "likely": "likely", "going on": "over_budget"}
        tuned.verdict = words.get(said["verdict"], "no_gain")
        gain, low, high = said["gain"]
        if math.isfinite(high) and low > 0:  # two pairs bound nothing
            tuned.gain, tuned.ci, tuned.memory = gain, (low, high), (1 / gain, 1 / high, 1 / low)
            time_ = said["cpu"]  # the second series: here of wall times
            tuned.reasons.append(f"{time_[0]:.2f}x ({time_[1]:.2f} to {time_[2]:.2f}) the time")
        if tuned.verdict == "no_gain":
            tuned.reasons.append(f"not surely {threshold:.0%} less: leave it as it is")
        elif tuned.verdict == "over_budget":
            tuned.reasons.append("the budget was used up before it was clear")
        return tuned

    def process_in_chunks(self, function: Callable[[Any], Any], data: Sequence, cap: Any = None) -> Iterator[Any]:
        """function(data[i:j]) for one piece after the other, as large as stays under `cap` bytes of resident memory (a size, or "80%" of
        what is free; the configuration's memory_limit or max_memory_usage by default). The first is one item, later ones at most twice as
        large. MemoryError before a piece that would not fit."""
        whole = resident() + free_bytes()
        by_default = setting(self.config, "memory_limit") or f"{setting(self.config, 'max_memory_usage') * 100}%"
        limit = in_bytes(by_default if cap is None else cap, whole)
        at, size, most, per_item = 0, 1, setting(self.config, "chunk_size"), 0.0
        while at < len(data):
            base = resident()
            if base + per_item * size > limit * MARGIN:
                size = int((limit * MARGIN - base) / per_item) if per_item else 0
                if base > limit * MARGIN or size < 1:
                    raise MemoryError(f"item {at}: {in_sentence(base, 'B')} are in use, an item takes up to {in_sentence(per_item, 'B')}, "
                                      f"and the cap is {in_sentence(limit, 'B')}")  # fmt: skip
            _, was_reset = _tare.memory_peak(True)
            out = function(data[at : at + size])
            peak = _tare.memory_peak(False)[0] if was_reset else resident()
            done = min(size, len(data) - at)
            per_item = max(per_item, (peak - base) / done)
            at += done
            yield out
            del out
            _tare.malloc_trim()
            size = min(2 * size, most)


def weighed(call: Callable[[], Any], told: bool) -> tuple[Unit, Any]:
    """In a child: time, processor time and the most memory of a call beyond what the child began with, code and files aside; its result where
    it is asked for. Of the second call: the first loads what is loaded once."""
    _tare.malloc_trim()  # what the parent had freed
    began, _ = _own_and_files()
    call()
    gc.collect()
    _tare.malloc_trim()
    own, files = _own_and_files()
    _, was_reset = _tare.memory_peak(True)
    cpu, begun = time.process_time(), time.perf_counter()
    result = call()
    wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    most = _tare.memory_peak(False)[0]
    if not was_reset and most <= own + files:
        raise RuntimeError("the kernel does not let the peak be set back")
    return Unit(wall, max(cpu, 1e-9), max(1, most - files - began)), result if told else None


def _own_and_files() -> tuple[int, int]:
    """Resident bytes of this process's own memory, and of files and what is shared."""
    with open("/proc/self/status") as file:
        kept = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file if line.startswith("Rss")}
    return kept["RssAnon"], kept["RssFile"] + kept["RssShmem"]


def free_bytes(group: str = "/sys/fs/cgroup") -> int:
    """What this process could still take: free memory of the machine, or what its cgroup leaves; files in memory give way."""
    with open("/proc/meminfo") as file:
        free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    try:
        with open(f"{group}/memory.max") as limit, open(f"{group}/memory.current") as used, open(f"{group}/memory.stat") as stat:
            gives_way = sum(int(line.split()[1]) for line in stat if line.startswith(("active_file ", "inactive_file ")))
            return min(free, max(0, int(limit.read()) - int(used.read()) + gives_way))
    except (OSError, ValueError):
        return free


@contextlib.contextmanager
def memory_optimization_context(config: Any = None) -> Iterator[MemoryBlock]:
    """MemoryOptimizer(config).memory_context()."""
    with MemoryOptimizer(config).memory_context() as block:
        yield block
