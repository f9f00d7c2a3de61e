# SPDX-License-Identifier: MIT
"""The examples of tuning run, and say what their page promises."""

import pytest

import tare

EXAMPLES = {
    "basic_profiling": ("Profiling result: sample_function", "sleep", "CPU usage: ", "GPU utilization: "),
    "data_loading": ("Identified bottlenecks: {", "data loading: bound on this run", "512 samples in 16 batches"),
    "preprocessing": ("2000 results, the first ['a', 'text,', 'number', '0,'", "Preprocessing bottleneck: ", "parallel_cpu"),
    "memory": ("300000 items, 2000 of 2000 texts", "2000 texts in chunks, torch.float32"),
    "files": ("850000 read",),
    "realtime": ("Performance summary: {'cpu_percent'", "Alert: High CPU usage: 95 %", "fewer workers", "specific_function: "),
    "service": ("Optimization plan: {", "Performance report: ", "target       bound  achieved", "training: ", "True"),
    "troubleshooting": ("chunk_size=500", "streaming=True", "batch size: bound on this run", "optimal workers: ", "cleared"),
}
NEEDS = {"preprocessing": "PreprocessingOptimizer", "memory": "MemoryOptimizer", "files": "IOOptimizer", "service": "PreprocessingOptimizer"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, python, root):
    pytest.importorskip("torch", reason="no PyTorch in this environment (make deps)")
    if NEEDS.get(name, "confirm") not in tare.__all__:
        pytest.skip(f"this tare has no {NEEDS[name]}")
    done = python(str(root / "examples" / "tuning" / f"{name}.py"), env={"OMP_NUM_THREADS": "1"})
    for expected in EXAMPLES[name]:
        assert expected in done.stdout, done.stdout
