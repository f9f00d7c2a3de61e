/* SPDX-License-Identifier: MIT
 * infer_nn.c - rules of shape inference: recurrent cells, attention, losses of the standard. Never guesses a size. */
#include <string.h>

#include "model/infer/infer_engine.h"

/* Y [steps, directions, batch, hidden] and the last states [directions, batch, hidden]; with the batch first
 * [batch, steps, directions, hidden] and [batch, directions, hidden]. */
bool shape_lstm(struct rule_call *c)
{
    const char *direction = rule_text(c, "direction");
    bool both = direction && !strcmp(direction, "bidirectional"), batch_first = rule_int(c, "layout", 0) != 0;
    int64_t given = rule_int(c, "hidden_size", 0);
    const struct poly *directions = rule_number(c, both ? 2 : 1);
    const struct poly *hidden = given > 0 ? rule_number(c, given) : rule_input_dim(c, 2, 2);
    struct rule_dims x;
    rule_same_types(c, c->node->outputs.n, 0);
    if (!rule_ranked_as(c, 0, 3, &x)) return false;
    struct rule_dims d = {.known = true, .n = 4, .at = {x.at[0], directions, x.at[1], hidden}};
    if (batch_first)
        d = (struct rule_dims){.known = true, .n = 4, .at = {x.at[0], x.at[1], directions, hidden}};
    rule_state(c, 0, &d);
    rule_drop(&d, batch_first ? 1 : 0);
    for (size_t i = 1; i < c->node->outputs.n; i++) rule_state(c, i, &d);
    return true;
}

/* ---- attention of the standard: packed heads [B,S,h*d] or split ones [B,h,S,d] ---- */

struct heads {
    const struct poly *batch, *n, *length, *size;
};

/* All of it unknown where the rank of the input is. */
static bool heads_of(struct rule_call *c, size_t input, const char *count, struct heads *out)
{
    struct rule_dims d;
    *out = (struct heads){NULL, NULL, NULL, NULL};
    if (!rule_ranked(c, input, &d)) return true;
    if (d.n == 4) {
        *out = (struct heads){d.at[0], d.at[1], d.at[2], d.at[3]};
        return true;
    }
    if (d.n != 3) return rule_fault(c, "input %zu has %zu dimensions, not 3 or 4", input, d.n);
    int64_t heads = rule_int(c, count, 0);
    if (heads < 1) return rule_fault(c, "inputs of 3 dimensions and no %s", count);
    const struct poly *n = rule_number(c, heads);
    *out = (struct heads){d.at[0], n, d.at[1], rule_part(c, d.at[2], n)};
    return true;
}

/* The result, packed as the query is; keys and values with those of the past; the scores. */
bool shape_attention(struct rule_call *c)
{
    struct heads q, k, v;
    struct rule_dims y = rule_dims_of(rule_input(c, 0));
    for (size_t i = 0; i < 4; i++) rule_same_type(c, i, i % 3);
    if (!heads_of(c, 0, "q_num_heads", &q) || !heads_of(c, 1, "kv_num_heads", &k)) return false;
    if (!heads_of(c, 2, "kv_num_heads", &v)) return false;
    if (y.known) y.at[y.n - 1] = y.n == 4 ? v.size : poly_mul(c->space, q.n, v.size);
    rule_state(c, 0, &y);
    const struct poly *keys = rule_behind(c, 4, 2, k.length);
    rule_shape_is(c, 1, k.batch, k.n, keys, k.size);
    rule_shape_is(c, 2, v.batch, v.n, rule_behind(c, 5, 2, v.length), v.size);
    return rule_shape_is(c, 3, q.batch, q.n, q.length, keys);
}

/* FlexAttention: graphs of its own see all scores, in the precision of the softmax. */
bool shape_flex_attention(struct rule_call *c)
{
    static const char *const names[] = {"score_mod", "prob_mod"};
    int type = rule_input_type(c, 0) == ONNX_DOUBLE ? ONNX_DOUBLE : ONNX_FLOAT;
    struct infer_value scores = {.type = (int)rule_int(c, "softmax_precision", type)};
    const struct infer_value *formal = &scores;
    if (!shape_attention(c) || !scope_dims(c->engine, &scores, 4)) return false;
    for (int i = 0; i < 4; i++) scores.dims[i] = rule_input_dim(c, i == 3, i == 3 ? 2 : i);
    for (size_t i = 0; i < 2; i++) {
        const struct onnx_attribute *a = rule_attribute_of(c, names[i]);
        struct infer_scope *body;
        if (a && a->g && !rule_body(c, a->g, &formal, 1, &body)) return false;
    }
    return true;
}

/* LinearAttention: packed heads, a state of one matrix per key head. */
bool shape_linear_attention(struct rule_call *c)
{
    struct rule_dims q;
    const struct poly *q_heads = rule_number(c, rule_int(c, "q_num_heads", 0));
    const struct poly *kv_heads = rule_number(c, rule_int(c, "kv_num_heads", 0));
    const struct poly *key = rule_part(c, rule_input_dim(c, 1, 2), kv_heads);
    const struct poly *value = rule_part(c, rule_input_dim(c, 2, 2), kv_heads);
    rule_same_type(c, 1, rule_has_input(c, 3) ? 3 : 0);
    if (!rule_ranked_as(c, 0, 3, &q)) return false;
    q.at[2] = poly_mul(c->space, q_heads, value);
    return rule_state(c, 0, &q) && rule_shape_is(c, 1, q.at[0], kv_heads, key, value);
}

bool shape_causal_conv(struct rule_call *c)
{
    struct rule_dims d;
    rule_same_type(c, 1, 0);
    if (!rule_same(c, 0, 0) || !rule_ranked_as(c, 0, 3, &d)) return false;
    d.at[2] = poly_sub(c->space, rule_input_dim(c, 1, 2), rule_number(c, 1));
    return rule_state(c, 1, &d);
}

/* ---- losses and the rest ---- */

bool shape_nll_loss(struct rule_call *c)
{
    const char *reduction = rule_text(c, "reduction");
    bool reduces = !reduction || strcmp(reduction, "none") != 0;
    rule_same_type(c, 0, 0);
    return reduces ? rule_scalar(c, 0) : rule_same_shape(c, 0, 1);
}

bool shape_cross_entropy(struct rule_call *c)
{
    return shape_nll_loss(c) && rule_same(c, 1, 0);
}

bool shape_det(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return false;
    if (d.n < 2) return rule_fault(c, "a determinant of %zu dimensions", d.n);
    d.n -= 2;
    return rule_state(c, 0, &d);
}
