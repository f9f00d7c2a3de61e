# the tree as nodes: names, counts, integer times, children; gross beside net
. "$TARE_SRC/tests/cli/report/program.bash"
program && record
tare report --json app.tare >tree.json
python3 - <<'PY'
import json
d = json.load(open("tree.json"))
assert d["schema"] == "tare.report/1" and d["loss"]["dropped"] == 0 and d["hidden"] == 0
assert d["trace"]["has_tree"] and d["trace"]["has_events"] and len(d["trace"]["threads"]) == 2
assert d["trace"]["processes"][0]["closed"] and d["trace"]["command"] == "./app"
top = {n["name"]: n for n in d["tree"]}
main = top['main "quoted";\n']
step = next(c for c in main["children"] if c["name"] == "step")
load = step["children"][0]
assert step["count"] == load["count"] == 100 and load["name"] == "load"
assert load["children"][0]["kind"] == "counter" and load["children"][0]["sum"] == 300
assert {c["kind"] for c in main["children"]} == {"scope", "mark"}
def walk(nodes, inside):
    for n in nodes:
        if n["kind"] != "scope":
            continue
        assert type(n["total_ns"]) is type(n["self_ns"]) is type(n["count"]) is int
        assert n["total_ns_lo"] <= n["total_ns"] <= n["total_ns_hi"]
        assert 0 < n["gross_self_ns"] <= n["gross_total_ns"] <= inside
        assert n["min_ns"] - 1 <= n["gross_mean_ns"] <= n["max_ns"] + 1
        walk(n["children"], n["gross_total_ns"])
walk(d["tree"], d["gross_total_ns"] + 1)
print("good")
PY
