# SPDX-License-Identifier: MIT
"""Shape inference against ONNX Runtime itself: every value of graphs as the runtime optimises them (fused, quantised,
blocked layouts), and operators of its own domain one by one, must have the shape and type that a run gives."""

import subprocess

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

LEVELS = ["ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"]
SIZES = {"batch_size": 2, "sequence_length": 3, "past_sequence_length": 4, "past_sequence_length + sequence_length": 7}
MODELS = ["minilm-l6 --layers 1", "minilm-l6 --layers 1 --dtype int8", "gpt2-small --layers 1 --vocab 99 --kv-cache",
          "deberta-v3-base --layers 1 --vocab 99", "vit-b16 --layers 1 --image 32 --dtype fp16", "mobilenetv2 --image 64"]


def session(path, level, save=None):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level = 3
    if save:
        options.optimized_model_filepath = str(save)
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def show_all(model):
    """Every value becomes an output; nothing else is said of any."""
    have = {v.name for v in model.graph.output}
    for name in [o for n in model.graph.node for o in n.output if o and o not in have]:
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    for v in model.graph.output:
        v.ClearField("type")
    del model.graph.value_info[:]
    return model


def ran(path, feeds):
    """{output: (type, dims)} of a run of the graph as it is."""
    s = session(path, "ORT_DISABLE_ALL")
    names = [o.name for o in s.get_outputs()]
    types = {k: helper.np_dtype_to_tensor_dtype(np.dtype(v)) for k, v in NUMPY.items()}
    return {n: (types.get(o.type), list(v.shape)) for n, o, v in zip(names, s.get_outputs(), s.run(None, feeds))}


NUMPY = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64", "tensor(int64)": "int64",
         "tensor(int32)": "int32", "tensor(int8)": "int8", "tensor(uint8)": "uint8", "tensor(uint32)": "uint32",
         "tensor(bool)": "bool"}


def ones(path):
    return {i.name: np.ones([SIZES[d] if isinstance(d, str) else d for d in i.shape], NUMPY[i.type])
            for i in session(path, "ORT_DISABLE_ALL").get_inputs()}


def differences(infer_dump, model, real, path, unknown_is_fine=False):
    """One line for each output of which something else is said than the run gave."""
    onnx.save(model, path)
    sizes = ["%s=%d" % kv for kv in SIZES.items()]
    done = subprocess.run([str(infer_dump), *sizes, str(path)], capture_output=True, text=True, check=True, timeout=60)
    lines, made = [], {o: n for n in model.graph.node for o in n.output}
    assert len(done.stdout.splitlines()) == len(real), done.stdout
    for line in done.stdout.splitlines():
        fields = line.split("\t")
        assert fields[1] == "out", line
        name, kind, dims = fields[2], int(fields[3]), fields[4]
        type_, shape = real[name]
        unknown = dims == "..." or "?" in dims
        if unknown and unknown_is_fine:
            continue
        if dims != ",".join(map(str, shape)) or kind not in (type_, 0 if unknown_is_fine else type_):
            lines.append("%s '%s': %s[%s], a run gives %s%s; %s" % (made[name].op_type, name, kind, dims, type_, shape,
                                                                  fields[6]))
    return lines


@pytest.mark.parametrize("words", MODELS)
def test_every_value_of_optimised_graphs(infer_dump, build, tmp_path, words):
    plain, best, every = tmp_path / "plain.onnx", tmp_path / "best.onnx", tmp_path / "every.onnx"
    subprocess.run([str(build / "tare"), "synth", *words.split(), "-o", str(plain)], check=True, capture_output=True)
    for level in LEVELS:
        session(plain, level, save=best)
        model = show_all(onnx.load(str(best)))
        onnx.save(model, str(every))
        real = ran(every, ones(every))
        assert len(real) > 30
        assert not differences(infer_dump, model, real, str(every)), level


def f(*dims):
    return np.ones(dims, np.float32)


def b(*dims):
    return np.ones(dims, np.uint8)


def c(*dims):
    return np.ones(dims, np.int8)


def i32(*dims):
    return np.ones(dims, np.int32)


