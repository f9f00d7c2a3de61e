# Ctrl-C: judged by what there is, and kept
set -m
tare compare --ab 'sleep 0.01' 'sleep 0.01' --budget 60s --min-effect 0.0001 >out 2>err &
sleep 2; kill -INT $!; wait $!; echo "exit $?"
grep -c 'interrupted: judged by what there is' out
grep -c '"stopped": "interrupted"' tare-results/*.json
