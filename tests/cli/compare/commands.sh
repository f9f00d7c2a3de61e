# one that does three times the work, both ways round, and against itself; the document says all of it
work='i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'
more='i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done'
tare compare --ab --shell "$work" "$more" --budget 20s --seed 1 >slower.txt 2>note.txt; echo "exit $?"
tare compare --ab --shell "$more" "$work" --budget 20s --no-save >faster.txt; echo "exit $?"
tare compare --ab "sh -c '$work'" "sh -c '$work'" --budget 20s --json --no-save >same.json; echo "exit $?"
grep -c '^verdict: regressed' slower.txt
grep -c '^verdict: improved' faster.txt
grep -c 'again .*--seed 1$' slower.txt
grep -c 'kept as tare-results/compare_' note.txt
python3 - <<'PY'
import glob, json
d = json.load(open(glob.glob("tare-results/compare_*.json")[0]))
assert d["schema"] == "tare.comparison/1" and d["verdict"] == "regressed" and d["method"] == "interleaved"
c = d["cases"][0]
assert c["pairs"] >= 20 and c["failed_pairs"] == 0 and c["launches"] == c["pairs"] and c["repeats"] == 1
cpu = next(m for m in c["metrics"] if m["metric"] == "cpu.time")
assert cpu["verdict"] == "regressed" and 2 < cpu["ratio"]["lo"] <= cpu["ratio"]["value"] <= cpu["ratio"]["hi"] < 4
assert cpu["p_value"] < 0.01 and cpu["confidence"] == 0.95 and cpu["mde"] > 0.01
assert len(set(c["launch"]["base_env_pad"])) > 10 and max(c["launch"]["new_env_pad"]) < 4096
assert c["samples"]["base_wall_ns"]["count"] == c["pairs"] == c["samples"]["order"]["count"]
d = json.load(open("same.json"))
assert d["verdict"] in ("same", "inconclusive"), d["verdict"]
print("good")
PY
