# without a runtime: says so, and how to get one
tare synth mlp --sizes 4,4 -o mlp.onnx >/dev/null
tare bench mlp.onnx --ort ./libnone.so; echo $?
printf 'no library' >fake.so; tare bench mlp.onnx --ort ./fake.so; echo $?
# a file that is no model is told as such all the same
echo 'things to do' >notes.txt; tare bench notes.txt --ort ./libnone.so; echo $?
