# damaged files of torch.profiler: exit 2 with the file, the place and the cause; nothing is kept
for file in cut.json cut.json.gz deep.json empty.json none.json other.json two-processes.json; do
    cp "$TARE_SRC/fuzz/corpus/kineto/$file" .
    tare import --torch-profile $file; echo "exit $?"
    rm $file
done
mkdir dir; tare import --torch-profile dir -o x.tare; echo "exit $?"
tare import --torch-profile missing.json; echo "exit $?"
tare import missing.json; echo "exit $?"
cp "$TARE_SRC/fuzz/corpus/kineto/odd.json" .; tare import --torch-profile odd.json -o odd.tare; echo "exit $?"
tare import --torch-profile odd.json --model m.onnx; echo "exit $?"
tare import --torch-profile odd.json --ort-profile odd.json; echo "exit $?"
ls . tare-results
echo "== more GPUs than a trace has room for: the report names the file"
python3 - >many.json <<'PY'
import json
events = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": i, "dur": 1,
           "args": {"correlation": i, "device": i, "stream": 7}} for i in range(5000)]
print(json.dumps({"traceEvents": events}))
PY
tare import --torch-profile many.json -o many.tare >/dev/null && tare report --gpu many.tare
echo "exit $?"
