# SPDX-License-Identifier: MIT
"""PerformanceProfiler: named blocks of code, nested, in threads and in asyncio tasks, with time, memory, computation and the machine.

What needs sampling is done by the one C thread of the extension, without the GIL; entering and leaving a block costs some
microseconds. The most recent block of each name is kept whole; of earlier ones the times only.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections import deque
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator

from tare import _tare
from tare._flops import FlopCounter, prepare
from tare._forks import keep_lock
from tare._gpu_names import NO_MEMORY, memory_between, memory_now
from tare._lines import lines
from tare._memory_block import memory as memory_of, supported
from tare._metrics import (
    MB, ComputeMetrics, InstrumentMetrics, MemoryMetrics, Metrics, Seen, SystemMetrics, TimingMetrics, grid_of, leak_test, now_seen,
    system_metrics,
)  # fmt: skip
from tare._modules import EVERYTHING, FORWARD, ROWS, ModuleWatcher
from tare._unknown import Unknown, known

# The innermost open block here, and the one that ended last: per thread and, within a thread, per asyncio task.
_current: ContextVar[Any] = ContextVar("tare_block", default=None)
_ended: ContextVar[Any] = ContextVar("tare_ended_block", default=None)

UNSETTLED_MOST = 32  # blocks whose samples are still in C; the oldest are read out first
TIMES_MOST = 512  # of each name, for the spread
BOOKED_MOST = 64  # at the end of one block, of what others left


class Block:
    """One `with profiler.profile(name)`: open once. `samples` may be set inside: what throughput counts."""

    __slots__ = (
        "profiler", "name", "samples", "parent", "watch", "seen", "counter", "modules", "scope", "memory", "cpu", "thread", "begun_ns",
        "wall_ns", "open_inside", "inside_since", "inside_ns", "instrument_ns", "breakdown", "failed", "sampling_s", "allocated", "recorded",
        "__weakref__",
    )  # fmt: skip

    def __init__(self, profiler: "PerformanceProfiler", name: str, samples: float | None) -> None:
        self.profiler, self.name, self.samples = profiler, name, samples
        self.parent = self.watch = self.seen = self.counter = self.modules = self.scope = self.failed = self.recorded = None
        self.open_inside = self.inside_since = self.inside_ns = self.instrument_ns = 0
        self.breakdown: dict[str, int] = {}
        self.wall_ns = None

    def __enter__(self) -> "Block":
        entered = time.thread_time_ns()
        if self.wall_ns is not None or self.parent is not None:
            raise RuntimeError(f"block {self.name!r} was entered before: call profile() for each with")
        outer = _current.get()
        self.parent = outer if outer is not None and outer.profiler is self.profiler and outer.wall_ns is None else None
        self.profiler._open(self)
        _current.set(self)
        self.memory = [_tare.memory_now(), None]
        self.thread = [threading.get_ident(), time.thread_time_ns(), None]
        self.cpu = [time.process_time_ns(), None]
        self.begun_ns = time.perf_counter_ns()
        if self.parent is not None:
            self.profiler._noted.append((self.parent._child_begins, self.begun_ns, self.thread[1] - entered))
        return self

    def __exit__(self, kind: Any, *exception: Any) -> None:
        ended = time.perf_counter_ns()
        self.cpu[1] = time.process_time_ns()
        here = time.thread_time_ns()
        if self.thread[0] == threading.get_ident():
            self.thread[2] = here
        self.wall_ns = ended - self.begun_ns
        self.memory[1] = _tare.memory_now()
        self.failed = kind.__name__ if kind is not None else None
        _current.set(self.parent)
        self.profiler._close(self)
        _ended.set(self)
        if self.parent is not None:
            self.profiler._noted.append((self.parent._child_ends, self.name, ended, self.wall_ns, time.thread_time_ns() - here))

    async def __aenter__(self) -> "Block":
        return self.__enter__()

    async def __aexit__(self, *exception: Any) -> None:
        self.__exit__(*exception)

    # Blocks inside may overlap (tasks, threads): time inside is when at least one was open. What measuring them costs is processor time of
    # this thread: while it waits for the GIL or for a processor it is the program that waits.

    def _child_begins(self, at_ns: int, cost_ns: int) -> None:
        if self.open_inside == 0:
            self.inside_since = at_ns
        self.open_inside += 1
        self.instrument_ns += cost_ns

    def _child_ends(self, name: str, at_ns: int, wall_ns: int, cost_ns: int) -> None:
        self.open_inside -= 1
        if self.open_inside == 0:
            self.inside_ns += at_ns - self.inside_since
        self.instrument_ns += cost_ns
        self.breakdown[name] = self.breakdown.get(name, 0) + wall_ns

    @property
    def self_ns(self) -> int:
        return max(0, self.wall_ns - self.inside_ns - self.instrument_ns)

    def settle(self, wait: bool) -> None:
        """Read the samples out of C, once."""
        watch, self.watch = self.watch, None
        if watch is not None:
            seen = watch.take(wait)
            if not self.profiler._detailed:
                del seen["course"]
            self.seen = seen


class _Name:
    """All blocks of one name: the last one whole, of all of them the times."""

    __slots__ = ("last", "calls", "total_ns", "self_ns", "min_ns", "max_ns", "times")

    def __init__(self) -> None:
        self.last: Any = None
        self.calls = self.total_ns = self.self_ns = self.max_ns = 0
        self.min_ns = sys.maxsize
        self.times: deque = deque(maxlen=TIMES_MOST)

    def add(self, block: Block) -> None:
        self.last = block
        self.calls += 1
        self.total_ns += block.wall_ns
        self.self_ns += block.self_ns
        self.min_ns, self.max_ns = min(self.min_ns, block.wall_ns), max(self.max_ns, block.wall_ns)
        self.times.append(block.wall_ns / 1e9)


class SystemReport:
    """The machine over all outermost blocks so far, each weighed by its length."""

    def __init__(self, blocks: list) -> None:
        self.blocks = len(blocks)
        self.seconds = sum(seconds for seconds, _ in blocks)
        for field in ("cpu_percent", "disk_io_percent", "disk_io_wait_percent", "steal_percent", "load"):
            setattr(self, "avg_" + field, self._mean(blocks, field))
        self.avg_memory_percent = self._mean(blocks, "average_memory_percent")
        for field in ("cpu_percent", "memory_percent", "disk_io_percent", "temperature_c", "gpu_temperature_c"):
            setattr(self, "peak_" + field, self._most(blocks, field))
        for field in ("disk_read_mb", "disk_write_mb", "network_received_mb", "network_sent_mb", "energy_j", "carbon_g"):
            setattr(self, field, self._sum(blocks, field))

    def __repr__(self) -> str:
        return f"SystemReport({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @staticmethod
    def _why(blocks: list, field: str) -> Unknown:
        return getattr(blocks[-1][1], field) if blocks else Unknown("no block has ended yet")

    @staticmethod
    def _known(blocks: list, field: str) -> list:
        return [(seconds, getattr(system, field)) for seconds, system in blocks if known(getattr(system, field))]

    def _mean(self, blocks: list, field: str) -> float:
        pairs = self._known(blocks, field)
        weight = sum(seconds for seconds, _ in pairs)
        if not weight:
            return self._why(blocks, field)
        mean = sum(seconds * value for seconds, value in pairs) / weight
        values = [value for _, value in pairs]
        return min(max(mean, min(values)), max(values))  # rounding makes 100.00000000000001 of 100 and 100

    def _most(self, blocks: list, field: str) -> float:
        return max((value for _, value in self._known(blocks, field)), default=self._why(blocks, field))

    def _sum(self, blocks: list, field: str) -> float:
        pairs = self._known(blocks, field)
        return sum(value for _, value in pairs) if pairs else self._why(blocks, field)


def _allocated(block: Block) -> Any:
    """MB at the peak of PyTorch's allocators in the block; of several cards, whose peaks may be at different times, the sum."""
    if not block.allocated:
        return Unknown("not tracked: track_gpu=True")
    cards = memory_between(*block.allocated).values()
    return sum((card["peak"] for card in cards), 0) / MB if cards else Unknown(NO_MEMORY)


