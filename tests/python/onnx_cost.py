# SPDX-License-Identifier: MIT
"""Parameters and multiply-adds of an ONNX model, counted from its nodes: shapes are propagated by hand, small integer
tensors by value. Knows the operators that `tare synth` writes and fails on any other; shares no code with tare."""

import math

import numpy as np
import onnx
from onnx import numpy_helper

SAME = {"Add", "Sub", "Mul", "Div", "Pow", "Where", "And", "Less", "LessOrEqual", "Erf", "Tanh", "Sqrt", "Softmax",
        "Cast", "Not", "Relu", "Clip", "LayerNormalization", "BatchNormalization", "DequantizeLinear", "Abs", "Sign", "Neg",
        "Log", "Ceil"}
# what makes integers of integers, for shapes that are computed in the graph
VALUE = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}


def parameters(model):
    """Elements of the float weights that training would change: no constants, no running statistics."""
    skip = {name for n in model.graph.node if n.op_type == "BatchNormalization" for name in n.input[3:5]}
    return sum(math.prod(t.dims) for t in model.graph.initializer
               if t.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
               and t.name not in skip and not t.name.startswith("constant."))


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def reshaped(old, wanted):
    new = [old[i] if d == 0 else d for i, d in enumerate(wanted)]
    if -1 in new:
        new[new.index(-1)] = math.prod(old) // -math.prod(new)
    assert math.prod(new) == math.prod(old), (old, wanted)
    return tuple(new)


class Counter:
    def __init__(self, model, dims):
        self.shape, self.value, self.macs = {}, {}, 0
        for t in model.graph.initializer:
            self.shape[t.name] = tuple(t.dims)
            if t.data_type == onnx.TensorProto.INT64:
                self.value[t.name] = numpy_helper.to_array(t)
        for i in model.graph.input:
            self.shape[i.name] = tuple(dims[d.dim_param] if d.dim_param else d.dim_value
                                       for d in i.type.tensor_type.shape.dim)
        for node in model.graph.node:
            self.node(node)
        self.outputs = {o.name: self.shape[o.name] for o in model.graph.output}

    def node(self, n):
        ins = [self.shape[i] for i in n.input if i]
        vals = [self.value.get(i) for i in n.input if i]
        a = attributes(n)
        if n.op_type in SAME:
            out = np.broadcast_shapes(*ins) if n.op_type not in ("LayerNormalization", "BatchNormalization") else ins[0]
            if n.op_type in VALUE and all(v is not None for v in vals):
                self.value[n.output[0]] = VALUE[n.op_type](*vals)
        else:
            out = getattr(self, "op_" + n.op_type)(n, a, ins, vals)
        outs = out if isinstance(out, list) else [out]
        for name, shape in zip(n.output, outs, strict=True):
            self.shape[name] = tuple(int(d) for d in shape)

    # ---- products ----

    def op_MatMul(self, _n, _a, ins, _v):
        x, y = ins
        assert x[-1] == y[-2], ins
        out = np.broadcast_shapes(x[:-2], y[:-2]) + (x[-2], y[-1])
        self.macs += math.prod(out) * x[-1]
        return out

    def op_Gemm(self, _n, a, ins, _v):
        (m, k), y = ins[0], ins[1]
        n, k2 = y if a.get("transB") else y[::-1]
        assert k == k2 and ins[2] == (n,)
        self.macs += m * n * k
        return (m, n)

    def op_Conv(self, _n, a, ins, _v):
        (b, c, h, w), (o, per_group, kh, kw) = ins[0], ins[1]
        assert c == per_group * a["group"]
        out = (b, o, *((s + p0 + p1 - k) // t + 1 for s, p0, p1, k, t in zip(
            (h, w), a["pads"][:2], a["pads"][2:], (kh, kw), a["strides"])))
        self.macs += math.prod(out) * per_group * kh * kw
        return out

    # ---- shapes ----

    def op_Shape(self, n, _a, ins, _v):
        self.value[n.output[0]] = np.array(ins[0], np.int64)
        return (len(ins[0]),)

    def op_Gather(self, n, a, ins, v):
        axis = a.get("axis", 0)
        if v[0] is not None and v[1] is not None:
            self.value[n.output[0]] = np.take(v[0], v[1], axis)
        return ins[0][:axis] + ins[1] + ins[0][axis + 1:]

    def op_Unsqueeze(self, n, _a, ins, v):
        (axis,) = v[1]
        axis = int(axis) % (len(ins[0]) + 1)
        if v[0] is not None:
            self.value[n.output[0]] = np.expand_dims(v[0], axis)
        return ins[0][:axis] + (1,) + ins[0][axis:]

    def op_Range(self, n, _a, _ins, v):
        self.value[n.output[0]] = np.arange(*(int(x) for x in v))
        return self.value[n.output[0]].shape

    def op_Concat(self, n, a, ins, v):
        if all(x is not None for x in v):
            self.value[n.output[0]] = np.concatenate(v)
        axis = a["axis"]
        return ins[0][:axis] + (sum(i[axis] for i in ins),) + ins[0][axis + 1:]

    def op_Expand(self, _n, _a, ins, v):
        return np.broadcast_shapes(ins[0], tuple(v[1]))

    def op_Reshape(self, _n, _a, ins, v):
        return reshaped(ins[0], [int(d) for d in v[1]])

    def op_Transpose(self, _n, a, ins, _v):
        return tuple(ins[0][p] for p in a["perm"])

    def op_Flatten(self, _n, _a, ins, _v):
        return (ins[0][0], math.prod(ins[0][1:]))

    def op_Split(self, _n, _a, ins, v):
        return [ins[0][:-1] + (int(part),) for part in v[1]]

    def op_GatherElements(self, _n, _a, ins, _v):
        return ins[1]

    def op_GlobalAveragePool(self, _n, _a, ins, _v):
        return ins[0][:2] + (1, 1)

    def op_MaxPool(self, _n, a, ins, _v):
        size = ((s + p0 + p1 - k) // t + 1 for s, p0, p1, k, t in zip(
            ins[0][2:], a["pads"][:2], a["pads"][2:], a["kernel_shape"], a["strides"]))
        return ins[0][:2] + tuple(size)


def macs(model, **dims):
    """Multiply-adds of convolutions and matrix products, with the free dimensions set."""
    return Counter(model, dims).macs
