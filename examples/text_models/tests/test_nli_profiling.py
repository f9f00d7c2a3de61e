# SPDX-License-Identifier: MIT
"""Tests of the profiling scripts: pytest tests/test_nli_profiling.py -v, from examples/text_models."""

import json
import pathlib
import subprocess
import sys
import time

import pytest

from tare import NLIProfiler

SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "scripts" / "profiling"


def judge(pairs):
    """A model that says entailment when the second text only has words of the first."""
    time.sleep(0.0005 + 0.0001 * len(pairs))
    return [[0.0, 1.0, 0.0] if set(b.lower().split()) <= set(a.lower().split()) else [0.2, 0.1, 0.7] for a, b in pairs]


class TestNLIProfiler:
    @pytest.fixture
    def profiler(self):
        return NLIProfiler(judge, budget=0.1)

    def test_one_batch_size(self, profiler):
        metrics = profiler.profile_batch_size(batch_size=16, num_pairs=10)
        assert metrics["batch_size"] == 16
        assert metrics["throughput_pairs_per_sec"] * metrics["latency_ms_per_pair"] == pytest.approx(1000)

    def test_all_batch_sizes(self, profiler):
        found = profiler.profile([1, 8], num_pairs=24)
        assert [row["batch_size"] for row in found["batch_profiles"]] == [1, 8]
        assert found["recommendations"]

    def test_accuracy_does_not_depend_on_the_batch_size(self, profiler):
        found = profiler.optimize_batch_size([2, 8], num_pairs=24)
        assert all(row["accuracy_metrics"]["consistent"] for row in found["batch_profiles"])


class TestScripts:
    def test_results_are_where_they_are_asked_for(self, tmp_path):
        out = tmp_path / "nightly_profile.json"
        command = [sys.executable, SCRIPTS / "profile_nli.py", "--model", f"{__file__}:judge", "--num-pairs", "20", "--budget", "100ms",
                   "--batch-sizes", "4,8", "--output", out]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "NLI PROFILING SUMMARY" in done.stdout
        assert len(json.loads(out.read_text())["batch_profiles"]) == 2
