# SPDX-License-Identifier: MIT
"""Shape inference over all models of the ONNX project's test data: every one is read, and what is said of its outputs
equals the recorded outputs or is said to be unknown. Each model is tried three times: with the shapes of its recorded
inputs; with its small inputs made constants too (sizes, axes, scales); with sizes made free dimensions.
TARE_ONNX_DATA=FOLDER also takes the data of another release of the package: FOLDER/node/test_abs/model.onnx and so on."""

import collections
import os
import pathlib
import subprocess
import warnings

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, defs, helper, numpy_helper  # noqa: E402

SMALL = {"ints": 4096, "floats": 64}  # elements of inputs that become constants
LEAST = {"as recorded": 0.95, "constants": 0.98, "free": 0.95}  # share of outputs known where nothing hangs on data
Case = collections.namedtuple("Case", "name model inputs outputs")


def made_cases():
    """Cases that the package makes of code; they have their data with them."""
    import onnx.backend.test.case.model as models
    import onnx.backend.test.case.node as nodes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = nodes.collect_testcases(None) + models.collect_testcases()
    for c in found:
        if c.model is not None and c.data_sets:
            yield Case(c.name, c.model, *map(list, c.data_sets[0]))


def load(path, kind):
    """A recorded value: an array, or None for what is no tensor."""
    if kind.WhichOneof("value") != "tensor_type":
        return None
    return onnx.load_tensor(str(path))


def stored_cases():
    """Cases that the package holds as files."""
    more = os.environ.get("TARE_ONNX_DATA")
    places = [pathlib.Path(onnx.__file__).parent / "backend/test/data"] + ([pathlib.Path(more)] if more else [])
    for folder in [f for place in places for f in sorted(place.glob("*/*"))]:
        sets = sorted(folder.glob("test_data_set_*"))
        if not (folder / "model.onnx").exists():
            continue
        model = onnx.load(str(folder / "model.onnx"))
        known = {i.name for i in model.graph.initializer}
        inputs = [i for i in model.graph.input if i.name not in known]
        ins, outs = [], []
        if sets:
            ins = [load(sets[0] / ("input_%d.pb" % i), v.type) for i, v in enumerate(inputs)
                   if (sets[0] / ("input_%d.pb" % i)).exists()]
            outs = [load(sets[0] / ("output_%d.pb" % i), v.type) for i, v in enumerate(model.graph.output)
                    if (sets[0] / ("output_%d.pb" % i)).exists()]
        yield Case("%s/%s" % (folder.parent.name, folder.name), model, ins, outs)


def dims_of(value):
    if isinstance(value, TensorProto):
        return list(value.dims)
    return list(value.shape) if hasattr(value, "shape") else None


def as_constant(name, value, kind):
    """A small recorded input as an initializer; None: it stays an input."""
    if not isinstance(value, TensorProto):
        try:
            value = numpy_helper.from_array(np.asarray(value))
        except (TypeError, ValueError, KeyError, NotImplementedError):
            return None
    elements = int(np.prod(value.dims))
    floats = value.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE)
    if value.data_type != kind.tensor_type.elem_type or elements > SMALL["floats" if floats else "ints"]:
        return None
    out = TensorProto()
    out.CopyFrom(value)
    out.name = name
    return out


def free_inputs(model):
    known = {i.name for i in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in known]


