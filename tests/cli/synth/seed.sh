# the same seed gives the same weights, here and everywhere; another one does not
tiny="bert-base --layers 1 --hidden 64 --heads 2 --vocab 20 --positions 8"
for d in fp32 fp16 int8; do tare synth $tiny --dtype $d -o $d.onnx --external-data >/dev/null; cksum <$d.onnx.data; done
tare synth $tiny -o one.onnx >/dev/null; tare synth $tiny -o - | cmp - one.onnx && echo 'stdout: the same'
tare synth $tiny -o one.onnx --seed 1 --external-data >/dev/null; cmp one.onnx.data fp32.onnx.data && echo 'again: the same'
tare synth $tiny -o other.onnx --seed 2 >/dev/null
cmp -s one.onnx other.onnx || echo 'seed 2: another'
