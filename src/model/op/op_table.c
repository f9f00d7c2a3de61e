/* SPDX-License-Identifier: MIT
 * op_table.c - every operator that is known, a row each: how shapes go through it, what it costs, what becomes of
 * constants and of ranges. infer/op.h has the columns, and what else an operator needs. No logic but finding. */
#include <string.h>

#include "model/cost/cost_rule.h"
#include "model/infer/infer_items.h"
#include "model/infer/infer_rule.h"

#define MS "com.microsoft"
#define NCHWC "com.microsoft.nchwc"
#define NHWC "com.ms.internal.nhwc"
#define ML "ai.onnx.ml"
#define TRAINING "ai.onnx.preview.training"

#define OP(domain_, op_, shape_, ...) {.domain = domain_, .op = op_, .shape = shape_, __VA_ARGS__}
/* Costs: simple operations, divisions and transcendental functions per element of the output; by a rule of its own;
 * bytes only. */
#define EACH(...) COST_EACH(cost_rule_each, __VA_ARGS__)
#define COST_EACH(rule, ...) .cost = rule, .each = {__VA_ARGS__}, .bytes = BYTES_ALL
#define COST(rule) .cost = rule, .bytes = BYTES_ALL
#define MOVES .bytes = BYTES_ALL
#define PICKS .bytes = BYTES_PICKED
#define LISTS .bytes = BYTES_NONE
#define MAKES .bytes = BYTES_WRITTEN
#define VIEW .bytes = BYTES_NONE, .flags = OP_VIEW
#define IN_PLACE .flags = OP_IN_PLACE
/* Ranges: elements of the inputs in the mask, or arithmetic on the first. */
#define PASS(mask) .follow = FOLLOW_PASS, .from = (mask)
#define FOLLOW(how) .follow = FOLLOW_##how, .from = 1
/* The element type of output 0: what an attribute says, that of input i, always this one. */
#define BY(name) .type.attribute = name
#define OF(i) .type.input = (i) + 1
#define IS(type_) .type.otherwise = (int)(type_)
/* Outputs: like input i in shape and type, or in shape alone. */
#define LIKE(i) {(i) + 1, 0}
#define LIKE_AS(i, type) {(i) + 1, (int)(type)}

