# SPDX-License-Identifier: MIT
"""The ONNX subject over the real ONNX Runtime: outputs equal those of the Python package on the same inputs, inputs are
valid for the model, and the ONNX project's own node tests run with the expected outputs or are refused by name.
TARE_NODE_TESTS=250 runs a seeded sample of the node tests."""

import collections
import json
import os
import random
import subprocess

import made
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


@pytest.fixture(scope="session")
def program():
    """The driver, built from the tree's own sources."""
    return made.make("build/helpers/subject_run")[0]


@pytest.fixture(scope="session")
def library():
    """The library of the same package that gives the second opinion."""
    capi = os.path.join(os.path.dirname(ort.__file__), "capi")
    return [os.path.join(capi, n) for n in os.listdir(capi) if n.startswith("libonnxruntime.so.")][0]


@pytest.fixture
def subject(program, library, tmp_path):
    """subject(model, batch=2, ...): (document, inputs, outputs) of a run, or its error text where fails=True."""

    def call(model, fails=False, **keys):
        path = model
        if not isinstance(model, (str, os.PathLike)):
            path = tmp_path / "model.onnx"
            onnx.save(model, path)
        files = [tmp_path / "in.npz", tmp_path / "out.npz"]
        args = ["ort=" + library, "save_inputs=%s" % files[0], "save_outputs=%s" % files[1]]
        args += ["%s=%s" % (k.rstrip("_"), v) for k, v in keys.items()]
        done = subprocess.run([str(program), str(path), *args], capture_output=True, text=True, timeout=120, check=False)
        if fails:
            assert done.returncode == 1, done.stdout + done.stderr
            return done.stderr
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), dict(np.load(files[0])), dict(np.load(files[1]))

    return call


def model_of(nodes, inputs, outputs, initializers=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def info(name, kind, dims):
    return helper.make_tensor_value_info(name, kind, dims)


def embedding(rows=1000, width=16):
    rng = np.random.default_rng(1)
    table = numpy_helper.from_array(rng.normal(size=(rows, width)).astype("f4"), "table")
    weight = numpy_helper.from_array(rng.normal(size=(width, 4)).astype("f4"), "weight")
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["e"]),
             helper.make_node("Cast", ["attention_mask"], ["m"], to=TensorProto.FLOAT),
             helper.make_node("Unsqueeze", ["m", "two"], ["m3"]), helper.make_node("Mul", ["e", "m3"], ["em"]),
             helper.make_node("ReduceMean", ["em"], ["mean"], axes=[1], keepdims=0),
             helper.make_node("MatMul", ["mean", "weight"], ["logits"])]
    two = numpy_helper.from_array(np.array([2], "i8"), "two")
    dims = ["batch_size", "sequence_length"]
    return model_of(nodes, [info("input_ids", TensorProto.INT64, dims), info("attention_mask", TensorProto.INT64, dims)],
                    [info("logits", TensorProto.FLOAT, ["batch_size", 4])], [table, weight, two])


