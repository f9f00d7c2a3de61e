# Ctrl-C: what was measured is kept and marked; a full set of cases is not needed
. "$TARE_SRC/tests/cli/waiting.bash"
set -m
tare bench --warmup 3 --budget 60s --precision 0.0001 -- sh -c 'echo >>runs; sleep 0.01' >out 2>err &
lines runs 50; kill -INT $!; wait $!; echo $?
grep -c '"interrupted": true' tare-results/*.json
