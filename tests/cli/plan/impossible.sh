# no number of replicas makes a single run faster
tare plan "$TARE_SRC/tests/cli/report/sweep.run.json" --rate 1/s --slo 'p95<=10ms'
