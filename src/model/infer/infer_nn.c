/* SPDX-License-Identifier: MIT
 * infer_nn.c - rules of shape inference: recurrent cells, attention, losses; and the table of all neural operators of
 * the standard. Never guesses a size. */
#include "model/infer/infer_engine.h"
#include "model/infer/infer_rule.h"

#include <string.h>

/* ---- recurrent cells ---- */

struct cell {
    const struct poly *steps, *batch, *directions, *hidden;
    bool batch_first;
};

/* Y [steps, directions, batch, hidden], or [batch, steps, directions, hidden]. */
static tare_status cell_sequence(struct rule_call *c, const struct cell *r)
{
    const struct poly *time_first[] = {r->steps, r->directions, r->batch, r->hidden};
    const struct poly *batch_first[] = {r->batch, r->steps, r->directions, r->hidden};
    return rule_shape(c, 0, r->batch_first ? batch_first : time_first, 4);
}

static tare_status cell_state(struct rule_call *c, const struct cell *r, size_t output)
{
    const struct poly *time_first[] = {r->directions, r->batch, r->hidden};
    const struct poly *batch_first[] = {r->batch, r->directions, r->hidden};
    return rule_shape(c, output, r->batch_first ? batch_first : time_first, 3);
}

tare_status shape_lstm(struct rule_call *c)
{
    const char *direction = rule_text(c, "direction");
    int64_t both = direction && !strcmp(direction, "bidirectional") ? 2 : 1;
    int64_t hidden = rule_int(c, "hidden_size", 0);
    struct rule_dims x;
    tare_status s;
    for (size_t i = 0; i < c->node->outputs.n; i++) rule_same_type(c, i, 0);
    if (!rule_ranked_as(c, 0, 3, &x, &s)) return s;
    struct cell r = {.directions = poly_int(c->space, both), .batch_first = rule_int(c, "layout", 0) != 0};
    r.hidden = hidden > 0 ? poly_int(c->space, hidden) : rule_input_dim(c, 2, 2);
    r.steps = x.at[r.batch_first ? 1 : 0];
    r.batch = x.at[r.batch_first ? 0 : 1];
    if ((s = cell_sequence(c, &r)) < 0) return s;
    for (size_t i = 1; i < c->node->outputs.n; i++)
        if ((s = cell_state(c, &r, i)) < 0) return s;
    return TARE_OK;
}

/* ---- attention of the standard: packed heads [B,S,h*d] or split ones [B,h,S,d] ---- */

struct heads {
    const struct poly *batch, *n, *length, *size;
};

static tare_status heads_of(struct rule_call *c, size_t input, const char *count, struct heads *out,
                            bool *known)
{
    struct rule_dims d;
    *out = (struct heads){NULL, NULL, NULL, NULL};
    *known = rule_ranked(c, input, &d);
    if (!*known) return TARE_OK;
    if (d.n == 4) {
        *out = (struct heads){d.at[0], d.at[1], d.at[2], d.at[3]};
        return TARE_OK;
    }
    if (d.n != 3) return rule_fault(c, "input %zu has %zu dimensions, not 3 or 4", input, d.n);
    int64_t heads = rule_int(c, count, 0);
    if (heads < 1) return rule_fault(c, "inputs of 3 dimensions and no %s", count);
    const struct poly *n = poly_int(c->space, heads);
    *out = (struct heads){d.at[0], n, d.at[1], rule_part(c, d.at[2], n)};
    return TARE_OK;
}

static tare_status attention_y(struct rule_call *c, const struct heads *q, const struct heads *v)
{
    struct rule_dims d = rule_input_dims(c, 0);
    if (d.n == 4)
        d.at[3] = v->size;
    else
        d.at[2] = poly_mul(c->space, q->n, v->size);
    return rule_state(c, 0, &d);
}

/* Keys or values with those of the past before them; a cache that comes in from outside keeps its length. */
static tare_status attention_present(struct rule_call *c, size_t output, const struct heads *now, size_t past)
{
    const struct poly *before = rule_has_input(c, past) ? rule_input_dim(c, past, 2) : poly_int(c->space, 0);
    const struct poly *dims[] = {now->batch, now->n, poly_add(c->space, before, now->length), now->size};
    return rule_shape(c, output, dims, 4);
}

