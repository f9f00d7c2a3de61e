# SPDX-License-Identifier: MIT
"""The examples of profile_function and model_profiler run as they stand, and leave what their pages say."""

import json
import os
import pathlib
import pstats
import subprocess
import sys

import pytest

ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # the machine is shared; threads that wait for each other would only slow it


@pytest.fixture
def example(root, python):
    """example("profile_function/monitor.py", ...): runs it in an empty folder."""

    def call(name, *args, **more):
        return python(str(root / "examples" / name), *args, env={**ONE_THREAD, **more.pop("env", {})}, **more)

    return call


def test_profile_function_decorator(example, tmp_path):
    done = example("profile_function/decorator.py")
    names = sorted(path.name for path in (tmp_path / "profiling_results").iterdir())
    assert [name.rpartition("_")[0] for name in names] == ["embed_query"] * 2 + ["get_response"] * 2
    assert [name.rpartition(".")[2] for name in names] == ["prof", "txt"] * 2
    assert "ncalls" in done.stdout and "(embed_query)" in done.stdout and "It is about" in done.stdout
    stats = pstats.Stats(str(tmp_path / "profiling_results" / names[0])).stats
    calls = {name: row[1] for (_, _, name), row in stats.items()}
    assert calls["embed_query"] == 1 and calls["_encode"] == 8


def test_profile_function_conditions(example, tmp_path):
    example("profile_function/batched.py")
    names = [path.name for path in (tmp_path / "profiling_results").glob("*.prof")]
    assert sorted(name.split("_")[0] for name in names) == ["embed"] * 3 + ["generate", "rank"]


def test_profile_function_monitor(example, tmp_path):
    done = example("profile_function/monitor.py")
    (saved,) = (tmp_path / "profiling_results").glob("retriever_monitor_*.json")
    seen = json.loads(saved.read_text())
    assert seen["calls"] == 301 and seen["errors"] == 0 and "301 inferences" in done.stdout
    assert 0 < seen["latency"]["p50"] <= seen["latency"]["max"] and seen["memory"]["peak"] > 1 << 20
    assert set(seen["gpu"]) == {"memory_peak", "temperature_c"}


@pytest.fixture
def models(example):
    pytest.importorskip("torch", reason="no PyTorch in this environment (make deps)")
    example("model_profiler/small_bert.py")


def test_model_profiler_session_needs_a_gpu_or_leave_to_use_the_cpu(example, models, package, tmp_path):
    import torch

    if not torch.cuda.is_available():
        assert 'fallback="cpu"' in example("model_profiler/session.py", status=1).stderr
    if not (package / "tare" / "page.html").exists():
        pytest.skip("the package was built without the page (no node)")
    done = example("model_profiler/session.py", env={"TARE_DEVICE_FALLBACK": "cpu"})
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["Average Latency", "Throughput", "Peak Memory"]
    latency, rate, memory = (float("".join(c for c in line.split(": ")[1] if c.isdigit() or c == ".")) for line in lines)
    assert latency > 0 and memory > 0 and rate == pytest.approx(32 / (latency / 1000), rel=0.02)
    assert "tare-data" in (tmp_path / "bert_profiling_report.html").read_text()


def test_model_profiler_every_other_example(example, models, package, tmp_path):
    if not (package / "tare" / "page.html").exists():
        pytest.skip("the package was built without the page (no node)")
    done = example("model_profiler/features.py")
    assert "MFLOPs a run" in done.stdout and "batch=16,seq=16,precision=fp16" in done.stdout and "taken out" in done.stdout
    assert "no CUDA driver: nothing of the GPU is recorded" in done.stdout or os.path.exists("/dev/nvidiactl")
    document = json.loads((tmp_path / "profiling_results.json").read_text())
    assert [case["params"]["batch"] for case in document["cases"]] == [8, 1, 4, 8, 16]
    for name in ("profiling_report.html", "profiling_metrics.csv", "baseline_profiling.json"):
        assert (tmp_path / name).stat().st_size > 100


def test_model_profiler_ci(root, models, package, clean_env, tmp_path):
    """The shell line of the GitHub Actions example, with this interpreter as `python`."""
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), clean_env["PATH"]])
    done = subprocess.run([str(root / "examples/model_profiler/ci.sh")], cwd=tmp_path, env={**clean_env, **ONE_THREAD, "PYTHONPATH": str(package), "PATH": path},
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1), done.stderr
    (saved,) = (tmp_path / "profiling_results").glob("profile_models-latest-model*.json")
    document = json.loads(saved.read_text())
    assert [target["metric"] for target in document["targets"]] == ["latency.p95", "throughput"]
    assert done.returncode == any(target["verdict"] == "fail" for target in document["targets"])
