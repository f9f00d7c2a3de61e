# SPDX-License-Identifier: MIT
"""PerformanceProfiler: GPU memory tracking. Needs torch; where there is no GPU, `.cuda()` stays on the CPU, and GPU numbers are unknown.

Left out by the text and added here: the model, the data, and what stands in for a GPU."""

import torch

from tare import PerformanceProfiler

if not torch.cuda.is_available():
    torch.nn.Module.cuda = torch.Tensor.cuda = lambda self: self


class MyModel(torch.nn.Linear):
    def __init__(self):
        super().__init__(64, 8)


dataloader = [torch.randn(16, 64) for _ in range(5)]
target = torch.randn(16, 8)
criterion = torch.nn.MSELoss()

profiler = PerformanceProfiler(track_gpu=True)

with profiler.profile("gpu_training"):
    model = MyModel().cuda()

    for batch in dataloader:
        output = model(batch.cuda())
        loss = criterion(output, target.cuda())

        # Check GPU memory at critical points
        gpu_memory = profiler.get_current_gpu_memory()
        if gpu_memory > 0.9:  # >90% GPU memory usage
            print("⚠️ High GPU memory usage, consider reducing batch size")

metrics = profiler.get_metrics()
print(f"Peak GPU Memory: {metrics.memory.peak_gpu_mb:.1f} MB")
print(f"GPU Utilization: {metrics.compute.gpu_utilization_percent:.1f}%")
