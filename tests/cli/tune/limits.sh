# limits: the best that keeps them; none does: exit 1, and the nearest is named
. "$TARE_SRC/tests/cli/tune/fake.bash"
model m.onnx 'times batch 4 1.5' 'times batch 16 3' 'times batch 64 40'
tuned m.onnx --only batch,execution,arena,precision --batch 1,4,16,64 --threads 1 --latency 'p95<=100ms' --budget 6s >text
tail -n 1 text
grep -o '^use  *batch=16' text
grep -c 'over a limit; batch=64.*over the limit of 100 ms' text
field '[(t["metric"], t["case"].split(",")[0], t["verdict"] != "fail") for t in d["targets"]]'
tuned m.onnx --only batch,execution,arena,precision --batch 1,4 --threads 1 --latency 'p95<=1ms' --budget 3s >text
tail -n 1 text
grep -o '^answer  *nothing keeps the limits' text
