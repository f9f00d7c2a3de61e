# what cannot be meant is told before anything is measured
. "$TARE_SRC/tests/cli/tune/fake.bash"
model m.onnx
refused() { tare tune "$@"; echo "exit $?"; } 2>&1
refused
refused no-such.onnx
refused m.onnx --latency 50ms
refused m.onnx --latency 'throughput>=5/s'
refused m.onnx --memory lots
refused m.onnx --accuracy 'agreement>=0.99'
refused m.onnx --accuracy 'taste>=1' --inputs x.npz
refused m.onnx --accuracy 'cosine<=1' --inputs x.npz
refused m.onnx --seq 1,2
refused m.onnx --budget 1ms
# a model that fails today: there is nothing to be better than
model bad.onnx 'fail_load no such operator'
tare tune bad.onnx --ort "$ort" >/dev/null 2>err; echo "exit $?"
ls tare-results 2>/dev/null | grep tune_ | wc -l
