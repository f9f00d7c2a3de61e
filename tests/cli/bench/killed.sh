# killed half-way: no document, no temporary file
. "$TARE_SRC/tests/cli/waiting.bash"
tare bench --budget 60s --precision 0.0001 -- sh -c 'echo >>runs; sleep 0.01' >out 2>err &
lines runs 30; kill -9 $!; wait $! 2>/dev/null; echo $?
find . -name '*.json*' -o -name '.*tmp*' | wc -l
# nor does the command outlive it, but what left its group does
tare bench --budget 60s -- sh -c 'setsid sleep 61 & echo $! >daemon; echo $$ >command; sleep 62; true' >out 2>err &
until [ -s command ]; do sleep 0.1; done; kill -9 $!; wait $! 2>/dev/null
for i in $(seq 50); do kill -0 "$(cat command)" 2>/dev/null || break; sleep 0.1; done
kill -0 "$(cat command)" 2>/dev/null && echo still there
kill "$(cat daemon)" && echo the daemon was there
