# the length of inputs is given, not chosen: one answer for each
python3 - <<'P'
import json, os
run = json.load(open(os.environ["TARE_SRC"] + "/tests/cli/report/sweep.run.json"))
for i, c in enumerate(run["cases"]):
    c["params"]["seq"] = 128 if i < 2 else 256
json.dump(run, open("run.json", "w"))
P
tare plan run.json --rate 20/s --slo 'p95<=600ms' | sed -n 's/^\(use [^:]*\):.*/\1/p'
tare report run.json | sed -n '/^recommended/,/^$/p'
