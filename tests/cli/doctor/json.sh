# every field is there and makes sense
tare doctor --quick --json >answer.json
python3 - <<'PY'
import json
d = json.load(open("answer.json"))
assert d["schema"] == "tare.doctor/1"
assert d["host"]["cpu"]["cores"] >= 1 and d["host"]["memory_bytes"] > 0
c = d["clock"]
assert 0 < c["read_fast_ns"] <= c["read_ordered_ns"] * 1.5 and c["resolution_ns"] > 0
assert (c["why_not_counter"] is None) == (c["source"] == "cycle counter")
assert [k["name"] for k in d["noise"]["kernels"]] == ["cpu", "memory"]
for k in d["noise"]["kernels"]:
    assert k["batches"] >= 20 and k["batch_ns"] > k["step_ns"] > 0
    assert k["p99_over_p50"] >= 1 and 0 <= k["switched_share"] <= 1
    assert 0 < k["resolves_interleaved"] <= k["resolves_runs"]
assert len(d["abilities"]) > 15
for a in d["abilities"]:
    assert a["answer"] in ("yes", "partial", "no") and a["reason"] and a["for"], a
    assert (a["without"] is None) == (a["answer"] == "yes"), a
names = ["process", "cgroup", "system", "disk", "net", "temperature", "energy", "gpu"]
assert [p["name"] for p in d["probes"]] == names
for p in d["probes"]:
    assert p["sees"] == (p["why_not"] is None) == bool(p["values"]) == (p["sample_ns"] is not None), p
    assert all(v["value"] is not None and v["unit"] for v in p["values"]), p
seen = {(v["metric"], v["label"]): v["value"] for p in d["probes"] for v in p["values"]}
assert seen["process.count", None] >= 1 and seen["process.memory.rss", None] > 100000
assert seen["memory.total", None] == d["host"]["memory_bytes"] and seen["cpu.count", None] >= 1
print("good")
PY
