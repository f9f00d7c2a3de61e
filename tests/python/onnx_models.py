# SPDX-License-Identifier: MIT
"""Small ONNX models of every kind that the reader must know, made with the public onnx package.

    python tests/python/onnx_models.py FOLDER     write them all (the seeds of fuzz/corpus/onnx)"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

RNG = np.random.default_rng(1)


def weights(name, *shape, dtype=np.float32):
    return nh.from_array(RNG.standard_normal(shape).astype(dtype), name)


def ints(name, values):
    return nh.from_array(np.array(values, np.int64), name)


def value(name, kind=T.INT64, shape=("batch", "seq")):
    return h.make_tensor_value_info(name, kind, shape)


def finish(nodes, inputs, outputs, init=(), opset=17, extra=(), **more):
    graph = h.make_graph(nodes, "g", inputs, outputs, list(init), sparse_initializer=more.pop("sparse", None),
                         value_info=more.pop("values", None))
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset), *extra], producer_name="tests", **more)
    model.ir_version = 8 if opset < 21 else 10
    return model


def bert(opset=17):
    """Three embeddings and a mask; the type ids go through a Cast, the word ids through an Unsqueeze and a Squeeze."""
    squeeze = {"axes": [0]} if opset < 13 else {}
    axes = [] if opset < 13 else ["axes0"]
    nodes = [h.make_node("Unsqueeze", ["input_ids", *axes], ["u"], **squeeze),
             h.make_node("Squeeze", ["u", *axes], ["s"], **squeeze),
             h.make_node("Gather", ["word", "s"], ["w"], name="/embeddings/word"),
             h.make_node("Cast", ["token_type_ids"], ["t32"], to=T.INT32),
             h.make_node("Gather", ["type", "t32"], ["t"]),
             h.make_node("Add", ["w", "t"], ["e"]),
             h.make_node("Cast", ["attention_mask"], ["m"], to=T.FLOAT),
             h.make_node("Sub", ["one", "m"], ["inverse"]),
             h.make_node("ReduceMax", ["inverse"], ["worst"], keepdims=0),
             h.make_node("Mul", ["e", "worst"], ["scaled"]),
             h.make_node("Add", ["scaled", "e"], ["out"])]
    return finish(nodes, [value("input_ids"), value("token_type_ids"), value("attention_mask")],
                  [value("out", T.FLOAT, ("batch", "seq", 8))],
                  [weights("word", 50, 8), weights("type", 2, 8), nh.from_array(np.float32(1), "one"), ints("axes0", [0])],
                  opset)


def gpt():
    """Positions as OPT has them (offset 2), a cache that is concatenated, tied output weights."""
    nodes = [h.make_node("Gather", ["wte", "input_ids"], ["t"]),
             h.make_node("Constant", [], ["two"], value_int=2),
             h.make_node("Add", ["position_ids", "two"], ["p2"]),
             h.make_node("Gather", ["wpe", "p2"], ["p"]),
             h.make_node("Add", ["t", "p"], ["x"]),
             h.make_node("Concat", ["past", "x"], ["present"], axis=1),
             h.make_node("Transpose", ["wte"], ["wteT"], perm=[1, 0]),
             h.make_node("MatMul", ["present", "wteT"], ["logits"])]
    return finish(nodes, [value("input_ids"), value("position_ids"), value("past", T.FLOAT, ("batch", "past_seq", 8))],
                  [value("logits", T.FLOAT, ("batch", "all_seq", 64)), value("present", T.FLOAT, ("batch", "all_seq", 8))],
                  [weights("wte", 64, 8), weights("wpe", 34, 8)])


def control():
    """If, Loop and Scan, each with the index inside."""
    then = h.make_graph([h.make_node("Gather", ["a", "ids"], ["x"])], "then", [], [value("x", T.FLOAT, None)])
    other = h.make_graph([h.make_node("Gather", ["b", "ids"], ["x"])], "else", [], [value("x", T.FLOAT, None)])
    body = h.make_graph([h.make_node("Identity", ["cond_in"], ["cond_out"]),
                         h.make_node("Gather", ["c", "carried"], ["row"]),
                         h.make_node("Identity", ["carried"], ["next"])], "body",
                        [value("iter", T.INT64, ()), value("cond_in", T.BOOL, ()), value("carried", T.INT64, None)],
                        [value("cond_out", T.BOOL, ()), value("next", T.INT64, None), value("row", T.FLOAT, None)])
    step = h.make_graph([h.make_node("Gather", ["d", "one"], ["got"])], "step", [value("one", T.INT64, ())],
                        [value("got", T.FLOAT, (2,))])
    nodes = [h.make_node("If", ["flag"], ["y"], then_branch=then, else_branch=other),
             h.make_node("Loop", ["trips", "", "ids"], ["last", "rows"], body=body),
             h.make_node("Scan", ["last"], ["scanned"], body=step, num_scan_inputs=1)]
    return finish(nodes, [value("flag", T.BOOL, ()), value("ids", T.INT64, (4,))],
                  [value("y", T.FLOAT, None), value("rows", T.FLOAT, None), value("scanned", T.FLOAT, None)],
                  [weights("a", 90, 2), weights("b", 80, 2), weights("c", 70, 2), weights("d", 75, 2),
                   nh.from_array(np.array(2, np.int64), "trips")])


def functions():
    embed = h.make_function("mine", "Embed", ["table", "x"], ["y"],
                            [h.make_node("Constant", [], ["one"], value_int=1), h.make_node("Sub", ["x", "one"], ["z"]),
                             h.make_node("Gather", ["table", "z"], ["y"])], [h.make_opsetid("", 17)])
    model = finish([h.make_node("Embed", ["w", "ids"], ["out"], domain="mine")], [value("ids")],
                   [value("out", T.FLOAT, None)], [weights("w", 21, 4)], extra=[h.make_opsetid("mine", 1)],
                   functions=[embed])
    h.set_model_props(model, {"author": "tests", "task": "embed"})
    return model


def types():
    """One initializer of each type that holds integers, in raw and in typed fields; sparse, string and float ones."""
    init = [h.make_tensor("raw_" + np.dtype(d).name, k, [3], np.array([0, 1, 5], d).tobytes(), raw=True)
            for k, d in [(T.INT8, np.int8), (T.UINT8, np.uint8), (T.INT16, np.int16), (T.UINT16, np.uint16),
                         (T.INT32, np.int32), (T.INT64, np.int64), (T.UINT32, np.uint32), (T.UINT64, np.uint64)]]
    for kind in (T.INT8, T.UINT8, T.INT16, T.UINT16, T.INT32, T.INT64, T.UINT32, T.UINT64, T.INT4, T.UINT4, T.BOOL):
        init.append(h.make_tensor("typed_%d" % kind, kind, [3], [1, 0, 1]))
    for kind in (T.INT8, T.INT16, T.INT32, T.INT64, T.INT4):
        init.append(h.make_tensor("negative_%d" % kind, kind, [2, 1], [-3, 2]))
    for kind in (T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16, T.FLOAT8E4M3FN, T.FLOAT8E5M2, T.COMPLEX64):
        init.append(h.make_tensor("float_%d" % kind, kind, [2], [1.0, 2.0]))
    init.append(h.make_tensor("strings", T.STRING, [2], [b"one", b"two"]))
    init.append(h.make_tensor("nothing", T.FLOAT, [0, 4], []))
    sparse = h.make_sparse_tensor(weights("sparse", 2), ints("sparse_at", [1, 3]), [5])
    outputs = [h.make_value_info("seq", h.make_sequence_type_proto(h.make_tensor_type_proto(T.FLOAT, None))),
               h.make_value_info("opt", h.make_optional_type_proto(h.make_tensor_type_proto(T.FLOAT, [2])))]
    nodes = [h.make_node("SequenceConstruct", ["x", "x"], ["seq"]), h.make_node("Optional", ["x"], ["opt"]),
             h.make_node("Resize", ["x", "", "scales"], ["r"], mode="nearest", axes=[0, 1], cubic_coeff_a=-0.5),
             h.make_node("TfIdfVectorizer", ["raw_int64"], ["v"], pool_strings=["a", "b"], weights=[0.5, 1.5])]
    return finish(nodes, [value("x", T.FLOAT, (None, "n", 3))], outputs, [*init, weights("scales", 2)], 21,
                  [h.make_opsetid("com.microsoft", 1), h.make_opsetid("ai.onnx.ml", 3)], sparse=[sparse],
                  values=[value("v", T.FLOAT, ("n", 2))])


def quantized():
    """Dynamic quantisation and a 4-bit weight: scales and zero points are no parameters."""
    w = nh.from_array(RNG.integers(-127, 127, (16, 32)).astype(np.int8), "w")
    packed = nh.from_array(RNG.integers(0, 255, (32, 1, 8)).astype(np.uint8), "packed")
    nodes = [h.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
             h.make_node("MatMulInteger", ["q", "w", "z", "w_zero"], ["y"]),
             h.make_node("MatMulNBits", ["x", "packed", "scales"], ["n"], domain="com.microsoft", K=16, N=32, bits=4,
                         block_size=16)]
    return finish(nodes, [value("x", T.FLOAT, ("batch", 16))], [value("y", T.INT32, None), value("n", T.FLOAT, None)],
                  [w, packed, weights("scales", 32), nh.from_array(np.zeros(32, np.int8), "w_zero")],
                  extra=[h.make_opsetid("com.microsoft", 1)])


def normalized():
    """A batch normalisation: its mean and variance are measured, not learned."""
    nodes = [h.make_node("Conv", ["x", "k"], ["c"]), h.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["out"])]
    return finish(nodes, [value("x", T.FLOAT, ("batch", 3, 8, 8))], [value("out", T.FLOAT, None)],
                  [weights("k", 4, 3, 1, 1), weights("s", 4), weights("b", 4), weights("m", 4),
                   nh.from_array(np.ones(4, np.float32), "v")])


def old():
    """Opset 7, IR version 3: initializers are listed as inputs too, Clip and Slice have attributes."""
    nodes = [h.make_node("Slice", ["ids"], ["s"], axes=[0], starts=[0], ends=[2]),
             h.make_node("Gather", ["w", "s"], ["g"], axis=1), h.make_node("Clip", ["g"], ["out"], min=0.0, max=6.0)]
    model = finish(nodes, [value("ids", T.INT64, (4,)), value("w", T.FLOAT, (3, 40))], [value("out", T.FLOAT, (3, 2))],
                   [weights("w", 3, 40)], 7)
    model.ir_version = 3
    return model


MODELS = {"bert": bert, "bert7": lambda: bert(7), "bert23": lambda: bert(23), "gpt": gpt, "control": control,
          "functions": functions, "types": types, "quantized": quantized, "normalized": normalized, "old": old}


if __name__ == "__main__":
    for name_, make in MODELS.items():
        onnx.save(make(), pathlib.Path(sys.argv[1]) / (name_ + ".onnx"))
