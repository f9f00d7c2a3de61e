# times that vary by 10 % hide a step of 5 % which the ratios to an anchor show; anchors are not mixed
. "$TARE_SRC/tests/cli/history/runs.bash"
make_runs 68
python3 - <<'PY'
import json, random
r = random.Random(5)
for i in range(1, 69):
    doc = json.load(open("run-%d.json" % i))
    for c in doc["cases"]:
        v = int(7e7 * r.lognormvariate(0, 0.1) * (1.05 if i > 60 else 1))
        c["latency_ns"]["p50"] = {"value": v, "lo": v - 1000, "hi": v + 1000}
        ratio = r.lognormvariate(0, 0.01) * (1.05 if i > 60 else 1)
        c["anchored"] = [{"anchor": "v1", "metric": "latency.p50", "value": ratio, "lo": ratio * 0.98, "hi": ratio * 1.02}]
    json.dump(doc, open("run-%d.json" % i, "w"))
PY
tare history import . | tail -n 1
tare trend --case batch=1,seq=128 | sed -e 1,3d -e 's/[0-9.]* %/N %/g' -e 's/[-+][0-9.]*/N/g'
tare trend --absolute | grep -c 'no change of level'
tare trend --anchored --json >t.json
tare trend --anchored --fail >/dev/null; echo "exit $?"
python3 - <<'PY'
import json
d = json.load(open("t.json"))
assert len(d["series"]) == 2
for s in d["series"]:
    (c,) = s["changes"]
    assert s["anchor"] == "v1" and abs(c["at"] - 60) <= 1 and c["worse"], c
    assert c["ratio_lo"] < 1.05 < c["ratio_hi"] and s["noise"] < 0.02
print("good")
PY
# what a history gives back has its ratios: another one made of it says the same
tare history export out >/dev/null 2>&1; tare history import --history other.db out | tail -n 1
tare trend --anchored --history other.db --json >o.json
python3 -c 'import json; a, b = (json.load(open(n))["series"] for n in ("t.json", "o.json")); assert a == b; print("same")'
