# the best of a space whose costs are known, its proof in the document
. "$TARE_SRC/tests/cli/tune/fake.bash"
model m.onnx 'times batch 2 1.2' 'times batch 4 1.6' 'times batch 8 2' 'times batch 16 6' 'times batch 32 14' 'times batch 64 40' \
    'times no_arena 1 1.6' 'times parallel 1 1.6'
tuned m.onnx --threads 1 --only batch,execution,arena --budget 20s >text
tail -n 1 text
grep -o '^use  *batch=8,threads=1' text
field 'd["kind"], d["recommendation"]["case"].split(",")[0], d["recommendation"]["proof"]["found"]'
# (four times as fast; beside busy cores a sleep is late, and the shorter one later)
field '1.5 < d["recommendation"]["proof"]["ratio"] < 8, d["recommendation"]["proof"]["ratio_lo"] > 1.1, d["recommendation"]["proof"]["pairs"] >= 8'
field 'd["recommendation"]["proof"]["command"].startswith("tare tune m.onnx --threads 1 --only batch,execution,arena")'
for f in text json csv md junit; do tare report tare-results/tune_*.json --format $f >again.$f || exit; done
grep -c '^  throughput batch=8' again.text
# the same again: nothing is measured anew but the proof (beside busy cores the first search may not have come through)
for _ in 1 2 3; do
    tuned m.onnx --threads 1 --only batch,execution,arena --budget 20s >second
    grep -q 'in 0 measurements' second && break
done
grep -o 'in 0 measurements; [0-9]* more are from an earlier search' second | sed 's/[1-9][0-9]*/N/'
grep -o '^use  *batch=8,threads=1' second
# a bench of what is used today is compared with its case there
tare bench m.onnx --ort "$ort" --batch 1 --threads 1 --budget 300ms --baseline "$(ls tare-results/tune_*.json | tail -n 1)" --no-save >bench 2>&1; grep -E '^(differs +kind|latency.p50)' bench | cut -d ' ' -f 1
# a batch that kills its process is a row with its reason
model m.onnx 'die_batch 64'
tuned m.onnx --threads 1 --only batch --batch 1,64 --budget 2s >text
grep -c 'could not be measured; .*killed by signal 6' text
field 'any("killed by signal 6" in (c["refused"] or "") for c in d["cases"] if c["params"]["batch"] == 64)'
