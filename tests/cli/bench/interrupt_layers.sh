# Ctrl-C while measuring, which would take long: what was measured is kept, and no pass over the layers begins
. "$TARE_SRC/tests/cli/inspect/models.bash"
. "$TARE_SRC/tests/cli/waiting.bash"
set -m
mlp
tare bench mlp.onnx --layers --batch 16,32 --warmup 3 --budget 600s --min-runs 1000000 >out 2>err &
cpu $! 2; kill -INT $!; wait $!; echo $?
python3 -c '
import glob, json
run = json.load(open(glob.glob("tare-results/*.json")[0]))
print([(c["layers"], c["unknown"]["layers"]) for c in run["cases"]])'
