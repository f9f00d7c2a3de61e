/* SPDX-License-Identifier: MIT
 * infer_contrib.c - rules of shape inference: fused and quantised operators of ONNX Runtime's own domains, and its
 * blocked and channels-last layouts. Never guesses a size. */
#include <string.h>

#include "model/infer/infer_nn.h"

#define MS "com.microsoft"
#define NCHWC "com.microsoft.nchwc"
#define NHWC "com.ms.internal.nhwc"

static const struct like_row likes[] = {
    {"BiasAdd", 0, 0, 0, 0},
    {"BiasDropout", 0, 0, 0, 0},
    {"BiasDropout", 1, 0, LIKE_NOTHING, ONNX_BOOL},
    {"BiasGelu", 0, 0, 0, 0},
    {"BiasSoftmax", 0, 0, 0, 0},
    {"BranchwiseRMSNorm", 0, 0, 0, 0},
    {"DecoderAttention", 0, 0, 0, 0},
    {"DequantizeLinear", 0, 0, 1, 0},
    {"FastGelu", 0, 0, 0, 0},
    {"GatedAdd", 0, 0, 0, 0},
    {"GatedRMSNorm", 0, 0, 0, 0},
    {"Gelu", 0, 0, 0, 0},
    {"GroupNorm", 0, 0, 0, 0},
    {"Inverse", 0, 0, 0, 0},
    {"LongformerAttention", 0, 0, 0, 0},
    {"MRotaryEmbedding", 0, 0, 0, 0},
    {"MemcpyFromHost", 0, 0, 0, 0},
    {"MemcpyToHost", 0, 0, 0, 0},
    {"MoE", 0, 0, 0, 0},
    {"NGramRepeatBlock", 0, 1, 1, 0},
    {"PagedAttention", 0, 0, 0, 0},
    {"PagedAttention", 1, 3, 3, 0},
    {"PagedAttention", 2, 4, 4, 0},
    {"QLinearLeakyRelu", 0, 0, 0, 0},
    {"QLinearSigmoid", 0, 0, 0, 0},
    {"QLinearSoftmax", 0, 0, 0, 0},
    {"QMoE", 0, 0, 0, 0},
    {"QOrderedGelu", 0, 0, 0, 0},
    {"QOrderedLayerNormalization", 0, 0, 0, 0},
    {"QOrderedLongformerAttention", 0, 0, 0, 0},
    {"QuantizeWithOrder", 0, 0, LIKE_NOTHING, ONNX_INT8},
    {"QuickGelu", 0, 0, 0, 0},
    {"RotaryEmbedding", 0, 0, 0, 0},
    {"ScaledSiLU", 0, 0, 0, 0},
    {"SkipGroupNorm", 0, 0, 0, 0},
    {"SkipGroupNorm", 1, 0, 0, 0},
    {"SparseAttention", 1, 3, 3, 0},
    {"SparseAttention", 2, 4, 4, 0},
    {"Trilu", 0, 0, 0, 0},
    {NULL, 0, 0, 0, 0},
};

static tare_status rule_likes(struct rule_call *c)
{
    return rule_by_likes(c, likes);
}

static tare_status rule_standard(struct rule_call *c)
{
    enum { AS_OF = 13 }; /* these domains count their own versions; the copies are of about then */
    return rule_as_standard(c, c->node->op, AS_OF);
}

/* ---- contractions ---- */

static struct matmul_form matmul_form_of(const struct rule_call *c)
{
    return (struct matmul_form){
        .transpose_a = rule_int(c, "transA", 0) != 0,
        .transpose_b = rule_int(c, "transB", 0) != 0,
        .transpose_batch_a = rule_int(c, "transBatchA", 0) != 0,
        .transpose_batch_b = rule_int(c, "transBatchB", 0) != 0,
    };
}

static tare_status rule_fused_matmul(struct rule_call *c)
{
    struct matmul_form f = matmul_form_of(c);
    rule_same_type(c, 0, strcmp(c->node->op, "SparseToDenseMatMul") ? 0 : 1);
    return matmul_shape(c, 0, 1, &f);
}

static tare_status rule_matmul_to_float(struct rule_call *c)
{
    rule_same_type(c, 0, 2); /* of the scale */
    return matmul_shape(c, 0, 1, &(struct matmul_form){.transpose_a = false});
}

