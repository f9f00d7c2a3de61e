# SPDX-License-Identifier: MIT
"""tare inspect on models that the onnx package builds: totals against arithmetic done here, unknown operators as lower
bounds, shapes that only a run can tell, documents that validate, large files in little memory."""

import csv
import io
import json
import subprocess

import jsonschema
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def value(name, dims, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def weight(name, *dims, kind=np.float32):
    return numpy_helper.from_array(np.random.default_rng(1).normal(size=dims).astype(kind), name)


def save(path, nodes, inputs, outputs, weights=(), opset=17, domains=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.fixture
def inspect(tare, root):
    """inspect(path, ...): the document, validated."""
    schema = json.loads((root / "docs/schema/run-1.json").read_text())

    def call(*args, **more):
        document = json.loads(tare("inspect", "--json", *args, **more).stdout)
        jsonschema.Draft202012Validator(schema).validate(document)
        assert document["kind"] == "inspect"
        return document

    return call


@pytest.fixture
def runtime(root):
    return {"VIRTUAL_ENV": str(root / ".venv")}


def test_totals_and_layers_by_hand(inspect, tmp_path):
    path = save(tmp_path / "m.onnx",
                [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
                 helper.make_node("Relu", ["c"], ["r"], name="relu"),
                 helper.make_node("Flatten", ["r"], ["f"], name="flat"),
                 helper.make_node("Gemm", ["f", "v", "b"], ["y"], name="fc")],
                [value("x", ["n", 3, 8, 8])], [value("y", ["n", 10])],
                [weight("w", 4, 3, 3, 3), weight("v", 256, 10), weight("b", 10)])
    d = inspect(path, "--dim", "n=2")
    conv, fc = 2 * 4 * 8 * 8 * 3 * 9, 2 * 256 * 10
    static, case = d["subject"]["static"], d["cases"][0]
    assert static["cost"]["macs"] == conv + fc and static["cost"]["complete"]
    assert static["parameters"] == 4 * 3 * 9 + 256 * 10 + 10 and static["dims"] == {"n": 2}
    assert case["name"] == "n=2" and case["params"] == {"n": 2}
    layers = {layer["name"]: layer for layer in case["layers"]}
    assert layers["conv"]["macs"] == conv and layers["fc"]["macs"] == fc
    assert layers["conv"]["output"] == "float32[2,4,8,8]" and layers["conv"]["parameters"] == 108
    assert layers["relu"]["macs"] == 0 and layers["flat"]["bytes"] == 0       # a view moves nothing
    assert static["activation_peak"] <= static["activation_arena"] <= static["activation_sum"]
    assert d["subject"]["runtime"] is None and "run" in case["unknown"]["latency_ns"]


def test_unknown_operators_make_lower_bounds(inspect, tare, tmp_path):
    path = save(tmp_path / "m.onnx",
                [helper.make_node("MatMul", ["x", "w"], ["h"], name="mm"),
                 helper.make_node("Secret", ["h"], ["s"], name="odd", domain="nowhere"),
                 helper.make_node("MatMul", ["s", "w"], ["y"], name="lost")],
                [value("x", [4, 8])], [value("y", None)], [weight("w", 8, 8)], domains=["nowhere"])
    d = inspect(path)
    cost = d["subject"]["static"]["cost"]
    assert not cost["complete"] and cost["macs"] == 4 * 8 * 8
    assert "nowhere.Secret" in d["subject"]["static"]["unknown_ops"]
    layers = {layer["name"]: layer for layer in d["cases"][0]["layers"]}
    assert layers["odd"]["macs"] is None and layers["mm"]["macs"] == 256      # unknown is not zero
    text = tare("inspect", path).stdout
    assert ">= 256 MACs" in text and "nowhere.Secret" in text and "lower bounds" in text


def test_a_run_tells_shapes_that_depend_on_data(inspect, tare, tmp_path, runtime):
    path = save(tmp_path / "m.onnx",
                [helper.make_node("NonZero", ["mask"], ["at"], name="where"),
                 helper.make_node("Transpose", ["at"], ["rows"], name="turn", perm=[1, 0]),
                 helper.make_node("GatherND", ["x", "rows"], ["picked"], name="pick"),
                 helper.make_node("MatMul", ["picked", "w"], ["y"], name="mm")],
                [value("mask", [6], TensorProto.BOOL), value("x", [6, 8])], [value("y", [None, 5])], [weight("w", 8, 5)])
    np.savez(tmp_path / "in.npz", mask=np.array([1, 0, 1, 1, 0, 0], bool), x=np.ones((6, 8), np.float32))
    before = inspect(path)["subject"]["static"]["cost"]
    assert not before["complete"]
    after = inspect(path, "--run", "--inputs", tmp_path / "in.npz", env=runtime)
    cost = after["subject"]["static"]["cost"]
    assert cost["complete"] and cost["macs"] == 3 * 8 * 5                      # three rows were picked
    assert after["subject"]["runtime"]["name"] == "onnxruntime"
    known = save(tmp_path / "k.onnx", [helper.make_node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y", [2])])
    assert "known without a run" in tare("inspect", known, "--run").stderr     # and needs no runtime


def branch(*nodes):
    return helper.make_graph(list(nodes), "branch", [], [value(nodes[-1].output[0], None)])


def if_model(path, *condition, inputs=()):
    """One product of x [B,16] where the condition holds, else two."""
    once = branch(helper.make_node("MatMul", ["x", "w"], ["t"], name="once"))
    twice = branch(helper.make_node("MatMul", ["x", "w"], ["e1"], name="first"),
                   helper.make_node("MatMul", ["e1", "w"], ["e"], name="second"))
    return save(path, [*condition, helper.make_node("If", ["c"], ["y"], name="if", then_branch=once, else_branch=twice)],
                [value("x", ["B", 16]), *inputs], [value("y", ["B", 16])],
                [weight("w", 16, 16), numpy_helper.from_array(np.int64(4), "four"),
                 numpy_helper.from_array(np.int64(0), "zero")])


def test_the_branch_that_dimensions_exclude_is_not_counted(inspect, tare, tmp_path):
    path = if_model(tmp_path / "m.onnx", helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["b"]),
                    helper.make_node("Greater", ["b", "four"], ["c"]))
    for batch, macs in ((8, 8 * 256), (4, 4 * 512)):
        static = inspect(path, "--dim", "B=%d" % batch)["subject"]["static"]
        assert static["cost"]["macs"] == macs and static["cost"]["complete"] and not static["cost"]["at_most"]
        assert static["formulas"]["macs"] == "<= 512*B" and "If" in static["unknown"]["formulas"]
    text = tare("inspect", path, "--dim", "B=8", "--symbolic").stdout
    assert "\ncompute    2,048 MACs" in text and "dearer branch of an If" in text


def test_a_branch_that_data_choose_makes_an_upper_bound(inspect, tare, tmp_path, runtime):
    path = if_model(tmp_path / "m.onnx", inputs=[value("c", [], TensorProto.BOOL)])
    cost = inspect(path, "--dim", "B=2")["subject"]["static"]["cost"]
    assert cost["macs"] == 1024 and cost["at_most"] and "<= 1,024 MACs" in tare("inspect", path, "--dim", "B=2").stdout
    np.savez(tmp_path / "in.npz", x=np.ones((2, 16), np.float32), c=np.array(True))
    cost = inspect(path, "--run", "--inputs", tmp_path / "in.npz", env=runtime)["subject"]["static"]["cost"]
    assert cost["macs"] == 512 and not cost["at_most"]                         # the run tells which


def test_graphs_inside_an_operator_are_counted(inspect, tmp_path):
    """FlexAttention applies score_mod to all scores: one addition each here, and nothing of it moves."""
    bias = numpy_helper.from_array(np.float32(0.5), "bias")
    mod = helper.make_graph([helper.make_node("Add", ["scores", "bias"], ["out"])], "mod", [value("scores", list("BHLS"))],
                            [value("out", list("BHLS"))], [bias])
    costs = []
    for attributes in ({}, {"score_mod": mod}):
        path = save(tmp_path / "m.onnx", [helper.make_node("FlexAttention", ["q", "k", "k"], ["y"], name="flex",
                                                           domain="ai.onnx.preview", **attributes)],
                    [value("q", [1, 2, 3, 4]), value("k", [1, 2, 5, 4])], [value("y", None)], domains=["ai.onnx.preview"])
        costs.append(inspect(path)["subject"]["static"]["cost"])
    scores = 2 * 3 * 5
    assert [c["complete"] for c in costs] == [True, True] and costs[0]["macs"] == costs[1]["macs"] == scores * 8
    assert [c["simple"] for c in costs] == [scores * 4, scores * 5] and costs[0]["bytes_read"] == costs[1]["bytes_read"]


def test_lists_of_values_cost_nothing_of_their_own(inspect, tmp_path):
    path = save(tmp_path / "m.onnx", [helper.make_node("SequenceConstruct", ["x", "x"], ["s"], name="list"),
                                      helper.make_node("ConcatFromSequence", ["s"], ["y"], name="join", axis=0)],
                [value("x", [2, 8])], [value("y", None)])
    cost = inspect(path)["subject"]["static"]["cost"]
    assert cost["complete"] and cost["bytes_read"] == cost["bytes_written"] == 4 * 4 * 8


def test_dimensions_of_a_run_are_those_of_its_inputs(inspect, tmp_path, runtime):
    path = save(tmp_path / "m.onnx",
                [helper.make_node("MatMul", ["x", "w"], ["dense"], name="dense"),
                 helper.make_node("NonZero", ["mask"], ["at"], name="where"),
                 helper.make_node("Transpose", ["at"], ["rows"], name="turn", perm=[1, 0]),
                 helper.make_node("GatherND", ["x", "rows"], ["picked"], name="pick"),
                 helper.make_node("MatMul", ["picked", "w"], ["sparse"], name="sparse")],
                [value("mask", ["B"], TensorProto.BOOL), value("x", ["B", 16])],
                [value("dense", ["B", 16]), value("sparse", [None, 16])], [weight("w", 16, 16)])
    np.savez(tmp_path / "in.npz", mask=np.array([1, 0, 1, 1, 0, 0], bool), x=np.ones((6, 16), np.float32))
    subject = inspect(path, "--run", "--optimized", "--inputs", tmp_path / "in.npz", env=runtime)["subject"]
    static, optimized = subject["static"], subject["static_optimized"]
    assert static["dims"] == optimized["dims"] == {"B": 6} and static["cost"]["macs"] == (6 + 3) * 256


def test_a_run_tells_how_often_a_loop_goes_round(inspect, tmp_path, runtime):
    body = helper.make_graph([helper.make_node("MatMul", ["v", "w"], ["v2"], name="mm"),
                              helper.make_node("Identity", ["go"], ["go2"], name="keep")], "body",
                             [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [2, 8])],
                             [value("go2", [], TensorProto.BOOL), value("v2", [2, 8])])
    path = save(tmp_path / "m.onnx", [helper.make_node("Loop", ["m", "", "x"], ["y"], name="loop", body=body)],
                [value("m", [], TensorProto.INT64), value("x", [2, 8])], [value("y", [2, 8])], [weight("w", 8, 8)])
    assert not inspect(path)["subject"]["static"]["cost"]["complete"]
    np.savez(tmp_path / "in.npz", m=np.int64(7), x=np.ones((2, 8), np.float32))
    cost = inspect(path, "--run", "--inputs", tmp_path / "in.npz", env=runtime)["subject"]["static"]["cost"]
    assert cost["complete"] and cost["macs"] == 7 * 2 * 8 * 8


def test_inputs_that_are_no_tensors_of_numbers_are_refused_by_name(tare, tmp_path, runtime):
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    for proto, word in ((helper.make_sequence_type_proto(kind), "sequence"), (helper.make_optional_type_proto(kind), "optional"),
                        (helper.make_tensor_type_proto(TensorProto.STRING, [2]), "text")):
        path = save(tmp_path / "m.onnx", [helper.make_node("Identity", ["odd"], ["y"])],
                    [helper.make_value_info("odd", proto)], [helper.make_value_info("y", proto)])
        (folder / "input_0.pb").write_bytes(numpy_helper.from_list([np.ones(2, np.float32)], "odd").SerializeToString())
        for args in (["bench", path], ["inspect", "--diverge", path, path]):
            said = tare(*args, "--inputs", folder, env=runtime, status=3).stderr
            assert "input 'odd'" in said and word in said and "not supported" in said


def test_a_dimension_below_zero_is_refused(tare, tmp_path):
    def model(size):
        return save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [value("x", [size])], [value("y", [size])])
    assert "x.0=1*" in tare("inspect", model(-1)).stdout                       # a habit of some exporters
    said = tare("inspect", model(-2**31), status=2).stderr
    assert "dim[0]" in said and "-2147483648" in said


def test_optimized_graph_beside_the_file(inspect, tmp_path, runtime):
    path = save(tmp_path / "m.onnx",
                [helper.make_node("Add", ["a", "b"], ["k"], name="fold"),
                 helper.make_node("MatMul", ["x", "k"], ["h"], name="mm"),
                 helper.make_node("Identity", ["h"], ["y"], name="id")],
                [value("x", ["n", 8])], [value("y", ["n", 8])], [weight("a", 8, 8), weight("b", 8, 8)])
    d = inspect(path, "--optimized", "--batch", "4", env=runtime)
    raw, opt = d["subject"]["static"], d["subject"]["static_optimized"]
    assert raw["nodes"] == 3 and opt["nodes"] == 1 and opt["ops"] == {"MatMul": 1}
    assert raw["cost"]["macs"] == opt["cost"]["macs"] == 4 * 64
    assert raw["parameters"] == 128 and opt["parameters"] == 64


def test_names_from_hostile_models_cannot_steer(tare, inspect, tmp_path):
    evil = "a\x1b[2J,\"q\"\n<b>|`x`\x7f\u009b\u200f\u2028\u202e\ufeff\U000e0041"
    path = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"], name=evil)], [value("x", ["d\x07m"])],
                [value("y", ["d\x07m"])])
    for args in ([], ["--csv", "-"], ["--symbolic"], ["--json"]):
        done = tare("inspect", path, *args)
        assert not set("\x1b\x07\x7f\u009b\u200f\u2028\u202e\ufeff\U000e0041") & set(done.stdout)
    rows = list(csv.DictReader(io.StringIO(tare("inspect", path, "--csv", "-").stdout, newline="")))
    assert len(rows) == 1 and rows[0]["op"] == "Relu"
    assert inspect(path)["cases"][0]["layers"][0]["name"] == evil              # the document keeps it


