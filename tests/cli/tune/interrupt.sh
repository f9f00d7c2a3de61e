# Ctrl-C: what there is, and no process left
. "$TARE_SRC/tests/cli/tune/fake.bash"
model m.onnx 'times batch 8 2'
. "$TARE_SRC/tests/cli/waiting.bash"
set -m
export FAKE_ORT_LOG=$PWD/log
tare tune m.onnx --ort "$ort" --threads 1 --budget 60s >text 2>err &
pid=$!
lines log 400 # those of the look, and of a block or two
kill -INT $pid; wait $pid; echo "exit $?"
field 'd["config"]["interrupted"], len(d["cases"]) > 1'
grep -c '^today ' text
for p in /proc/[0-9]*; do
    [ "$(cat "$p"/comm 2>/dev/null)" = tare ] && grep -qaz "FAKE_ORT_LOG=$PWD/log" "$p"/environ 2>/dev/null && echo "left: $p"
done
true
# before the first block is over: nothing is known of limits, and nothing is said to miss them
rm -f log
tare tune m.onnx --ort "$ort" --threads 1 --latency 'p95<=1s' --budget 60s >text 2>err &
pid=$!
lines log 60
kill -TERM $pid; wait $pid
grep -c 'nothing keeps the limits' text
true
