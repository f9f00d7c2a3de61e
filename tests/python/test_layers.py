# SPDX-License-Identifier: MIT
"""Layers on a real runtime: tare bench --layers and tare import --ort-profile against what ONNX Runtime itself says."""

import json
import os

import jsonschema
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper, numpy_helper

QUOTED = 'loop/"quoted\\mm'


@pytest.fixture(scope="session")
def validator(root):
    return jsonschema.Draft202012Validator(json.loads((root / "docs/schema/run-1.json").read_text()))


@pytest.fixture
def bench(tare, root, validator, tmp_path):
    """bench(*args): the document of `tare bench --json`, validated. Nothing may be left in the temporary folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def call(*args):
        env = {"VIRTUAL_ENV": str(root / ".venv"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(scratch)}
        done = tare("bench", "--json", "--no-save", "--budget", "500ms", "--threads", "1", *args, env=env)
        document = json.loads(done.stdout)
        validator.validate(document)
        assert [f for f in os.listdir(scratch) if f.startswith("tare")] == [] and os.stat("/dev/null").st_rdev
        return document

    return call


@pytest.fixture
def bert(tare, tmp_path):
    tare("synth", "minilm-l6", "--layers", 2, "--hidden", 64, "--heads", 4, "--ffn", 128, "--vocab", 200, "-o", "bert.onnx")
    return tmp_path / "bert.onnx"


@pytest.fixture
def control(tmp_path):
    """An If and a Loop around products, with names that need escaping."""

    def matrix(name):
        return numpy_helper.from_array(np.eye(8, dtype=np.float32), name)

    def branch(name):
        nodes = [helper.make_node("MatMul", ["x", name + "_w"], [name + "_m"], name=name + "/mm")]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name + "_m", T.FLOAT, None)],
                                 [matrix(name + "_w")])

    body = helper.make_graph(
        [helper.make_node("Identity", ["c_in"], ["c_out"], name="loop/cond"),
         helper.make_node("MatMul", ["a_in", "lw"], ["a_out"], name=QUOTED)], "body",
        [helper.make_tensor_value_info("it", T.INT64, []), helper.make_tensor_value_info("c_in", T.BOOL, []),
         helper.make_tensor_value_info("a_in", T.FLOAT, None)],
        [helper.make_tensor_value_info("c_out", T.BOOL, []), helper.make_tensor_value_info("a_out", T.FLOAT, None)],
        [matrix("lw")])
    nodes = [helper.make_node("ReduceSum", ["x"], ["s"], name="sum", keepdims=0),
             helper.make_node("Greater", ["s", "zero"], ["c"], name='cond "x\\y"'),
             helper.make_node("If", ["c"], ["y"], name="branch", then_branch=branch("then"), else_branch=branch("else")),
             helper.make_node("Loop", ["n", "", "y"], ["z"], name="the loop", body=body),
             helper.make_node("Sigmoid", ["z"], ["out"], name="")]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("out", T.FLOAT, ["batch", 8])],
        [numpy_helper.from_array(np.array(0, np.float32), "zero"), numpy_helper.from_array(np.array(3, np.int64), "n")])
    path = tmp_path / "control.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def profile(model, feeds, runs, prefix):
    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix, options.intra_op_num_threads = True, str(prefix), 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    for _ in range(runs):
        session.run(None, feeds)
    return session.end_profiling()


def check_sums(case):
    layers = case["layers"]
    assert sum(layer["share"] for layer in layers) == pytest.approx(1)
    assert all(layer["time_ns"] >= 0 for layer in layers)
    # The sum against the plain runs beside it: a part of what the profiled runs took, and near to them, unless others on
    # the machine slowed the profiled runs or the plain ones.
    covered, overhead = case["profile"]["covered"], case["profile"]["overhead"]
    assert covered <= (1 + overhead) * 1.001
    assert 0.5 < covered < 2 or not -0.3 < overhead < 1
    return {layer["name"]: layer for layer in layers}


def test_layers_are_the_nodes_that_ran_with_their_cost(bench, bert):
    run = bench(bert, "--batch", 2, "--seq", 16, "--layers")
    case = run["cases"][0]
    layers = check_sums(case)
    assert {layer["provider"] for layer in case["layers"]} == {"CPUExecutionProvider", None}
    assert "(runtime)" in layers and layers["(runtime)"]["op"] is None
    dense = layers["/encoder/layer.1/intermediate/dense/MatMul"]
    assert dense["macs"] == 2 * 16 * 64 * 128 and dense["output"] == "float32[2,16,128]" and dense["group"] == "mlp"
    assert dense["calls"] == case["profile"]["runs"]
    gelu = layers["/encoder/layer.1/BiasGelu"]  # BiasGelu_token_N in the runtime's words
    assert gelu["op"] == "BiasGelu" and gelu["nodes"] == 6 and gelu["group"] == "mlp"
    scores = layers["/encoder/layer.0/attention/self/MatMul"]
    assert scores["op"] == "FusedMatMul" and scores["nodes"] == 2 and scores["macs"] == 2 * 16 * 16 * 64
    static, optimized = run["subject"]["static"], run["subject"]["static_optimized"]
    assert static["cost"]["macs"] == optimized["cost"]["macs"] == case["cost"]["macs"]
    assert sum(layer["macs"] or 0 for layer in case["layers"]) == case["cost"]["macs"]
    assert optimized["nodes"] == len(case["layers"]) - 1 < static["nodes"]
    assert sum(layer["nodes"] or 0 for layer in case["layers"]) == static["nodes"]
    assert not {"layers", "cost", "profile"} & set(case["unknown"])  # known, so there is no reason why not


def test_patterns_make_groups_and_the_model_is_not_one(bench, bert):
    asked = bench("--layers", bert, "--seq", 8)["cases"][0]  # the word after --layers is the model
    assert {layer["group"] for layer in asked["layers"]} >= {"attention", "mlp", "embedding", "norm"}
    case = bench(bert, "--seq", 8, "--layers", "attention,mlp,embedding")["cases"][0]
    groups = {layer["group"] for layer in case["layers"]}
    assert groups == {"attention", "mlp", "embedding", "other", "runtime"}
    off = bench(bert, "--seq", 8, "--layers=no")["cases"][0]
    assert not off["layers"] and "not asked for" in off["unknown"]["layers"]


def test_each_case_has_its_own_layers(bench, bert):
    run = bench(bert, "--batch", "1,4", "--seq", 8, "--layers")
    macs = [next(layer["macs"] for layer in c["layers"] if layer["name"].endswith("layer.0/output/dense/MatMul"))
            for c in run["cases"]]
    assert macs == [8 * 128 * 64, 4 * 8 * 128 * 64]


def test_cases_of_other_threads_have_rates_but_no_roof(bench, bert):
    one, two = bench(bert, "--seq", 8, "--layers", "--threads", "1,2")["cases"]
    assert any(layer["roof_share"] for layer in one["layers"])
    assert all(layer["roof_share"] is None for layer in two["layers"]) and any(layer["rate"] for layer in two["layers"])
    assert "threads" in two["unknown"]["layers.roof_share"]


def test_bodies_are_layers_of_their_own(bench, control):
    case = bench(control, "--batch", 2, "--layers")["cases"][0]
    layers = check_sums(case)
    assert layers["the loop > " + QUOTED]["macs"] == 3 * 2 * 8 * 8
    assert layers["the loop > " + QUOTED]["calls"] == 3 * case["profile"]["runs"]
    assert layers["branch > then/mm"]["macs"] == 2 * 8 * 8
    assert layers['cond "x\\y"']["op"] == "Greater"
    assert layers["the loop"]["macs"] is None  # what is in it has its own


def test_layout_changes_are_the_runtimes_own(bench, tare, tmp_path):
    tare("synth", "mobilenetv2", "--image", 64, "-o", "net.onnx")
    case = bench(tmp_path / "net.onnx", "--layers")["cases"][0]
    layers = check_sums(case)
    names = {n.name for n in onnx.load(tmp_path / "net.onnx").graph.node}
    convolutions = [layer for layer in case["layers"] if layer["op"] == "Conv"]
    assert convolutions and all(layer["name"] in names and layer["macs"] > 0 for layer in convolutions)
    assert all(layer["nodes"] == 0 for layer in layers.values() if layer["op"] == "ReorderOutput")


def test_import_tells_what_the_runtime_measured(tare, control, tmp_path):
    path = profile(control, {"x": np.ones((2, 8), np.float32)}, 3, tmp_path / "p")
    done = tare("import", "--ort-profile", path, "--model", control, "--skip", 0, "--no-save", "--json")
    case = json.loads(done.stdout)["cases"][0]
    events = [e for e in json.load(open(path, encoding="utf-8")) if e["name"].endswith("_kernel_time")]
    layers = {layer["name"]: layer for layer in case["layers"]}
    raw = [e["dur"] for e in events if e["name"] == "sum_kernel_time"]
    assert layers["sum"]["total_ns"] == 1000 * sum(raw) and layers["sum"]["calls"] == 3
    assert layers["the loop > " + QUOTED]["calls"] == 9
    assert case["profile"]["overhead"] is None  # nothing to compare with
    assert layers["sum"]["bytes"] is not None  # batch = 2, read off the shapes
    assert json.loads(done.stdout)["subject"]["static"]["dims"] == {"batch": 2}


def test_import_of_a_model_whose_dimensions_do_not_show(tare, tmp_path):
    graph = helper.make_graph([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], "g",
                              [helper.make_tensor_value_info("x", T.FLOAT, ["n"])],
                              [helper.make_tensor_value_info("y", T.FLOAT, [])])
    model = tmp_path / "sum.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    path = profile(model, {"x": np.ones(5, np.float32)}, 2, tmp_path / "p")
    done = tare("import", "--ort-profile", path, "--model", model, "--no-save", "--json")
    assert "does not tell 'n'" in done.stderr
    assert all(layer["bytes"] is None for layer in json.loads(done.stdout)["cases"][0]["layers"])
    done = tare("import", "--ort-profile", path, "--model", model, "--dim", "n=5", "--no-save", "--json")
    assert "does not tell" not in done.stderr
    tare("import", "--ort-profile", path, "--model", model, "--dim", "m=5", status=2)
