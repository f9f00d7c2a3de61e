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
