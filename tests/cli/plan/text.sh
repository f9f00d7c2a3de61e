# each case with its replicas, the best one and why, what is assumed
tare plan "$TARE_SRC/tests/cli/report/sweep.run.json" --rate 20/s --slo 'p95<=600ms' --headroom 20%
