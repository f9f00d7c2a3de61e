# the same model: 0; one weight changed: the layer that has it, and 1
. "$TARE_SRC/tests/cli/inspect/models.bash"
mlp; tare synth mlp --sizes 32,64,8 --seed 2 -o other.onnx >/dev/null
tare inspect --diverge mlp.onnx mlp.onnx; echo "exit $?"
tare inspect --diverge mlp.onnx other.onnx | sed -E 's/ +[0-9.e+-]+ +[0-9.e+-]+ +[0-9.e+-]+$/ NUMBERS/; s/error [0-9.]+,/error N,/'
echo "exit ${PIPESTATUS[0]}"
tare inspect --diverge mlp.onnx other.onnx --tolerance 100 | tail -n 2; echo "exit ${PIPESTATUS[0]}"
tare inspect --diverge mlp.onnx other.onnx --json -o d.json >stdout.json; cmp d.json stdout.json && echo "kept"
python3 - <<'PY'
import json
d = json.load(open("d.json"))
assert d["schema"] == "tare.diverge/1" and d["complete"] and d["first"]["value"] == d["points"][0]["value"]
assert d["first"]["op_a"] == "Gemm" and d["first"]["rel_l2"] > 1e-3 and d["compared"] == len(d["points"])
print("good")
PY
