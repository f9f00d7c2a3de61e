# SPDX-License-Identifier: MIT
"""ModelProfiler: profile, benchmark, layers, memory, GPU, reports, regressions.

Left out by the text and added here: the path of the model and the sample data. The first example's comment says `or "cpu"`."""

import torch
from tare import ModelProfiler, detect_regressions, load_baseline

model_path = "models/latest"
sample_data = torch.randint(0, 1000, (8, 16))

# ---- Built-in Profiler
profiler = ModelProfiler(
    model_path=model_path,
    device="cpu",  # or "cpu"
    precision="fp32"  # or "fp32"
)

# Profile model
profile_results = profiler.profile(
    input_data=sample_data,
    num_runs=100,
    warmup_runs=10
)
print(profile_results)

# ---- Performance Benchmarking
# Benchmark different configurations
configurations = [
    {"batch_size": 1, "precision": "fp32"},
    {"batch_size": 4, "precision": "fp32"},
    {"batch_size": 8, "precision": "fp16"},
    {"batch_size": 16, "precision": "fp16"}
]

benchmark_results = profiler.benchmark(configurations)
print(benchmark_results)

# ---- Layer-wise Profiling
# Profile individual layers
layer_profiles = profiler.profile_layers(
    input_data=sample_data,
    layer_names=["attention", "mlp", "embedding"]
)
print(layer_profiles)

# ---- Memory Profiling
# Detailed memory analysis
memory_profile = profiler.memory_profile(
    track_allocations=True,
    track_deallocations=True,
    memory_snapshots=True
)
print({key: memory_profile[key] for key in ("peak", "growth", "sites")})

# ---- GPU Profiling
# GPU-specific profiling
gpu_profile = profiler.gpu_profile(
    track_kernels=True,
    track_memory_transfers=True,
    profile_nvtx=True
)
print(gpu_profile)

# ---- HTML Report
# Generate comprehensive HTML report
profiler.generate_html_report(
    output_path="profiling_report.html",
    include_graphs=True,
    include_details=True
)

# ---- JSON Report
# Export results as JSON
results_json = profiler.export_json("profiling_results.json")

# ---- CSV Export
# Export metrics as CSV
profiler.export_csv("profiling_metrics.csv")

# ---- Performance Regression Detection
profile_results.save("baseline_profiling.json")  # a baseline, which the text has from an earlier day

# Compare with baseline
baseline_results = load_baseline("baseline_profiling.json")
current_results = profiler.profile(model_path)

regressions = detect_regressions(baseline_results, current_results)
if regressions:
    print(f"Performance regressions detected: {regressions}")
