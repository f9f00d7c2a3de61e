# unknown dimensions name those the model has; a provider that is not there says why
. "$TARE_SRC/tests/cli/bench/model.bash"
mlp
tare bench mlp.onnx --dim nonsense=3; echo $?
tare bench mlp.onnx --seq 12; echo $?
tare bench mlp.onnx --provider cuda; echo $?
