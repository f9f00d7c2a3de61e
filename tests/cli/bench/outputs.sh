# every output is compared, by its name; whole numbers that name a class are equal or not; a check that fails keeps the run
. "$TARE_SRC/tests/cli/bench/model.bash"
"$VIRTUAL_ENV/bin/python" - <<'PY'
import numpy as np, onnx, os
from onnx import TensorProto as T, helper as h, numpy_helper as nh
def weights(seed): return np.random.default_rng(seed).standard_normal((8, 4)).astype("f")
def model(path, outputs, seed=1):
    nodes = [h.make_node("MatMul", ["x", "ws"], ["start"]), h.make_node("MatMul", ["x", "we"], ["end"]),
             h.make_node("ArgMax", ["end"], ["id"], axis=1, keepdims=0)]
    kinds = {"start": (T.FLOAT, ["batch", 4]), "end": (T.FLOAT, ["batch", 4]), "id": (T.INT64, ["batch"])}
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["batch", 8])],
                         [h.make_tensor_value_info(o, *kinds[o]) for o in outputs],
                         [nh.from_array(weights(0), "ws"), nh.from_array(weights(seed), "we")])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)
model("good.onnx", ["start", "end"]); model("bad.onnx", ["start", "end"], seed=2); model("swapped.onnx", ["end", "start"])
model("id.onnx", ["id"]); model("id_bad.onnx", ["id"], seed=2)
four = h.make_graph([h.make_node("Reshape", ["x", "shape"], ["r"]), h.make_node("MatMul", ["r", "ws"], ["start"])], "g",
                    [h.make_tensor_value_info("x", T.FLOAT, ["batch", 8])], [h.make_tensor_value_info("start", T.FLOAT, [4, 4])],
                    [nh.from_array(weights(0), "ws"), nh.from_array(np.array([4, 8]), "shape")])
onnx.save(h.make_model(four, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "four.onnx")
x = np.ones((4, 8), "f")
np.savez("x.npz", x=x); np.savez("end.npz", end=x @ weights(1)); np.savez("wide.npz", start=np.zeros((4, 5), "f"))
np.savez("other.npz", a=np.zeros((4, 4), "f"), b=np.zeros((4, 4), "f"))
os.mkdir("set")
for kind, i, a in ("input", 0, x), ("output", 0, x @ weights(0)), ("output", 1, x @ weights(1)):
    open(f"set/{kind}_{i}.pb", "wb").write(nh.from_array(a).SerializeToString())
PY
look() {
    tare bench --batch 4 "$@" --budget 50ms --no-save --json >out.json 2>said; echo "exit $?: $(tail -n 1 said)"
    "$VIRTUAL_ENV/bin/python" - <<'PY'
import json
text = open("out.json").read()
for c in json.loads(text)["cases"] if text else []:
    a = c["accuracy"]
    print(" ", c["name"], a and (a["metric"], a["output"], round(a["value"], 4) in (0, 1)), c["unknown"].get("accuracy"))
PY
}
look good.onnx --variant v=bad.onnx --validate-accuracy
look good.onnx --variant v=swapped.onnx --validate-accuracy
look id.onnx --variant v=id_bad.onnx --validate-accuracy
look id.onnx --variant v=id.onnx --validate-accuracy
look good.onnx --inputs x.npz --expect end.npz --metric rel-l2 --validate-accuracy
look good.onnx --inputs set --expect set --metric rel-l2 --validate-accuracy
look good.onnx --inputs x.npz --expect wide.npz
look good.onnx --inputs x.npz --expect other.npz
look good.onnx --metric accuracy --validate-accuracy
look good.onnx --inputs x.npz --expect none.npz
tare bench good.onnx --expect end.npz 2>&1 | head -n 1 # made-up inputs have other outputs
echo "a first case that fails is not what the others are held against"
look four.onnx --batch 3,4 --validate-accuracy
