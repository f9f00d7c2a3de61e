# a document comes back byte for byte; by the beginning of its id; as a report; exported and imported again
. "$TARE_SRC/tests/cli/history/runs.bash"
make_runs 3
tare history import run-*.json
tare history show 01KA0000000000000000000002 --json | cmp - run-2.json && echo same
tare history show latest --json | cmp - run-3.json && echo latest
tare history show latest 2>&1 | head -n 2
tare history export out 2>&1 && cmp out/01KA0000000000000000000001.json run-1.json && echo exported
tare history export out 2>&1
tare history export --jsonl all.jsonl 2>&1
wc -l <all.jsonl
tare history --history again.db import all.jsonl
tare history --history again.db list --json >list.json
python3 - <<'PY'
import json
d = json.load(open("list.json"))
assert d["schema"] == "tare.history/1" and [r["id"][-1] for r in d["runs"]] == ["3", "2", "1"]
assert d["runs"][0]["commit"].startswith("abc0003") and d["runs"][0]["branch"] == "main" and d["runs"][0]["tags"] == []
lines = [json.loads(l) for l in open("all.jsonl")]
assert lines[0] == json.load(open("run-3.json"))
print("content kept")
PY
