# SIGTERM: what was measured is kept, and the command that was being measured does not live on
. "$TARE_SRC/tests/cli/waiting.bash"
tare bench --budget 60s --precision 0.0001 -- sh -c 'echo >>runs; exec sleep 31.4159' >out 2>err &
lines runs 1; kill -TERM $!; wait $!; echo $?
pgrep -f 'sleep 31.4159' | wc -l
