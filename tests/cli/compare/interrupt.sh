# Ctrl-C: judged by what there is, and kept: 20 pairs at least would take 8 s
set -m
tare compare --ab 'sleep 0.2' 'sleep 0.2' --budget 60s >out 2>err &
sleep 2; kill -INT $!; wait $!; echo "exit $?"
grep -c 'interrupted: judged by what there is' out
grep -c '"stopped": "interrupted"' tare-results/*.json
