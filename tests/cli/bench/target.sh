# targets: exit 1 when one is missed, 0 when all are met
. "$TARE_SRC/tests/cli/bench/model.bash"
mlp
tare bench mlp.onnx --budget 200ms --no-save --target 'latency.p50<=10s' --target 'memory.peak<=100GB' >out; echo $?
grep -c pass out
tare bench mlp.onnx --budget 3s --no-save --target 'latency.p50<=1ns' >out; echo $?
grep -c fail out
