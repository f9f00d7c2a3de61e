# SPDX-License-Identifier: MIT
"""What the ONNX reader in C says of a model (test_onnx --dump FILE) and what the public onnx package says must agree; and
the bounds of inputs must be what ONNX Runtime accepts."""

import json
import os
import pathlib
import subprocess

import made
import numpy as np
import onnx
import onnx_models
import pytest
from onnx import TensorProto as T
from onnx import numpy_helper as nh

NAMES = {T.FLOAT: "float32", T.DOUBLE: "float64", T.UNDEFINED: "undefined"}
INTEGERS = {T.INT8, T.UINT8, T.INT16, T.UINT16, T.INT32, T.INT64, T.UINT32, T.UINT64, T.INT4, T.UINT4, T.BOOL}


@pytest.fixture(scope="session")
def binary():
    return os.environ.get("TARE_TEST_ONNX") or str(made.make("build/tests/test_onnx")[0])


@pytest.fixture
def dump(binary):
    def call(path):
        done = subprocess.run([binary, "--dump", str(path)], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    return call


def type_name(kind):
    return NAMES.get(kind, T.DataType.Name(kind).lower())


def tensor(t, folder=""):
    small = t.data_type in INTEGERS and int(np.prod(t.dims)) <= 64
    values = nh.to_array(t, folder).reshape(-1).astype(object) if small else None
    return {"name": t.name, "type": type_name(t.data_type), "dims": list(t.dims),
            "ints": [int(v) for v in values] if small else None}


def attribute(a, folder):
    out = {"name": a.name, "kind": a.type, "i": a.i, "ints": list(a.ints), "floats": len(a.floats),
           "strings": len(a.strings), "s": len(a.s)}
    if a.HasField("t"):
        out["t"] = tensor(a.t, folder)
    if a.HasField("g"):
        out["g"] = graph(a.g, folder)
    return out


def domain(text):
    return "" if text == "ai.onnx" else text


def nodes(items, folder):
    return [{"name": n.name, "op": n.op_type, "domain": domain(n.domain), "inputs": list(n.input),
             "outputs": list(n.output), "attributes": [attribute(a, folder) for a in n.attribute]} for n in items]


def values(items):
    kinds = {"tensor_type": "tensor", "sequence_type": "sequence", "map_type": "map", "optional_type": "optional",
             "sparse_tensor_type": "sparse tensor", "opaque_type": "opaque", None: ""}
    out = []
    for v in items:
        kind = v.type.WhichOneof("value")
        t = v.type.tensor_type
        shape = None
        if kind == "tensor_type" and t.HasField("shape"):
            shape = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in t.shape.dim]
        out.append({"name": v.name, "kind": kinds[kind], "dims": shape,
                    "type": type_name(t.elem_type if kind == "tensor_type" else T.UNDEFINED)})
    return out


def graph(g, folder=""):
    given = {t.name for t in g.initializer} | {s.values.name for s in g.sparse_initializer}
    return {"name": g.name, "nodes": nodes(g.node, folder), "initializers": [tensor(t, folder) for t in g.initializer],
            "sparse": len(g.sparse_initializer), "inputs": values(v for v in g.input if v.name not in given),
            "outputs": values(g.output), "values": values(g.value_info)}


def model(m, folder=""):
    return {"ir_version": m.ir_version, "producer": m.producer_name,
            "opsets": {domain(o.domain): o.version for o in m.opset_import},
            "metadata": {p.key: p.value for p in m.metadata_props},
            "functions": [{"name": f.name, "domain": f.domain, "inputs": list(f.input), "outputs": list(f.output),
                           "nodes": nodes(f.node, folder)} for f in m.functions],
            "graph": graph(m.graph, folder)}


def same(said, want):
    for key, value in want.items():
        assert said.get(key) == value, (key, said.get("error"))


@pytest.mark.parametrize("name", onnx_models.MODELS)
def test_agrees_with_onnx(name, dump, tmp_path):
    made = onnx_models.MODELS[name]()
    onnx.save(made, tmp_path / "m.onnx")
    same(dump(tmp_path / "m.onnx"), model(onnx.load(tmp_path / "m.onnx")))


def test_agrees_on_the_models_of_the_onnx_project(dump):
    """The models that the onnx package brings along, as it reads them itself."""
    found = sorted(pathlib.Path(onnx.__file__).parent.glob("backend/test/data/**/*.onnx"))
    assert len(found) > 50
    for path in found:
        said = dump(path)
        assert "error" not in said, (path, said)
        same(said, model(onnx.load(path, load_external_data=False), str(path.parent)))


