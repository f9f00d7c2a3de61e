# whole benches in fresh processes: one document that keeps each launch; a launch that fails ends it
tare bench --repeat 3 --max-runs 20 --warmup 1 --output-dir r -- true >out.txt 2>err.txt; echo "exit $?"
grep -o 'launch . of 3' err.txt
grep -o 'between 3 launches' out.txt; grep -o 'they are not independent' out.txt
python3 - r/bench_*.json <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
c = d["cases"][0]
l = c["launches"]
assert len(l) == 3 and sum(x["samples"] for x in l) == c["samples"] == c["samples_raw"]["count"] == 60
assert sorted(x["p50"]["value"] for x in l)[1] - c["latency_ns"]["p50"]["value"] in (-1, 0, 1)
assert len({x["created"] for x in l}) == 3 and len({x["env_pad"] for x in l}) > 1
assert c["latency_ns"]["p50"]["lo"] <= c["latency_ns"]["p50"]["value"] <= c["latency_ns"]["p50"]["hi"]
assert d["config"]["repeat"] == 3
print("kept")
PY
ls r | sed 's/[0-9]\{8\}-[0-9]\{6\}/TIME/'
tare bench --repeat 2 --max-runs 2 --warmup 1 --no-save -- false 2>&1 | grep -o 'launch 1 of 2 failed.*'
tare bench --repeat 2 --no-save missing.onnx >/dev/null 2>&1; echo "exit $?"
ls /tmp/tare-launches-* 2>/dev/null | wc -l
