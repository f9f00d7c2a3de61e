/* SPDX-License-Identifier: MIT
 * infer_contrib.c - rules of shape inference: fused and quantised operators of ONNX Runtime's own domains. Never
 * guesses a size. */
#include "model/infer/infer_rule.h"

/* What the standard says of the operator; these domains count their own versions, the copies are of about 13. */
bool shape_standard(struct rule_call *c)
{
    struct rule_call as = *c;
    as.row = op_find("", c->node->op);
    as.opset = 13;
    if (!as.row || !as.row->shape) return rule_unknown(c, "no rule for %s", c->node->op);
    return rule_run(&as);
}

/* Weights packed in bits: how many columns is an attribute. */
bool shape_matmul_bits(struct rule_call *c)
{
    struct rule_dims d;
    int64_t n = rule_int(c, rule_int(c, "transB", 1) ? "N" : "K", 0);
    if (!rule_ranked(c, 0, &d)) return false;
    if (d.n < 1 || n < 1) return rule_fault(c, "data of %zu dimensions and %lld columns", d.n, (long long)n);
    d.at[d.n - 1] = rule_number(c, n);
    return rule_state(c, 0, &d);
}

bool shape_distance(struct rule_call *c)
{
    return rule_shape_is(c, 0, rule_input_dim(c, 0, 0), rule_input_dim(c, 1, 0));
}

/* Result, mean and deviation of each row, and the sum that was normalised. */
bool shape_skip_norm(struct rule_call *c)
{
    struct rule_dims d;
    rule_type(c, 1, ONNX_FLOAT);
    rule_type(c, 2, ONNX_FLOAT);
    rule_same(c, 3, 0);
    if (!rule_same(c, 0, 0) || !rule_ranked(c, 0, &d) || d.n == 0) return false;
    d.at[d.n - 1] = rule_number(c, 1);
    return rule_state(c, 1, &d) && rule_state(c, 2, &d);
}

bool shape_hash(struct rule_call *c)
{
    rule_type(c, 0, rule_int(c, "positive", 1) ? ONNX_UINT32 : ONNX_INT32);
    return rule_same_shape(c, 0, 0);
}

bool shape_split_gelu(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d) || d.n == 0) return false;
    d.at[d.n - 1] = rule_part(c, d.at[d.n - 1], rule_number(c, 2));
    return rule_state(c, 0, &d);
}

bool shape_position_bias(struct rule_call *c)
{
    const struct poly *rows = rule_int_at(c, 1, 0), *columns = rule_int_at(c, 2, 0);
    if (!rows || !columns) rule_data_dependent(c, 0, "the lengths are contents of inputs");
    return rule_shape_is(c, 0, rule_number(c, 1), rule_input_dim(c, 0, 1), rows, columns);
}

bool shape_crop_and_resize(struct rule_call *c)
{
    const struct poly *height = rule_int_at(c, 3, 0), *width = rule_int_at(c, 3, 1);
    if (!height || !width) rule_data_dependent(c, 0, "the size is the contents of an input");
    return rule_shape_is(c, 0, rule_input_dim(c, 1, 0), rule_input_dim(c, 0, 1), height, width);
}

bool shape_restore_padding(struct rule_call *c)
{
    return rule_shape_is(c, 0, rule_input_dim(c, 1, 0), rule_input_dim(c, 1, 1), rule_input_dim(c, 0, 1));
}

bool shape_remove_padding(struct rule_call *c)
{
    rule_data_dependent(c, 0, "how many tokens are no padding hangs on the input");
    return rule_shape_is(c, 0, NULL, rule_input_dim(c, 0, 2));
}

bool shape_generate(struct rule_call *c)
{
    return rule_data_dependent(c, 0, "how long the sequences get hangs on what is generated");
}

bool shape_sparse_attention(struct rule_call *c)
{
    struct rule_dims q;
    return rule_ranked_as(c, 0, 3, &q) && rule_has_input(c, 1) && rule_state(c, 0, &q);
}
