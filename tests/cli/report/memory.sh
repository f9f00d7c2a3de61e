# who held memory: tables; the same as JSON; a trace without it is refused
history=$TARE_SRC/fuzz/corpus/trace/memory-history
tare report --memory "$history"
tare report --memory --json -o memory.json "$history"
python3 - <<'PY'
import json
d = json.load(open("memory.json"))
assert d["schema"] == "tare.memory/1" and [p["pid"] for p in d["processes"]] == [4243, 4242]
sampled, whole = d["processes"]
assert whole["peak"] == {"bytes": 16908288, "lo": 16908288, "hi": 16908288} and whole["peak_ns"] == 1970000000
assert sum(s["at_peak"]["bytes"] for s in whole["sites"]) == whole["peak"]["bytes"]
assert whole["by"] == "line" and sum(g["at_end"]["bytes"] for g in whole["groups"]) == whole["at_end"]["bytes"] == whole["held_over_time"][-1]
assert sum(p["bytes"] or 0 for p in sampled["resident_parts"][:-1]) == sampled["resident_parts"][-1]["bytes"] == sampled["resident_bytes"]
assert [f["id"] for f in whole["findings"]] == ["memory.leak", "memory.temporary"], whole["findings"]
assert sum(t["allocations"] for t in whole["lifetimes"]) == 101
grows = [s for s in whole["sites"] if s["growth"]["verdict"] == "growing"]
assert [f["name"] for f in grows[0]["frames"]] == ["cache", "main"] and len(grows) == 1
assert abs(grows[0]["growth"]["bytes_per_s"] / (65536 / 0.04) - 1) < 0.05
assert sampled["every_bytes"] == 524288 and sampled["lost"]["records"] == 7
assert sampled["peak"]["lo"] < sampled["peak"]["bytes"] < sampled["peak"]["hi"]
print("good")
PY
for by in function library scope stack; do
    tare report --memory --by $by "$history" | sed -n '/^held at the peak$/,/^$/p;/^memory of process 4242/q'
done
tare report --by line "$history" 2>&1 | head -1
tare report --memory "$TARE_SRC/fuzz/corpus/trace/whole" 2>&1 | sed 's|/.*/||'
echo "${PIPESTATUS[0]}"
tare report --memory --flat "$history" 2>&1 | head -1
tare report --memory "$history" "$history" 2>&1 | head -1
