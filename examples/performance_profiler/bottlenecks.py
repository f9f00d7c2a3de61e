# SPDX-License-Identifier: MIT
"""PerformanceProfiler: lines that take the time."""

from tare import PerformanceProfiler


def slow_function():
    numbers = [x * x for x in range(300_000)]
    return sorted(numbers, key=lambda x: x % 1000)


profiler = PerformanceProfiler(enable_line_profiling=True)

with profiler.profile("bottleneck_detection"):
    # Code with potential bottlenecks
    slow_function()

# Get line-by-line timing
line_profile = profiler.get_line_profile()
bottlenecks = [line for line in line_profile if line.time_percent > 10]

for bottleneck in bottlenecks:
    print(f"Bottleneck at line {bottleneck.line_number}: {bottleneck.time_percent:.1f}% of time")
