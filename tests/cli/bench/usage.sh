# what may not go together
for a in "--batch 0 x.onnx" "--batch 1,1 x.onnx" "a.onnx b.onnx" "--synth mlp x.onnx" "--batch 4 -- true" "--rate soon x.onnx" \
    "--warmup some x.onnx" "--scenario server x.onnx" "--scenario nothing x.onnx" "--dim x x.onnx" "--variant int8 --synth mlp" "--budget 5 x.onnx"; do
    tare bench $a; echo $?
done
