# what was written is said, and is what was written
tare synth mlp -o mlp.onnx --sizes 8,4,2
tare synth minilm-l6 --layers 1 --hidden 64 --vocab 50 --positions 16 --head embedding --dtype int8 --opset 21 -o a.onnx
tare synth gpt2-small --layers 2 --hidden 64 --vocab 50 --kv-cache -o b.onnx --external-data
tare synth mlp -o mlp.onnx --sizes 8,4,2 --external-data --json
for f in mlp.onnx a.onnx b.onnx b.onnx.data; do stat -c '%n %s' $f; done
ls -A