def test_layers_of_bench_documents_are_reported(tare, tmp_path, root):
    """A document with timed layers, as `tare bench --layers` makes them, in every format."""
    run = json.loads((root / "tests/cli/report/sweep.run.json").read_text())
    layer = {"name": "/encoder/layer.0/MatMul", "op": "MatMul", "group": "mlp", "nodes": 1, "calls": 10, "total_ns": 10_000_000,
             "time_ns": 1_000_000.0, "share": 0.8, "macs": 500_000_000, "flops": 1_000_000_000, "bytes": 2_000_000,
             "intensity": 500.0, "rate": 1e12, "bound": "compute", "roof_share": 0.5, "speedup_if_free": 5.0}
    small = {"name": "/encoder/layer.0/Softmax", "op": "Softmax", "group": "attention", "nodes": 1, "time_ns": 250_000.0,
             "share": 0.2, "macs": 0, "bytes": 1000}
    run["cases"] = run["cases"][:1]
    run["cases"][0]["layers"] = [small, layer]
    run["cases"][0]["profile"] = {"runs": 10, "latency_ns": 1_300_000, "overhead": 0.04, "node_ns": 300, "covered": 0.97}
    run["roof"] = {"threads": 2, "flops": 2e12, "int_ops": None, "bandwidth": 1e10, "measured": "2026-11-15T00:00:00Z"}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run))
    text = tare("report", path).stdout
    section = text[text.index("\nlayers"):]
    lines = section.splitlines()
    assert lines[2].split()[:6] == ["layer", "op", "time", "share", "MACs", "FLOP/B"]
    assert lines[3].startswith("/encoder/layer.0/MatMul") and "1.00 ms" in lines[3] and "80.0 %" in lines[3]
    assert "1 TFLOP/s" in lines[3] and "compute" in lines[3] and "50.0 %" in lines[3] and lines[3].endswith("5.00")
    assert "10 profiled runs, +4.0 % by the profiler" in section and "97.0 % of the plain median" in section
    assert "this machine's peak: 2 TFLOP/s, 10 GB/s with 2 threads" in section
    assert "group " in section and "operator" in section and "as a hint" not in section
    run["cases"][0]["profile"]["covered"] = 2.3
    (tmp_path / "busy.json").write_text(json.dumps(run))
    busy = tare("report", tmp_path / "busy.json").stdout
    assert "230.0 % of the plain median beside them" in busy and "% of the case's: other work disturbed it" in busy
    markdown = tare("report", path, "-f", "md").stdout
    assert "<details><summary>layers" in markdown and "| /encoder/layer.0/MatMul | MatMul |" in markdown
    rows = list(csv.DictReader(io.StringIO(tare("report", path, "-f", "layers").stdout, newline="")))
    assert [r["time_ns"] for r in rows] == ["250000", "1000000"] and rows[1]["bound"] == "compute"
    assert rows[0]["flops"] == ""                                              # unknown is empty


