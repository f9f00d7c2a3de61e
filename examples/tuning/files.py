# SPDX-License-Identifier: MIT
"""Reading many files."""

from common import data
from tare import DataOptimizationConfig, IOOptimizer

config = DataOptimizationConfig()

# ---- 5. I/O Optimization
# Create optimizer
optimizer = IOOptimizer(config)

# Optimize file reading
optimized_reader = optimizer.optimize_file_reading("large_file.txt")
content = optimized_reader()

# Optimize data storage
optimizer.optimize_data_storage(data, "output_file")

print(f"{len(content)} read")
