# --fail: a target that was missed is 1; --strict: one that is undecided, or none at all, is 3
with() { # NAME VERDICT..: the run with targets of these verdicts
    python3 - "$TARE_SRC/tests/cli/report/sweep.run.json" "$@" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
one = run["targets"][0]
run["targets"] = [dict(one, verdict=verdict) for verdict in sys.argv[3:]]
json.dump(run, open(sys.argv[2], "w"))
PY
}
try() {
    tare report "$@" 2>&1 | grep -e 'has no targets' -e 'try:' -e 'goes with' -e 'needs'
    echo "${1%.json} ${*:2}: ${PIPESTATUS[0]}"
}
with kept.json pass pass
with missed.json pass fail inconclusive
with open.json pass inconclusive
with none.json
for run in kept missed open none; do
    try $run.json
    try $run.json --fail
    try $run.json --fail --strict
done
try kept.json missed.json --fail --format junit
try kept.json --strict
