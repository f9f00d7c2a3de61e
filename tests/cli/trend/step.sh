# a step of 10 % after 30 runs is named with its commit; --fail tells it only while it is recent
. "$TARE_SRC/tests/cli/history/runs.bash"
make_runs 40
tare history import . >/dev/null
tare trend --case batch=1,seq=128
tare trend --fail >/dev/null; echo "exit $?"
tare trend --json >t.json
tare trend --csv - | head -n 2
python3 - <<'PY'
import json
d = json.load(open("t.json"))
assert d["schema"] == "tare.trend/1" and d["metric"] == "latency.p50" and len(d["series"]) == 2
for s in d["series"]:
    (c,) = s["changes"]
    assert c["at"] == 30 and c["commit"].startswith("abc001f") and c["commit_before"].startswith("abc001e")
    assert c["worse"] and c["recent"] and c["ratio_lo"] < 1.1 < c["ratio_hi"]
    assert len(s["points"]) == 40 and len(s["levels"]) == 2 and s["creep"]["worse"]
    assert 0 < s["noise"] < 0.02 and s["smallest_step"] is None  # ten runs at the new level are too few
print("good")
PY
make_runs 50
tare history import run-4?.json run-50.json | head -n 1
tare trend --fail >/dev/null; echo "exit $?"
tare trend --last 15 --fail | grep -c 'no change of level'
tare trend --metric throughput --fail | grep -c 'no change of level'
