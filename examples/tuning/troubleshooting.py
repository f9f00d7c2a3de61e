# SPDX-License-Identifier: MIT
"""Troubleshooting: too much memory, slow loading, many workers."""

import os

from common import dataset_size, make_step
from tare import BatchSizeOptimizer, DataOptimizationConfig

config = DataOptimizationConfig()

# ---- 1. High CPU Usage
# Reduce parallel workers
config.num_workers = max(1, config.num_workers // 2)

# Use sequential processing for small datasets
if dataset_size < 1000:
    config.num_workers = 0

# ---- 2. High Memory Usage
# Enable memory optimization
config.memory_efficient = True
config.chunk_size = 500  # Reduce chunk size

# Use streaming for large datasets
config.streaming = True

# ---- 3. Slow Data Loading
# Increase workers
config.num_workers = min(8, os.cpu_count())

# Enable persistent workers
config.persistent_workers = True

# Increase prefetch factor
config.prefetch_factor = 4

# ---- 4. GPU Memory Issues
class Model:
    def gradient_checkpointing_enable(self):
        print("checkpointing")

model, batch_size = Model(), 16
# Enable gradient checkpointing
model.gradient_checkpointing_enable()

# Reduce batch size
batch_size = batch_size // 2

# Use mixed precision
config.mixed_precision = True
print(config)

# ---- Batch Size Tuning
gpu_memory_usage = 0.0
def test_batch_size(size):
    global gpu_memory_usage
    gpu_memory_usage = size / 100

# Start with small batch size and increase
batch_size = 8
while gpu_memory_usage < 0.8:  # 80% threshold
    batch_size *= 2
    test_batch_size(batch_size)

# what tare does instead: probing in a child, a line through the memory, the knee, 20 steps to verify
import torch
found = BatchSizeOptimizer(DataOptimizationConfig(budget_s=5)).find(
    make_step({}), lambda n: torch.randint(0, 1000, (n, 32)), memory="2GB", base=8, most=64
)
print(found)

# ---- Worker Optimization
try:
    import psutil
except ImportError:
    class psutil:  # its total of memory, for where it is not installed
        @staticmethod
        def virtual_memory():
            return type("memory", (), {"total": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")})

# Calculate optimal workers
cpu_count = os.cpu_count()
memory_gb = psutil.virtual_memory().total / (1024**3)

if memory_gb < 8:
    optimal_workers = min(cpu_count // 2, 2)
else:
    optimal_workers = min(cpu_count, 8)
print(f"optimal workers: {optimal_workers}")

# ---- Caching Strategy
cache_hits, cache_misses = 1, 10
def clear_cache():
    print("cleared")

# Use appropriate cache size
cache_size = min(1000, dataset_size // 10)

# Clear cache periodically
if cache_hits < cache_misses * 0.5:
    clear_cache()