def second_opinion(model, inputs):
    """What the Python package makes of the same model and inputs."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def test_outputs_are_those_of_the_package(subject):
    model = embedding()
    document, inputs, outputs = subject(model, batch=3, seq=17, threads=1, runs=3)
    want = second_opinion(model, inputs)
    np.testing.assert_allclose(outputs["logits"], want["logits"], rtol=1e-6, atol=1e-7)
    assert inputs["input_ids"].shape == (3, 17)
    assert (inputs["attention_mask"] == 1).all()
    case = document["cases"][0]
    assert case["units_per_run"] == 3
    assert case["params"] == {"batch": 3, "seq": 17, "threads": 1, "precision": "fp32", "provider": "cpu"}
    assert document["subject"]["runtime"] == {"name": "onnxruntime", "version": ort.__version__}


def test_ids_use_the_whole_table_and_no_more(subject):
    _, inputs, _ = subject(embedding(rows=50), batch=8, seq=128)
    ids = inputs["input_ids"]
    assert ids.min() == 0 and ids.max() == 49


def test_the_seed_decides(subject):
    model = embedding()
    a, b, c = (subject(model, batch=2, seq=8, seed=s)[1]["input_ids"] for s in (1, 1, 2))
    assert (a == b).all() and (a != c).any()


def test_arena_statistics(subject):
    memory = subject(embedding(), batch=2, seq=8)[0]["cases"][0]["memory"]
    assert memory["arena"]["TotalAllocated"] >= memory["arena"]["MaxInUse"] > 0
    assert 0 <= memory["fragmentation"] < 1


def test_fixed_dimensions_give_the_same_outputs(subject):
    model = embedding()
    free, fixed = (subject(model, batch=2, seq=8, fix=f)[2]["logits"] for f in (0, 1))
    np.testing.assert_allclose(free, fixed, rtol=1e-5, atol=1e-6)


def test_no_inputs(subject):
    constant = numpy_helper.from_array(np.arange(6, dtype="f4").reshape(2, 3), "c")
    model = model_of([helper.make_node("Neg", ["c"], ["y"])], [], [info("y", TensorProto.FLOAT, [2, 3])], [constant])
    _, _, outputs = subject(model)
    assert (outputs["y"] == -np.arange(6).reshape(2, 3)).all()


def test_inputs_from_npz(subject, tmp_path):
    model = embedding()
    ids, mask = np.arange(30).reshape(5, 6).astype("i8"), np.ones((5, 6), "i8")
    np.savez_compressed(tmp_path / "x.npz", input_ids=ids, attention_mask=mask)
    document, inputs, outputs = subject(model, inputs=tmp_path / "x.npz")
    assert (inputs["input_ids"] == ids).all() and document["cases"][0]["params"]["batch"] == 5
    np.testing.assert_allclose(outputs["logits"], second_opinion(model, inputs)["logits"], rtol=1e-6, atol=1e-7)
    _, inputs, _ = subject(model, inputs=tmp_path / "x.npz", batch=7)
    assert (inputs["input_ids"] == np.concatenate([ids, ids[:2]])).all()
    message = subject(model, inputs=tmp_path / "x.npz", seq=9, fails=True)
    assert "'input_ids' is [5, 9] in this case, but its data are [5, 6]" in message and "x.npz" in message
    np.savez(tmp_path / "x.npz", input_ids=ids.astype("i4"), attention_mask=mask)
    assert "'input_ids' is int64, but its data are int32" in subject(model, inputs=tmp_path / "x.npz", fails=True)
    np.savez(tmp_path / "x.npz", ids=ids, attention_mask=mask)
    assert "no data for input 'input_ids'" in subject(model, inputs=tmp_path / "x.npz", fails=True)


def test_nan_outputs_are_counted(subject):
    model = model_of([helper.make_node("Log", ["x"], ["y"])], [info("x", TensorProto.FLOAT, [64])],
                     [info("y", TensorProto.FLOAT, [64])])
    document, inputs, _ = subject(model)
    assert document["cases"][0]["nan_outputs"] == int((inputs["x"] <= 0).sum())


def test_data_dependent_shapes(subject):
    model = model_of([helper.make_node("NonZero", ["x"], ["y"])], [info("x", TensorProto.BOOL, [100])],
                     [info("y", TensorProto.INT64, [1, "found"])])
    _, inputs, outputs = subject(model, runs=4)
    assert (outputs["y"][0] == np.flatnonzero(inputs["x"])).all()


def test_external_data(subject, tmp_path):
    model = embedding(rows=4000)
    onnx.save(model, tmp_path / "ext.onnx", save_as_external_data=True, location="ext.bin", size_threshold=64)
    _, inputs, outputs = subject(tmp_path / "ext.onnx", batch=2, seq=8)
    np.testing.assert_allclose(outputs["logits"], second_opinion(embedding(rows=4000), inputs)["logits"], rtol=1e-6, atol=1e-7)


SMALL = ["--layers", "2", "--hidden", "64", "--heads", "4", "--ffn", "128", "--vocab", "500"]
ARCHITECTURES = [
    (["minilm-l6", *SMALL], {"batch": 3, "seq": 12}), (["minilm-l6", *SMALL, "--dtype", "int8"], {"batch": 3, "seq": 12}),
    (["minilm-l6", *SMALL, "--dtype", "fp16"], {"batch": 2, "seq": 8}), (["distilbert", *SMALL], {"batch": 2, "seq": 8}),
    (["deberta-v3-base", *SMALL], {"batch": 2, "seq": 8}), (["gpt2-small", *SMALL], {"batch": 2, "seq": 8}),
    (["gpt2-small", *SMALL, "--kv-cache"], {"batch": 2, "seq": 4}),
    (["gpt2-small", *SMALL, "--kv-cache"], {"batch": 2, "seq": 1, "dim": "past_sequence_length:6"}),
    (["mobilenetv2", "--image", "32"], {"batch": 2}), (["mlp", "--sizes", "20,30,5"], {"batch": 7}),
]


@pytest.mark.parametrize("arch,keys", ARCHITECTURES, ids=lambda x: "-".join(w for w in x if w[0] != "-" and w[0] > "9"))
def test_synthesised_models(subject, tare, tmp_path, arch, keys):
    path = tmp_path / "synth.onnx"
    tare("synth", *arch, "-o", path)
    document, inputs, outputs = subject(path, threads=1, **keys)
    params = document["cases"][0]["params"]
    assert params["batch"] == keys["batch"] and params.get("seq", 0) == keys.get("seq", 0)
    assert params["precision"] == (arch[arch.index("--dtype") + 1] if "--dtype" in arch else "fp32")
    want = second_opinion(onnx.load(path), inputs)
    for name, value in want.items():
        np.testing.assert_allclose(outputs[name].astype("f8"), value.astype("f8"), rtol=1e-3, atol=1e-3, err_msg=name)
    assert document["cases"][0]["nan_outputs"] == 0


@pytest.mark.parametrize("name,content,says", [
    ("empty", b"", "the file is empty"), ("text", b"hello world, not a model", "looks like text"),
    ("random", random.Random(1).randbytes(5000), "tare's own reader"),
    ("zeros", bytes(4096), "tare's own reader"),
])
def test_garbage_is_refused(subject, tmp_path, name, content, says):
    path = tmp_path / (name + ".onnx")
    path.write_bytes(content)
    message = subject(path, fails=True)
    assert says in message and path.name in message


def test_truncated_and_unknown(subject, tmp_path):
    whole = embedding().SerializeToString()
    for share in (0.01, 0.3, 0.9, 0.999):
        path = tmp_path / "cut.onnx"
        path.write_bytes(whole[:int(len(whole) * share)])
        assert "cut.onnx" in subject(path, fails=True)
    model = model_of([helper.make_node("NoSuchOp", ["x"], ["y"])], [info("x", TensorProto.FLOAT, [2])],
                     [info("y", TensorProto.FLOAT, [2])])
    assert "NoSuchOp" in subject(model, fails=True)
    model = model_of([helper.make_node("Identity", ["x"], ["y"])], [info("x", TensorProto.STRING, [2])],
                     [info("y", TensorProto.STRING, [2])])
    assert "'x' is a tensor of text" in subject(model, fails=True)


def test_a_provider_that_is_not_there(subject):
    message = subject(embedding(), provider="cuda", fails=True)
    assert "provider 'cuda' cannot be used" in message and "CPUExecutionProvider" in message


# Bound to the memory of the CPU provider the same calls are made as for a GPU's.
def test_bound_inputs_and_outputs_give_the_same(subject):
    model = embedding()
    _, inputs, outputs = subject(model, batch=3, seq=17, threads=1, runs=3, workers=2, bind="Cpu")
    np.testing.assert_allclose(outputs["logits"], second_opinion(model, inputs)["logits"], rtol=1e-6, atol=1e-7)


def test_bound_outputs_of_a_shape_that_depends_on_data(subject):
    model = model_of([helper.make_node("RandomUniform", [], ["r"], shape=[64]), helper.make_node("Greater", ["r", "x"], ["m"]),
                      helper.make_node("NonZero", ["m"], ["y"])], [info("x", TensorProto.FLOAT, [64])],
                     [info("y", TensorProto.INT64, [1, "n"])])
    _, _, outputs = subject(model, runs=20, bind="Cpu")
    assert outputs["y"].shape[0] == 1 and 0 < outputs["y"].shape[1] < 64


def test_inputs_and_outputs_on_a_gpu_need_one(subject):
    assert "provider 'cpu' has no memory of its own" in subject(embedding(), io="gpu", fails=True)
    assert "io 'disk': host or gpu" in subject(embedding(), io="disk", fails=True)


# ---- the ONNX project's own tests ------------------------------------------------------------------

def node_cases():
    from onnx.backend.test.case.node import collect_testcases
    try:
        cases = collect_testcases(None)
    except TypeError:
        cases = collect_testcases()
    cases = [c for c in cases if c.model is not None and c.data_sets]
    random.Random(3).shuffle(cases)
    return cases[:int(os.environ.get("TARE_NODE_TESTS", len(cases)))]


def write_case(folder, case):
    """The model and its first data set as files; None when an input or output is no tensor."""
    folder.mkdir()
    onnx.save(case.model, folder / "model.onnx")
    inputs, outputs = case.data_sets[0]
    (folder / "data").mkdir()
    names = [i.name for i in case.model.graph.input]
    for k, value in enumerate(inputs):
        if isinstance(value, (list, dict)) or value is None:
            return None
        proto = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value), names[k])
        (folder / "data" / ("input_%d.pb" % k)).write_bytes(proto.SerializeToString())
    return outputs


def same(got, want):
    want = numpy_helper.to_array(want) if isinstance(want, onnx.TensorProto) else np.asarray(want)
    if want.dtype.kind not in "biufc" or got.dtype != want.dtype:  # types that NumPy has not itself
        want = want.astype("f8")
    if want.dtype.kind in "fc":
        return got.shape == want.shape and np.allclose(got, want, rtol=1e-3, atol=1e-5, equal_nan=True)
    return got.shape == want.shape and (got == want).all()


def package_runs(model, folder):
    """Whether the Python package itself runs the model with the expected inputs, and what it gives."""
    try:
        session = ort.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
        feeds = {}
        for k, given in enumerate(i.name for i in session.get_inputs()):
            proto = onnx.TensorProto.FromString((folder / "data" / ("input_%d.pb" % k)).read_bytes())
            feeds[given] = numpy_helper.to_array(proto)
        return session.run(None, feeds)
    except Exception:  # whatever the runtime says, it is its own refusal
        return None


REFUSALS = ("is a tensor of text", "arrays of text", "is a sequence", "is an optional", "is a map", "is no tensor",
            "is a sparse", "is not supported", "ONNX Runtime: ")


def judge(line, folder, case, outputs):
    """ok: right outputs. refused: by name. Anything else is a failure."""
    if line != "ok":
        if "ONNX Runtime: " in line and package_runs(case.model, folder) is not None:
            return "failed: the package runs it, tare does not: " + line
        reason = [r for r in REFUSALS if r in line]
        return "refused (%s): %s" % (reason[0].strip(": "), line) if reason else "failed: " + line
    got = dict(np.load(folder / "out.npz"))
    pairs = list(zip([o.name for o in case.model.graph.output], outputs))
    if all(name in got and same(got[name], want) for name, want in pairs):
        return "ok"
    theirs = package_runs(case.model, folder)
    if theirs is not None and all(same(got[name], w) for (name, _), w in zip(pairs, theirs)):
        return "as the runtime"  # the runtime itself differs from the reference, and so do we
    return "failed: outputs differ"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_onnx_node_tests(program, library, tmp_path, capsys):
    jobs, counts, lines = [], collections.Counter(), []
    for n, case in enumerate(node_cases()):
        folder = tmp_path / ("c%d" % n)
        outputs = write_case(folder, case)
        if outputs is None:
            counts["no tensors"] += 1
            continue
        jobs.append((folder, case, outputs))
        keys = ["ort=" + library, "threads=1", "runs=2", "save_outputs=%s" % (folder / "out.npz")]
        if case.model.graph.input:
            keys.append("inputs=%s" % (folder / "data"))
        lines.append("\t".join([str(folder / "model.onnx"), *keys]))
    done = subprocess.run([str(program), "-"], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=600,
                          check=False)
    answers = done.stdout.splitlines()
    assert done.returncode == 0 and len(answers) == len(jobs), done.stderr[-2000:]
    failures = []
    for (folder, case, outputs), answer in zip(jobs, answers):
        verdict = judge(answer, folder, case, outputs)
        counts[verdict.split(":")[0]] += 1
        if verdict.startswith("failed"):
            failures.append("%s: %s" % (case.name, verdict))
    with capsys.disabled():
        print("\nONNX node tests: " + ", ".join("%d %s" % (v, k) for k, v in counts.most_common()))
    assert not failures, "\n".join(failures[:40])
    assert counts["ok"] > len(jobs) // 2