static tare_status attention_scores(struct rule_call *c, const struct heads *q, const struct heads *k)
{
    const struct poly *before = rule_has_input(c, 4) ? rule_input_dim(c, 4, 2) : poly_int(c->space, 0);
    const struct poly *dims[] = {q->batch, q->n, q->length, poly_add(c->space, before, k->length)};
    return rule_shape(c, 3, dims, 4);
}

tare_status shape_attention(struct rule_call *c)
{
    static const size_t types[] = {0, 1, 2, 0};
    struct heads q;
    struct heads k;
    struct heads v;
    bool known[3];
    for (size_t i = 0; i < 4; i++) rule_same_type(c, i, types[i]);
    tare_status s = heads_of(c, 0, "q_num_heads", &q, &known[0]);
    if (s == TARE_OK) s = heads_of(c, 1, "kv_num_heads", &k, &known[1]);
    if (s == TARE_OK) s = heads_of(c, 2, "kv_num_heads", &v, &known[2]);
    if (s == TARE_OK && known[0]) s = attention_y(c, &q, &v);
    if (s == TARE_OK) s = attention_present(c, 1, &k, 4);
    if (s == TARE_OK) s = attention_present(c, 2, &v, 5);
    return s < 0 ? s : attention_scores(c, &q, &k);
}

/* FlexAttention: graphs of its own see all scores, in the precision of the softmax. */
tare_status shape_flex_attention(struct rule_call *c)
{
    static const char *const names[] = {"score_mod", "prob_mod"};
    int type = rule_input_type(c, 0) == ONNX_DOUBLE ? ONNX_DOUBLE : ONNX_FLOAT;
    struct infer_value scores = {.type = (int)rule_int(c, "softmax_precision", type)};
    const struct infer_value *formal = &scores;
    tare_status s = shape_attention(c);
    if (s == TARE_OK) s = scope_dims(c->engine, &scores, 4);
    if (s != TARE_OK) return s;
    for (int i = 0; i < 4; i++) scores.dims[i] = rule_input_dim(c, i == 3, i == 3 ? 2 : i);
    for (size_t i = 0; s == TARE_OK && i < 2; i++) {
        const struct onnx_attribute *a = rule_attribute_of(c, names[i]);
        struct infer_scope *body;
        if (a && a->g) s = rule_body(c, a->g, &formal, 1, &body);
    }
    return s;
}

/* LinearAttention: packed heads, a state of one matrix per key head. */
tare_status shape_linear_attention(struct rule_call *c)
{
    struct poly_space *p = c->space;
    struct rule_dims q;
    tare_status s;
    const struct poly *q_heads = poly_int(p, rule_int(c, "q_num_heads", 0));
    const struct poly *kv_heads = poly_int(p, rule_int(c, "kv_num_heads", 0));
    const struct poly *key = rule_part(c, rule_input_dim(c, 1, 2), kv_heads);
    const struct poly *value = rule_part(c, rule_input_dim(c, 2, 2), kv_heads);
    rule_same_type(c, 1, rule_has_input(c, 3) ? 3 : 0);
    if (!rule_ranked_as(c, 0, 3, &q, &s)) return s;
    const struct poly *state[] = {q.at[0], kv_heads, key, value};
    q.at[2] = poly_mul(p, q_heads, value);
    if ((s = rule_state(c, 0, &q)) < 0) return s;
    return rule_shape(c, 1, state, 4);
}

tare_status shape_causal_conv(struct rule_call *c)
{
    struct rule_dims d;
    tare_status s = rule_same(c, 0, 0);
    rule_same_type(c, 1, 0);
    if (s < 0 || !rule_ranked_as(c, 0, 3, &d, &s)) return s;
    d.at[2] = poly_sub(c->space, rule_input_dim(c, 1, 2), poly_int(c->space, 1));
    return rule_state(c, 1, &d);
}

/* ---- losses and the rest ---- */

static bool reduces(const struct rule_call *c)
{
    const char *reduction = rule_text(c, "reduction");
    return !reduction || strcmp(reduction, "none") != 0;
}

tare_status shape_nll_loss(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return reduces(c) ? rule_shape(c, 0, NULL, 0) : rule_same_shape(c, 0, 1);
}

tare_status shape_cross_entropy(struct rule_call *c)
{
    tare_status s = shape_nll_loss(c);
    return s < 0 ? s : rule_same(c, 1, 0);
}

tare_status shape_det(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    if (d.n < 2) return rule_fault(c, "a determinant of %zu dimensions", d.n);
    d.n -= 2;
    return rule_state(c, 0, &d);
}
