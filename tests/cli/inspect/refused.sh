# each with its cause and exit 2; a runtime that is not there is 3
. "$TARE_SRC/tests/cli/inspect/models.bash"
mlp; echo hello >text.onnx; head -c 1000 mlp.onnx >cut.onnx; mkdir folder; : >empty.onnx
try() { tare inspect "$@" 2>&1 | head -n 1; echo "exit ${PIPESTATUS[0]}"; }
try
try missing.onnx
try text.onnx
try empty.onnx
try folder
try cut.onnx
try mlp.onnx missing.onnx
try mlp.onnx --dim nonsense=3
try mlp.onnx --dim batch_size=1,2
try mlp.onnx --dim batch_size
try mlp.onnx --batch 0
try mlp.onnx --layers a,,b
try mlp.onnx --sort speed
try mlp.onnx mlp.onnx -o x.json
try mlp.onnx --json --csv -
try mlp.onnx --inputs x.npz
try --diverge mlp.onnx
try --diverge mlp.onnx mlp.onnx --symbolic
try --diverge mlp.onnx missing.onnx
try --diverge mlp.onnx mlp.onnx --inputs missing.npz
try mlp.onnx -o no/such/folder/x.json
try mlp.onnx --optimized --ort ./missing.so
cyclic cycle.onnx
try cycle.onnx