const struct op_row op_table[] = {
    /* ---- element by element ---- */
    OP("", "Abs", shape_same, EACH(1, 0, 0), IN_PLACE, .fold = item_abs, FOLLOW(RELU)),
    OP("", "Acos", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Acosh", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Asin", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Asinh", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Atan", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Atanh", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "BitwiseNot", shape_same, EACH(1, 0, 0), IN_PLACE),
    OP("", "Ceil", shape_same, EACH(1, 0, 0), IN_PLACE, .fold = item_ceil, PASS(1)),
    OP("", "Celu", shape_same, EACH(5, 0, 1), IN_PLACE),
    OP("", "Cos", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Cosh", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Elu", shape_same, EACH(3, 0, 1), IN_PLACE),
    OP("", "Erf", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Exp", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Floor", shape_same, EACH(1, 0, 0), IN_PLACE, .fold = item_floor, PASS(1)),
    OP("", "Gelu", shape_same, COST_EACH(cost_rule_gelu, 4, 0, 1), IN_PLACE),
    OP("", "HardSigmoid", shape_same, EACH(4, 0, 0), IN_PLACE),
    OP("", "HardSwish", shape_same, EACH(5, 0, 0), IN_PLACE),
    OP("", "Hardmax", shape_same, EACH(1, 0, 0)),
    OP("", "Identity", shape_same, VIEW, .fold = item_same, PASS(1)),
    OP("", "LeakyRelu", shape_same, EACH(2, 0, 0), IN_PLACE),
    OP("", "Log", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "LogSoftmax", shape_same, COST_EACH(cost_rule_log_softmax, 3, 1, 1), IN_PLACE),
    OP("", "Mish", shape_same, EACH(2, 0, 3), IN_PLACE),
    OP("", "Neg", shape_same, EACH(1, 0, 0), IN_PLACE, .fold = item_neg, FOLLOW(NEG)),
    OP("", "Not", shape_same, EACH(1, 0, 0), IN_PLACE, .fold = item_not),
    OP("", "ParametricSoftplus", shape_same),
    OP("", "Reciprocal", shape_same, EACH(0, 1, 0), IN_PLACE),
    OP("", "Relu", shape_same, EACH(1, 0, 0), IN_PLACE, .fold = item_relu, FOLLOW(RELU)),
    OP("", "Round", shape_same, EACH(1, 0, 0), IN_PLACE, .fold = item_round, PASS(1)),
    OP("", "ScaledTanh", shape_same),
    OP("", "Selu", shape_same, EACH(4, 0, 1), IN_PLACE),
    OP("", "Shrink", shape_same, EACH(2, 0, 0), IN_PLACE),
    OP("", "Sigmoid", shape_same, EACH(1, 1, 1), IN_PLACE),
    OP("", "Sign", shape_same, EACH(1, 0, 0), IN_PLACE, .fold = item_sign),
    OP("", "Sin", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Sinh", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Softmax", shape_same, EACH(3, 1, 1), IN_PLACE),
    OP("", "Softplus", shape_same, EACH(1, 0, 2), IN_PLACE),
    OP("", "Softsign", shape_same, EACH(2, 1, 0), IN_PLACE),
    OP("", "Sqrt", shape_same, EACH(0, 1, 0), IN_PLACE, .fold = item_sqrt),
    OP("", "Swish", shape_same, EACH(2, 1, 1), IN_PLACE),
    OP("", "Tan", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "Tanh", shape_same, EACH(0, 0, 1), IN_PLACE),
    OP("", "ThresholdedRelu", shape_same, EACH(1, 0, 0), IN_PLACE),
    OP("", "IsInf", shape_same, IS(ONNX_BOOL), EACH(1, 0, 0)),
    OP("", "IsNaN", shape_same, IS(ONNX_BOOL), EACH(1, 0, 0)),
    OP("", "Add", shape_broadcast, EACH(1, 0, 0), IN_PLACE, .fold_two = item_add, FOLLOW(ADD)),
    OP("", "BitShift", shape_broadcast, EACH(1, 0, 0), IN_PLACE),
    OP("", "BitwiseAnd", shape_broadcast, EACH(1, 0, 0), IN_PLACE),
    OP("", "BitwiseOr", shape_broadcast, EACH(1, 0, 0), IN_PLACE),
    OP("", "BitwiseXor", shape_broadcast, EACH(1, 0, 0), IN_PLACE),
    OP("", "Div", shape_broadcast, COST_EACH(cost_rule_div, 0, 1, 0), IN_PLACE, .fold_two = item_div, FOLLOW(DIV)),
    OP("", "Max", shape_broadcast, COST(cost_rule_variadic), IN_PLACE, .fold_two = item_max,
        .follow = FOLLOW_MAX, .from = OP_ALL_INPUTS),
    OP("", "Mean", shape_broadcast, COST_EACH(cost_rule_variadic, 0, 1, 0), IN_PLACE),
    OP("", "Min", shape_broadcast, COST(cost_rule_variadic), IN_PLACE, .fold_two = item_min,
        .follow = FOLLOW_MIN, .from = OP_ALL_INPUTS),
    OP("", "Mod", shape_broadcast, EACH(0, 1, 0), IN_PLACE, .fold_two = item_floor_mod, FOLLOW(MOD)),
    OP("", "Mul", shape_broadcast, EACH(1, 0, 0), IN_PLACE, .fold_two = item_mul, FOLLOW(MUL)),
    OP("", "Pow", shape_broadcast, OF(0), EACH(0, 0, 1), IN_PLACE, .fold_two = item_pow),
    OP("", "Sub", shape_broadcast, EACH(1, 0, 0), IN_PLACE, .fold_two = item_sub, FOLLOW(SUB)),
    OP("", "Sum", shape_broadcast, COST(cost_rule_variadic), IN_PLACE, .fold_two = item_add),
    OP("", "And", shape_broadcast, IS(ONNX_BOOL), EACH(1, 0, 0), IN_PLACE, .fold_two = item_and),
    OP("", "Equal", shape_broadcast, IS(ONNX_BOOL), EACH(1, 0, 0), .fold_two = item_equal),
    OP("", "Greater", shape_broadcast, IS(ONNX_BOOL), EACH(1, 0, 0), .fold_two = item_greater),
    OP("", "GreaterOrEqual", shape_broadcast, IS(ONNX_BOOL), EACH(1, 0, 0), .fold_two = item_greater_equal),
    OP("", "Less", shape_broadcast, IS(ONNX_BOOL), EACH(1, 0, 0), .fold_two = item_less),
    OP("", "LessOrEqual", shape_broadcast, IS(ONNX_BOOL), EACH(1, 0, 0), .fold_two = item_less_equal),
    OP("", "Or", shape_broadcast, IS(ONNX_BOOL), EACH(1, 0, 0), IN_PLACE, .fold_two = item_or),
    OP("", "Xor", shape_broadcast, IS(ONNX_BOOL), EACH(1, 0, 0), IN_PLACE, .fold_two = item_xor),
    OP("", "PRelu", shape_same, EACH(2, 0, 0), IN_PLACE),
    OP("", "Clip", shape_clip, EACH(2, 0, 0), IN_PLACE, FOLLOW(CLIP)),
    OP("", "Where", shape_where, COST_EACH(cost_rule_where, 1, 0, 0), PASS(1 << 1 | 1 << 2)),
    OP("", "Cast", shape_cast, BY("to"), MOVES, PASS(1)),
    OP("", "CastLike", shape_cast, OF(1), MOVES, PASS(1)),
    OP("", "BitCast", shape_bit_cast, BY("to"), VIEW),
    OP("", "Dropout", shape_dropout, .bytes = BYTES_NONE, .flags = OP_VIEW | OP_RANDOM, PASS(1)),
    OP("", "QuantizeLinear", shape_same, BY("output_dtype"), OF(2), IS(ONNX_UINT8),
        COST_EACH(cost_rule_scaled, 3, 0, 0)),
    OP("", "DequantizeLinear", shape_same, BY("output_dtype"), OF(1), COST_EACH(cost_rule_scaled, 2, 0, 0)),
    OP("", "DynamicQuantizeLinear", shape_dynamic_quantize, IS(ONNX_UINT8), COST_EACH(cost_rule_scaled, 5, 0, 0)),
    OP("", "Constant", shape_constant, .bytes = BYTES_NONE),
    OP("", "ConstantOfShape", shape_constant_of_shape, MAKES),
    OP("", "RandomNormal", shape_random, BY("dtype"), IS(ONNX_FLOAT), .flags = OP_RANDOM),
    OP("", "RandomUniform", shape_random, BY("dtype"), IS(ONNX_FLOAT), .flags = OP_RANDOM),
    OP("", "RandomNormalLike", shape_same, BY("dtype"), OF(0), .flags = OP_RANDOM),
    OP("", "RandomUniformLike", shape_same, BY("dtype"), OF(0), .flags = OP_RANDOM),
    OP("", "Bernoulli", shape_same, BY("dtype"), OF(0), .flags = OP_RANDOM),
    OP("", "EyeLike", shape_same, BY("dtype"), OF(0), MAKES),

    /* ---- the same elements in another shape or order ---- */
    OP("", "Shape", shape_of_shape, IS(ONNX_INT64), MAKES),
    OP("", "Size", shape_of_size, IS(ONNX_INT64), MAKES),
    OP("", "Reshape", shape_reshape, OF(0), VIEW, PASS(1)),
    OP("", "Flatten", shape_flatten, OF(0), VIEW, PASS(1)),
    OP("", "Squeeze", shape_squeeze, OF(0), VIEW, PASS(1)),
    OP("", "Unsqueeze", shape_unsqueeze, OF(0), VIEW, PASS(1)),
    OP("", "Transpose", shape_transpose, OF(0), MOVES, PASS(1)),
    OP("", "Concat", shape_concat, MOVES, PASS(OP_ALL_INPUTS)),
    OP("", "Expand", shape_expand, OF(0), MOVES, PASS(1)),
    OP("", "Tile", shape_tile, OF(0), MOVES, PASS(1)),
    OP("", "Pad", shape_pad, OF(0), MOVES, PASS(1)),
    OP("", "DepthToSpace", shape_depth_to_space, OF(0), MOVES),
    OP("", "SpaceToDepth", shape_space_to_depth, OF(0), MOVES),
    OP("", "CenterCropPad", shape_center_crop_pad, OF(0), PICKS),
    OP("", "ReverseSequence", shape_same, MOVES, PASS(1)),
    OP("", "Scatter", shape_same, MOVES, .index = {{1, 0, BY_AXIS}}),
    OP("", "ScatterElements", shape_same, COST(cost_rule_scatter), IN_PLACE, PASS(1 | 1 << 2),
        .index = {{1, 0, BY_AXIS}}),
    OP("", "ScatterND", shape_same, COST(cost_rule_scatter), IN_PLACE, PASS(1 | 1 << 2),
        .index = {{1, 0, BY_ALL}}),
    OP("", "TensorScatter", shape_same, MOVES),
    OP("", "Trilu", shape_same, MOVES, PASS(1)),
    OP("", "Slice", shape_slice, OF(0), PICKS, PASS(1)),
    OP("", "DynamicSlice", shape_slice, OF(0)),
    OP("", "Split", shape_split, MOVES, PASS(1)),
    OP("", "Gather", shape_gather, OF(0), PICKS, PASS(1), .index = {{1, 0, BY_AXIS}}),
    OP("", "GatherElements", shape_like_index, OF(0), PICKS, PASS(1), .index = {{1, 0, BY_AXIS}}),
    OP("", "GatherND", shape_gather_nd, OF(0), PICKS, PASS(1), .index = {{1, 0, BY_ALL}}),
    OP("", "OneHot", shape_one_hot, OF(2), MOVES, .index = {{0, 1, BY_DEPTH}}),
    OP("", "Range", shape_range, OF(0), COST_EACH(cost_rule_output, 1, 0, 0)),
    OP("", "Compress", shape_compress, OF(0), PICKS, PASS(1)),
    OP("", "NonZero", shape_non_zero, IS(ONNX_INT64), MOVES),
    OP("", "Unique", shape_unique, OF(0), PASS(1)),

    /* ---- over rows: reductions, norms ---- */
    OP("", "ReduceL1", shape_reduce, OF(0), COST_EACH(cost_rule_reduce, 2, 0, 0)),
    OP("", "ReduceL2", shape_reduce, OF(0), COST_EACH(cost_rule_reduce_then, 2, 1, 0)),
    OP("", "ReduceLogSum", shape_reduce, OF(0), COST_EACH(cost_rule_reduce_then, 1, 0, 1)),
    OP("", "ReduceLogSumExp", shape_reduce, OF(0), COST_EACH(cost_rule_reduce_log_sum_exp, 3, 0, 1)),
    OP("", "ReduceMax", shape_reduce, OF(0), COST_EACH(cost_rule_reduce, 1, 0, 0), .fold_two = item_max, PASS(1)),
    OP("", "ReduceMean", shape_reduce, OF(0), COST_EACH(cost_rule_reduce_then, 1, 1, 0)),
    OP("", "ReduceMin", shape_reduce, OF(0), COST_EACH(cost_rule_reduce, 1, 0, 0), .fold_two = item_min, PASS(1)),
    OP("", "ReduceProd", shape_reduce, OF(0), COST_EACH(cost_rule_reduce, 1, 0, 0), .fold_two = item_mul, FOLLOW(SUM)),
    OP("", "ReduceSum", shape_reduce, OF(0), COST_EACH(cost_rule_reduce, 1, 0, 0), .fold_two = item_add, FOLLOW(SUM)),
    OP("", "ReduceSumSquare", shape_reduce, OF(0), COST_EACH(cost_rule_reduce, 2, 0, 0)),
    OP("", "ArgMax", shape_arg, IS(ONNX_INT64), COST_EACH(cost_rule_reduce, 1, 0, 0)),
    OP("", "ArgMin", shape_arg, IS(ONNX_INT64), COST_EACH(cost_rule_reduce, 1, 0, 0)),
    OP("", "TopK", shape_top_k, OF(0), COST_EACH(cost_rule_reduce, 1, 0, 0), PASS(1)),
    OP("", "CumSum", shape_same, EACH(1, 0, 0), FOLLOW(SUM)),
    OP("", "CumProd", shape_same, EACH(1, 0, 0)),
    OP("", "LayerNormalization", shape_layer_norm, OF(0), COST_EACH(cost_rule_layer_norm, 7, 0, 0)),
    OP("", "RMSNormalization", shape_layer_norm, OF(1), COST_EACH(cost_rule_layer_norm, 4, 0, 0)),
    OP("", "SimplifiedLayerNormalization", shape_layer_norm, OF(1), COST_EACH(cost_rule_layer_norm, 4, 0, 0)),
    OP("", "GroupNormalization", shape_same, COST_EACH(cost_rule_channel_norm, 7, 0, 0)),
    OP("", "InstanceNormalization", shape_same, COST_EACH(cost_rule_channel_norm, 7, 0, 0)),
    OP("", "LpNormalization", shape_same, EACH(2, 1, 0)),
    OP("", "MeanVarianceNormalization", shape_same, EACH(5, 1, 0)),
    OP("", "BatchNormalization", shape_batch_norm, EACH(2, 0, 0), IN_PLACE),
    OP("", "NonMaxSuppression", shape_boxes, IS(ONNX_INT64)),

    /* ---- products, convolutions, pools, recurrent, attention ---- */
    OP("", "MatMul", shape_matmul, OF(0), COST(cost_rule_matmul)),
    OP("", "MatMulInteger", shape_matmul, IS(ONNX_INT32), COST(cost_rule_product)),
    OP("", "QLinearMatMul", shape_matmul, OF(7), .second = 3, COST(cost_rule_product)),
    OP("", "Gemm", shape_gemm, OF(0), COST(cost_rule_gemm)),
    OP("", "Einsum", shape_einsum, OF(0), COST(cost_rule_einsum)),
    OP("", "Conv", shape_conv, OF(0), COST(cost_rule_conv)),
    OP("", "ConvInteger", shape_conv, IS(ONNX_INT32), COST(cost_rule_product)),
    OP("", "QLinearConv", shape_conv, OF(7), .second = 3, COST(cost_rule_product)),
    OP("", "ConvTranspose", shape_conv_transpose, OF(0), COST(cost_rule_conv_transpose)),
    OP("", "DeformConv", shape_conv, OF(0), COST(cost_rule_deform_conv)),
    OP("", "CausalConvWithState", shape_causal_conv, COST(cost_rule_causal_conv)),
    OP("", "MaxPool", shape_pool, OF(0), COST_EACH(cost_rule_pool, 1, 0, 0)),
    OP("", "AveragePool", shape_pool, OF(0), COST_EACH(cost_rule_pool, 1, 0, 0)),
    OP("", "LpPool", shape_pool, OF(0), COST_EACH(cost_rule_pool, 2, 0, 0)),
    OP("", "GlobalMaxPool", shape_global_pool, OF(0), COST_EACH(cost_rule_reduce, 1, 0, 0)),
    OP("", "GlobalAveragePool", shape_global_pool, OF(0), COST_EACH(cost_rule_reduce, 1, 0, 0)),
    OP("", "GlobalLpPool", shape_global_pool, OF(0), COST_EACH(cost_rule_reduce, 2, 0, 0)),
    OP("", "MaxUnpool", shape_max_unpool, OF(0), MOVES),
    OP("", "MaxRoiPool", shape_regions, OF(0)),
    OP("", "RoiAlign", shape_regions, OF(0)),
    OP("", "Resize", shape_resize, OF(0), COST(cost_rule_resize)),
    OP("", "Upsample", shape_resize, .second = 1, OF(0), COST(cost_rule_resize)),
    OP("", "GridSample", shape_grid_sample, OF(0), COST(cost_rule_grid_sample)),
    OP("", "AffineGrid", shape_affine_grid, OF(0), COST(cost_rule_affine_grid)),
    OP("", "Col2Im", shape_col2im, OF(0), COST(cost_rule_col2im)),
    OP("", "LSTM", shape_lstm, COST(cost_rule_recurrent)),
    OP("", "GRU", shape_lstm, COST(cost_rule_recurrent)),
    OP("", "RNN", shape_lstm, COST(cost_rule_recurrent)),
    OP("", "Attention", shape_attention, COST(cost_rule_attention)),
    OP("ai.onnx.preview", "FlexAttention", shape_flex_attention, COST(cost_rule_attention)),
    OP("", "LinearAttention", shape_linear_attention, OF(0), COST(cost_rule_linear_attention)),
    OP("", "RotaryEmbedding", shape_same, EACH(3, 0, 0), .index = {{3, 1, BY_FIRST}}),
    OP("", "LRN", shape_same, COST_EACH(cost_rule_lrn, 2, 1, 1)),
    OP("", "SwiGLU", shape_same, EACH(3, 1, 1)),
    OP("", "Det", shape_det, OF(0)),
    OP("", "NegativeLogLikelihoodLoss", shape_nll_loss, .cost = cost_rule_nll_loss, .bytes = BYTES_INDEXED,
       .index = {{1, 0, BY_SECOND}}),
    OP("", "SoftmaxCrossEntropyLoss", shape_cross_entropy, COST_EACH(cost_rule_cross_entropy, 3, 1, 1),
       .index = {{1, 0, BY_SECOND}}),

    /* ---- ONNX Runtime's own: fused, quantised, blocked and channels-last forms ---- */
    OP("", "MemcpyFromHost", shape_same, MOVES),
    OP("", "MemcpyToHost", shape_same, MOVES),
    OP(MS, "Attention", shape_packed_weights, OF(0), COST(cost_rule_ms_attention)),
    OP(MS, "BeamSearch", shape_generate, IS(ONNX_INT32)),
    OP(MS, "BiasAdd", shape_same, EACH(2, 0, 0), IN_PLACE),
    OP(MS, "BiasDropout", shape_same, .like = {[1] = LIKE_AS(0, ONNX_BOOL)}),
    OP(MS, "BiasGelu", shape_same, COST_EACH(cost_rule_biased, 4, 0, 1), IN_PLACE),
    OP(MS, "BiasSoftmax", shape_same, EACH(4, 1, 1), IN_PLACE),
    OP(MS, "BiasSplitGelu", shape_split_gelu, OF(0), COST_EACH(cost_rule_bias_split_gelu, 5, 0, 1)),
    OP(MS, "BranchwiseRMSNorm", shape_same),
    OP(MS, "CDist", shape_distance, OF(0)),
    OP(MS, "ComplexMul", shape_broadcast, OF(0)),
    OP(MS, "ComplexMulConj", shape_broadcast, OF(0)),
    OP(MS, "CropAndResize", shape_crop_and_resize, OF(0)),
    OP(MS, "DecoderAttention", shape_same),
    OP(MS, "DecoderMaskedMultiHeadAttention", shape_decoder_heads),
    OP(MS, "DecoderMaskedSelfAttention", shape_packed_weights, OF(0)),
    OP(MS, "DequantizeLinear", shape_same, OF(1)),
    OP(MS, "DynamicQuantizeLSTM", shape_lstm, COST(cost_rule_recurrent)),
    OP(MS, "DynamicQuantizeMatMul", shape_matmul, OF(0), COST(cost_rule_product)),
    OP(MS, "EmbedLayerNormalization", shape_embed_norm, OF(5), COST_EACH(cost_rule_embed_layer_norm, 7, 0, 0),
        .index = {{0, 2, BY_FIRST}, {1, 4, BY_FIRST}, {8, 3, BY_FIRST}}),
    OP(MS, "ExpandDims", shape_unsqueeze, OF(0), VIEW),
    OP(MS, "FastGelu", shape_same, COST_EACH(cost_rule_biased, 7, 0, 1), IN_PLACE),
    OP(MS, "FusedConv", shape_conv, OF(0), COST(cost_rule_conv)),
    OP(MS, "FusedGemm", shape_gemm, OF(0), COST(cost_rule_gemm)),
    OP(MS, "FusedMatMul", shape_matmul, OF(0), COST(cost_rule_matmul)),
    OP(MS, "FusedMatMulActivation", shape_matmul, OF(0), COST(cost_rule_matmul)),
    OP(MS, "GatedAdd", shape_same),
    OP(MS, "GatedRMSNorm", shape_same),
    OP(MS, "GatherBlockQuantized", shape_gather_blocks, OF(2), .cost = cost_rule_scaled, .each = {2, 0, 0},
        .bytes = BYTES_PICKED, .index = {{1, 0, BY_GATHER_AXIS}}),
    OP(MS, "GatherND", shape_standard, PASS(1), .index = {{1, 0, BY_ALL}}),
    OP(MS, "Gelu", shape_same),
    OP(MS, "GemmFastGelu", shape_matmul, OF(0), COST(cost_rule_gemm_fast_gelu)),
    OP(MS, "GemmFloat8", shape_gemm, BY("dtype"), IS(ONNX_FLOAT)),
    OP(MS, "GreedySearch", shape_generate, IS(ONNX_INT32)),
    OP(MS, "GridSample", shape_grid_sample, OF(0)),
    OP(MS, "GroupNorm", shape_same, COST_EACH(cost_rule_channel_norm, 7, 0, 0)),
    OP(MS, "GroupQueryAttention", shape_group_query, COST(cost_rule_group_query)),
    OP(MS, "Inverse", shape_same),
    OP(MS, "LongformerAttention", shape_same),
    OP(MS, "MRotaryEmbedding", shape_same),
    OP(MS, "MatMulBnb4", shape_matmul_bits, OF(0), COST(cost_rule_packed_product)),
    OP(MS, "MatMulInteger16", shape_matmul, IS(ONNX_INT32)),
    OP(MS, "MatMulIntegerToFloat", shape_matmul, OF(2), COST(cost_rule_product)),
    OP(MS, "MatMulNBits", shape_matmul_bits, OF(0), COST(cost_rule_packed_product)),
    OP(MS, "MaxpoolWithMask", shape_pool, OF(0)),
    OP(MS, "MoE", shape_same),
    OP(MS, "MulInteger", shape_broadcast, IS(ONNX_INT32), .spread = 1 | 1 << 2),
    OP(MS, "MultiHeadAttention", shape_multi_head, COST(cost_rule_multi_head)),
    OP(MS, "MurmurHash3", shape_hash),
    OP(MS, "NGramRepeatBlock", shape_like_index, OF(1)),
    OP(MS, "NhwcConv", shape_conv, OF(0), .flags = OP_NHWC, COST(cost_rule_conv)),
    OP(MS, "NhwcFusedConv", shape_conv, OF(0), .flags = OP_NHWC, COST(cost_rule_conv)),
    OP(MS, "NhwcMaxPool", shape_pool, OF(0), .flags = OP_NHWC, COST_EACH(cost_rule_pool, 1, 0, 0)),
    OP(MS, "PackedAttention", shape_packed_tokens, OF(0), COST(cost_rule_packed_attention)),
    OP(MS, "PackedMultiHeadAttention", shape_packed_heads, OF(0), COST(cost_rule_packed_multi_head)),
    OP(MS, "Pad", shape_standard, PASS(1)),
    OP(MS, "PagedAttention", shape_same, .like = {[1] = LIKE(3), [2] = LIKE(4)}),
    OP(MS, "QAttention", shape_packed_weights, OF(2), .second = 8, COST(cost_rule_q_attention)),
    OP(MS, "QEmbedLayerNormalization", shape_embed_norm, OF(8), .index = {{0, 2, BY_FIRST}, {1, 4, BY_FIRST}}),
    OP(MS, "QGemm", shape_gemm, OF(8), IS(ONNX_FLOAT), .second = 3, COST(cost_rule_product)),
    OP(MS, "QLinearAdd", shape_broadcast, OF(0), .spread = 1 | 1 << 3, COST_EACH(cost_rule_scaled, 8, 0, 0)),
    OP(MS, "QLinearAveragePool", shape_pool, OF(0), COST_EACH(cost_rule_scaled_pool, 5, 0, 0)),
    OP(MS, "QLinearConcat", shape_concat, OF(1), .second = 2, COST_EACH(cost_rule_scaled, 5, 0, 0)),
    OP(MS, "QLinearConv", shape_conv, OF(7), .second = 3),
    OP(MS, "QLinearGlobalAveragePool", shape_global_pool, OF(0), COST_EACH(cost_rule_scaled_pool, 5, 0, 0)),
    OP(MS, "QLinearLeakyRelu", shape_same, COST_EACH(cost_rule_scaled, 7, 0, 0)),
    OP(MS, "QLinearMul", shape_broadcast, OF(0), .spread = 1 | 1 << 3, COST_EACH(cost_rule_scaled, 8, 0, 0)),
    OP(MS, "QLinearReduceMean", shape_reduce, .second = OP_NO_INPUT, OF(0)),
    OP(MS, "QLinearSigmoid", shape_same, COST_EACH(cost_rule_scaled, 6, 1, 1)),
    OP(MS, "QLinearSoftmax", shape_same, COST_EACH(cost_rule_scaled, 8, 1, 1)),
    OP(MS, "QLinearWhere", shape_broadcast, OF(1), .spread = 1 | 1 << 1 | 1 << 4, COST_EACH(cost_rule_scaled, 6, 0, 0)),
    OP(MS, "QMoE", shape_same),
    OP(MS, "QOrderedGelu", shape_same),
    OP(MS, "QOrderedLayerNormalization", shape_same),
    OP(MS, "QOrderedLongformerAttention", shape_same),
    OP(MS, "QOrderedMatMul", shape_matmul, IS(ONNX_INT8), .second = 2),
    OP(MS, "QuantizeLinear", shape_same, OF(2), IS(ONNX_UINT8)),
    OP(MS, "QuantizeWithOrder", shape_same, IS(ONNX_INT8)),
    OP(MS, "QuickGelu", shape_same, EACH(2, 1, 1), IN_PLACE),
    OP(MS, "Range", shape_standard),
    OP(MS, "ReduceSumInteger", shape_reduce, .second = OP_NO_INPUT),
    OP(MS, "RelativePositionBias", shape_position_bias, OF(0)),
    OP(MS, "RemovePadding", shape_remove_padding, OF(0), PICKS),
    OP(MS, "RestorePadding", shape_restore_padding, OF(0), MOVES),
    OP(MS, "RotaryEmbedding", shape_same, .index = {{1, 2, BY_FIRST}}),
    OP(MS, "Sampling", shape_generate, IS(ONNX_INT32)),
    OP(MS, "ScaledSiLU", shape_same),
    OP(MS, "SimplifiedLayerNormalization", shape_standard),
    OP(MS, "SkipGroupNorm", shape_same, .like = {[1] = LIKE(0)}),
    OP(MS, "SkipLayerNormalization", shape_skip_norm, COST_EACH(cost_rule_skip_layer_norm, 7, 0, 0)),
    OP(MS, "SkipSimplifiedLayerNormalization", shape_skip_norm, COST_EACH(cost_rule_skip_rms_norm, 4, 0, 0)),
    OP(MS, "SparseAttention", shape_sparse_attention, OF(0), .like = {[1] = LIKE(3), [2] = LIKE(4)}),
    OP(MS, "SparseToDenseMatMul", shape_matmul, OF(1)),
    OP(MS, "TorchEmbedding", shape_gather, OF(0)),
    OP(MS, "TransposeMatMul", shape_matmul, OF(0), COST(cost_rule_matmul)),
    OP(MS, "Trilu", shape_same, PASS(1)),
    OP(MS, "WhisperBeamSearch", shape_generate, IS(ONNX_INT32)),
    OP(NCHWC, "AveragePool", shape_pool, OF(0)),
    OP(NCHWC, "Conv", shape_conv, OF(0), .flags = OP_BLOCKED),
    OP(NCHWC, "GlobalAveragePool", shape_global_pool, OF(0)),
    OP(NCHWC, "GlobalMaxPool", shape_global_pool, OF(0)),
    OP(NCHWC, "MaxPool", shape_pool, OF(0)),
    OP(NCHWC, "ReorderInput", shape_reorder_input, OF(0), MOVES),
    OP(NCHWC, "ReorderOutput", shape_reorder_output, OF(0), MOVES),
    OP(NCHWC, "Upsample", shape_blocked_upsample, OF(0)),
    OP(NHWC, "AveragePool", shape_pool, OF(0), .flags = OP_NHWC),
    OP(NHWC, "BatchNormalization", shape_standard),
    OP(NHWC, "Conv", shape_conv, OF(0), .flags = OP_NHWC),
    OP(NHWC, "GlobalAveragePool", shape_global_pool, OF(0), .flags = OP_NHWC),
    OP(NHWC, "GlobalLpPool", shape_global_pool, OF(0), .flags = OP_NHWC),
    OP(NHWC, "GlobalMaxPool", shape_global_pool, OF(0), .flags = OP_NHWC),
    OP(NHWC, "InstanceNormalization", shape_standard),
    OP(NHWC, "LRN", shape_standard),
    OP(NHWC, "LpPool", shape_pool, OF(0), .flags = OP_NHWC),
    OP(NHWC, "MaxPool", shape_pool, OF(0), .flags = OP_NHWC),
    OP(NHWC, "QLinearConv", shape_conv, OF(7), .flags = OP_NHWC, .second = 3),
    OP(NHWC, "Resize", shape_standard),

    /* ---- control flow, sequences, optionals ---- */
    OP("", "If", shape_if),
    OP("", "Loop", shape_loop),
    OP("", "Scan", shape_scan),
    OP("", "SequenceConstruct", shape_sequence_construct, LISTS),
    OP("", "SequenceEmpty", shape_sequence_empty, LISTS),
    OP("", "SequenceInsert", shape_sequence_insert, LISTS),
    OP("", "SequenceErase", shape_sequence_erase, LISTS),
    OP("", "SequenceAt", shape_sequence_at, LISTS, .index = {{1, 0, BY_NOTHING}}),
    OP("", "SequenceLength", shape_sequence_length, IS(ONNX_INT64), MAKES),
    OP("", "SequenceMap", shape_sequence_map),
    OP("", "ConcatFromSequence", shape_concat_from_sequence, PICKS),
    OP("", "SplitToSequence", shape_split_to_sequence),
    OP("", "Optional", shape_optional, LISTS),
    OP("", "OptionalHasElement", shape_optional_has, IS(ONNX_BOOL), MAKES),
    OP("", "OptionalGetElement", shape_optional_get, LISTS),

    /* ---- signals, text, random numbers, classic machine learning, training ---- */
    OP("", "DFT", shape_dft, OF(0)),
    OP("", "STFT", shape_stft, OF(0)),
    OP("", "MelWeightMatrix", shape_mel, BY("output_datatype"), IS(ONNX_FLOAT)),
    OP("", "BlackmanWindow", shape_window, BY("output_datatype"), IS(ONNX_FLOAT), COST_EACH(cost_rule_output, 6, 0, 2)),
    OP("", "HammingWindow", shape_window, BY("output_datatype"), IS(ONNX_FLOAT), COST_EACH(cost_rule_output, 3, 0, 1)),
    OP("", "HannWindow", shape_window, BY("output_datatype"), IS(ONNX_FLOAT), COST_EACH(cost_rule_output, 3, 0, 1)),
    OP("", "StringConcat", shape_broadcast, IS(ONNX_STRING)),
    OP("", "StringSplit", shape_string_split, IS(ONNX_STRING)),
    OP("", "StringNormalizer", shape_string_normalizer, IS(ONNX_STRING)),
    OP("", "RegexFullMatch", shape_same, IS(ONNX_BOOL)),
    OP("", "TfIdfVectorizer", shape_tf_idf, IS(ONNX_FLOAT)),
    OP("", "ImageDecoder", shape_image_decoder, IS(ONNX_UINT8)),
    OP("", "Multinomial", shape_multinomial, BY("dtype"), IS(ONNX_INT32), .flags = OP_RANDOM),
    OP(ML, "ArrayFeatureExtractor", shape_feature_extractor, OF(0), PICKS, .index = {{1, 0, BY_LAST}}),
    OP(ML, "Binarizer", shape_same, EACH(1, 0, 0)),
    OP(ML, "CastMap", shape_no_tensor),
    OP(ML, "CategoryMapper", shape_category_mapper),
    OP(ML, "DictVectorizer", shape_no_tensor),
    OP(ML, "FeatureVectorizer", shape_feature_vectorizer, IS(ONNX_FLOAT)),
    OP(ML, "Imputer", shape_same),
    OP(ML, "LabelEncoder", shape_label_encoder),
    OP(ML, "LinearClassifier", shape_classifier),
    OP(ML, "LinearRegressor", shape_regressor, IS(ONNX_FLOAT)),
    OP(ML, "Normalizer", shape_same, IS(ONNX_FLOAT)),
    OP(ML, "OneHotEncoder", shape_one_hot_encoder, IS(ONNX_FLOAT)),
    OP(ML, "SVMClassifier", shape_classifier),
    OP(ML, "SVMRegressor", shape_regressor, IS(ONNX_FLOAT)),
    OP(ML, "Scaler", shape_same, IS(ONNX_FLOAT)),
    OP(ML, "TreeEnsemble", shape_trees, OF(0)),
    OP(ML, "TreeEnsembleClassifier", shape_classifier),
    OP(ML, "TreeEnsembleRegressor", shape_trees, IS(ONNX_FLOAT)),
    OP(ML, "ZipMap", shape_no_tensor),
    OP(TRAINING, "Adagrad", shape_optimised),
    OP(TRAINING, "Adam", shape_optimised, .second = 4),
    OP(TRAINING, "Momentum", shape_optimised),
    OP(TRAINING, "Gradient", shape_gradient),

    /* ---- known by their cost alone, in any of the common domains ---- */
    OP(NULL, "Silu", NULL, EACH(2, 1, 1), IN_PLACE),
    OP(NULL, "ConvTransposeWithDynamicPads", NULL, COST(cost_rule_conv_transpose)),
    OP(NULL, "Crop", NULL, PICKS),
    OP("org.pytorch.aten", "ATen", NULL, .index = {{1, 0, BY_FIRST}}),
    {.op = NULL},
};

/* ONNX's own operators, and ONNX Runtime's fused, blocked and channels-last forms of them: a name means the same. */
static bool is_common(const char *domain)
{
    static const char *const names[] = {"", MS, NCHWC, NHWC};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(domain, names[i]) == 0) return true;
    return false;
}

static bool is_op(const struct op_row *r, const char *op)
{
    return r->op[0] == op[0] && strcmp(r->op, op) == 0;
}

const struct op_row *op_find(const char *domain, const char *op)
{
    for (const struct op_row *r = op_table; r->op; r++) {
        if (!is_op(r, op)) continue;
        if (r->domain ? strcmp(r->domain, domain) == 0 : is_common(domain)) return r;
    }
    return NULL;
}

const struct op_row *op_find_cost(const char *domain, const char *op)
{
    const struct op_row *other = NULL;
    bool common = is_common(domain);
    for (const struct op_row *r = op_table; r->op; r++) {
        if (!is_op(r, op) || r->bytes == BYTES_UNCOUNTED) continue;
        if (r->domain && strcmp(r->domain, domain) == 0) return r;
        if (!other && common && (!r->domain || is_common(r->domain))) other = r;
    }
    return other;
}
