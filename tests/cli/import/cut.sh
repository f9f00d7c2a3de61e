# a cut file, and one written anew by another program: both are read, the loss is said, the document can be reported
cp "$TARE_SRC"/fuzz/corpus/ort_profile/{cut-1.31,rewritten}.json .
tare import --ort-profile cut-1.31.json --csv - --no-save | cut -d, -f2-4 | head -3
tare import --ort-profile rewritten.json --layers loop,th* --output-dir kept 2>/dev/null >table && sed -n '/^group/,/^$/p' table
python3 - <<'PY'
import glob, json
d = json.load(open(glob.glob("kept/import_rewritten_*.json")[0]))
c = d["cases"][0]
print(d["kind"], d["subject"]["type"], d["config"]["imported"], d["config"]["truncated"], c["profile"]["runs"])
print(abs(sum(l["share"] for l in c["layers"]) - 1) < 1e-9, sorted({l["group"] for l in c["layers"]}))
PY
tare report kept/import_*.json | head -1
