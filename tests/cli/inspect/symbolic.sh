# formulas, and the same numbers from them
. "$TARE_SRC/tests/cli/inspect/models.bash"
text -o a.onnx
tare inspect a.onnx --symbolic --batch 3 --seq 16 | version | sed '/^layers/,$d'
tare inspect a.onnx --batch 3 --seq 16 --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
s = d["subject"]["static"]
for key in ("macs", "flops"):
    value = eval(s["formulas"][key].replace("^", "**"), {"batch_size": 3, "sequence_length": 16})
    assert value == s["cost"][key], (key, value, s["cost"][key])
print("formulas and numbers agree")'
