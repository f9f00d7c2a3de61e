# an interval of a ten thousandth is not one of nothing: "< 0.1 %", not "0.0 %"
python3 - "$TARE_SRC/tests/cli/report/sweep.run.json" <<'PY'
import json, sys
doc = json.load(open(sys.argv[1]))
doc["cases"] = doc["cases"][:2]
for case, part in zip(doc["cases"], (1e-4, 0.02)):
    case["latency_ns"]["p50"] = {"value": 50_000_000, "lo": int(5e7 * (1 - part)), "hi": int(5e7 * (1 + part))}
json.dump(doc, open("run.json", "w"))
PY
tare report run.json | grep -A2 '^batch  ' | cut -c1-45
