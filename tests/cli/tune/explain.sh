# the bound alone, without a search: of a real model
. "$TARE_SRC/tests/cli/bench/model.bash"
mlp
tare tune mlp.onnx --explain --threads 1 --budget 2s >text 2>/dev/null; echo "exit $?"
grep -o '^[a-z]* ' text
grep -c 'x at most at this batch' text
tare tune mlp.onnx --explain --threads 1 --budget 2s --json 2>/dev/null | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["kind"], d["config"]["bound"]["gain_at_most"] > 0)'
ls tare-results 2>/dev/null | grep tune_ | wc -l
tare tune mlp.onnx --explain --only arena --budget 2s 2>/dev/null | grep '^to try'