class PerformanceProfiler:
    """Profiles named blocks: `with profiler.profile("training"): ...`, then `profiler.get_metrics()`.

    track_gpu            memory and utilisation by NVML, where there is one
    track_system         processors, memory and disks of the machine
    track_network, track_cpu_temp, track_carbon
    carbon_grid          "FR", or grams of CO2 per kWh; no place is guessed
    detailed_memory      children, shared and swapped memory as often as this process's own, and the course over time
    memory_interval, system_interval   seconds between samples
    estimate_flops       what PyTorch code computes, by the rules of docs/cost.md: True counts every operator, which slows each by
                         some microseconds; None (default) forward passes, once for each shape; False nothing
    track_throughput     rows that PyTorch modules are called with, where `samples` is not told
    enable_line_profiling   by tare.lines, of the module that enters the block; or of `line_functions`
    max_names            of blocks that are kept; the least recently used one goes first
    """

    def __init__(
        self, track_gpu: bool = True, track_carbon: bool = False, detailed_memory: bool = False, memory_interval: float = 0.1,
        track_cpu_temp: bool = False, track_network: bool = False, track_system: bool = True, system_interval: float = 1.0,
        estimate_flops: bool | None = None, track_throughput: bool = True, enable_line_profiling: bool = False, line_functions: Any = None,
        carbon_grid: Any = None, max_names: int = 1000,
    ) -> None:  # fmt: skip
        if not (memory_interval > 0 and system_interval > 0):
            raise ValueError("memory_interval and system_interval are seconds above 0")
        tracked = {
            "gpu": (track_gpu, "track_gpu=True"),
            "system": (track_system, "track_system=True"),
            "cgroup": (track_system, "track_system=True"),
            "disk": (track_system, "track_system=True"),
            "net": (track_network, "track_network=True"),
            "temperature": (track_cpu_temp, "track_cpu_temp=True"),
            "energy": (track_carbon, "track_carbon=True"),
        }
        self._wants = ("self", "process", *(("sharing",) if detailed_memory else ()), *(probe for probe, (on, _) in tracked.items() if on))
        self._untracked = {probe: option for probe, (on, option) in tracked.items() if not on}
        self._paces = (memory_interval, memory_interval if detailed_memory else system_interval, system_interval)
        self._detailed, self._flops, self._rows = detailed_memory, estimate_flops, track_throughput
        self._grid, self._max_names = grid_of(carbon_grid), max_names
        self._lines = _Lines(line_functions) if enable_line_profiling else None
        self._names: dict[str, _Name] = {}
        self._noted: deque = deque()
        self._unsettled: deque = deque()
        self._outermost: deque = deque(maxlen=TIMES_MOST)
        self._last: Any = None
        self._costs: Any = None
        keep_lock(self)

    # ---- blocks ----

    def profile(self, name: str = "block", samples: float | None = None) -> Block:
        """A block: `with profiler.profile("epoch", samples=len(data)):`, or `async with`."""
        return Block(self, name, samples)

    def _open(self, block: Block) -> None:
        try:
            self._instrument(block)
        except BaseException:  # the block does not begin: nothing of it may stay behind
            self._remove_instruments(block)
            raise

    def _instrument(self, block: Block) -> None:
        if _tare.recording():
            block.scope = _tare.scope(block.name)
            block.scope.__enter__()
        if self._lines is not None:
            self._lines.begin(block)
        if (self._rows or self._flops is None) and "torch" in sys.modules:
            prepare()  # before the clock starts
            block.modules = ModuleWatcher(self._known_costs() if self._flops is None else None).__enter__()
        if self._flops:
            block.counter = FlopCounter().__enter__()
        block.allocated = [memory_now(), None] if "gpu" in self._wants else None
        block.sampling_s = [_tare.sampler_cost()["cpu_s"], None]
        if self._detailed and supported() is None:
            block.recorded = memory_of()
            block.recorded.__enter__()
        block.watch = _tare.Watch(self._wants, *self._paces)

    def _known_costs(self) -> Any:
        if self._costs is None:
            self._costs = weakref.WeakKeyDictionary()
        return self._costs

    def _close(self, block: Block) -> None:
        block.watch.end()
        if block.allocated:
            block.allocated[1] = memory_now()
        block.sampling_s[1] = _tare.sampler_cost()["cpu_s"]
        self._remove_instruments(block)
        self._noted.append((self._keep, block))
        if self._lock.acquire(False):
            try:
                self._book(BOOKED_MOST)
            finally:
                self._lock.release()

    def _book(self, most: int = sys.maxsize) -> None:
        """What blocks noted is booked, in its order, by whoever has the lock. Blocks never wait for the lock: a thread that does lets go of
        the GIL, so that it would wait for that in here, block after block, and no longer where the program itself waits."""
        while self._noted and most > 0:
            book, *what = self._noted.popleft()
            book(*what)
            most -= 1

    def _remove_instruments(self, block: Block) -> None:
        for counter in (block.recorded, block.counter, block.modules):
            if counter is not None:
                counter.__exit__(None, None, None)
        if self._lines is not None:
            self._lines.end(block)
        if block.scope is not None:
            block.scope.__exit__(None, None, None)
            block.scope = None

    def _keep(self, block: Block) -> None:
        name = self._names.pop(block.name, None) or _Name()
        name.add(block)
        self._names[block.name] = name  # last in the order: dicts keep it
        if len(self._names) > self._max_names:
            del self._names[next(iter(self._names))]
        self._last = block
        if block.parent is None:
            self._outermost.append(block)
        self._unsettled.append(block)
        if len(self._unsettled) > UNSETTLED_MOST:
            self._unsettled.popleft().settle(wait=False)

    @contextmanager
    def _booked(self) -> Iterator[None]:
        with self._lock:
            self._book()
            yield

    # ---- results ----

    def get_metrics(self, name: str | None = None) -> Metrics:
        """Of the most recent block of that name; without one, of the block that ended last in this thread or task, else anywhere."""
        here = _ended.get()
        with self._booked():
            if name is not None and name not in self._names:
                raise KeyError(f"no block {name!r} has ended; there are {', '.join(map(repr, self._names)) or 'none'}")
            block = self._names[name].last if name is not None else here if here is not None and here.profiler is self else self._last
            if block is None:
                raise LookupError("no block has ended yet: with profiler.profile(name): ...")
            times = self._names.get(block.name)
        block.settle(wait=True)
        return self._metrics(block, times)

    def get_times(self, name: str) -> list[float]:
        """Seconds of the last blocks of that name, at most 512, oldest first."""
        with self._booked():
            return list(self._names[name].times) if name in self._names else []

    def get_timing_breakdown(self, kind: str = "self") -> dict[str, float]:
        """Name -> seconds of all its blocks: "self" without the blocks inside, so that the values add up to the whole and shares of the
        sum mean something; "total" with them."""
        if kind not in ("self", "total"):
            raise ValueError(f"kind={kind!r}: choose 'self' or 'total'")
        with self._booked():
            return {name: (n.self_ns if kind == "self" else n.total_ns) / 1e9 for name, n in self._names.items()}

    def get_line_profile(self) -> list:
        """Lines of the last outermost block, the dearest first: line_number, time_s (what it calls included), time_percent of the block,
        hits, function, filename, source. Needs enable_line_profiling=True."""
        if self._lines is None:
            raise RuntimeError("lines are not profiled: PerformanceProfiler(enable_line_profiling=True)")
        return self._lines.last

    # ---- now ----

    def get_current_memory(self) -> float:
        """MB of RAM of this process."""
        rss, _ = _tare.memory_now()
        return rss / MB if rss is not None else Unknown("/proc/self/statm cannot be read")

    def get_current_gpu_memory(self) -> float:
        """Share of the fullest card's memory that is in use, 0 to 1; Unknown, which is not greater than anything, without a GPU."""
        seen = self._now("gpu")
        return seen.most("gpu.memory.share")

    def get_current_system_stats(self) -> SystemMetrics:
        """The machine now: rates over the last interval, at least 50 ms."""
        return system_metrics(self._now(*self._wants), self._grid)

    def _now(self, *probes: str) -> Seen:
        wanted = [probe for probe in probes if probe not in self._untracked]
        now = _tare.sampler_now(wanted, max(self._paces[0], self._paces[2]))
        _, change, span = now.get("cpu.busy", (None, None, None))
        if "system" in wanted and (change is None or span > 5 * self._paces[2]):
            time.sleep(0.06)  # nobody watched before: a rate needs two samples
            now = _tare.sampler_now(wanted, 0.0)
        return now_seen(now, self._untracked)

    def get_system_report(self) -> SystemReport:
        """The machine over all outermost blocks that ended (the last 512)."""
        with self._booked():
            blocks = list(self._outermost)
        for block in blocks:
            block.settle(wait=True)
        return SystemReport([(block.wall_ns / 1e9, system_metrics(self._seen(block), self._grid)) for block in blocks])

    # ---- from a block to its metrics ----

    def _seen(self, block: Block) -> Seen:
        return Seen(block.seen or {}, self._untracked)

    def _metrics(self, block: Block, times: Any) -> Metrics:
        seen = self._seen(block)
        throughput, source = _throughput(block)
        sampling = max(0.0, block.sampling_s[1] - block.sampling_s[0])  # a thread that was started again begins at 0
        return Metrics(
            name=block.name,
            memory=self._memory(block, seen),
            timing=_timing(block, times),
            compute=self._compute(block, seen),
            system=system_metrics(seen, self._grid),
            throughput=throughput,
            throughput_source=source,
            instrument=InstrumentMetrics(sampling, sampling / (block.wall_ns / 1e9) * 100 if block.wall_ns else 0.0),
            failed=block.failed,
        )

    def _memory(self, block: Block, seen: Seen) -> MemoryMetrics:
        (start, mark_before), (end, mark_after) = block.memory
        readings = [x for x in (start, end, seen.most("self.memory.rss")) if known(x)]
        exact = mark_after > mark_before  # the greatest ever was in this block
        why = Unknown("/proc/self/statm cannot be read")
        pss = seen.peak("process.memory.pss", 1 / MB) if self._detailed else Unknown("not tracked: detailed_memory=True")
        grown = max(readings) - start if known(start) else 0
        if known(pss) and pss * MB < grown:  # what the block took is its own: the reading is of before or after
            pss = Unknown("process.memory.pss: not read near the peak of this block")
        peak = max(readings + [mark_after] * exact) / MB if readings or exact else why
        tree = seen.peak("process.memory.rss", 1 / MB)
        if known(tree) and known(peak):  # sampled; the mark of the process itself is not, and it is one of them
            tree = max(tree, peak)
        return MemoryMetrics(
            peak_ram_mb=peak,
            peak_is_exact=exact,
            start_ram_mb=start / MB if known(start) else why,
            end_ram_mb=end / MB if known(end) else why,
            growth_mb=(end - start) / MB if known(start) and known(end) else why,
            average_ram_mb=seen.mean("self.memory.rss", 1 / MB),
            peak_tree_ram_mb=tree,
            peak_pss_mb=pss,
            peak_swap_mb=seen.peak("process.memory.swap", 1 / MB),
            peak_gpu_mb=seen.most("gpu.memory.process", 1 / MB),
            peak_gpu_used_mb=seen.most("gpu.memory.used", 1 / MB),
            peak_gpu_percent=seen.most("gpu.memory.share", 100.0),
            peak_gpu_allocated_mb=_allocated(block),
            leak=leak_test(seen.folds.get("growth", "no samples"), seen.samples("self.memory.rss")),
            samples=seen.samples("self.memory.rss"),
            course=[(at, value / MB) for at, value in seen.folds.get("course", ())] if self._detailed else [],
            recorded=block.recorded,
        )

    def _compute(self, block: Block, seen: Seen) -> ComputeMetrics:
        counter, wall_s = block.counter or block.modules, block.wall_ns / 1e9
        cost = counter.cost if counter is not None else None
        why = Unknown("not tracked: estimate_flops=True" if self._flops is False else "no PyTorch module was called")
        if block.counter is None and cost is not None and not cost.flops and not cost.uncounted:
            cost = None
        flops, parameters = (cost.flops, counter.parameters) if cost is not None else (why, why)
        return ComputeMetrics(
            estimated_flops=flops,
            macs=cost.macs if cost is not None else why,
            parameters=parameters,
            flops_per_param=flops / parameters if parameters else Unknown("no PyTorch module with parameters was called"),
            flops_per_second=flops / wall_s if cost is not None and wall_s else why,
            gpu_utilization_percent=seen.mean("gpu.utilization", 100.0),
            gpu_sm_active_percent=seen.mean("gpu.sm.active", 100.0),
            gpu_power_w=seen.mean("gpu.power"),
            uncounted=dict(cost.uncounted) if cost is not None else {},
            counts=EVERYTHING if block.counter is not None else FORWARD if cost is not None else "nothing",
            cost=cost,
        )


