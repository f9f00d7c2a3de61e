# the command line wins over the entries of a suite
. "$TARE_SRC/tests/cli/bench/model.bash"
mlp
printf 'suite:\n  - {name: a, model: mlp.onnx, batch: [1, 2], budget: 60s}\n' >tare.yaml
tare bench --budget 150ms --batch 4 --no-save --json >out.json; echo $?
grep -c '"suite_entry": "a"' out.json; grep -c '"name": "batch=4"' out.json; ls -d tare-results 2>/dev/null
true
