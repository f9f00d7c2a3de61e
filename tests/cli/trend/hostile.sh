# a commit of a run document that a spreadsheet would compute, or that would begin a row of its own: a cell of text
python3 - "$TARE_SRC/tests/cli/report/sweep.run.json" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
for i, commit in enumerate(["=1+1", "a\nb,c", "@x"]):
    run["id"] = run["id"][:-1] + str(i)
    run["config"]["git_commit"] = commit
    json.dump(run, open("run%d.json" % i, "w"))
PY
tare history import run0.json run1.json run2.json >/dev/null
tare trend --csv - >trend.csv
python3 - <<'PY'
import csv
rows = list(csv.DictReader(open("trend.csv", newline="")))
print(sorted({row["commit"] for row in rows}), {len(row) for row in rows}, any(None in row for row in rows))
PY
