# a write that fails leaves no file, and the old one as it was
echo old >mlp.onnx
(ulimit -f 100; trap '' XFSZ; tare synth mlp -o mlp.onnx; echo "exit $?"; tare synth mlp -o new.onnx --external-data; echo "exit $?")
cat mlp.onnx; ls -A
tare synth mlp -o - >/dev/full