/* Weights packed in bits: how many columns is an attribute. */
static tare_status rule_matmul_bits(struct rule_call *c)
{
    struct rule_dims d;
    int64_t n = rule_int(c, rule_int(c, "transB", 1) ? "N" : "K", 0);
    rule_same_type(c, 0, 0);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    if (d.n < 1 || n < 1) return rule_fault(c, "data of %zu dimensions and %lld columns", d.n, (long long)n);
    d.at[d.n - 1] = poly_int(c->space, n);
    return rule_state(c, 0, &d);
}

static tare_status rule_qgemm(struct rule_call *c)
{
    if (rule_has_input(c, 8))
        rule_same_type(c, 0, 8);
    else
        rule_type(c, 0, ONNX_FLOAT);
    return gemm_shape(c, 0, 3);
}

static tare_status rule_gemm_float8(struct rule_call *c)
{
    rule_type(c, 0, (int)rule_int(c, "dtype", ONNX_FLOAT));
    return gemm_shape(c, 0, 1);
}

static tare_status rule_ordered_matmul(struct rule_call *c)
{
    rule_type(c, 0, ONNX_INT8);
    return matmul_shape(c, 0, 2, &(struct matmul_form){.transpose_a = false});
}

static tare_status rule_distance(struct rule_call *c)
{
    const struct poly *dims[] = {rule_input_dim(c, 0, 0), rule_input_dim(c, 1, 0)};
    rule_same_type(c, 0, 0);
    return rule_shape(c, 0, dims, 2);
}

/* ---- element-wise, quantised ---- */

static tare_status rule_qlinear_binary(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return rule_broadcast_inputs(c, (const size_t[]){0, 3}, 2);
}

static tare_status rule_qlinear_where(struct rule_call *c)
{
    rule_same_type(c, 0, 1);
    return rule_broadcast_inputs(c, (const size_t[]){0, 1, 4}, 3);
}

static tare_status rule_mul_integer(struct rule_call *c)
{
    rule_type(c, 0, ONNX_INT32);
    return rule_broadcast_inputs(c, (const size_t[]){0, 2}, 2);
}

static tare_status rule_complex_mul(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return rule_broadcast_inputs(c, (const size_t[]){0, 1}, 2);
}

/* Inputs come in threes after the result's scale and zero point: data, scale, zero point. */
static tare_status rule_qlinear_concat(struct rule_call *c)
{
    struct rule_dims d;
    size_t axis;
    rule_same_type(c, 0, 1);
    if (!rule_ranked(c, 2, &d)) return TARE_OK;
    tare_status s = rule_axis(c, rule_int(c, "axis", 0), d.n, &axis);
    for (size_t i = 5; s == TARE_OK && i < c->node->inputs.n; i += 3) {
        struct rule_dims more;
        if (!rule_ranked_as(c, i, d.n, &more, &s)) return s;
        for (size_t k = 0; s == TARE_OK && k < d.n; k++)
            if (k != axis) s = rule_agree(c, d.at[k], more.at[k], "dimensions that are not joined", &d.at[k]);
        d.at[axis] = poly_add(c->space, d.at[axis], more.at[axis]);
    }
    return s < 0 ? s : rule_state(c, 0, &d);
}

static tare_status rule_quantise(struct rule_call *c)
{
    if (rule_has_input(c, 2))
        rule_same_type(c, 0, 2);
    else
        rule_type(c, 0, ONNX_UINT8);
    return rule_same_shape(c, 0, 0);
}

static tare_status rule_qlinear_pool(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return pool_shape(c, 0, rule_int(c, "channels_last", 0) != 0);
}

static tare_status rule_qlinear_global_pool(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return global_pool_shape(c, rule_int(c, "channels_last", 0) != 0);
}

static tare_status rule_qlinear_reduce(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return rule_reduce_by_attribute(c);
}

