# one row per scope; the 15 calls of fib are one row, its total not counted twice
. "$TARE_SRC/tests/cli/report/program.bash"
program && record
tare report --flat --json app.tare >flat.json
python3 - <<'PY'
import json
d = json.load(open("flat.json"))
rows = {r["name"]: r for r in d["tree"]}
assert len(rows) == len(d["tree"]) == 7, sorted(rows)
assert rows["fib"]["count"] == 15 and rows["step"]["count"] == 150
assert rows["step"]["threads"] is None and rows["step"]["p50_ns"] is None   # two paths: not known
assert rows["fib"]["gross_total_ns"] <= rows["worker"]["gross_total_ns"]
assert rows["tokens"]["sum"] == 450 and rows["tokens"]["kind"] == "counter"
assert all(r["children"] == [] for r in d["tree"])
print(d["view"])
PY
