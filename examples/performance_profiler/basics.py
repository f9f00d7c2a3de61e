# SPDX-License-Identifier: MIT
"""PerformanceProfiler: simple profiling, configuration, memory leaks, timing breakdown. Needs Python alone.

Left out by the text and added here: the model, the data, the steps of the pipeline."""

import time

from tare import PerformanceProfiler


class Model:
    def fit(self, x, y):
        self.weights = [a * b for a, b in zip(x, y)]


model, X_train, y_train = Model(), list(range(200_000)), list(range(200_000))
kept = []


def train_epoch():
    kept.append(bytearray(20_000_000))
    time.sleep(0.02)


def load_data():
    time.sleep(0.05)
    return list(range(100_000))


def preprocess(data):
    return sorted(data, key=lambda x: -x)


def train_model(data):
    time.sleep(0.1)
    return sum(data)


def evaluate(model):
    time.sleep(0.02)


# ---- Simple Profiling
profiler = PerformanceProfiler()

with profiler.profile("training_loop"):
    # Your ML code here
    model.fit(X_train, y_train)

# Get comprehensive metrics
metrics = profiler.get_metrics()
print(f"Peak RAM: {metrics.memory.peak_ram_mb:.1f} MB")
print(f"Wall Time: {metrics.timing.wall_time_s:.3f}s")

# ---- Advanced Configuration
profiler = PerformanceProfiler(
    track_gpu=True,           # Enable GPU monitoring
    track_carbon=False,       # Disable carbon tracking for pure performance
    detailed_memory=True,     # Detailed memory analysis
    memory_interval=0.1,      # Sample memory every 100ms
    track_cpu_temp=True,      # Monitor CPU temperature
    track_network=False       # Disable network monitoring
)

# ---- Memory Leak Detection
profiler = PerformanceProfiler(detailed_memory=True)

# Monitor memory over time
memory_snapshots = []

with profiler.profile("potential_memory_leak"):
    for epoch in range(10):
        # Training code that might leak memory
        train_epoch()

        # Take memory snapshot
        current_memory = profiler.get_current_memory()
        memory_snapshots.append(current_memory)

# Analyze memory growth
memory_growth = memory_snapshots[-1] - memory_snapshots[0]
if memory_growth > 100:  # More than 100MB growth
    print(f"⚠️ Potential memory leak: {memory_growth:.1f}MB growth")

# ---- Detailed Timing Breakdown
profiler = PerformanceProfiler()

with profiler.profile("complete_pipeline"):
    # Profile individual components
    with profiler.profile("data_loading"):
        data = load_data()

    with profiler.profile("preprocessing"):
        data = preprocess(data)

    with profiler.profile("training"):
        model = train_model(data)

    with profiler.profile("evaluation"):
        results = evaluate(model)

# Get timing breakdown
timing_report = profiler.get_timing_breakdown()
for operation, timing in timing_report.items():
    print(f"{operation}: {timing:.3f}s ({timing/sum(timing_report.values())*100:.1f}%)")
