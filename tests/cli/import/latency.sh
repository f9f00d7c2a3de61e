# with the latency of a plain run the profiler's cost comes off: the sum is that latency
cp "$TARE_SRC/fuzz/corpus/ort_profile/quotes-1.20.json" p.json
tare import --ort-profile p.json --skip 0 --latency 90us --no-save --json >d.json || exit
python3 - <<'PY'
import json
c = json.load(open("d.json"))["cases"][0]
print(round(sum(l["time_ns"] for l in c["layers"])), round(c["profile"]["covered"], 6), c["profile"]["node_ns"] > 0)
PY
