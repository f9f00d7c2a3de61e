# --fail-on tells a step of 10 % by its limit; --strict, that a series cannot show one
. "$TARE_SRC/tests/cli/history/runs.bash"
try() { echo "\$ tare trend $*"; tare trend "$@" 2>&1 >/dev/null; echo "exit $?"; }
make_runs 40
tare history import . >/dev/null
try --fail-on 'latency.p50>5%'
try --fail-on 'latency.p50>12%'
try --fail-on latency.p50
try --fail-on 'latency.p50>12%' --strict
try --metric throughput --fail-on 'throughput>5%'
try --last 5 --fail
try --last 5 --fail --strict
try --fail-on 'throughput>5%'
try --fail-on 'latency.p50>much'
try --strict
# the newest run has no p95: undecided, and a failure where its median leaves no doubt
make_runs 40
gap() { # <times> <letter>
    python3 - "$1" "$2" <<'PY'
import json, sys
for i in range(1, 41):
    doc = json.load(open("run-%d.json" % i))
    doc["subject"]["name"] = "gap" + sys.argv[1]
    doc["id"] = "01K" + sys.argv[2] + doc["id"][4:]
    for c in doc["cases"]:
        v = int(70000000 * (float(sys.argv[1]) if i == 40 else 1))
        c["latency_ns"]["p50"] = {"value": v, "lo": v - 100, "hi": v + 100}
        c["latency_ns"]["p95"] = None if i == 40 else {"value": 2 * v, "lo": 2 * v - 100, "hi": 2 * v + 100}
    json.dump(doc, open("gap-%d.json" % i, "w"))
PY
    tare history import gap-*.json >/dev/null
    rm gap-*.json
}
gap 2 C
gap 1000 D
try --subject gap2 --metric latency.p95 --fail-on 'latency.p95>5%'
try --subject gap2 --metric latency.p95 --fail-on 'latency.p95>5%' --strict
try --subject gap1000 --metric latency.p95 --fail-on 'latency.p95>5%'
make_runs 60 # of a steady level, with noise that does not repeat itself
python3 - <<'PY'
import json, random
noise = random.Random(1)
for i in range(1, 61):
    doc = json.load(open("run-%d.json" % i))
    doc["subject"]["name"] = "steady"
    doc["id"] = "01KB" + doc["id"][4:]
    for c in doc["cases"]:
        v = int(70000000 * noise.gauss(1, 0.005))
        c["latency_ns"]["p50"] = {"value": v, "lo": v - 100000, "hi": v + 100000}
    json.dump(doc, open("run-%d.json" % i, "w"))
PY
tare history import . >/dev/null
try --subject steady --fail --strict
try --subject steady --fail-on 'latency.p50>10%' --strict
try --subject steady --fail-on 'latency.p50>0.5%' --strict