ONE, ZERO = np.float32(1), np.uint8(0)
# operator, inputs (None: left out), attributes, outputs
OPERATORS = [
    ("Attention", [f(2, 3, 8), f(8, 24), f(24)], {"num_heads": 2}, 1),
    ("Attention", [f(2, 3, 8), f(8, 24), f(24), None, f(2, 2, 2, 5, 4)], {"num_heads": 2, "unidirectional": 1}, 2),
    ("Attention", [f(2, 3, 8), f(8, 20), f(20)], {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}, 1),
    ("QAttention", [b(2, 3, 8), b(8, 24), f(24), ONE, ONE, None, ZERO, ZERO], {"num_heads": 2}, 1),
    ("MultiHeadAttention", [f(2, 3, 8), f(2, 5, 8), f(2, 5, 4)], {"num_heads": 2}, 3),
    ("MultiHeadAttention", [f(2, 3, 8), f(2, 3, 8), f(2, 3, 8), None, None, None, f(2, 2, 5, 4), f(2, 2, 5, 4)],
     {"num_heads": 2}, 3),
    ("MultiHeadAttention", [f(2, 3, 8), f(2, 2, 5, 4), f(2, 2, 5, 4)], {"num_heads": 2}, 1),
    ("GroupQueryAttention", [f(1, 3, 32), f(1, 3, 16), f(1, 3, 16), f(1, 2, 0, 8), f(1, 2, 0, 8),
                             np.array([2], np.int32), np.array(3, np.int32)], {"num_heads": 4, "kv_num_heads": 2}, 3),
    ("GroupQueryAttention", [f(1, 1, 64), None, None, f(1, 2, 9, 8), f(1, 2, 9, 8), np.array([5], np.int32),
                             np.array(6, np.int32)], {"num_heads": 4, "kv_num_heads": 2}, 3),
    ("RotaryEmbedding", [f(2, 3, 8), np.zeros(1, np.int64), f(9, 2), f(9, 2)], {"num_heads": 2}, 1),
    ("SkipLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8)], {}, 4),
    ("SkipSimplifiedLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8)], {}, 4),
    ("EmbedLayerNormalization", [i32(2, 3), i32(2, 3), f(9, 8), f(9, 8), f(2, 8), f(8), f(8), i32(2, 3)], {}, 2),
    ("FusedMatMul", [f(2, 8, 3), f(2, 8, 5)], {"transA": 1}, 1),
    ("FusedMatMul", [f(3, 2, 8), f(2, 8, 5)], {"transBatchA": 1}, 1),
    ("FusedMatMul", [f(8, 2, 3), f(2, 8, 5)], {"transBatchA": 1, "transA": 1}, 1),
    ("FusedGemm", [f(2, 8), f(8, 5), f(5)], {"activation": "Relu"}, 1),
    ("FusedConv", [f(1, 3, 8, 8), f(4, 3, 3, 3)], {"activation": "Relu", "strides": [2, 2], "pads": [1, 1, 1, 1]}, 1),
    ("MatMulNBits", [f(2, 3, 32), b(5, 1, 16), f(5)], {"K": 32, "N": 5, "bits": 4, "block_size": 32}, 1),
    ("DynamicQuantizeMatMul", [f(2, 3, 8), b(8, 5), f(1)], {}, 1),
    ("MatMulIntegerToFloat", [b(2, 3, 8), b(8, 5), ONE, ONE], {}, 1),
    ("QGemm", [b(2, 8), ONE, ZERO, b(5, 8), ONE, ZERO], {"transB": 1}, 1),
    ("QLinearAdd", [b(2, 1, 4), ONE, ZERO, b(3, 4), ONE, ZERO, ONE, ZERO], {}, 1),
    ("QLinearMul", [b(2, 4), ONE, ZERO, b(2, 4), ONE, ZERO, ONE, ZERO], {}, 1),
    ("QLinearConcat", [ONE, ZERO, b(2, 3), ONE, ZERO, b(2, 5), ONE, ZERO], {"axis": 1}, 1),
    ("QLinearAveragePool", [b(1, 8, 8, 3), ONE, ZERO, ONE, ZERO], {"kernel_shape": [3, 3], "channels_last": 1}, 1),
    ("QLinearGlobalAveragePool", [b(1, 8, 8, 3), ONE, ZERO, ONE, ZERO], {"channels_last": 1}, 1),
    ("QLinearSigmoid", [b(2, 4), ONE, ZERO, ONE, ZERO], {}, 1),
    ("QLinearLeakyRelu", [b(2, 4), ONE, ZERO, ONE, ZERO], {}, 1),
    ("QLinearSoftmax", [b(2, 4), ONE, ZERO, ONE, ZERO], {"opset": 13}, 1),
    ("QLinearWhere", [np.ones((2, 1), bool), b(1, 4), ONE, ZERO, b(2, 4), ONE, ZERO, ONE, ZERO], {}, 1),
    ("QLinearConv", [b(1, 8, 8, 3), ONE, ZERO, b(4, 3, 3, 3), ONE, ZERO, ONE, ZERO], {"channels_last": 1}, 1),
    ("QuantizeLinear", [f(2, 4), ONE, np.int8(0)], {}, 1),
    ("DequantizeLinear", [c(2, 4), ONE, np.int8(0)], {}, 1),
    ("GatherBlockQuantized", [b(9, 16), np.zeros((2, 3), np.int64), f(9, 1)], {"bits": 4, "block_size": 32}, 1),
    ("BiasGelu", [f(2, 3, 8), f(8)], {}, 1),
    ("FastGelu", [f(2, 3, 8), f(8)], {}, 1),
    ("QuickGelu", [f(2, 3, 8)], {}, 1),
    ("Gelu", [f(2, 3, 8)], {}, 1),
    ("CDist", [f(3, 8), f(5, 8)], {"metric": "euclidean"}, 1),
    ("Inverse", [np.eye(3, dtype=np.float32)], {}, 1),
    ("Trilu", [f(2, 3, 3)], {}, 1),
    ("ExpandDims", [f(2, 3), np.array(1, np.int32)], {}, 1),
    ("CropAndResize", [f(1, 3, 8, 8), f(5, 4), np.zeros(5, np.int32), np.array([2, 3], np.int32)], {}, 1),
    ("MaxpoolWithMask", [f(1, 1, 8, 8), np.ones((1, 1, 8, 8), np.int32)], {"kernel_shape": [2, 2]}, 1),
    ("MurmurHash3", [i32(2, 3)], {"positive": 1}, 1),
    ("Pad", [f(2, 3), np.array([0, 1, 0, 2], np.int64)], {}, 1),
    ("GatherND", [f(2, 3, 4), np.zeros((5, 2), np.int64)], {}, 1),
    ("NhwcMaxPool", [b(1, 8, 8, 3)], {"kernel_shape": [2, 2]}, 1),
    ("MoE", [f(6, 8), f(6, 4), f(4, 16, 8), None, f(4, 8, 16)], {"k": 2}, 1),
    ("Range", [np.float32(0), np.float32(5), np.float32(2)], {}, 1),
    ("Unique", [f(5)], {}, 3),
    ("DynamicQuantizeLSTM", [f(3, 2, 4), c(1, 4, 32), c(1, 8, 32), None, None, None, None, None, f(1), np.zeros(1, np.int8),
                             f(1), np.zeros(1, np.int8)], {"hidden_size": 8}, 3),
]


def node_model(op, inputs, attributes, outputs):
    """Data are inputs, except numbers and small lists, which are constants as they are in real models."""
    names = ["" if x is None else "x%d" % i for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, ["y%d" % i for i in range(outputs)], domain="com.microsoft", **attributes)
    given = {n: np.asarray(x) for n, x in zip(names, inputs) if n}
    small = {n for n, x in given.items() if x.ndim == 0 or (x.dtype.kind in "iu" and x.size <= 8 and x.ndim == 1)}
    values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()
              if n not in small]
    graph = helper.make_graph([node], op, values, [onnx.ValueInfoProto(name=o) for o in node.output],
                              [numpy_helper.from_array(given[n], n) for n in small])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), {n: x for n, x in given.items() if n not in small}


def test_operators_of_its_own(infer_dump, tmp_path):
    path, bad, tried = str(tmp_path / "one.onnx"), [], 0
    for op, inputs, attributes, outputs in OPERATORS:
        model, feeds = node_model(op, inputs, attributes, outputs)
        onnx.save(model, path)
        try:
            real = ran(path, feeds)
        except Exception as e:  # this runtime has no kernel for it, or other rules
            print("not run: %s: %s" % (op, str(e)[:200]))
            continue
        tried += 1
        bad += differences(infer_dump, model, real, path, unknown_is_fine=op == "Unique")
    assert tried > 0.8 * len(OPERATORS)
    assert not bad, "\n".join(bad)
