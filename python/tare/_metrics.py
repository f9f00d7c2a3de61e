# SPDX-License-Identifier: MIT
"""What a profiled block came to: memory, time, computation, machine. Numbers that could not be measured are `Unknown` and say why.

MB are 2**20 bytes, as in most Python tools; percentages are 0 to 100.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Iterator

from tare import _tare
from tare._flops import Cost
from tare._tare import in_column
from tare._unknown import Unknown, known, plain

MB = 1024.0 * 1024.0
JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True)
class LeakTest:
    """Does memory grow for good? By the rises of its floor from part to part (docs/judgement.md): `confidence` is that of "growing"."""

    verdict: str  # "growing", "steady", "inconclusive", "unknown"
    confidence: float
    mb_per_s: float
    mb_per_s_low: float
    mb_per_s_high: float
    growth_mb: float  # after the first third, in which programs load and warm up
    samples: int

    @property
    def growing(self) -> bool:
        return self.verdict == "growing"


@dataclass(frozen=True)
class MemoryMetrics:
    peak_ram_mb: float  # this process
    peak_is_exact: bool  # the kernel's own mark rose in this block; else the greatest sample
    start_ram_mb: float
    end_ram_mb: float
    growth_mb: float
    average_ram_mb: float
    peak_tree_ram_mb: float  # with all that it started, shared pages in each
    peak_pss_mb: float  # with all that it started, shared pages split
    peak_swap_mb: float
    peak_gpu_mb: float  # this process and what it started, all cards
    peak_gpu_used_mb: float  # everybody's, all cards
    peak_gpu_percent: float  # of the fullest card
    peak_gpu_allocated_mb: float  # of tensors: by PyTorch's allocator, where the block reached a new peak
    leak: LeakTest
    samples: int
    course: list = field(default_factory=list, repr=False)  # (seconds, MB) where detailed_memory is on
    recorded: Any = field(default=None, repr=False, compare=False)  # a tare.memory of the block, where detailed_memory is on

    @property
    def sites(self) -> Any:
        """Who allocated in the block, the most at its peak first: sampled, so that bytes are estimates. See tare.memory."""
        return Unknown("not tracked: detailed_memory=True") if self.recorded is None else self.recorded.sites


@dataclass(frozen=True)
class TimingMetrics:
    wall_time_s: float
    cpu_time_s: float  # all threads of this process
    thread_cpu_time_s: float
    cpu_percent: float  # 100: one processor all the time
    self_time_s: float  # without the blocks inside, and without what they cost to measure
    instrument_s: float  # processor time that measuring the blocks inside took
    breakdown: dict  # name of a block directly inside -> seconds
    calls: int  # blocks of this name so far, and over all of them:
    total_s: float
    mean_s: float
    min_s: float
    max_s: float


@dataclass(frozen=True)
class ComputeMetrics:
    estimated_flops: Any  # int, by docs/cost.md: 2 * MACs + simple operations
    macs: Any
    parameters: Any
    flops_per_param: float
    flops_per_second: float
    gpu_utilization_percent: float  # of the busiest card
    gpu_sm_active_percent: float
    gpu_power_w: float
    counts: str  # what the estimate counts
    uncounted: dict  # operator -> calls that no rule covers: the estimate is then a lower bound
    cost: Any = field(default=None, repr=False)  # the whole count


@dataclass(frozen=True)
class SystemMetrics:
    """The machine while the block ran, or now."""

    cpu_percent: float  # 100: all processors busy
    memory_percent: float  # the most; of the machine, or of the control group where that is less
    average_memory_percent: float
    disk_io_percent: float  # of the time the busiest disk had requests under way
    disk_io_wait_percent: float  # processors idle while a task waited for I/O
    disk_read_mb: float
    disk_write_mb: float
    steal_percent: float
    throttled_percent: float
    cpu_pressure_percent: float
    io_pressure_percent: float
    memory_pressure_percent: float
    load: float
    temperature_c: float
    gpu_temperature_c: float
    network_received_mb: float
    network_sent_mb: float
    energy_j: float
    carbon_g: float
    samples: int


@dataclass(frozen=True)
class InstrumentMetrics:
    """What measuring took."""

    sampling_cpu_s: float
    sampling_percent: float  # of one processor, while the block ran


@dataclass(frozen=True)
class Metrics:
    name: str
    memory: MemoryMetrics
    timing: TimingMetrics
    compute: ComputeMetrics
    system: SystemMetrics
    throughput: float  # samples per second
    throughput_source: str
    instrument: InstrumentMetrics
    failed: Any = None  # name of the exception that ended the block

    def __str__(self) -> str:
        """What people ask first; everything else is in the fields."""
        t, m, s = self.timing, self.memory, self.system
        lines = [
            f"{self.name}: wall {in_column(t.wall_time_s, 's')}, CPU {in_column(t.cpu_time_s, 's')}" + (f", ended by {self.failed}" if self.failed else ""),
            f"  memory      peak {in_column(m.peak_ram_mb, 'MB')}, grown by {in_column(m.growth_mb, 'MB')}, leak: {m.leak.verdict}",
            f"  machine     CPU {s.cpu_percent:.0f} %, memory {s.memory_percent:.1f} %, I/O wait {s.disk_io_wait_percent:.1f} %",
        ]
        if known(self.throughput):
            lines.append(f"  throughput  {in_column(self.throughput, 'samples/s')} ({self.throughput_source})")
        if known(self.compute.estimated_flops):
            lines.append(f"  compute     {in_column(self.compute.estimated_flops, 'FLOPs')}, {self.compute.parameters:,.0f} parameters")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None for what is unknown; the reasons under "unknown", by dotted name."""
        return {**as_dict(self), "unknown": dict(reasons(self))}