/* Rows of a table whose 4-bit (or 2-bit) numbers may be packed in bytes along the last axis. */
static tare_status rule_gather_blocks(struct rule_call *c)
{
    struct rule_dims data;
    struct rule_dims ids;
    struct rule_dims d = rule_dims_none();
    size_t axis;
    rule_same_type(c, 0, 2);
    if (!rule_ranked(c, 0, &data) || !rule_ranked(c, 1, &ids)) return TARE_OK;
    tare_status s = rule_axis(c, rule_int(c, "gather_axis", 0), data.n, &axis);
    if (s < 0) return s;
    int64_t bits = rule_int(c, "bits", 4);
    if (rule_input_type(c, 0) == ONNX_UINT8 && bits > 0 && bits <= 8)
        data.at[data.n - 1] = poly_mul(c->space, data.at[data.n - 1], poly_int(c->space, 8 / bits));
    for (size_t i = 0; i < data.n; i++) {
        for (size_t k = 0; i == axis && k < ids.n; k++) rule_push(&d, ids.at[k]);
        if (i != axis) rule_push(&d, data.at[i]);
    }
    return rule_state(c, 0, &d);
}

/* ---- shapes of their own ---- */

/* Result, mean and deviation of each row, and the sum that was normalised. */
static tare_status rule_skip_norm(struct rule_call *c)
{
    struct rule_dims d;
    tare_status s = rule_same(c, 0, 0);
    if (s == TARE_OK) s = rule_same(c, 3, 0);
    rule_type(c, 1, ONNX_FLOAT);
    rule_type(c, 2, ONNX_FLOAT);
    if (s < 0 || !rule_ranked(c, 0, &d) || d.n == 0) return s;
    d.at[d.n - 1] = poly_int(c->space, 1);
    if ((s = rule_state(c, 1, &d)) < 0) return s;
    return rule_state(c, 2, &d);
}

static tare_status rule_expand_dims(struct rule_call *c)
{
    struct rule_dims d;
    struct rule_dims out = rule_dims_none();
    int64_t given;
    size_t axis;
    rule_same_type(c, 0, 0);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    if (!poly_constant(rule_int_at(c, 1, 0), &given)) {
        rule_data_dependent(c, 0, "the axis is the contents of an input");
        return TARE_OK;
    }
    tare_status s = rule_axis(c, given, d.n + 1, &axis);
    for (size_t i = 0; s == TARE_OK && i <= d.n; i++) {
        if (i == axis) rule_push(&out, poly_int(c->space, 1));
        if (i < d.n) rule_push(&out, d.at[i]);
    }
    return s < 0 ? s : rule_state(c, 0, &out);
}

static tare_status rule_hash(struct rule_call *c)
{
    rule_type(c, 0, rule_int(c, "positive", 1) ? ONNX_UINT32 : ONNX_INT32);
    return rule_same_shape(c, 0, 0);
}

static tare_status rule_split_gelu(struct rule_call *c)
{
    struct rule_dims d;
    rule_same_type(c, 0, 0);
    if (!rule_ranked(c, 0, &d) || d.n == 0) return TARE_OK;
    d.at[d.n - 1] = rule_part(c, d.at[d.n - 1], poly_int(c->space, 2));
    return rule_state(c, 0, &d);
}

static tare_status rule_position_bias(struct rule_call *c)
{
    const struct poly *dims[] = {poly_int(c->space, 1), rule_input_dim(c, 0, 1), rule_int_at(c, 1, 0),
                                 rule_int_at(c, 2, 0)};
    rule_same_type(c, 0, 0);
    if (!dims[2] || !dims[3]) rule_data_dependent(c, 0, "the lengths are contents of inputs");
    return rule_shape(c, 0, dims, 4);
}

static tare_status rule_torch_embedding(struct rule_call *c)
{
    struct rule_dims d;
    rule_same_type(c, 0, 0);
    if (!rule_ranked(c, 1, &d)) return TARE_OK;
    rule_push(&d, rule_input_dim(c, 0, 1));
    return rule_state(c, 0, &d);
}

static tare_status rule_crop_and_resize(struct rule_call *c)
{
    const struct poly *dims[] = {rule_input_dim(c, 1, 0), rule_input_dim(c, 0, 1), rule_int_at(c, 3, 0),
                                 rule_int_at(c, 3, 1)};
    rule_same_type(c, 0, 0);
    if (!dims[2] || !dims[3]) rule_data_dependent(c, 0, "the size is the contents of an input");
    return rule_shape(c, 0, dims, 4);
}

