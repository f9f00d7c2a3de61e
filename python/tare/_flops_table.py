# SPDX-License-Identifier: MIT
"""PyTorch's operators as ONNX operators with cost rules: a table, and the dispatch mode that looks calls up in it.

A rule takes (args, kwargs, result) of a call and gives the ONNX operators it is worth, as (op, inputs, outputs, attributes) with
shapes only. In-place and out= forms share the row of the plain one. Imported when the first counter opens: it needs torch.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tare import _tare
from tare._flops import PARTS, Cost

Value = Any  # None or (type, shape[, constant])
Call = tuple  # (op, inputs, outputs, attributes)
Rule = Callable[[tuple, dict, Any], list]

_TYPES = {
    torch.qint8: "int8",
    torch.quint8: "uint8",
    torch.qint32: "int32",
    torch.float8_e4m3fn: "float8e4m3fn",
    torch.float8_e5m2: "float8e5m2",
}


def value(x: Any) -> Value:
    """A tensor by its type and shape; a plain number as a constant scalar."""
    if isinstance(x, torch.Tensor):
        return (_TYPES.get(x.dtype) or str(x.dtype)[6:], tuple(x.shape))
    if isinstance(x, (bool, int, float)):
        return ("float32", (), True)
    return None


def argument(args: tuple, kwargs: dict, at: int, name: str, otherwise: Any = None) -> Any:
    return args[at] if len(args) > at else kwargs.get(name, otherwise)


def first(out: Any) -> Any:
    return out[0] if isinstance(out, (tuple, list)) else out


def with_shape(v: Value, shape: tuple) -> Value:
    return (v[0], shape)


# ---- rules that many rows share ----


def each(op: str, **attributes: Any) -> Rule:
    """Element by element, of the first operand or two operands."""

    def rule(args: tuple, kwargs: dict, out: Any) -> list[Call]:
        operands = [value(a) for a in args[:2] if isinstance(a, (torch.Tensor, bool, int, float))]
        # The rules look at the type of the first operand: a tensor, also in 2 - x.
        operands.sort(key=lambda v: len(v) > 2)
        return [(op, operands, [value(first(out))], attributes)]

    return rule


def chain(*ops: str) -> Rule:
    """Several element-wise steps over the shape of the result: what a fused operator is worth."""

    def rule(args: tuple, kwargs: dict, out: Any) -> list[Call]:
        v = value(first(out))
        return [(op, [v, v], [v], None) for op in ops]

    return rule


def plain(op: str, inputs: tuple[int, ...] = (0,), **attributes: Callable[[tuple], Any]) -> Rule:
    """An operator of the arguments at these places, with the first result; attributes are made of all arguments."""

    def rule(args: tuple, kwargs: dict, out: Any) -> list[Call]:
        made = {name: make(args) for name, make in attributes.items()}
        return [(op, [value(args[at]) for at in inputs], [value(first(out))], made or None)]

    return rule


def moved(op: str) -> Rule:
    """Bytes only. A list of tensors (cat, stack) counts each."""

    def rule(args: tuple, kwargs: dict, out: Any) -> list[Call]:
        listed = args[0] if args and isinstance(args[0], (list, tuple)) else args[:2]
        return [(op, [value(a) for a in listed if isinstance(a, torch.Tensor)], [value(first(out))], None)]

    return rule


def nothing(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """Another look at the same bytes, or numbers made from nothing: no arithmetic of the model."""
    return []


# ---- products ----


def addmm(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    scale = {"alpha": float(kwargs.get("alpha", 1)), "beta": float(kwargs.get("beta", 1))}
    return [("Gemm", [value(args[1]), value(args[2]), value(args[0])], [value(out)], scale)]


def batched_addmm(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    return [*plain("MatMul", (1, 2))(args, kwargs, out), ("Add", [value(out), value(args[0])], [value(out)], None)]


def grouped(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """_grouped_mm: each row meets the matrix of its group, so that the products are those of one matrix."""
    a, b = value(args[0]), value(args[1])
    if len(a[1]) < 3 or len(b[1]) < 3:
        a, b = with_shape(a, a[1][-2:]), with_shape(b, b[1][-2:])
    return [("MatMul", [a, b], [with_shape(value(out), (*a[1][:-1], b[1][-1]))], None)]


def linear(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    bias = argument(args, kwargs, 2, "bias")
    calls = [("MatMul", [value(args[0]), with_shape(value(args[1]), tuple(args[1].shape[::-1]))], [value(out)], None)]
    return calls + ([("Add", [value(out), value(bias)], [value(out)], None)] if bias is not None else [])


def linear_quantized(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """Dynamically quantised: the weights are packed, the shapes tell their size."""
    weights = ("int8", (args[0].shape[-1], out.shape[-1]))
    inputs = [value(args[0]), weights, ("float32", (1,)), ("int8", (1,)), ("float32", (out.shape[-1],))]
    return [("DynamicQuantizeMatMul", inputs, [value(out)], None)]


def einsum_pair(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    operands = args[1] if isinstance(args[1], (list, tuple)) else args[1:]
    return [("Einsum", [value(a) for a in operands], [value(out)], {"equation": args[0]})]


def convolution(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    op = "ConvTranspose" if argument(args, kwargs, 6, "transposed", False) else "Conv"
    return [(op, [value(args[0]), value(args[1]), value(argument(args, kwargs, 2, "bias"))], [value(out)], None)]


def conv_plain(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """conv1d, conv2d, conv3d."""
    return [("Conv", [value(args[0]), value(args[1]), value(argument(args, kwargs, 2, "bias"))], [value(out)], None)]


def convolution_backward(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """The gradients of input and weights are each the products of the forward pass; that of the bias a sum."""
    op = "ConvTranspose" if args[7] else "Conv"
    grad, calls = value(args[0]), []
    for wanted in args[10][:2]:
        calls += [(op, [value(args[1]), value(args[2])], [grad], None)] if wanted else []
    return calls + ([("ReduceSum", [grad], [value(out[2])], None)] if args[10][2] else [])


# ---- recurrent ----


def recurrent_layer(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """mkldnn_rnn_layer: one layer and direction of an LSTM; weights [4 hidden, in] and [4 hidden, hidden]."""
    x, w, r = value(args[0]), value(args[1]), value(args[2])
    bias = with_shape(w, (1, 2 * w[1][0])) if args[12] else None
    inputs = [x, with_shape(w, (1, *w[1])), with_shape(r, (1, *r[1])), bias]
    return [("LSTM", inputs, [value(out[0])], {"hidden_size": int(args[10])})]


# ---- attention ----


def attention(mask_at: int, causal_at: int) -> Rule:
    def rule(args: tuple, kwargs: dict, out: Any) -> list[Call]:
        mask = argument(args, kwargs, mask_at, "attn_mask") if mask_at else kwargs.get("attn_mask")
        if mask is None:
            mask = kwargs.get("attn_bias")
        causal = bool(argument(args, kwargs, causal_at, "is_causal", False))
        q, k, v, y = (as_four(value(t)) for t in (*args[:3], first(out)))
        return [("Attention", [q, k, v, value(mask)], [y], {"is_causal": int(causal)})]

    return rule


def attention_backward(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """Of a fused kernel, which keeps no scores: they are computed anew, then the gradients of scores, values, queries and keys: five
    products where the forward pass has two, and softmax twice."""
    grad, q, k, v = (as_four(value(t)) for t in args[:4])
    scores = with_shape(q, (*q[1][:3], k[1][2]))
    keys = with_shape(k, (*q[1][:2], *k[1][2:]))  # of grouped queries, each group's are used by all its heads
    once = ("Attention", [q, k, v], [grad], {"is_causal": 0})
    return [once, once, ("MatMul", [scores, keys], [q], None)]


def as_four(v: Value) -> Value:
    """[.., heads, length, width] with all axes before the heads as one."""
    shape = (1, 1, 1, 1, *v[1])[-4:] if len(v[1]) < 4 else v[1]
    rows = 1
    for d in shape[:-3]:
        rows *= d
    return with_shape(v, (rows, *shape[-3:]))


def projected(x: Value, weights: Any, y: Value) -> list[Call]:
    """Rows of x times weights [out, in], and a bias."""
    w = value(weights)
    return [("MatMul", [x, with_shape(w, (x[1][-1], y[1][-1]))], [y], None), ("Add", [y, y], [y], None)]


def attended(q: Value, k: Value, width: int, heads: int) -> Call:
    """Attention of [batch, length, width], cut into heads."""
    q, k = (with_shape(v, (v[1][0], heads, v[1][1], width // heads)) for v in (q, k))
    return ("Attention", [q, k, k], [q], {"is_causal": 0})


def multi_head(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """_native_multi_head_attention, the fused path of nn.MultiheadAttention: four projections around attention."""
    width, heads = args[3], args[4]
    q, k, v = (with_shape(x, (*x[1][:-1], width)) for x in map(value, args[:3]))
    calls = [call for x, y in ((args[0], q), (args[1], k), (args[2], v)) for call in projected(value(x), args[5], y)]
    return [*calls, attended(q, k, width, heads), *projected(q, args[7], q)]


def encoder_layer(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """_transformer_encoder_layer_fwd, the fused path of nn.TransformerEncoderLayer: projections, attention, norms, two products. Behind a
    padding mask the rows of a batch have lengths of their own: each counts as a batch of one."""
    rows = [x[None] for x in args[0].unbind()] if args[0].is_nested else [args[0]]
    return [call for x in rows for call in _encoder_calls(value(x), args)]


def _encoder_calls(x: Value, args: tuple) -> list[Call]:
    width, hidden = args[1], args[14].shape[0]
    wide, mid = with_shape(x, (*x[1][:-1], 3 * width)), with_shape(x, (*x[1][:-1], hidden))
    steps = [(x, args[3], wide), (x, args[5], x), (x, args[14], mid), (mid, args[16], x)]
    calls = [call for step in steps for call in projected(*step)]
    calls += [attended(x, x, width, args[2]), ("Gelu" if args[7] else "Relu", [mid], [mid], None)]
    calls += [call for _ in range(2) for call in (("Add", [x, x], [x], None), ("LayerNormalization", [x, x, x], [x], {"axis": -1}))]
    return calls


# ---- norms, pools, softmax ----


def layer_norm(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    bias = value(argument(args, kwargs, 3, "bias"))
    inputs = [value(args[0]), value(argument(args, kwargs, 2, "weight")), bias]
    return [("LayerNormalization", inputs, [value(first(out))], {"axis": -len(args[1])})]


def rms_norm(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    inputs = [value(args[0]), value(argument(args, kwargs, 2, "weight"))]
    return [("RMSNormalization", inputs, [value(first(out))], {"axis": -len(args[1])})]


def pool(op: str, axes: int) -> Rule:
    def rule(args: tuple, kwargs: dict, out: Any) -> list[Call]:
        kernel = argument(args, kwargs, 1, "kernel_size")
        kernel = [kernel] if isinstance(kernel, int) else list(kernel)
        return [(op, [value(args[0])], [value(first(out))], {"kernel_shape": kernel * axes if len(kernel) == 1 else kernel})]

    return rule


def adaptive_pool(op: str) -> Rule:
    """Windows that just cover the input: in / out places along each axis, rounded up."""

    def rule(args: tuple, kwargs: dict, out: Any) -> list[Call]:
        y = first(out)
        axes = len(args[1]) if isinstance(args[1], (list, tuple)) else 1
        kernel = [-(-i // o) for i, o in zip(args[0].shape[-axes:], y.shape[-axes:])]
        return [(op, [value(args[0])], [value(y)], {"kernel_shape": kernel})]

    return rule


def softmax_backward(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    v = value(out)
    return [("Mul", [v, v], [v], None), ("ReduceSum", [v], [v], None), ("Mul", [v, v], [v], None), ("Sub", [v, v], [v], None)]


# ---- element-wise with a twist ----


def gelu(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    return [("Gelu", [value(args[0])], [value(out)], {"approximate": kwargs.get("approximate", "none")})]


def added(op: str) -> Rule:
    """add and sub with their factor alpha."""

    def rule(args: tuple, kwargs: dict, out: Any) -> list[Call]:
        calls = each(op)(args, kwargs, out)
        scaled = kwargs.get("alpha", 1) != 1
        return calls + ([("Mul", [value(out), ("float32", (), True)], [value(out)], None)] if scaled else [])

    return rule


def power(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    simple = {2: "Mul", 0.5: "Sqrt", -1: "Reciprocal", 1: "Identity"}
    op = simple.get(args[1], "Pow") if isinstance(args[1], (int, float)) else "Pow"
    return [(op, [value(args[0]), value(args[1])] if op in ("Pow", "Mul") else [value(args[0])], [value(out)], None)]


def where(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    v = value(out)
    return [("Where", [("bool", v[1]), v, v], [v], None)]


def scattered(at: int) -> Rule:
    """Updates added into place: the gradient of a lookup."""

    def rule(args: tuple, kwargs: dict, out: Any) -> list[Call]:
        updates = value(args[at])
        return [("ScatterElements", [value(first(out)), updates, updates], [value(first(out))], {"reduction": "add"})]

    return rule


def squared_loss(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    x = value(args[0])
    return [("Sub", [x, x], [x], None), ("Mul", [x, x], [x], None), ("ReduceSum", [x], [value(out)], None)]


def layer_norm_backward(args: tuple, kwargs: dict, out: Any) -> list[Call]:
    """Normalised again, two sums per row, the gradients of scale and bias: nine element-wise steps and four sums."""
    x = value(args[1])
    return [("Mul", [x, x], [x], None)] * 5 + [("Sub", [x, x], [x], None)] * 4 + [("ReduceSum", [x], [x], None)] * 4


# ---- the table: name without namespace and trailing underscore ----

_EACH = {
    "Abs": "abs", "Neg": "neg", "Sign": "sign", "Floor": "floor", "Ceil": "ceil", "Round": "round trunc", "Reciprocal": "reciprocal",
    "Sqrt": "sqrt", "Exp": "exp", "Log": "log log2 log10 log1p expm1 exp2", "Erf": "erf erfinv", "Sin": "sin", "Cos": "cos", "Tan": "tan",
    "Asin": "asin", "Acos": "acos", "Atan": "atan atan2", "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh", "Mul": "mul logical_and",
    "Div": "div true_divide floor_divide", "Mod": "remainder fmod", "Equal": "eq ne isnan isinf isfinite", "Greater": "gt",
    "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le", "Max": "maximum fmax", "Min": "minimum fmin", "Not": "logical_not bitwise_not",
    "Or": "logical_or bitwise_or", "And": "bitwise_and", "Xor": "bitwise_xor logical_xor", "Relu": "relu", "LeakyRelu": "leaky_relu",
    "PRelu": "prelu _prelu_kernel", "Sigmoid": "sigmoid", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish", "Silu": "silu",
    "Elu": "elu celu", "Softplus": "softplus", "Mish": "mish", "Clip": "clamp clamp_min clamp_max hardtanh relu6 threshold",
    "Shrink": "hardshrink softshrink", "CumSum": "cumsum", "CumProd": "cumprod", "BatchNormalization": (
        "batch_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training cudnn_batch_norm "
        "_batch_norm_with_update _batch_norm_no_update miopen_batch_norm _batch_norm_impl_index"),
    "InstanceNormalization": "instance_norm",
}  # fmt: skip

_REDUCED = {
    "ReduceSum": "sum nansum count_nonzero any all histc bincount", "ReduceMean": "mean", "ReduceMax": "max amax", "ReduceMin": "min amin", "ReduceProd": "prod",
    "ReduceL2": "norm linalg_vector_norm", "ReduceLogSumExp": "logsumexp", "ArgMax": "argmax", "ArgMin": "argmin", "TopK": "topk sort argsort",
}  # fmt: skip

_CHAINS = {
    "rsqrt": ("Sqrt", "Reciprocal"),
    "addcmul": ("Mul", "Mul", "Add"),
    "addcdiv": ("Reciprocal", "Mul", "Mul", "Add"),
    "lerp": ("Sub", "Mul", "Add"),
    "square": ("Mul",),
    "glu": ("Sigmoid", "Mul"),
    "sigmoid_backward": ("Sub", "Mul", "Mul"),
    "tanh_backward": ("Mul", "Sub", "Mul"),
    "threshold_backward": ("Mul",),
    "leaky_relu_backward": ("Mul",),
    "hardtanh_backward": ("Mul", "Mul"),
    "gelu_backward": ("Erf", "Exp", "Mul", "Mul", "Mul", "Mul", "Add", "Add", "Mul"),
    "silu_backward": ("Sigmoid", "Sub", "Mul", "Add", "Mul", "Mul"),
    "mse_loss_backward": ("Sub", "Mul", "Mul"),
    "native_dropout_backward": ("Mul", "Mul"),
    "_log_softmax_backward_data": ("Exp", "Add", "Mul", "Sub"),
}

_MOVED = {
    "Transpose": "clone contiguous copy _copy_from resolve_conj flip roll pixel_shuffle pixel_unshuffle channel_shuffle",
    "Concat": "cat stack",
    "Cast": "_to_copy to",
    "Pad": "constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad2d",
    "Tile": "repeat repeat_interleave tile",
    "Expand": "expand_copy",
    "Trilu": "tril triu",
    "NonZero": "nonzero",
}

_NOTHING = (
    "view _unsafe_view reshape _reshape_alias t transpose permute unsqueeze squeeze expand select slice split split_with_sizes unsafe_split chunk "
    "unsafe_chunk unbind narrow diagonal alias detach as_strided flatten unflatten movedim swapaxes view_as expand_as lift_fresh lift size stride "
    "numel is_same_size dropout alpha_dropout feature_dropout native_dropout numpy_T mT real imag unfold requires_grad set_data _local_scalar_dense "
    "item empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like new_ones full full_like "
    "new_full fill zero zero_ eye arange linspace scalar_tensor randn rand randint randn_like rand_like randint_like randperm normal uniform bernoulli random "
    "exponential multinomial set record_stream sym_size sym_stride sym_numel sym_storage_offset is_pinned _has_compatible_shallow_copy_type _pin_memory "
    "retain_grad accumulate_grad _version resize _resize_output tensor_split hsplit vsplit _record_function_enter _record_function_enter_new _record_function_exit broadcast_to atleast_1d atleast_2d _nested_tensor_size "
    "_nested_tensor_from_mask _nested_tensor_from_mask_left_aligned _nested_from_padded nested_to_padded_tensor to_padded_tensor view_as_complex view_as_real"
)

_NAMES = [
    *((each(op), names) for op, names in _EACH.items()),
    *((plain(op), names) for op, names in _REDUCED.items()),
    *((chain(*ops), name) for name, ops in _CHAINS.items()),
    *((moved(op), names) for op, names in _MOVED.items()),
    (nothing, _NOTHING),
    (added("Add"), "add"),
    (added("Sub"), "sub rsub"),
    (power, "pow"),
    (where, "where masked_fill"),
    (gelu, "gelu"),
    (plain("MatMul", (0, 1)), "mm bmm matmul mv dot vdot"),
    (addmm, "addmm _addmm_activation"),
    (batched_addmm, "baddbmm addbmm addmv"),
    (grouped, "_grouped_mm"),
    (linear, "linear"),
    (linear_quantized, "linear_dynamic linear_relu_dynamic"),
    (einsum_pair, "einsum"),
    (convolution, "convolution _convolution convolution_overrideable"),
    (conv_plain, "conv1d conv2d conv3d"),
    (convolution_backward, "convolution_backward"),
    (recurrent_layer, "mkldnn_rnn_layer"),
    (attention(3, 5), "scaled_dot_product_attention _scaled_dot_product_attention_math"),
    (attention(0, 4), "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention"),
    (attention(3, 6), "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention"),
    (attention(3, 5), "_scaled_dot_product_fused_attention_overrideable"),
    (attention_backward, "_scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_flash_attention_backward"),
    (attention_backward, "_scaled_dot_product_efficient_attention_backward _scaled_dot_product_cudnn_attention_backward"),
    (multi_head, "_native_multi_head_attention"),
    (encoder_layer, "_transformer_encoder_layer_fwd"),
    (layer_norm, "layer_norm native_layer_norm"),
    (layer_norm_backward, "native_layer_norm_backward native_batch_norm_backward"),
    (rms_norm, "rms_norm _fused_rms_norm"),
    (plain("GroupNormalization", num_groups=lambda args: int(args[6])), "native_group_norm"),  # (x, weight, bias, n, c, hw, group, eps)
    (plain("GroupNormalization", num_groups=lambda args: int(args[1])), "group_norm"),
    (plain("Softmax", axis=lambda args: int(args[1])), "softmax _softmax _safe_softmax"),
    (plain("LogSoftmax", axis=lambda args: int(args[1])), "log_softmax _log_softmax"),
    (softmax_backward, "_softmax_backward_data"),
    *((pool("MaxPool", d), f"max_pool{d}d max_pool{d}d_with_indices") for d in (1, 2, 3)),
    *((pool("AveragePool", d), f"avg_pool{d}d") for d in (1, 2, 3)),
    (adaptive_pool("AveragePool"), " ".join(f"{under}adaptive_avg_pool{d}d" for d in (1, 2, 3) for under in ("", "_"))),
    (adaptive_pool("MaxPool"), "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d"),
    (moved("GatherND"), "index _unsafe_index index_put"),
    (plain("Gather", (0, 1)), "embedding nll_loss_forward nll_loss2d_forward"),
    (plain("Gather", (0, 2)), "gather index_select"),
    (scattered(0), "nll_loss_backward embedding_dense_backward max_pool2d_with_indices_backward"),
    (squared_loss, "mse_loss"),
]
TABLE: dict[str, Rule] = {name: rule for rule, names in _NAMES for name in names.split()}


# ---- counting ----


def _frozen(x: Any) -> Any:
    """What of an argument decides the cost, hashable."""
    if isinstance(x, torch.Tensor):
        return x.dtype, tuple(map(tuple, x._nested_tensor_size().tolist())) if x.is_nested else x.shape
    if isinstance(x, (list, tuple)):
        return tuple(map(_frozen, x))
    return x if isinstance(x, (bool, int, float, str, type(None))) else type(x)


def _count(calls: list[Call]) -> Cost:
    total = Cost()
    for op, inputs, outputs, attributes in calls:
        one = _tare.op_cost(op, inputs, outputs, attributes)
        if one["why"]:
            raise ValueError(one["why"])
        total.add(Cost(**{part: one[part] for part in PARTS}))
    return total


def _uncounted(name: str) -> Cost:
    cost = Cost()
    cost.uncounted[name] = 1
    return cost


class CountingMode(TorchDispatchMode):
    """Sees every operator of its thread, and of the threads that run its backward passes. Calls go on unchanged."""

    KEPT_MOST = 20_000

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Hiding a mode from PyTorch's compiler imports the compiler: 823 modules, 1.1 s and 72 MB at the first operator, in the middle of
        what is measured. So it is hidden once a program has the compiler, see __init__."""
        return False

    def __init__(self, counters_here: Any) -> None:
        super().__init__()
        if "torch._dynamo" in sys.modules and CountingMode.__torch_dispatch__ is _dispatch:
            CountingMode.__torch_dispatch__ = torch._disable_dynamo(_dispatch, recursive=True)
        self.counters_here = counters_here
        self.counters: list[Any] = []
        self.hook: Any = None
        self.kept: dict[tuple, Cost] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.rsplit("::", 1)[-1]
        rule = TABLE.get(name) or TABLE.get(name.rstrip("_"))
        if rule is None:
            with self:
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        out = func(*args, **kwargs)
        cost = self.cost_of(func, rule, args, kwargs, out)
        # A backward pass on a thread of its own has no context: it belongs to whoever is open on the thread that started it.
        for counter in self.counters_here.get() or self.counters:
            counter.cost.add(cost)
        return out

    def cost_of(self, func: Any, rule: Rule | None, args: tuple, kwargs: dict, out: Any) -> Cost:
        name = str(func._overloadpacket)
        key = (func, _frozen(args), tuple((k, _frozen(v)) for k, v in kwargs.items()), _frozen(out))
        cost = self.kept.get(key)
        if cost is None:
            try:
                cost = _count(rule(args, kwargs, out)) if rule else _uncounted(name)
            except (ValueError, TypeError, IndexError, AttributeError, RuntimeError):
                cost = _uncounted(name)  # a form of the operator that the row does not know
            if len(self.kept) < self.KEPT_MOST:
                self.kept[key] = cost
        return cost


_dispatch = CountingMode.__torch_dispatch__  # before it is hidden from the compiler
