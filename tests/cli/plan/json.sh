# the same as JSON; units instead of requests; one case; the seed decides
run=$TARE_SRC/tests/cli/report/sweep.run.json
tare plan "$run" --rate 160texts/s --slo 'latency.p99<=500ms' --case batch=8,seq=128 --json >a.json
tare plan "$run" --rate 160texts/s --slo 'latency.p99<=500ms' --case batch=8,seq=128 --json >b.json
tare plan "$run" --rate 160texts/s --slo 'latency.p99<=500ms' --case batch=8,seq=128 --json --seed 2 >c.json
cmp a.json b.json && echo repeatable
cmp -s a.json c.json || echo seeded
python3 - <<'PY'
import json
d = json.load(open("a.json"))
c = d["chosen"]
assert d["schema"] == "tare.plan/1" and len(d["cases"]) == 1 and d["limit_ns"] == 500000000
assert c["requests_per_s"] == 20 and c["replicas"] >= 4 and 0 < c["utilization"] < 1
assert c["response_ns_lo"] <= c["response_ns"] <= c["response_ns_hi"] <= d["limit_ns"]
assert 20 <= c["breaks_at_per_s"] <= c["saturates_at_per_s"]
assert c["machines"] == c["replicas"] and c["machines_by"] == "processors"   # 2 threads on 2 processors
print("good")
PY