def bare(case):
    """A copy that tells nothing of values but its inputs."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    del model.graph.value_info[:]
    for v in model.graph.output:
        v.ClearField("type")
    return model


def sized(model, inputs, write):
    for v, data in zip(free_inputs(model), inputs):
        dims = dims_of(data)
        if dims is None or v.type.WhichOneof("value") != "tensor_type":
            continue
        v.type.tensor_type.ClearField("shape")
        v.type.tensor_type.shape.SetInParent()
        for d in dims:
            write(v.type.tensor_type.shape.dim.add(), d)


def fixed_dim(dim, size):
    dim.dim_value = size


def free_dim(dim, size):
    """Sizes that are equal get one name; 1 stays, since it broadcasts."""
    if size > 1:
        dim.dim_param = "d%d" % size
    else:
        dim.dim_value = size


def as_recorded(case):
    model = bare(case)
    sized(model, case.inputs, fixed_dim)
    return model


def with_constants(case):
    model = as_recorded(case)
    for v, data in zip(free_inputs(model), case.inputs):
        tensor = v.type.WhichOneof("value") == "tensor_type" and data is not None
        t = as_constant(v.name, data, v.type) if tensor else None
        if t is not None:
            model.graph.initializer.append(t)
    return model


def with_free_dims(case):
    model = with_constants(case)
    fixed = {i.name for i in model.graph.initializer}
    pairs = zip(free_inputs(case.model), case.inputs)
    rest = [data for v, data in pairs if v.name not in fixed]
    sized(model, rest, free_dim)
    return model


VARIANTS = {"as recorded": as_recorded, "constants": with_constants, "free": with_free_dims}


@pytest.fixture(scope="session")
def cases():
    found = list(made_cases()) + list(stored_cases())
    assert len(found) > 1500, "the package's test data is not there: %d models" % len(found)
    return found


def expected(case):
    """What was recorded for each tensor output: (name, type, dims)."""
    out = []
    for v, data in zip(case.model.graph.output, case.outputs):
        if v.type.WhichOneof("value") != "tensor_type" or data is None or dims_of(data) is None:
            continue
        out.append((v.name, v.type.tensor_type.elem_type, dims_of(data)))
    return out


def said(infer_dump, sizes, files):
    """{file: {output: (type, dims text, hangs on data, why)}} and {file: error}."""
    done = subprocess.run([str(infer_dump), *sizes, *files], capture_output=True, text=True, check=True, timeout=300)
    outputs, errors = collections.defaultdict(dict), {}
    for line in done.stdout.splitlines():
        file, what, rest = line.split("\t", 2)
        if what == "error":
            errors[file] = rest
            continue
        name, kind, dims, data, why = rest.split("\t")
        outputs[file][name] = (int(kind), dims, data == "data", why)
    return outputs, errors


def judge(want, got):
    """"right", "wrong", "data" or "unknown"."""
    kind, dims, data, _ = got
    words = [d for d in dims.split(",") if d]
    if kind not in (0, want[1]):
        return "wrong"
    if dims != "..." and len(words) != len(want[2]):
        return "wrong"
    if dims != "..." and any(w not in ("?", str(d)) for w, d in zip(words, want[2])):
        return "wrong"
    if dims == "..." or "?" in words:
        return "data" if data else "unknown"
    return "right" if kind else "unknown"


@pytest.mark.parametrize("variant", VARIANTS)
def test_outputs_are_as_recorded(infer_dump, cases, tmp_path, variant):
    files = []
    for i, case in enumerate(cases):
        files.append(str(tmp_path / ("%d.onnx" % i)))
        pathlib.Path(files[-1]).write_bytes(VARIANTS[variant](case).SerializeToString())
    sizes = {d for case in cases for v in case.inputs for d in dims_of(v) or []}
    outputs, errors = said(infer_dump, ["d%d=%d" % (n, n) for n in sorted(sizes)], files)
    lists = collections.defaultdict(list)
    for file, case in zip(files, cases):
        if file in errors:
            lists["error"].append("%s: %s" % (case.name, errors[file]))
            continue
        for want in expected(case):
            got = outputs[file].get(want[0], (0, "...", False, "not said"))
            lists[judge(want, got)].append("%s: %s %s%s, recorded %s%s; %s" % (
                case.name, want[0], got[0], got[1], want[1], want[2], got[3]))
    for kind in ("unknown", "data"):
        print("\n%s (%d):" % (kind, len(lists[kind])), *lists[kind], sep="\n  ")
    print({k: len(v) for k, v in lists.items()})
    assert not lists["error"], "\n".join(lists["error"][:50])
    assert not lists["wrong"], "\n".join(lists["wrong"][:50])
    share = len(lists["right"]) / (len(lists["right"]) + len(lists["unknown"]))
    assert share >= LEAST[variant], "%.1f %% of outputs known" % (100 * share)


def test_every_operator_has_a_rule(infer_dump, tmp_path):
    """All operators that the package knows, in all versions since opset 7: what is wrong with such a bare node may be said,
    but not that the operator is unknown."""
    files = {}
    for schema in defs.get_all_schemas_with_history():
        version = max(schema.since_version, 7 if schema.domain == "" else 1)
        inputs = ["x%d" % i for i in range(min(schema.max_input, 4))]
        outputs = ["y%d" % i for i in range(max(schema.min_output, 1))]
        node = helper.make_node(schema.name, inputs, outputs, domain=schema.domain)
        values = [helper.make_tensor_value_info(i, TensorProto.FLOAT, None) for i in inputs]
        graph = helper.make_graph([node], "bare", values, [onnx.ValueInfoProto(name=o) for o in outputs])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(schema.domain, version)])
        path = tmp_path / ("%s.%s.%d.onnx" % (schema.domain, schema.name, schema.since_version))
        path.write_bytes(model.SerializeToString())
        if not (schema.deprecated and schema.since_version > 7):
            files[str(path)] = schema
    done = subprocess.run([str(infer_dump), *files], capture_output=True, text=True, check=True, timeout=60)
    lines = done.stdout.splitlines()
    assert {line.split("\t")[0] for line in lines} == set(files)
    assert not [line for line in lines if "no rule for operator" in line]
