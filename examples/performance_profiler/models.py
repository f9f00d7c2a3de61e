# SPDX-License-Identifier: MIT
"""PerformanceProfiler: FLOPs, throughput by batch size, and the best practices. Needs torch.

Left out by the text and added here: data, loaders, one epoch of training and an evaluation."""

import torch
import torch.nn as nn

from tare import PerformanceProfiler


def batches(n):
    return [(torch.randn(32, 784), torch.randint(0, 10, (32,))) for _ in range(n)]


train_loader, test_loader = batches(10), batches(10)
sample_input = torch.randn(32, 784)


def load_production_sample():
    return torch.randn(256, 784)


def train_one_epoch(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def evaluate_model(model, loader):
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


# ---- Model Complexity Analysis
profiler = PerformanceProfiler(estimate_flops=True)

model = nn.Sequential(
    nn.Linear(784, 512),
    nn.ReLU(),
    nn.Linear(512, 10)
)

with profiler.profile("model_complexity"):
    # Forward pass for FLOPS estimation
    x = torch.randn(32, 784)
    output = model(x)

metrics = profiler.get_metrics()
print(f"Estimated FLOPs: {metrics.compute.estimated_flops:,}")
print(f"FLOPs per parameter: {metrics.compute.flops_per_param:.2f}")

# ---- Throughput Analysis
profiler = PerformanceProfiler()

batch_sizes = [16, 32, 64, 128]
throughput_results = {}

for batch_size in batch_sizes:
    with profiler.profile(f"batch_size_{batch_size}"):
        # Process multiple batches
        for _ in range(10):
            x = torch.randn(batch_size, 784)
            output = model(x)

    metrics = profiler.get_metrics()
    samples_per_second = (10 * batch_size) / metrics.timing.wall_time_s
    throughput_results[batch_size] = samples_per_second

# Find optimal batch size
optimal_batch = max(throughput_results, key=throughput_results.get)
print(f"Optimal batch size: {optimal_batch} ({throughput_results[optimal_batch]:.1f} samples/s)")

# ---- 1. Profile Representative Workloads
# Profile with realistic data sizes and distributions
profiler = PerformanceProfiler()

# Don't profile toy examples
# ❌ with profiler.profile("toy_example"):
#     tiny_data = torch.randn(10, 10)
#     model(tiny_data)

# ✅ Profile with production-like data
with profiler.profile("realistic_workload"):
    production_batch = load_production_sample()
    model(production_batch)

# ---- 2. Use Warm-up Runs
profiler = PerformanceProfiler()

# Warm up the model (compilation, cache loading, etc.)
for _ in range(3):
    model(sample_input)

# Now profile the actual performance
with profiler.profile("warmed_up_inference"):
    for _ in range(100):
        model(sample_input)

# ---- 3. Profile Both Training and Inference
profiler = PerformanceProfiler()

# Profile training
with profiler.profile("training_performance"):
    model.train()
    train_one_epoch(model, train_loader)

# Profile inference
with profiler.profile("inference_performance"):
    model.eval()
    with torch.no_grad():
        evaluate_model(model, test_loader)

# Compare training vs inference efficiency
training_metrics = profiler.get_metrics("training_performance")
inference_metrics = profiler.get_metrics("inference_performance")

print(f"Training throughput: {training_metrics.throughput} samples/s")
print(f"Inference throughput: {inference_metrics.throughput} samples/s")
