/* SPDX-License-Identifier: MIT
 * infer_contrib.c - rules of shape inference: fused and quantised operators of ONNX Runtime's own domains, and its
 * blocked and channels-last layouts. Never guesses a size. */
#include <string.h>

#include "model/infer/infer_rule.h"

tare_status shape_standard(struct rule_call *c)
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

tare_status shape_fused_matmul(struct rule_call *c)
{
    struct matmul_form f = matmul_form_of(c);
    rule_same_type(c, 0, strcmp(c->node->op, "SparseToDenseMatMul") ? 0 : 1);
    return matmul_shape(c, 0, 1, &f);
}

/* Weights packed in bits: how many columns is an attribute. */
tare_status shape_matmul_bits(struct rule_call *c)
{
    struct rule_dims d;
    int64_t n = rule_int(c, rule_int(c, "transB", 1) ? "N" : "K", 0);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    if (d.n < 1 || n < 1) return rule_fault(c, "data of %zu dimensions and %lld columns", d.n, (long long)n);
    d.at[d.n - 1] = poly_int(c->space, n);
    return rule_state(c, 0, &d);
}

tare_status shape_qgemm(struct rule_call *c)
{
    if (rule_has_input(c, 8))
        rule_same_type(c, 0, 8);
    else
        rule_type(c, 0, ONNX_FLOAT);
    return gemm_shape(c, 0, 3);
}

tare_status shape_gemm_float8(struct rule_call *c)
{
    rule_type(c, 0, (int)rule_int(c, "dtype", ONNX_FLOAT));
    return gemm_shape(c, 0, 1);
}

tare_status shape_distance(struct rule_call *c)
{
    const struct poly *dims[] = {rule_input_dim(c, 0, 0), rule_input_dim(c, 1, 0)};
    return rule_shape(c, 0, dims, 2);
}

/* ---- element-wise, quantised ---- */

tare_status shape_qlinear_where(struct rule_call *c)
{
    return rule_broadcast_inputs(c, (const size_t[]){0, 1, 4}, 3);
}

/* Inputs come in threes after the result's scale and zero point: data, scale, zero point. */
tare_status shape_qlinear_concat(struct rule_call *c)
{
    struct rule_dims d;
    size_t axis;
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

tare_status shape_quantise(struct rule_call *c)
{
    if (rule_has_input(c, 2))
        rule_same_type(c, 0, 2);
    else
        rule_type(c, 0, ONNX_UINT8);
    return rule_same_shape(c, 0, 0);
}

/* Rows of a table whose 4-bit (or 2-bit) numbers may be packed in bytes along the last axis. */
tare_status shape_gather_blocks(struct rule_call *c)
{
    struct rule_dims data;
    struct rule_dims ids;
    struct rule_dims d = rule_dims_none();
    size_t axis;
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
tare_status shape_skip_norm(struct rule_call *c)
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

tare_status shape_expand_dims(struct rule_call *c)
{
    struct rule_dims d;
    struct rule_dims out = rule_dims_none();
    int64_t given;
    size_t axis;
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

tare_status shape_hash(struct rule_call *c)
{
    rule_type(c, 0, rule_int(c, "positive", 1) ? ONNX_UINT32 : ONNX_INT32);
    return rule_same_shape(c, 0, 0);
}

tare_status shape_split_gelu(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d) || d.n == 0) return TARE_OK;
    d.at[d.n - 1] = rule_part(c, d.at[d.n - 1], poly_int(c->space, 2));
    return rule_state(c, 0, &d);
}

tare_status shape_position_bias(struct rule_call *c)
{
    const struct poly *dims[] = {poly_int(c->space, 1), rule_input_dim(c, 0, 1), rule_int_at(c, 1, 0),
                                 rule_int_at(c, 2, 0)};
    if (!dims[2] || !dims[3]) rule_data_dependent(c, 0, "the lengths are contents of inputs");
    return rule_shape(c, 0, dims, 4);
}

tare_status shape_torch_embedding(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 1, &d)) return TARE_OK;
    rule_push(&d, rule_input_dim(c, 0, 1));
    return rule_state(c, 0, &d);
}

tare_status shape_crop_and_resize(struct rule_call *c)
{
    const struct poly *dims[] = {rule_input_dim(c, 1, 0), rule_input_dim(c, 0, 1), rule_int_at(c, 3, 0),
                                 rule_int_at(c, 3, 1)};
    if (!dims[2] || !dims[3]) rule_data_dependent(c, 0, "the size is the contents of an input");
    return rule_shape(c, 0, dims, 4);
}

tare_status shape_restore_padding(struct rule_call *c)
{
    const struct poly *dims[] = {rule_input_dim(c, 1, 0), rule_input_dim(c, 1, 1), rule_input_dim(c, 0, 1)};
    return rule_shape(c, 0, dims, 3);
}

tare_status shape_remove_padding(struct rule_call *c)
{
    const struct poly *dims[] = {NULL, rule_input_dim(c, 0, 2)};
    rule_data_dependent(c, 0, "how many tokens are no padding hangs on the input");
    return rule_shape(c, 0, dims, 2);
}

tare_status shape_generate(struct rule_call *c)
{
    rule_data_dependent(c, 0, "how long the sequences get hangs on what is generated");
    return TARE_OK;
}

tare_status shape_sparse_attention(struct rule_call *c)
{
    struct rule_dims q;
    tare_status s = shape_by_likes(c);
    if (s < 0 || !rule_ranked_as(c, 0, 3, &q, &s)) return s;
    return rule_has_input(c, 1) ? rule_state(c, 0, &q) : TARE_OK;
}
