# SPDX-License-Identifier: MIT
"""diagnose_performance_issues: what is worth knowing about a block, as sentences. A rule that needs a number nobody measured is silent."""

from __future__ import annotations

from typing import Any, Callable

from tare._unknown import known


def _gpu_idle(m: Any) -> bool:
    """Only where this process uses a card at all."""
    return m.compute.gpu_utilization_percent < 70 and m.memory.peak_gpu_mb > 0


def _one_core(m: Any) -> bool:
    """Busy, but on one processor, while others were idle."""
    return 90 < m.timing.cpu_percent < 130 and m.system.cpu_percent < 70 and m.timing.wall_time_s > 0.1


def _others_busy(m: Any) -> bool:
    """The machine is busy, and this process hardly: what it started, or somebody else, takes the processors."""
    return m.system.cpu_percent > 95 and m.timing.cpu_percent < 25


# when, and what to say; fields of the metrics may be named in braces
RULES: list[tuple[Callable[[Any], bool], str]] = [
    (
        lambda m: m.system.memory_percent > 90,
        "High memory usage ({m.system.memory_percent:.0f} % of what there is, this process {m.memory.peak_ram_mb:.0f} MB) - "
        "consider reducing batch size or model size",
    ),
    (
        lambda m: m.memory.leak.growing,
        "Memory grew by {m.memory.leak.growth_mb:.1f} MB after the first third, {m.memory.leak.mb_per_s:.2f} MB/s, and was not flat at the end "
        "(confidence {m.memory.leak.confidence:.3f}) - watch it longer: data that is built up is there at last, a leak is not",
    ),
    (lambda m: m.memory.peak_swap_mb > 1, "{m.memory.peak_swap_mb:.0f} MB of this process are swapped out - it needs more memory than there is"),
    (
        lambda m: m.memory.peak_gpu_percent > 95,
        "GPU memory is {m.memory.peak_gpu_percent:.0f} % full - the next larger batch will not fit",
    ),
    (
        lambda m: m.system.cpu_percent > 95 and not _others_busy(m),
        "CPU bottleneck ({m.system.cpu_percent:.0f} % of all processors) - consider data loading optimization or distributed training",
    ),
    (
        _others_busy,
        "Others take the processors (machine {m.system.cpu_percent:.0f} %, this process {m.timing.cpu_percent:.0f} % of one) - "
        "its own workers, or other programs: times are not comparable",
    ),
    (_one_core, "One processor works while others idle (process {m.timing.cpu_percent:.0f} %, machine {m.system.cpu_percent:.0f} %) - use more threads"),
    (
        _gpu_idle,
        "GPU underutilized ({m.compute.gpu_utilization_percent:.0f} %) - increase batch size or improve data loading",
    ),
    (
        lambda m: m.system.disk_io_wait_percent > 20,
        "I/O bottleneck ({m.system.disk_io_wait_percent:.0f} % of the time waiting) - optimize data loading or use faster storage",
    ),
    (lambda m: m.system.steal_percent > 5, "The hypervisor took {m.system.steal_percent:.0f} % of the processors away - times are not comparable"),
    (
        lambda m: m.system.throttled_percent > 5,
        "The control group's CPU quota stopped the process {m.system.throttled_percent:.0f} % of the time - raise the quota or use fewer threads",
    ),
    (lambda m: m.system.memory_pressure_percent > 10, "Tasks waited for memory {m.system.memory_pressure_percent:.0f} % of the time"),
    (lambda m: m.system.temperature_c > 90, "The processor is at {m.system.temperature_c:.0f} C - its clock may be held down"),
]


def diagnose_performance_issues(profiler_results: Any) -> list[str]:
    """Sentences about `profiler.get_metrics()`; none where nothing is wrong, or nothing was measured."""
    return [text.format(m=profiler_results) for applies, text in RULES if known(profiler_results) and applies(profiler_results)]
