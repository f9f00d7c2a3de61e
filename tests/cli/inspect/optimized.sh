# both graphs; nodes are fused away, parameters are not
. "$TARE_SRC/tests/cli/inspect/models.bash"
text -o a.onnx
tare inspect a.onnx --seq 16 --optimized --top 1 | sed -n '/as in the file/,/^$/p' | grep -E 'file|parameters' | tr -s ' '
tare inspect a.onnx --seq 16 --optimized --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
raw, opt = d["subject"]["static"], d["subject"]["static_optimized"]
assert opt["nodes"] < raw["nodes"], (opt["nodes"], raw["nodes"])
assert opt["parameters"] == raw["parameters"]
assert opt["dims"] == raw["dims"], (opt["dims"], raw["dims"])
assert d["subject"]["runtime"]["name"] == "onnxruntime"
print("fewer nodes, the same parameters")'
