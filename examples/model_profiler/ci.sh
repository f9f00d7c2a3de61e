#!/bin/sh
# SPDX-License-Identifier: MIT
# Profiling in CI: the line of a GitHub Actions workflow. Exit status 1 when a threshold is missed.
python -m tare profile \
  --model-path models/latest \
  --output-dir profiling_results \
  --threshold latency:100ms throughput:1000samples/s
