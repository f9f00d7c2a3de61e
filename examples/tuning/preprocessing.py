# SPDX-License-Identifier: MIT
"""Preprocessing in a pipeline. augment_text() comes before tokenize_text(): it takes a text, not a list of words."""

from functools import lru_cache

from common import complex_processing, data, sample_data
from tare import DataOptimizationConfig, PreprocessingOptimizer

config = DataOptimizationConfig()

# ---- 3. Preprocessing Optimization
# Create optimizer
optimizer = PreprocessingOptimizer(config)

# Define preprocessing functions
def normalize_text(text):
    return text.lower().strip()

def tokenize_text(text):
    return text.split()

def augment_text(text):
    return text + " [AUGMENTED]"

preprocessing_funcs = [normalize_text, augment_text, tokenize_text]

# Create optimized pipeline
optimized_pipeline = optimizer.optimize_preprocessing_pipeline(
    preprocessing_funcs, sample_data
)

# Use optimized pipeline
results = optimized_pipeline(data)
print(f"{len(results)} results, the first {results[0]}")

# ---- Bottleneck Identification
preprocessing_optimizer = optimizer
# Identify bottlenecks in preprocessing
preprocessing_bottlenecks = preprocessing_optimizer.identify_bottlenecks()
for bottleneck in preprocessing_bottlenecks:
    print(f"Preprocessing bottleneck: {bottleneck}")

# ---- Best practice 4
# Use appropriate optimization strategy
def choose_preprocessing_strategy(funcs, data_size):
    if data_size < 1000:
        return "sequential"  # Small datasets
    elif any("io" in f.__name__ for f in funcs):
        return "parallel_io"  # I/O bound operations
    else:
        return "parallel_cpu"  # CPU bound operations

# Cache expensive operations
@lru_cache(maxsize=1000)
def expensive_preprocessing(text):
    # Expensive operation
    return complex_processing(text)

print(choose_preprocessing_strategy(preprocessing_funcs, len(data)), expensive_preprocessing(data[0]))
