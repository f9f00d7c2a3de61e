# each with its cause and exit 2
cp "$TARE_SRC/tests/cli/report/sweep.run.json" run.json
run=run.json
try() { tare plan "$@" 2>&1 | head -n 1; echo "exit ${PIPESTATUS[0]}"; }
python3 -c 'import json; d = json.load(open("run.json")); [c.pop("samples_raw") for c in d["cases"]]
json.dump(d, open("bare.json", "w"))'
sed 's/"load": "closed"/"load": "open"/' "$run" >open.json
echo '{"schema": "tare.run/1"}' >empty.json
try "$run" --slo 'p95<=1s'
try "$run" --rate 5/s
try "$run" --rate 0/s --slo 'p95<=1s'
try "$run" --rate fast --slo 'p95<=1s'
try "$run" --rate 5/s --slo 'p95>=1s'
try "$run" --rate 5/s --slo 'memory.peak<=1GB'
try "$run" --rate 5/s --slo 'p95<=1parsec'
try "$run" --rate 5/s --slo 'p95<=1s' --headroom 20
try "$run" --rate 5/s --slo 'p95<=1s' --case batch=9
try "$run" --rate 5pairs/s --slo 'p95<=1s'
try bare.json --rate 5/s --slo 'p95<=1s'
try open.json --rate 5/s --slo 'p95<=1s'
try empty.json --rate 5/s --slo 'p95<=1s'
try missing.json --rate 5/s --slo 'p95<=1s'
