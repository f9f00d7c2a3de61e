# SPDX-License-Identifier: MIT
"""A first profile, configurations, performance monitoring and debug mode."""

from common import DataLoader, dataset, process_batch
from tare import DataOptimizationConfig, ProfilingConfig, ProfilingOptimizer

# ---- Configuration
config = ProfilingConfig(
    enabled=True,
    profile_cpu=True,
    profile_memory=True,
    profile_gpu=True,
    profile_data_loading=True,
    profile_preprocessing=True,
    profile_depth=10,
    min_time_threshold=0.001,  # 1ms
    min_memory_threshold=1024 * 1024,  # 1MB
    save_profiles=True,
    profile_dir="profiles",
    auto_optimize=True,
    optimization_threshold=0.1,  # 10% improvement required
    real_time_monitoring=True,
    alert_threshold=5.0,  # 5 seconds
    monitoring_interval=1.0  # 1 second
)

config = DataOptimizationConfig(
    optimize_loading=True,
    prefetch_factor=2,
    num_workers=4,
    pin_memory=True,
    persistent_workers=True,
    memory_efficient=True,
    max_memory_usage=0.8,  # 80% of available memory
    chunk_size=1000,
    enable_caching=True,
    cache_dir="cache",
    cache_size=1000,
    optimize_preprocessing=True,
    batch_preprocessing=True,
    parallel_preprocessing=True,
    preprocessing_workers=2,
    optimize_io=True,
    compression="gzip",
    buffer_size=8192,
    async_io=True,
    monitor_performance=True,
    log_metrics=True,
    alert_threshold=5.0
)

# ---- 1. Basic Profiling
# Create profiler
config = ProfilingConfig(enabled=True, profile_cpu=True, profile_memory=True)
profiler = ProfilingOptimizer(config)

# Profile a function
def sample_function():
    import time
    time.sleep(0.1)  # Simulate work
    return "result"

result = profiler.profile_code(sample_function)
print(f"Profiling result: {result}")
print(f"Bottlenecks: {result.bottleneck_functions}")
print(f"Recommendations: {result.recommendations}")

# ---- Performance Monitoring
# Monitor specific operations
with profiler.profile_function("data_loading"):
    dataloader = DataLoader(dataset, batch_size=32)
    for batch in dataloader:
        process_batch(batch)

# Get detailed statistics
stats = profiler.get_training_stats()
print(f"CPU usage: {stats['cpu_percent']}%")
print(f"Memory usage: {stats['memory_percent']}%")
print(f"GPU utilization: {stats['gpu_utilization']}%")

# ---- Debug Mode
# Enable debug logging
import logging
logging.getLogger('tare').setLevel(logging.DEBUG)

# Test profiling setup
config = ProfilingConfig(
    enabled=True,
    log_precision=True,
    log_memory_usage=True
)
profiler = ProfilingOptimizer(config)
