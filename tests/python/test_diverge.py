# SPDX-License-Identifier: MIT
"""tare inspect --diverge over the real ONNX Runtime: a difference planted in a known layer must be found there, whatever
the depth, the branches around it, the precision or the values in flight at a time."""

import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

WIDTH = 8


def value(name, dims, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def array(name, data):
    return numpy_helper.from_array(np.asarray(data), name)


def model_of(nodes, inputs, outputs, weights=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def chain(depth, changed=None, factor=1.01, kind=np.float32):
    """depth layers that keep lengths, so that a difference keeps its size; zeros and shapes, which never differ, are
    computed beside them. One weight may be changed."""
    rng = np.random.default_rng(7)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [helper.make_node("Sub", ["x", "x"], ["zeros"], name="zeros")]
    weights, last = [], "x"
    for i in range(depth):
        w = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
        weights.append(array("w%d" % i, (w * (factor if i == changed else 1)).astype(kind)))
        nodes += [helper.make_node("MatMul", [last, "w%d" % i], ["m%d" % i], name="mm%d" % i),
                  helper.make_node("Neg", ["m%d" % i], ["t%d" % i], name="neg%d" % i),
                  helper.make_node("Shape", ["t%d" % i], ["s%d" % i], name="shape%d" % i),
                  helper.make_node("Add", ["zeros", "t%d" % i], ["a%d" % i], name="add%d" % i)]
        last = "a%d" % i
    nodes.append(helper.make_node("Identity", [last], ["y"], name="out"))
    return model_of(nodes, [value("x", ["n", WIDTH], element)], [value("y", ["n", WIDTH], element)], weights)


@pytest.fixture
def diverge(tare, tmp_path, root):
    """diverge(a, b, ..., status): the answer as a dict; models are objects or paths."""
    env = {"VIRTUAL_ENV": str(root / ".venv")}

    def call(a, b, *args, status=1):
        paths = []
        for name, m in (("a.onnx", a), ("b.onnx", b)):
            path = m
            if isinstance(m, onnx.ModelProto):
                path = tmp_path / name
                onnx.save(m, path)
            paths.append(path)
        done = tare("inspect", "--diverge", "--json", *paths, *args, status=status, env=env)
        return json.loads(done.stdout) if done.stdout else done.stderr

    return call


@pytest.mark.parametrize("changed", [0, 17, 39])
@pytest.mark.parametrize("at_once", [1, 8])
def test_the_planted_layer_is_found(diverge, changed, at_once):
    d = diverge(chain(40), chain(40, changed), "--at-once", at_once, "--batch", 3)
    assert d["first"]["value"] == "m%d" % changed and d["first"]["node_a"] == "mm%d" % changed
    assert d["first"]["rel_l2"] == pytest.approx(0.01, rel=0.05)
    assert d["common"] == 40 * 4 + 2 and d["only_a"] == d["only_b"] == 0
    assert d["bytes_at_once"] <= at_once * 2 * 3 * WIDTH * 4                   # both sides
    assert d["compared"] < d["common"] / 2                                    # bisected, not scanned


def test_all_compares_everything_in_order(diverge):
    d = diverge(chain(10), chain(10, 4), "--all")
    assert d["compared"] == d["common"] == len(d["points"]) and d["first"]["value"] == "m4"
    state = [p["differs"] for p in d["points"] if p["value"][0] in "mtay"]
    assert state == sorted(state)                                             # once there, it stays


def test_the_same_model_and_the_tolerance(diverge):
    assert diverge(chain(5), chain(5), "--tolerance", 0, status=0)["first"] is None
    assert diverge(chain(5), chain(5, 2), "--tolerance", 0.5, status=0)["first"] is None
    assert diverge(chain(5), chain(5, 2, 1 + 1e-6), "--tolerance", 1e-9)["first"]["value"] == "m2"


def test_an_earlier_branch_that_reaches_no_output(diverge):
    """The value that ends in an ArgMax differs, the outputs do not: only --all, or luck, can see it."""
    def build(scale):
        return model_of([helper.make_node("Mul", ["x", "k"], ["scaled"], name="mul"),
                         helper.make_node("ArgMax", ["scaled"], ["y"], name="arg", axis=1)],
                        [value("x", [2, 4])], [value("y", [2, 1], TensorProto.INT64)], [array("k", np.float32(scale))])
    d = diverge(build(1), build(2), "--all")
    assert d["first"]["value"] == "scaled" and not d["points"][-1]["differs"]


def test_two_differences_give_the_first(diverge):
    a, b = chain(30), chain(30, 21)
    w = [i for i in b.graph.initializer if i.name == "w6"][0]
    w.CopyFrom(array("w6", numpy_helper.to_array(w) * np.float32(1.02)))
    assert diverge(a, b)["first"]["value"] == "m6"


def test_half_precision_is_within_its_tolerance(diverge):
    a, b = chain(6), chain(6, kind=np.float16)
    assert diverge(a, b, "--tolerance", 0.02, status=0)["first"] is None
    d = diverge(a, b, "--tolerance", 1e-5)
    assert d["first"]["value"] == "m0" and d["first"]["rel_l2"] < 0.01        # inputs were converted


def test_numbers_that_are_none(diverge, tmp_path):
    def build(shift):
        return model_of([helper.make_node("Sub", ["x", "k"], ["d"], name="sub"),
                         helper.make_node("Log", ["d"], ["l"], name="log"),
                         helper.make_node("Relu", ["l"], ["y"], name="relu")],
                        [value("x", [4])], [value("y", [4])], [array("k", np.float32(shift))])
    np.savez(tmp_path / "x.npz", x=np.array([1, 2, 3, 4], np.float32))
    both = diverge(build(1.5), build(1.5), "--inputs", tmp_path / "x.npz", "--all", status=0)
    assert both["first"] is None                                              # NaN on both sides is the same
    one = diverge(build(0.5), build(1.5), "--inputs", tmp_path / "x.npz", "--all", "--tolerance", 100)
    assert one["first"]["value"] == "l" and one["first"]["rel_l2"] is None
    assert "no finite number on one side" in one["first"]["why"]


def test_other_shapes_differ(diverge):
    def build(dims):
        return model_of([helper.make_node("Relu", ["x"], ["r"], name="relu"),
                         helper.make_node("Reshape", ["r", "s"], ["y"], name="shape")],
                        [value("x", [4, 4])], [value("y", None)], [array("s", np.array(dims, np.int64))])
    d = diverge(build([2, 8]), build([8, 2]))
    assert d["first"]["value"] == "y" and "[2, 8] and [8, 2]" in d["first"]["why"]


def test_values_that_quantisers_rename(diverge):
    """h is quantised: its dequantised twin stands for it. An int8 value against a float does not compare."""
    w = np.random.default_rng(3).normal(size=(WIDTH, WIDTH)).astype(np.float32)
    plain = model_of([helper.make_node("MatMul", ["x", "w"], ["h"], name="mm"),
                      helper.make_node("Relu", ["h"], ["q"], name="relu"),
                      helper.make_node("Tanh", ["q"], ["y"], name="tanh")],
                     [value("x", [2, WIDTH])], [value("y", [2, WIDTH])], [array("w", w)])
    quantised = model_of([helper.make_node("MatMul", ["x", "w"], ["h_QuantizeLinear_Input"], name="mm"),
                          helper.make_node("QuantizeLinear", ["h_QuantizeLinear_Input", "s", "z"], ["q"], name="quant"),
                          helper.make_node("DequantizeLinear", ["q", "s", "z"], ["h_DequantizeLinear_Output"], name="de"),
                          helper.make_node("Relu", ["h_DequantizeLinear_Output"], ["r"], name="relu"),
                          helper.make_node("Tanh", ["r"], ["y"], name="tanh")],
                         [value("x", [2, WIDTH])], [value("y", [2, WIDTH])],
                         [array("w", w), array("s", np.float32(0.05)), array("z", np.int8(0))])
    d = diverge(plain, quantised, "--all")
    assert d["first"]["value"] == "h" and d["first"]["twin"] == "h_DequantizeLinear_Output"
    assert d["first"]["op_b"] == "DequantizeLinear" and d["skipped"] == 1      # q: float here, int8 there


def quantised_by_runtime(folder, factor=None):
    """Three Conv and Relu, and the same by ONNX Runtime's own quantiser (QDQ), which folds each Relu away: its name is
    then that of the Conv's result before clipping. One weight's scale may be changed."""
    quant = pytest.importorskip("onnxruntime.quantization")
    rng = np.random.default_rng(11)
    nodes, weights, last = [], [], "x"
    for i in range(3):
        weights += [array("w%d" % i, rng.normal(scale=0.25, size=(8, 8, 3, 3)).astype(np.float32)),
                    array("b%d" % i, np.zeros(8, np.float32))]
        nodes += [helper.make_node("Conv", [last, "w%d" % i, "b%d" % i], ["c%d" % i], name="conv%d" % i,
                                   kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                  helper.make_node("Relu", ["c%d" % i], ["r%d" % i], name="relu%d" % i)]
        last = "r%d" % i
    nodes.append(helper.make_node("GlobalAveragePool", [last], ["y"], name="pool"))
    plain = model_of(nodes, [value("x", [1, 8, 8, 8])], [value("y", [1, 8, 1, 1])], weights)
    onnx.save(plain, folder / "plain.onnx")

    class Reader(quant.CalibrationDataReader):
        left = [{"x": rng.normal(size=(1, 8, 8, 8)).astype(np.float32)} for _ in range(4)]

        def get_next(self):
            return self.left.pop() if self.left else None

    quant.quantize_static(folder / "plain.onnx", folder / "qdq.onnx", Reader(), quant_format=quant.QuantFormat.QDQ)
    made = onnx.load(folder / "qdq.onnx")
    for w in made.graph.initializer:
        if factor and w.name == "w1_scale":
            w.CopyFrom(array(w.name, numpy_helper.to_array(w) * np.float32(factor)))
    return plain, made


def test_a_relu_that_a_quantiser_folded(diverge, tmp_path):
    plain, made = quantised_by_runtime(tmp_path)
    assert {o for n in made.graph.node for o in n.output} >= {"r0", "r0_DequantizeLinear_Output"}
    assert diverge(plain, made, "--tolerance", "0.2", status=0)["first"] is None
    assert diverge(made, plain, "--tolerance", "0.2", "--all", status=0)["compared"] >= 3
    plain, broken = quantised_by_runtime(tmp_path, 3)
    first = diverge(plain, broken, "--tolerance", "0.2")["first"]
    assert (first["value"], first["twin"]) == ("r1", "r1_DequantizeLinear_Output")
    assert diverge(broken, plain, "--tolerance", "0.2")["first"]["twin"] == "r1"


def test_bodies_capture_values(diverge):
    """What an If reads from around it leads back to the layer that differs."""
    def build(scale):
        def body(name, op):
            return helper.make_graph([helper.make_node(op, ["h"], [name])], name + "_body", [], [value(name, [4])])
        return model_of([helper.make_node("Mul", ["x", "k"], ["h"], name="mul"),
                         helper.make_node("Relu", ["x"], ["other"], name="other"),
                         helper.make_node("If", ["c"], ["y"], name="if", then_branch=body("t", "Neg"),
                                          else_branch=body("e", "Abs"))],
                        [value("x", [4]), value("c", [], TensorProto.BOOL)], [value("y", [4])],
                        [array("k", np.float32(scale))])
    d = diverge(build(1), build(1.1), "--at-once", 1)
    assert d["first"]["value"] == "h" and d["first"]["node_a"] == "mul"


def test_weights_in_another_file(diverge, tmp_path):
    paths = []
    for i, m in enumerate((chain(4), chain(4, 2))):
        folder = tmp_path / ("m%d" % i)
        folder.mkdir()
        onnx.save(m, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
        paths.append(folder / "m.onnx")
    assert diverge(*paths)["first"]["value"] == "m2"
    assert sorted(p.name for p in (tmp_path / "m0").iterdir()) == ["m.data", "m.onnx"]     # nothing is left behind


def test_models_that_do_not_go_together(diverge):
    one = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])])
    names = model_of([helper.make_node("Relu", ["x"], ["z"])], [value("x", [4])], [value("z", [4])])
    inputs = model_of([helper.make_node("Relu", ["u"], ["y"])], [value("u", [4])], [value("y", [4])])
    kinds = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", [4], TensorProto.INT32)],
                     [value("y", [4], TensorProto.INT32)])
    assert "no value of the same name" in diverge(one, names, status=2)
    assert "its input 'u' is not among those of" in diverge(one, inputs, status=2)
    assert "its input 'x' is int32, but float32 in" in diverge(one, kinds, status=2)
