#!/bin/sh
# SPDX-License-Identifier: MIT
# Seed 002, "Automated Profiling": the line of the GitHub Actions example. Exit status 1 when a threshold is missed.
python -m tare profile \
  --model-path models/latest \
  --output-dir profiling_results \
  --threshold latency:100ms throughput:1000samples/s
