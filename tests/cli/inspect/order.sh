# which layers, in which order; groups by patterns; CSV
. "$TARE_SRC/tests/cli/inspect/models.bash"
text -o a.onnx
layers() { sed -n '/^layers/,/^$/p' | awk '{print $1, $2}'; }
tare inspect a.onnx --seq 16 --top 3 --sort params | layers
tare inspect a.onnx --seq 16 --top 3 --sort order | layers
tare inspect a.onnx --seq 16 --all | layers | wc -l
tare inspect a.onnx --seq 16 --layers 'query,*output*' | sed -n '/^group/,/^$/p' | awk '{print $1, $2}'
tare inspect a.onnx --seq 16 --csv a.csv >/dev/null
python3 - <<'PY'
import csv, json, subprocess
rows = list(csv.DictReader(open("a.csv", newline="")))
d = json.loads(subprocess.run(["tare", "inspect", "a.onnx", "--seq", "16", "--json"], capture_output=True).stdout)
c = d["cases"][0]
assert len(rows) == len(c["layers"]) and {r["case"] for r in rows} == {c["name"]}
assert sum(int(r["macs"]) for r in rows) == c["cost"]["macs"] == d["subject"]["static"]["cost"]["macs"]
assert [r["name"] for r in rows] == [l["name"] for l in c["layers"]]
assert abs(sum(float(r["mac_share"]) for r in rows) - 1) < 1e-9
assert all(r["time_ns"] == "" for r in rows)          # nothing was timed
print("good")
PY
