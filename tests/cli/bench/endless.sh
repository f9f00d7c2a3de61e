# a model that never ends: refused where tare can see it, ended by --timeout or Ctrl-C where it cannot
. "$TARE_SRC/tests/cli/bench/model.bash"
"$VIRTUAL_ENV/bin/python" - <<'PY'
import onnx
from onnx import TensorProto as T, helper as h
x, y = (h.make_tensor_value_info(n, T.FLOAT, [1]) for n in "xy")
opsets = [h.make_opsetid("", 17), h.make_opsetid("f", 1)]
def save(path, nodes, inits=(), functions=()):
    graph = h.make_graph(nodes, "g", [x], [y], list(inits))
    onnx.save(h.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions)), path)
step = h.make_graph([h.make_node("Identity", ["c"], ["d"]), h.make_node("Mul", ["v", "v"], ["w"])], "b",
                    [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []),
                     h.make_tensor_value_info("v", T.FLOAT, [1])],
                    [h.make_tensor_value_info("d", T.BOOL, []), h.make_tensor_value_info("w", T.FLOAT, [1])])
save("loop.onnx", [h.make_node("Loop", ["n", "t", "x"], ["y"], body=step)],
     [h.make_tensor("n", T.INT64, [], [2 ** 62]), h.make_tensor("t", T.BOOL, [], [True])])
calls = lambda i: [h.make_node(f"f{i + 1}", ["a"], ["m"], domain="f"), h.make_node(f"f{i + 1}", ["m"], ["b"], domain="f")]
bomb = [h.make_function("f", f"f{i}", ["a"], ["b"], calls(i) if i < 40 else [h.make_node("Neg", ["a"], ["b"])], opsets)
        for i in range(41)]
save("bomb.onnx", [h.make_node("f0", ["x"], ["y"], domain="f")], functions=bomb)
deep = [h.make_function("f", f"f{i}", ["a"], ["b"], calls(i) if i < 99 else [h.make_node("Neg", ["a"], ["b"])], opsets)
        for i in range(100)]
save("deep.onnx", [h.make_node("f0", ["x"], ["y"], domain="f")], functions=deep)
PY
timeout 60 tare bench bomb.onnx --no-save; echo "exit $?"
timeout 60 tare bench deep.onnx --no-save; echo "exit $?"
timeout 60 tare bench loop.onnx --no-save --timeout 300ms; echo "exit $?"
timeout -s INT -k 60 2 tare bench loop.onnx --no-save 2>/dev/null; [ $? != 137 ] && echo "ended by Ctrl-C"
tare bench -h | grep -o '(models: 10m[^)]*)' # what holds without it
