# a quantised variant beside the model: close, but not the same; a lost answer is exit 1
. "$TARE_SRC/tests/cli/bench/model.bash"
mlp && tare synth mlp --sizes 32,64,8 --dtype int8 -o int8.onnx >/dev/null
tare bench mlp.onnx --variant int8=int8.onnx --batch 16 --budget 150ms --no-save --validate-accuracy --max-drop 0.05 --json >out.json; echo $?
"$VIRTUAL_ENV/bin/python" - <<'PY'
import json
cases = json.load(open("out.json"))["cases"]
print([c["name"] for c in cases])
print(cases[0]["accuracy"]["value"] == 1, 0.9 < cases[1]["accuracy"]["value"] < 1)
PY
tare bench mlp.onnx --variant other=int8.onnx --batch 16 --budget 150ms --no-save --validate-accuracy --metric max-abs --max-drop 0.0000001 >out; echo $?
