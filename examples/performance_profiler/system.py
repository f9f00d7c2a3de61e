# SPDX-License-Identifier: MIT
"""PerformanceProfiler: the machine while training, and what is wrong. Needs Python alone.

Left out by the text and added here: an epoch (and 5 of them instead of 100)."""

import time

from tare import PerformanceProfiler, diagnose_performance_issues


def train_epoch():
    deadline = time.monotonic() + 0.1
    while time.monotonic() < deadline:
        sum(range(1000))


# ---- Resource Utilization Tracking
profiler = PerformanceProfiler(
    track_system=True,
    system_interval=1.0  # Sample system metrics every second
)

with profiler.profile("resource_monitoring"):
    # Long-running training process
    for epoch in range(5):
        train_epoch()

        # Get real-time system stats
        system_stats = profiler.get_current_system_stats()

        # Alert if system under stress
        if system_stats.cpu_percent > 90:
            print("⚠️ High CPU usage")
        if system_stats.memory_percent > 85:
            print("⚠️ High memory usage")
        if system_stats.disk_io_percent > 80:
            print("⚠️ High disk I/O")

# Get comprehensive system report
system_report = profiler.get_system_report()
print(f"Average CPU usage: {system_report.avg_cpu_percent:.1f}%")
print(f"Peak memory usage: {system_report.peak_memory_percent:.1f}%")

# ---- Common Performance Issues
# Usage after profiling
metrics = profiler.get_metrics()
issues = diagnose_performance_issues(metrics)
for issue in issues:
    print(f"⚠️ {issue}")
