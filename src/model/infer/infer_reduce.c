/* SPDX-License-Identifier: MIT
 * infer_reduce.c - rules of shape inference: reductions, arg*, top-k, cumulative operators, normalisations. Never
 * guesses a size. */
#include <string.h>

#include "model/infer/infer_items.h"

/* ---- reductions ---- */

struct reduced {
    struct rule_dims in;
    bool gone[INFER_RANK_MAX]; /* axis is reduced */
    bool keep;
};

/* Which axes go cannot be told: with keepdims a dimension is either itself or 1, without only the rank may be known. */
static bool reduce_hidden(struct rule_call *c, const struct reduced *r)
{
    struct rule_dims out = {.n = r->in.n, .known = r->keep};
    int64_t count;
    for (size_t i = 0; i < out.n; i++)
        if (poly_is(r->in.at[i], 1)) out.at[i] = r->in.at[i];
    if (!r->keep && poly_constant(rule_input_dim(c, 1, 0), &count) && count >= 0 && count <= (int64_t)r->in.n)
        out = rule_dims_unknown(r->in.n - (size_t)count);
    rule_data_dependent(c, 0, "the axes are contents of its input '%s'", rule_input(c, 1)->name);
    return rule_state(c, 0, &out);
}

static bool reduce_shape(struct rule_call *c, const struct reduced *r)
{
    struct rule_dims out = rule_dims_none();
    for (size_t i = 0; i < r->in.n; i++) {
        if (!r->gone[i])
            rule_push(&out, r->in.at[i]);
        else if (r->keep)
            rule_push(&out, rule_number(c, 1));
    }
    return rule_state(c, 0, &out);
}

/* Contents of whole numbers when all axes go: the number of elements of a shape, mostly. */
static bool reduce_contents(struct rule_call *c, const struct reduced *r)
{
    const struct infer_value *v = rule_input(c, 0);
    for (size_t i = 0; i < r->in.n; i++)
        if (!r->gone[i]) return true;
    if (!c->row->fold_two || !v->ints || v->n_ints == 0) return true;
    struct item all = item_at(v, 0);
    for (size_t i = 1; i < v->n_ints; i++) all = c->row->fold_two(c->space, v->type, all, item_at(v, i));
    return all.kind != ITEM_WHOLE || rule_contents(c, 0, &all.p, 1);
}

/* The axes are an attribute or, in newer opsets, an input; without any all go, or none. */
bool shape_reduce(struct rule_call *c)
{
    struct reduced r = {.keep = rule_int(c, "keepdims", 1) != 0};
    struct rule_list axes;
    bool known;
    if (!rule_ranked(c, 0, &r.in) || !rule_list(c, "axes", rule_second(c, 1), &axes)) return false;
    bool none = !axes.given || (axes.known && axes.n == 0);
    if (none && rule_int(c, "noop_with_empty_axes", 0)) return rule_same(c, 0, 0);
    if (!rule_mark_axes(c, &axes, r.in.n, r.gone, &known)) return false;
    if (none) memset(r.gone, true, sizeof r.gone);
    if (!none && !known) return reduce_hidden(c, &r);
    return reduce_shape(c, &r) && reduce_contents(c, &r);
}

bool shape_arg(struct rule_call *c)
{
    struct reduced r = {.keep = rule_int(c, "keepdims", 1) != 0};
    size_t axis;
    if (!rule_ranked(c, 0, &r.in) || !rule_axis(c, rule_int(c, "axis", 0), r.in.n, &axis)) return false;
    r.gone[axis] = true;
    return reduce_shape(c, &r);
}

bool shape_top_k(struct rule_call *c)
{
    struct rule_dims d;
    size_t axis;
    const struct poly *k = c->opset < 10 ? rule_number(c, rule_int(c, "k", 0)) : rule_int_at(c, 1, 0);
    rule_type(c, 1, ONNX_INT64);
    if (!rule_ranked(c, 0, &d) || !rule_axis(c, rule_int(c, "axis", -1), d.n, &axis)) return false;
    d.at[axis] = k;
    for (size_t i = 0; i < 2; i++) {
        if (!k) rule_data_dependent(c, i, "how many are taken is the contents of an input");
        rule_state(c, i, &d);
    }
    return true;
}

/* ---- normalisations ---- */

/* Mean and deviation have 1 where they were taken along. */
bool shape_layer_norm(struct rule_call *c)
{
    struct rule_dims d;
    size_t axis;
    int stash = (int)rule_int(c, "stash_type", ONNX_FLOAT);
    rule_type(c, 1, stash);
    rule_type(c, 2, stash);
    if (!rule_ranked(c, 0, &d) || !rule_state(c, 0, &d)) return false;
    if (!rule_axis(c, rule_int(c, "axis", -1), d.n, &axis)) return false;
    for (size_t i = axis; i < d.n; i++) d.at[i] = rule_number(c, 1);
    return rule_state(c, 1, &d) && rule_state(c, 2, &d);
}

/* Mean and variance, running or of this batch, have the shape of those that come in. */
bool shape_batch_norm(struct rule_call *c)
{
    rule_same(c, 0, 0);
    for (size_t i = 1; i < c->node->outputs.n; i++) rule_same(c, i, i % 2 == 1 ? 3 : 4);
    return true;
}

bool shape_boxes(struct rule_call *c)
{
    rule_data_dependent(c, 0, "how many boxes remain hangs on their scores");
    return rule_shape_is(c, 0, NULL, rule_number(c, 3));
}
