# Lower precisions are judged by all rows of the inputs, whatever batch is used today; what these cannot show is left
. "$TARE_SRC/tests/cli/bench/model.bash"
"$VIRTUAL_ENV/bin/python3" -c 'import onnx, onnxruntime.quantization' 2>/dev/null || exit 77
mlp
"$VIRTUAL_ENV/bin/python3" -c 'import numpy; numpy.savez("eval.npz", **{"input": numpy.random.default_rng(0).standard_normal((600, 32)).astype("f")})'
TARE_PYTHON="$VIRTUAL_ENV/bin/python3" tare tune mlp.onnx --inputs eval.npz --batch 1,8 --accuracy 'agreement>=0.9999' --only precision --budget 1s >text 2>err; echo "exit $?"
grep -o 'precision [a-z0-9]*: top1.* over [0-9]* examples' text | sed 's/top1.*over/over/'
grep '^answer' text
