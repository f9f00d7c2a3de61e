# SPDX-License-Identifier: MIT
"""A profiling session of ModelProfiler. Needs models/bert-base-uncased (small_bert.py). Without a GPU it stops and says why;
TARE_DEVICE_FALLBACK=cpu allows the CPU."""

from tare import ModelProfiler
import torch

# Initialize profiler
profiler = ModelProfiler(
    model_path="models/bert-base-uncased",
    device="cuda",
    precision="fp16"
)

# Prepare sample data
sample_inputs = torch.randint(0, 1000, (32, 128))  # batch_size=32, seq_len=128

# Run profiling
results = profiler.profile(
    input_data=sample_inputs,
    num_runs=100,
    warmup_runs=10,
    detailed_analysis=True
)

# Print key metrics
print(f"Average Latency: {results['latency']['mean']:.2f}ms")
print(f"Throughput: {results['throughput']['samples_per_second']:.0f} samples/s")
print(f"Peak Memory: {results['memory']['peak'] / 1024**3:.2f} GB")

# Generate report
profiler.generate_html_report("bert_profiling_report.html")
