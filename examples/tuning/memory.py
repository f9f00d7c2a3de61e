# SPDX-License-Identifier: MIT
"""Memory: long lists, many texts, chunks."""

import torch

from common import data, data_chunks, load_large_dataset, process_data
from tare import DataOptimizationConfig, MemoryOptimizer, memory_optimization_context

config = DataOptimizationConfig()

# ---- 4. Memory Optimization
# Create optimizer
optimizer = MemoryOptimizer(config)

# Use memory context
with optimizer.memory_context():
    # Your memory-intensive operations
    large_data = load_large_dataset()
    processed_data = process_data(large_data)
    del large_data  # Explicit cleanup

# Optimize data structures
optimized_data = optimizer.optimize_memory_usage(data)
print(f"{len(processed_data)} items, {len(optimized_data)} of {len(data)} texts")

# ---- Best practice 3
def chunks():
    # Use memory optimization context
    with memory_optimization_context(config):
        # Load data in chunks
        for chunk in data_chunks:
            processed_chunk = process_data(chunk)
            yield processed_chunk
            del chunk  # Explicit cleanup

# Optimize data structures
def optimize_data_structures(data):
    if isinstance(data, torch.Tensor):
        # Use appropriate dtype
        if data.dtype == torch.float64:
            data = data.float()
        # Use contiguous memory layout
        if not data.is_contiguous():
            data = data.contiguous()
    return data

print(f"{sum(map(len, chunks()))} texts in chunks, {optimize_data_structures(torch.ones(2, 3, dtype=torch.float64).T).dtype}")
