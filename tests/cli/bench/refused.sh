# refused before anything is measured
. "$TARE_SRC/tests/cli/bench/model.bash"
mlp; cp mlp.onnx other.onnx
tare bench mlp.onnx --variant a=other.onnx --variant a=other.onnx; echo $?
tare bench mlp.onnx --provider cpu,cpu; echo $?
tare bench mlp.onnx --inputs mlp.onnx --expect nothing.npz; echo $?
tare bench mlp.onnx --prepare true; echo $?
tare bench --expect mlp.onnx -- true; echo $?
tare bench --; echo $?
head -c 100000 "$VIRTUAL_ENV"/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.* >cut.so; tare bench mlp.onnx --ort ./cut.so; echo $?
