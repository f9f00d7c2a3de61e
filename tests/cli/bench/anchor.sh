# what cannot be an anchor is told before anything is measured; one that fails takes nothing from the run
run() { tare bench --budget 0.2s --min-runs 3 --no-color "$@" >out 2>err; echo "exit $?"; head -n 1 err; }
run --anchor-name v1 -- true
run --anchor missing.onnx model.onnx
run --anchor old.onnx -- true
run --anchor 'sleep 0' model.onnx
run --anchor 'a | b' -- true
run --anchor '' -- true
run --anchor true --anchor-name 'a b' -- true
run --anchor true --rate 10/s -- true
tare bench --budget 0.2s --anchor 'sh -c "exit 3"' --anchor-budget 0.3s --json -- true 2>err >run.json; echo "exit $?"
grep -c 'no ratio to the anchor' err
tare bench --budget 0.2s --anchor true --anchor-budget 0.5s --anchor-name v1 -- sh -c : >out 2>/dev/null; echo "exit $?"
sed -n 's/[0-9.]* x v1 .*/N x v1/; s/^anchor/&/p' out
tare bench --budget 0.2s --shell --anchor 'true; true' --anchor-budget 0.5s --json -- ':; :' >shell.json 2>/dev/null
python3 - <<'PY'
import json
case = json.load(open("run.json"))["cases"][0]
assert case["anchored"] is None and "anchored" in case["unknown"] and case["latency_ns"]["p50"], case
for a in json.load(open("shell.json"))["cases"][0]["anchored"]:
    assert a["anchor"] == "true; true" and 0 < a["value"] and a["pairs"] >= 2, a
print("good")
PY
