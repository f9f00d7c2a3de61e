# SPDX-License-Identifier: MIT
"""A DataLoader that is tuned, and what holds it up."""

import os

from common import YourDataset
from tare import (
    DataLoadingOptimizer, 
    DataOptimizationConfig,
    optimize_dataset
)

# ---- 2. Data Loading Optimization
# Create optimizer
config = DataOptimizationConfig(
    optimize_loading=True,
    memory_efficient=True,
    enable_caching=True
)
optimizer = DataLoadingOptimizer(config)

# Optimize dataset
dataset = YourDataset()
optimized_dataset = optimize_dataset(dataset, config)

# Create optimized DataLoader
optimized_dataloader = optimizer.optimize_dataloader(
    optimized_dataset,
    batch_size=32,
    shuffle=True
)

# Identify bottlenecks
bottlenecks = optimizer.identify_bottlenecks()
print(f"Identified bottlenecks: {bottlenecks}")

# ---- Bottleneck Identification
data_loading_optimizer = optimizer
# Identify bottlenecks in data loading
bottlenecks = data_loading_optimizer.identify_bottlenecks()
for bottleneck_type, details in bottlenecks.items():
    print(f"{bottleneck_type}: {details}")

# ---- Best practice 2
# Optimize based on dataset characteristics
def optimize_for_dataset(dataset):
    analysis = data_loading_optimizer._analyze_dataset(dataset)
    
    if analysis["complexity"] == "complex":
        # Use fewer workers for complex datasets
        config.num_workers = min(4, os.cpu_count())
    else:
        # Use more workers for simple datasets
        config.num_workers = min(8, os.cpu_count())
    
    if analysis["size"] < 1000:
        # Disable multiprocessing for small datasets
        config.num_workers = 0
    
    return data_loading_optimizer.optimize_dataloader(dataset, config)

loader = optimize_for_dataset(dataset)
print(loader.tuned)
print(f"{sum(len(batch) for batch in loader)} samples in {len(loader)} batches")
