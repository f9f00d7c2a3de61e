# a data loader: what the Python process found, as text and as a document; the same answers as of a model
. "$TARE_SRC/tests/cli/tune/fake_python.bash"
answer
tuned --step py:train.py:step --latency 'p95<=50ms' --budget 5s >text
sed -n '/^bound/,/^again/p; /^exit/p' text
python3 -c 'import json; a = json.load(open("asked")); print({k: a[k] for k in ("target", "step", "budget_s", "min_gain", "explain", "latency", "memory", "only")})'
field '(d["kind"], d["subject"]["type"], d["config"]["bound"]["gain_at_most"], d["config"]["bound"]["stages_ms"]["fetch"])'
field 'd["recommendation"]["case"], [d["recommendation"]["proof"][k] for k in ("against", "ratio", "ratio_lo", "ratio_hi", "verdict", "found", "pairs", "command")]'
field '[(c["name"], c["params"], c["units_per_run"], round(c["latency_ns"]["p50"]["value"] / 1e6, 1), c["memory"]["rss_peak"]) for c in d["cases"]]'
field '[(t["metric"], t["verdict"]) for t in d["targets"]]'
tare report tare-results/tune_*.json --format json >/dev/null && echo valid
tuned --json --no-save | python3 -c 'import json, sys; print(json.loads(sys.stdin.read().rpartition("exit")[0])["recommendation"]["proof"]["ratio"])'
# the bound alone
tuned --explain
# left as it is: by the pairs, by a reason, by Ctrl-C's absence of a proof
answer proof='{"gain": [1.02, 0.95, 1.06], "cpu": null, "pairs": 20, "uses_more_cpu": false, "verdict": "no gain"}' apply=null
tuned --no-save | grep -e ^answer -e ^exit
answer refusal='"the data differ: batch 3"' proof=null best=0 apply=null
tuned --no-save | grep -e ^answer -e ^exit
answer refusal='"1.30x the processor time for a batch: it is taken from others"' apply=null
tuned --no-save | grep -e ^answer -e ^exit
# nothing keeps the limits
answer
tuned --no-save --latency 'p95<=1ms' | grep -e ^answer -e ^exit
