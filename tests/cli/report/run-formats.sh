# csv, junit and json are read by other programs; -o writes whole files; several documents become one
run=$TARE_SRC/tests/cli/report/sweep.run.json
tare report -f csv -o out.csv "$run" "$run"
tare report -f junit -o out.xml "$run" "$run"
tare report --json "$run" >one.json
tare report --json "$run" "$run" >two.json
cmp one.json "$run" && echo "the same document"
python3 - <<'PY'
import csv, json, xml.etree.ElementTree as tree
rows = list(csv.DictReader(open("out.csv", newline="")))
assert len(rows) == 10 and rows[0]["case"] == "batch=1,seq=128" and rows[0]["batch"] == "1", rows[0]
doc = json.load(open("one.json"))
assert int(rows[2]["latency_p95_ns"]) == doc["cases"][2]["latency_ns"]["p95"]["value"]
assert int(rows[2]["latency_p95_ns_hi"]) == doc["cases"][2]["latency_ns"]["p95"]["hi"]
assert rows[0]["accuracy"] == "" and rows[0]["memory_peak_bytes"] == str(doc["cases"][0]["memory"]["rss_peak"])
assert json.load(open("two.json")) == [doc, doc]
suites = tree.parse("out.xml").getroot()
assert suites.tag == "testsuites" and len(suites) == 2
bad = [t for t in doc["targets"] if t["verdict"] == "fail"]
critical = [f for f in doc["findings"] if f["severity"] == "critical"]
assert len(suites.findall(".//failure")) == int(suites.get("failures")) == 2 * len(bad + critical) > 0
assert len(suites.findall(".//testcase")) == int(suites.get("tests"))
assert len(suites.findall(".//skipped")) == int(suites.get("skipped")) == 10
print("good")
PY
ls