def as_dict(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: as_dict(getattr(value, f.name)) for f in fields(value) if f.name != "recorded"}
    if isinstance(value, dict):
        return {k: as_dict(v) for k, v in value.items()}
    if isinstance(value, Cost):
        return value.to_dict()
    return plain(value)


def reasons(value: Any, path: str = "") -> Iterator[tuple]:
    if isinstance(value, Unknown):
        yield path, value.reason
    elif is_dataclass(value):
        for f in fields(value):
            yield from reasons(getattr(value, f.name), f"{path}.{f.name}" if path else f.name)


# ---- what the sampler saw ----

PROBE_OF = {
    "gpu": "gpu", "process": "process", "self": "self", "cpu": "system", "memory": "system", "pressure": "system", "swap": "system",
    "load": "system", "cgroup": "cgroup", "disk": "disk", "net": "net", "temperature": "temperature", "energy": "energy",
}  # fmt: skip


class Seen:
    """The folded samples of a block, or those of now; asks for a quantity end in a number or in an Unknown with its reason."""

    def __init__(self, folds: dict, untracked: dict[str, str]) -> None:
        self.folds = folds
        self.untracked = untracked  # probe -> how to switch it on
        self._blind: Any = None

    def why(self, name: str) -> Unknown:
        probe = PROBE_OF[name.split(".", 1)[0]]
        if probe in self.untracked:
            return Unknown(f"not tracked: {self.untracked[probe]}")
        if self._blind is None:
            self._blind = _tare.sampler_blind().splitlines()
        for line in self._blind:
            if line.startswith((f"{probe}:", f"probe {probe}:")):
                return Unknown(line)
        return Unknown(f"{name}: no sample near this block")

    def _of(self, name: str, at: int, scale: float) -> float:
        fold = self.folds.get(name)
        return fold[at] * scale if fold and fold[at] is not None else self.why(name)

    def most(self, name: str, scale: float = 1.0) -> float:
        return self._of(name, 2, scale)

    def peak(self, name: str, scale: float = 1.0) -> float:
        """The most within the block: a reading before or after it says nothing of what it held."""
        return self.most(name, scale) if self.samples(name) or name not in self.folds else Unknown(f"{name}: not read within this block")

    def least(self, name: str) -> float:
        return self._of(name, 1, 1.0)

    def mean(self, name: str, scale: float = 1.0) -> float:
        return self._of(name, 3, scale)

    def change(self, name: str, scale: float = 1.0) -> float:
        return self._of(name, 4, scale)

    def percent(self, name: str, scale: float = 100.0) -> float:
        """Seconds per second as a share, over the samples of the block. The kernel counts in steps, which may go beyond 100."""
        change, span = self.change(name), self._of(name, 5, 1.0)
        return min(100.0, change / span * scale) if known(change) and known(span) else self.why(name)

    def samples(self, name: str) -> int:
        fold = self.folds.get(name)
        return fold[0] if fold else 0