static tare_status rule_restore_padding(struct rule_call *c)
{
    const struct poly *dims[] = {rule_input_dim(c, 1, 0), rule_input_dim(c, 1, 1), rule_input_dim(c, 0, 1)};
    rule_same_type(c, 0, 0);
    return rule_shape(c, 0, dims, 3);
}

static tare_status rule_remove_padding(struct rule_call *c)
{
    const struct poly *dims[] = {NULL, rule_input_dim(c, 0, 2)};
    rule_same_type(c, 0, 0);
    rule_data_dependent(c, 0, "how many tokens are no padding hangs on the input");
    return rule_shape(c, 0, dims, 2);
}

static tare_status rule_generate(struct rule_call *c)
{
    rule_type(c, 0, ONNX_INT32);
    rule_data_dependent(c, 0, "how long the sequences get hangs on what is generated");
    return TARE_OK;
}

static tare_status rule_sparse_attention(struct rule_call *c)
{
    struct rule_dims q;
    tare_status s = rule_by_likes(c, likes);
    rule_same_type(c, 0, 0);
    if (s < 0 || !rule_ranked_as(c, 0, 3, &q, &s)) return s;
    return rule_has_input(c, 1) ? rule_state(c, 0, &q) : TARE_OK;
}

const struct infer_row infer_rows_contrib[] = {
    {"", "MemcpyFromHost", rule_likes},
    {"", "MemcpyToHost", rule_likes},
    {MS, "Attention", rule_packed_weights},
    {MS, "BeamSearch", rule_generate},
    {MS, "BiasAdd", rule_likes},
    {MS, "BiasDropout", rule_likes},
    {MS, "BiasGelu", rule_likes},
    {MS, "BiasSoftmax", rule_likes},
    {MS, "BiasSplitGelu", rule_split_gelu},
    {MS, "BranchwiseRMSNorm", rule_likes},
    {MS, "CDist", rule_distance},
    {MS, "ComplexMul", rule_complex_mul},
    {MS, "ComplexMulConj", rule_complex_mul},
    {MS, "CropAndResize", rule_crop_and_resize},
    {MS, "DecoderAttention", rule_likes},
    {MS, "DecoderMaskedMultiHeadAttention", rule_decoder_heads},
    {MS, "DecoderMaskedSelfAttention", rule_packed_weights},
    {MS, "DequantizeLinear", rule_likes},
    {MS, "DynamicQuantizeLSTM", rule_lstm},
    {MS, "DynamicQuantizeMatMul", rule_matmul},
    {MS, "EmbedLayerNormalization", rule_embed_norm},
    {MS, "ExpandDims", rule_expand_dims},
    {MS, "FastGelu", rule_likes},
    {MS, "FusedConv", rule_conv},
    {MS, "FusedGemm", rule_gemm},
    {MS, "FusedMatMul", rule_fused_matmul},
    {MS, "FusedMatMulActivation", rule_fused_matmul},
    {MS, "GatedAdd", rule_likes},
    {MS, "GatedRMSNorm", rule_likes},
    {MS, "GatherBlockQuantized", rule_gather_blocks},
    {MS, "GatherND", rule_standard},
    {MS, "Gelu", rule_likes},
    {MS, "GemmFastGelu", rule_matmul},
    {MS, "GemmFloat8", rule_gemm_float8},
    {MS, "GreedySearch", rule_generate},
    {MS, "GridSample", rule_grid_sample},
    {MS, "GroupNorm", rule_likes},
    {MS, "GroupQueryAttention", rule_group_query},
    {MS, "Inverse", rule_likes},
    {MS, "LongformerAttention", rule_likes},
    {MS, "MRotaryEmbedding", rule_likes},
    {MS, "MatMulBnb4", rule_matmul_bits},
    {MS, "MatMulInteger16", rule_matmul_integer},
    {MS, "MatMulIntegerToFloat", rule_matmul_to_float},
    {MS, "MatMulNBits", rule_matmul_bits},
    {MS, "MaxpoolWithMask", rule_pool},
    {MS, "MoE", rule_likes},
    {MS, "MulInteger", rule_mul_integer},
    {MS, "MultiHeadAttention", rule_multi_head},
    {MS, "MurmurHash3", rule_hash},
    {MS, "NGramRepeatBlock", rule_likes},
    {MS, "NhwcConv", rule_nhwc_conv},
    {MS, "NhwcFusedConv", rule_nhwc_conv},
    {MS, "NhwcMaxPool", rule_nhwc_pool},
    {MS, "PackedAttention", rule_packed_tokens},
    {MS, "PackedMultiHeadAttention", rule_packed_heads},
    {MS, "Pad", rule_standard},
    {MS, "PagedAttention", rule_likes},
    {MS, "QAttention", rule_quantised_attention},
    {MS, "QEmbedLayerNormalization", rule_embed_norm_quantised},
    {MS, "QGemm", rule_qgemm},
    {MS, "QLinearAdd", rule_qlinear_binary},
    {MS, "QLinearAveragePool", rule_qlinear_pool},
    {MS, "QLinearConcat", rule_qlinear_concat},
    {MS, "QLinearConv", rule_qlinear_conv},
    {MS, "QLinearGlobalAveragePool", rule_qlinear_global_pool},
    {MS, "QLinearLeakyRelu", rule_likes},
    {MS, "QLinearMul", rule_qlinear_binary},
    {MS, "QLinearReduceMean", rule_qlinear_reduce},
    {MS, "QLinearSigmoid", rule_likes},
    {MS, "QLinearSoftmax", rule_likes},
    {MS, "QLinearWhere", rule_qlinear_where},
    {MS, "QMoE", rule_likes},
    {MS, "QOrderedGelu", rule_likes},
    {MS, "QOrderedLayerNormalization", rule_likes},
    {MS, "QOrderedLongformerAttention", rule_likes},
    {MS, "QOrderedMatMul", rule_ordered_matmul},
    {MS, "QuantizeLinear", rule_quantise},
    {MS, "QuantizeWithOrder", rule_likes},
    {MS, "QuickGelu", rule_likes},
    {MS, "Range", rule_standard},
    {MS, "ReduceSumInteger", rule_reduce_by_attribute},
    {MS, "RelativePositionBias", rule_position_bias},
    {MS, "RemovePadding", rule_remove_padding},
    {MS, "RestorePadding", rule_restore_padding},
    {MS, "RotaryEmbedding", rule_likes},
    {MS, "Sampling", rule_generate},
    {MS, "ScaledSiLU", rule_likes},
    {MS, "SimplifiedLayerNormalization", rule_standard},
    {MS, "SkipGroupNorm", rule_likes},
    {MS, "SkipLayerNormalization", rule_skip_norm},
    {MS, "SkipSimplifiedLayerNormalization", rule_skip_norm},
    {MS, "SparseAttention", rule_sparse_attention},
    {MS, "SparseToDenseMatMul", rule_fused_matmul},
    {MS, "TorchEmbedding", rule_torch_embedding},
    {MS, "TransposeMatMul", rule_fused_matmul},
    {MS, "Trilu", rule_likes},
    {MS, "WhisperBeamSearch", rule_generate},
    {NCHWC, "AveragePool", rule_pool},
    {NCHWC, "Conv", rule_blocked_conv},
    {NCHWC, "GlobalAveragePool", rule_global_pool},
    {NCHWC, "GlobalMaxPool", rule_global_pool},
    {NCHWC, "MaxPool", rule_pool},
    {NCHWC, "ReorderInput", rule_reorder_input},
    {NCHWC, "ReorderOutput", rule_reorder_output},
    {NCHWC, "Upsample", rule_blocked_upsample},
    {NHWC, "AveragePool", rule_nhwc_pool},
    {NHWC, "BatchNormalization", rule_standard},
    {NHWC, "Conv", rule_nhwc_conv},
    {NHWC, "GlobalAveragePool", rule_nhwc_global_pool},
    {NHWC, "GlobalLpPool", rule_nhwc_global_pool},
    {NHWC, "GlobalMaxPool", rule_nhwc_global_pool},
    {NHWC, "InstanceNormalization", rule_standard},
    {NHWC, "LRN", rule_standard},
    {NHWC, "LpPool", rule_nhwc_pool},
    {NHWC, "MaxPool", rule_nhwc_pool},
    {NHWC, "QLinearConv", rule_nhwc_qlinear_conv},
    {NHWC, "Resize", rule_standard},
    {NULL, NULL, NULL},
};
