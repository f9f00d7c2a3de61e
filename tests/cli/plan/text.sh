# each case with its replicas, the best one and why, what is assumed
tare plan "$TARE_SRC/tests/cli/report/sweep.run.json" --rate 20/s --slo 'p95<=600ms' --headroom 20%
# far from breaking it is a factor, not thousands of percent
tare plan "$TARE_SRC/tests/cli/report/sweep.run.json" --rate 0.01/s --slo 'p95<=600ms' | grep -o 'first to break: the p95 at .* requests/s ([0-9,]*x)' | sed 's/[0-9,.]\+x/Nx/; s/at [0-9.]* /at N /'