def now_seen(now: dict, untracked: dict[str, str]) -> Seen:
    """What `_tare.sampler_now` tells, in the shape of a block's folds."""
    return Seen({name: (1, v, v, v, change, span) for name, (v, change, span) in now.items()}, untracked)


def system_metrics(seen: Seen, grid: Any) -> SystemMetrics:
    cpus = seen.most("cpu.count")
    per_cpu = 100.0 / cpus if known(cpus) else 0.0
    energy = energy_of(seen)
    return SystemMetrics(
        cpu_percent=seen.percent("cpu.busy", per_cpu),
        memory_percent=memory_percent(seen, seen.least("memory.available"), seen.most("cgroup.memory")),
        average_memory_percent=memory_percent(seen, seen.mean("memory.available"), seen.mean("cgroup.memory")),
        disk_io_percent=seen.percent("disk.busy"),
        disk_io_wait_percent=seen.percent("cpu.iowait", per_cpu),
        disk_read_mb=seen.change("disk.read", 1 / MB),
        disk_write_mb=seen.change("disk.write", 1 / MB),
        steal_percent=seen.percent("cpu.steal", per_cpu),
        throttled_percent=seen.percent("cgroup.cpu.throttled", 100.0),
        cpu_pressure_percent=seen.percent("pressure.cpu", 100.0),
        io_pressure_percent=seen.percent("pressure.io", 100.0),
        memory_pressure_percent=seen.percent("pressure.memory", 100.0),
        load=seen.mean("load.1m"),
        temperature_c=seen.most("temperature"),
        gpu_temperature_c=seen.most("gpu.temperature"),
        network_received_mb=seen.change("net.rx", 1 / MB),
        network_sent_mb=seen.change("net.tx", 1 / MB),
        energy_j=energy,
        carbon_g=carbon_of(energy, grid),
        samples=seen.samples("cpu.busy"),
    )


def memory_percent(seen: Seen, available: float, group: float) -> float:
    """Of the machine, or of the control group's limit where that leaves less."""
    total, limit = seen.most("memory.total"), seen.most("cgroup.memory.limit")
    machine = (total - available) / total * 100 if known(total) and known(available) else seen.why("memory.total")
    in_group = group / limit * 100 if known(group) and known(limit) and limit > 0 else None
    return in_group if in_group is not None and not machine > in_group else machine


def energy_of(seen: Seen) -> float:
    """Of the processors and the cards, as far as each has a counter."""
    parts = [e for e in (seen.change("energy"), seen.change("gpu.energy")) if known(e)]
    return sum(parts) if parts else seen.why("energy")


def carbon_of(energy: float, grid: Any) -> float:
    """Grams of CO2; no place is guessed."""
    if not known(energy):
        return Unknown(f"no energy: {energy.reason}")
    if grid is None:
        return Unknown("which grid? PerformanceProfiler(track_carbon=True, carbon_grid='FR'), or grams per kWh as a number")
    return energy / JOULES_PER_KWH * grid


def leak_test(growth: Any, samples: int) -> LeakTest:
    if isinstance(growth, str):
        why = Unknown(growth)
        return LeakTest("unknown", why, why, why, why, why, samples)
    verdict, confidence, per_s, low, high, rise, tested = growth
    return LeakTest(verdict, confidence, per_s / MB, low / MB, high / MB, rise / MB, tested)


def grid_of(grid: Any) -> Any:
    """Grams per kWh: a number as it is, a code by tare's table."""
    if grid is None or isinstance(grid, (int, float)):
        return grid
    grids, _ = _tare.carbon_table()
    if grid.upper() not in grids:
        raise ValueError(f"carbon_grid={grid!r} is not in the table; there are {', '.join(grids)}; else give grams per kWh")
    return grids[grid.upper()][1]
