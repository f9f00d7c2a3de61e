# an interrupted search says so, answers with what it has, and exits 3
. "$TARE_SRC/tests/cli/inspect/models.bash"
. "$TARE_SRC/tests/cli/waiting.bash"
tare synth minilm-l6 --vocab 1000 -o a.onnx >/dev/null
tare inspect --diverge a.onnx a.onnx --seq 32 --all --at-once 1 >out.txt &
cpu $! 1; kill -INT $!; wait $!; echo "exit $?"
grep -o 'before the interruption' out.txt