def _timing(block: Block, times: Any) -> TimingMetrics:
    wall = block.wall_ns / 1e9
    cpu = (block.cpu[1] - block.cpu[0]) / 1e9
    own = block.thread[2] is not None
    return TimingMetrics(
        wall_time_s=wall,
        cpu_time_s=cpu,
        thread_cpu_time_s=(block.thread[2] - block.thread[1]) / 1e9 if own else Unknown("the block ended in another thread"),
        cpu_percent=cpu / wall * 100 if wall else Unknown("the block took no time"),
        self_time_s=block.self_ns / 1e9,
        instrument_s=block.instrument_ns / 1e9,
        breakdown={name: ns / 1e9 for name, ns in block.breakdown.items()},
        calls=times.calls if times else 1,
        total_s=times.total_ns / 1e9 if times else wall,
        mean_s=times.total_ns / 1e9 / times.calls if times else wall,
        min_s=times.min_ns / 1e9 if times else wall,
        max_s=times.max_ns / 1e9 if times else wall,
    )


def _throughput(block: Block) -> tuple:
    """Samples per second, and where their number is from."""
    if not block.wall_ns:
        return Unknown("the block took no time"), "unknown"
    if block.samples is not None:
        return block.samples / (block.wall_ns / 1e9), "told"
    if block.profiler._rows and block.modules is not None and block.modules.rows:
        return block.modules.rows / (block.wall_ns / 1e9), ROWS
    return Unknown("how many samples? profile(name, samples=...), or block.samples = ... inside"), "unknown"


class _Lines:
    """Line profiles of outermost blocks, by tare.lines: of the functions given, else of the module whose code enters the block."""

    def __init__(self, functions: Any) -> None:
        self.functions = functions
        self.running: Any = None
        self.last: list = []

    def begin(self, block: Block) -> None:
        if self.running is not None:
            return
        self.running = (block, None)  # first, so that no other thread begins meanwhile
        self.running = (block, lines(*(self.functions or _calling_module())))
        self.running[1].enable()

    def end(self, block: Block) -> None:
        """Shares are of the block's time: a line that takes half of a function that takes nothing is no bottleneck."""
        if self.running is None or self.running[0] is not block:
            return
        profile, self.running = self.running[1], None
        if profile is None:
            return
        profile.disable()
        share = 100 / (block.wall_ns / 1e9) if block.wall_ns else 0.0
        rows = [line._replace(time_percent=line.time_s * share) for line in profile.lines()]
        self.last = sorted(rows, key=lambda line: line.time_s, reverse=True)


def _calling_module() -> list:
    """The module whose code enters the block, outside this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tare."):
        frame = frame.f_back
    module = sys.modules.get(frame.f_globals.get("__name__")) if frame is not None else None
    return [module] if module is not None else []
