# SPDX-License-Identifier: MIT
"""PerformanceProfiler: comparing architectures and learning rates. Needs torch; the table needs pandas.

Left out by the text and added here: three small models, the data, the training loops, the accuracy."""

import torch
from torch import nn

from tare import PerformanceProfiler


def SimpleMLPModel():
    return nn.Sequential(nn.Flatten(), nn.Linear(256, 10))


def DeepMLPModel():
    return nn.Sequential(nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def CNNModel():
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10))


train_data = [(torch.randn(16, 1, 16, 16), torch.randint(0, 10, (16,))) for _ in range(3)]


def train_with_optimizer(model, optimizer):
    for x, y in train_data:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def train_model(model, data, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(epochs):
        train_with_optimizer(model, optimizer)


def get_final_accuracy():
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in train_data) / 48


# ---- Model Architecture Comparison
profiler = PerformanceProfiler()

architectures = {
    "simple_mlp": SimpleMLPModel(),
    "deep_mlp": DeepMLPModel(),
    "cnn": CNNModel()
}

results = {}

for name, model in architectures.items():
    with profiler.profile(f"{name}_training"):
        # Standardized training loop
        train_model(model, train_data, epochs=5)

    metrics = profiler.get_metrics()
    results[name] = {
        "memory": metrics.memory.peak_ram_mb,
        "time": metrics.timing.wall_time_s,
        "flops": metrics.compute.estimated_flops
    }

# ---- Hyperparameter Impact Analysis
profiler = PerformanceProfiler()

learning_rates = [0.001, 0.01, 0.1]
performance_impact = {}

for lr in learning_rates:
    with profiler.profile(f"lr_{lr}"):
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        train_with_optimizer(model, optimizer)

    metrics = profiler.get_metrics()
    performance_impact[lr] = {
        "convergence_time": metrics.timing.wall_time_s,
        "memory_usage": metrics.memory.peak_ram_mb,
        "final_accuracy": get_final_accuracy()
    }

# Analyze efficiency vs accuracy tradeoff
for lr, impact in performance_impact.items():
    efficiency = impact["final_accuracy"] / impact["convergence_time"]
    print(f"LR {lr}: Efficiency = {efficiency:.4f} acc/second")

# ---- of the first example
# Display comparison
import pandas as pd
comparison_df = pd.DataFrame(results).T
print(comparison_df)
