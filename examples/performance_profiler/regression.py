# SPDX-License-Identifier: MIT
"""PerformanceProfiler: regressions in CI. Needs Python alone. The detector is tare's; one written by hand is in by_hand.py.

Left out by the text and added here: what is trained, a first run that makes the baseline, and the verdict."""

import time

from tare import PerformanceRegressionDetector


def train_model():
    time.sleep(0.005)


first = PerformanceRegressionDetector("baseline_metrics.json")
for _ in range(8):
    with first.check_regression("model_training"):
        train_model()
first.save_baseline()

# Usage in CI/CD
detector = PerformanceRegressionDetector("baseline_metrics.json")

with detector.check_regression("model_training"):
    train_model()

print(detector.results["model_training"])