# What a child takes at most: asked for by a small program, because a child of Python's counts Python's memory too.
PEAK = r"""
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct rusage used;
    int status = argc;
    pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stdout);
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (wait4(child, &status, 0, &used) != child) return 1;
    printf("%ld\n", used.ru_maxrss);
    return status != 0;
}
"""


def test_half_a_gigabyte_in_little_memory(build, compile_c, tmp_path):
    """A weight of 500 MB that is a hole in the file: reading it would show in the resident set."""
    megabytes = 500
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[megabytes << 15, 8])
    graph = helper.make_graph([helper.make_node("Gather", ["w", "i"], ["y"])], "g", [value("i", ["n"], TensorProto.INT64)],
                              [value("y", ["n", 8])], [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def varint(n):
        out = b""
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])

    size = megabytes << 20
    head = tensor.SerializeToString() + b"\x4a" + varint(size)                 # field 9, raw_data, and its length
    inner = model.graph.SerializeToString()
    model.ClearField("graph")
    body = inner + b"\x2a" + varint(len(head) + size) + head                  # field 5, initializer
    front = model.SerializeToString() + b"\x3a" + varint(len(body) + size) + body   # field 7, graph
    path = tmp_path / "big.onnx"
    with open(path, "wb") as f:
        f.write(front)
        f.truncate(len(front) + size)
    done = subprocess.run([compile_c(PEAK), build / "tare", "inspect", path], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50 << 10, "%s KiB resident" % done.stdout
