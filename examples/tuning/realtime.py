# SPDX-License-Identifier: MIT
"""Watching while it runs: alerts, and the functions that take the time."""

import gc

from common import specific_function
from tare import ProfilingConfig, ProfilingOptimizer, RealTimeProfiler, profiling_context

config = ProfilingConfig(monitoring_interval=0.2)

# ---- 6. Real-time Monitoring
# Create profiler
profiler = RealTimeProfiler(config)

# Add alert callback
def alert_callback(alert, metrics):
    print(f"Alert: {alert}")
    print(f"Metrics: {metrics}")

profiler.add_alert_callback(alert_callback)

# Start monitoring
profiler.start_monitoring()

# Your operations here
# ...
specific_function()

# Stop monitoring
profiler.stop_monitoring()

# Get performance summary
summary = profiler.get_performance_summary()
print(f"Performance summary: {summary}")

# ---- Best practice 5
def reduce_parallel_workers():
    print("fewer workers")

# Set up monitoring with appropriate thresholds
config = ProfilingConfig(
    real_time_monitoring=True,
    alert_threshold=5.0,  # 5 seconds
    monitoring_interval=1.0  # 1 second
)

# Add custom alert handlers
def custom_alert_handler(alert, metrics):
    if "High CPU usage" in alert:
        # Reduce workload
        reduce_parallel_workers()
    elif "High memory usage" in alert:
        # Trigger garbage collection
        gc.collect()

profiler.add_alert_callback(custom_alert_handler)
profiler.judge(1000, {"cpu_percent": 95})
profiler.judge(1011, {"cpu_percent": 95})  # ten seconds later: as the monitoring thread would

# ---- Best practice 1
profiler = ProfilingOptimizer(config)

# Profile at different levels
def comprehensive_profiling():
    # System-level profiling
    with profiling_context(config):
        # Application-level profiling
        with profiler.profile_function("main_operation"):
            # Component-level profiling
            result = profiler.profile_code(specific_function)
            return result

# Use appropriate profiling depth
config = ProfilingConfig(
    profile_depth=5,  # Shallow for quick analysis
    min_time_threshold=0.01,  # 10ms threshold
    min_memory_threshold=1024 * 1024  # 1MB threshold
)
print(comprehensive_profiling())
