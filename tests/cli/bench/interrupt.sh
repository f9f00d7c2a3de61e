# Ctrl-C: what was measured is kept and marked; a full set of cases is not needed
set -m
tare bench --budget 60s --precision 0.0001 -- sleep 0.01 >out 2>err &
sleep 2; kill -INT $!; wait $!; echo $?
grep -c '"interrupted": true' tare-results/*.json
