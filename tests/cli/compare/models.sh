# models run in workers that are launched again and again; option sets of one model; a model that is none
. "$TARE_SRC/tests/cli/bench/model.bash"
mlp
tare compare --ab mlp.onnx --a '--batch 1' --b '--batch 64' --threads 1 --budget 10s --no-save --json >out.json 2>err
echo "exit $?"
python3 - <<'PY'
import json
d = json.load(open("out.json"))
c = d["cases"][0]
assert c["name"] == "batch=1,threads=1 -> batch=64,threads=1", c["name"]
assert c["launches"] >= 8 and c["pairs"] >= 20 and c["repeats"] > 1
assert len(set(c["launch"]["base_heap_pad"])) > 3 and all(p % 16 == 0 for p in c["launch"]["base_heap_pad"])
m = {m["metric"]: m for m in c["metrics"]}
assert m["cpu.time"]["verdict"] == "regressed" and m["cpu.time"]["ratio"]["value"] > 1.5
assert m["cpu.time"]["sd_launch"] is not None and m["memory.peak"]["base"]["value"] > 1e6
assert d["base"]["runtime"]["name"] == "onnxruntime"
print("good")
PY
echo nonsense >bad.onnx
tare compare --ab mlp.onnx bad.onnx --no-save 2>&1 | head -n 1; echo "exit ${PIPESTATUS[0]}"
