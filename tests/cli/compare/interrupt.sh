# Ctrl-C: judged by what there is, and kept: 20 pairs at least would take 8 s
. "$TARE_SRC/tests/cli/waiting.bash"
set -m
tare compare --ab "sh -c 'echo >>runs; sleep 0.2'" "sh -c 'echo >>runs; sleep 0.2'" --budget 60s >out 2>err &
lines runs 10; kill -INT $!; wait $!; echo "exit $?"
grep -c 'interrupted: judged by what there is' out
grep -c '"stopped": "interrupted"' tare-results/*.json