def test_external_data(dump, tmp_path):
    made = onnx_models.bert()
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    said = dump(tmp_path / "m.onnx")
    same(said, model(onnx.load(tmp_path / "m.onnx", load_external_data=False), str(tmp_path)))
    assert said["bounds"]["input_ids"] == 50
    (tmp_path / "link").mkdir()  # as download caches are: links to blobs elsewhere
    (tmp_path / "link/m.onnx").symlink_to(tmp_path / "m.onnx")
    (tmp_path / "link/weights.bin").symlink_to(tmp_path / "weights.bin")
    assert "error" not in dump(tmp_path / "link/m.onnx")
    (tmp_path / "weights.bin").write_bytes(b"short")
    assert "truncated?" in dump(tmp_path / "m.onnx")["error"]
    (tmp_path / "weights.bin").unlink()
    assert "'weights.bin' is not beside the model" in dump(tmp_path / "m.onnx")["error"]


PARAMETERS = {"bert": (50 * 8 + 2 * 8, "float32"), "gpt": (64 * 8 + 34 * 8, "float32"),
              "control": (2 * (90 + 80 + 70 + 75), "float32"), "quantized": (16 * 32 + 16 * 32, "int8"),
              "normalized": (4 * 3 + 4 + 4, "float32")}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name, dump, tmp_path):
    onnx.save(onnx_models.MODELS[name](), tmp_path / "m.onnx")
    said = dump(tmp_path / "m.onnx")
    assert (said["parameters"], said["weight_type"]) == PARAMETERS[name]


BOUNDS = {"bert": {"input_ids": 50, "token_type_ids": 2, "attention_mask": 0},
          "bert7": {"input_ids": 50, "token_type_ids": 2, "attention_mask": 0},
          "gpt": {"input_ids": 64, "position_ids": 32, "past": 0},
          "control": {"flag": 0, "ids": 70}, "functions": {"ids": 22}, "old": {"ids": 40}}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_are_what_the_runtime_accepts(name, dump, tmp_path):
    """The largest allowed value runs; for indices one more does not."""
    ort = pytest.importorskip("onnxruntime")
    onnx.save(onnx_models.MODELS[name](), tmp_path / "m.onnx")
    bounds = dump(tmp_path / "m.onnx")["bounds"]
    assert bounds == BOUNDS[name]
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), options, providers=["CPUExecutionProvider"])
    sizes = {"batch": 2, "seq": 3, "past_seq": 1}
    kinds = {"tensor(int64)": np.int64, "tensor(float)": np.float32, "tensor(bool)": np.bool_}

    def feed(excess):
        out = {}
        for i in session.get_inputs():
            shape = [sizes.get(d, d) for d in i.shape]
            largest = max(bounds[i.name] - 1, 0) + (excess if bounds[i.name] else 0)
            out[i.name] = np.full(shape, largest, kinds[i.type])
        return out

    session.run(None, feed(0))
    with pytest.raises(Exception, match="indices|idx|bounds"):
        session.run(None, feed(1))


@pytest.mark.parametrize("content,words", [
    (b"", "empty"), (b"\x08\x08", "no graph"), (b"PK\x03\x04" + bytes(60), "zip archive (PyTorch?)"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer: fetch the real file"),
    (b"<html></html>", "HTML"), (b'{"a": 1}', "JSON"), (bytes(range(200, 256)) * 9, "at byte"),
])
def test_refusals(content, words, dump, tmp_path):
    (tmp_path / "m.onnx").write_bytes(content)
    said = dump(tmp_path / "m.onnx")["error"]
    assert words in said and str(tmp_path / "m.onnx") in said


def test_every_damaged_byte_is_read_or_refused(binary, tmp_path):
    """Each byte of a model set to an extreme, in turn: never a crash."""
    good = onnx_models.control().SerializeToString()
    paths = []
    for i in range(0, len(good), 7):
        path = tmp_path / ("%d.onnx" % i)
        path.write_bytes(good[:i] + b"\xff" + good[i + 1:])
        paths.append(str(path))
    done = subprocess.run([binary, "--dump", *paths], capture_output=True, text=True, check=True)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(paths) and any("error" in s for s in said)
