/* SPDX-License-Identifier: MIT
 * infer_reduce.c - rules of shape inference: reductions, arg*, top-k, cumulative operators, normalisations. Never
 * guesses a size. */
#include <string.h>

#include "model/infer/infer_rule.h"

/* ---- reductions ---- */

enum axes_from { AXES_NONE, AXES_KNOWN, AXES_HIDDEN /* hang on contents of an input that is not followed */ };

struct reduced {
    struct rule_dims in;
    bool gone[INFER_RANK_MAX]; /* axis is reduced */
    bool keep;
    bool attribute_only; /* no input holds the axes */
};

static enum axes_from axes_of(const struct rule_call *c, const struct reduced *r, const int64_t **axes,
                              size_t *n)
{
    *n = 0;
    if (rule_ints(c, "axes", r->attribute_only ? SIZE_MAX : 1, axes, n))
        return *n > 0 ? AXES_KNOWN : AXES_NONE;
    const struct infer_value *v = r->attribute_only ? NULL : rule_input(c, 1);
    if (!v || poly_is(rule_dim(v, 0), 0)) return AXES_NONE;
    return AXES_HIDDEN;
}

/* Which axes go cannot be told: with keepdims a dimension is either itself or 1, without only the rank may be known. */
static tare_status reduce_hidden(struct rule_call *c, const struct reduced *r)
{
    struct rule_dims out = {.n = r->in.n, .known = r->keep};
    int64_t count;
    for (size_t i = 0; i < out.n; i++)
        if (poly_is(r->in.at[i], 1)) out.at[i] = r->in.at[i];
    if (!r->keep && poly_constant(rule_input_dim(c, 1, 0), &count) && count >= 0 && count <= (int64_t)r->in.n)
        out = (struct rule_dims){.n = r->in.n - (size_t)count, .known = true};
    rule_data_dependent(c, 0, "the axes are contents of its input '%s'", rule_input(c, 1)->name);
    return rule_state(c, 0, &out);
}

static tare_status reduce_shape(struct rule_call *c, size_t output, const struct reduced *r)
{
    struct rule_dims out = rule_dims_none();
    for (size_t i = 0; i < r->in.n; i++) {
        if (!r->gone[i])
            rule_push(&out, r->in.at[i]);
        else if (r->keep)
            rule_push(&out, poly_int(c->space, 1));
    }
    return rule_state(c, output, &out);
}

static tare_status mark_axes(struct rule_call *c, struct reduced *r, const int64_t *axes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t axis;
        tare_status s = rule_axis(c, axes[i], r->in.n, &axis);
        if (s < 0) return s;
        r->gone[axis] = true;
    }
    return TARE_OK;
}

typedef const struct poly *fold(struct poly_space *s, const struct poly *a, const struct poly *b);

static const struct {
    const char *op;
    fold *with;
} folds[] = {
    {"ReduceSum", poly_add}, {"ReduceProd", poly_mul}, {"ReduceMax", poly_max}, {"ReduceMin", poly_min}};

/* Contents when all axes go: the number of elements of a shape, mostly. */
static tare_status reduce_contents(struct rule_call *c, const struct reduced *r)
{
    const struct infer_value *v = rule_input(c, 0);
    fold *with = NULL;
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (!strcmp(folds[i].op, c->node->op)) with = folds[i].with;
    for (size_t i = 0; i < r->in.n; i++)
        if (!r->gone[i]) return TARE_OK;
    if (!with || !v->ints || v->n_ints == 0) return TARE_OK;
    const struct poly *all = v->ints[0];
    for (size_t i = 1; i < v->n_ints; i++)
        all = with(c->space, all, v->ints[i]);
    return all ? rule_contents(c, 0, &all, 1) : TARE_OK;
}

static tare_status reduce_dims(struct rule_call *c, struct reduced *r)
{
    const int64_t *axes;
    size_t n;
    r->keep = rule_int(c, "keepdims", 1) != 0;
    if (!rule_ranked(c, 0, &r->in)) return TARE_OK;
    enum axes_from from = axes_of(c, r, &axes, &n);
    if (from == AXES_HIDDEN) return reduce_hidden(c, r);
    if (from == AXES_NONE && rule_int(c, "noop_with_empty_axes", 0)) return rule_same(c, 0, 0);
    if (from == AXES_NONE) memset(r->gone, true, sizeof r->gone);
    tare_status s = mark_axes(c, r, axes, n);
    if (s < 0) return s;
    s = reduce_shape(c, 0, r);
    return s < 0 ? s : reduce_contents(c, r);
}

tare_status shape_reduce(struct rule_call *c)
{
    struct reduced r = {.attribute_only = false};
    return reduce_dims(c, &r);
}

tare_status shape_reduce_by_attribute(struct rule_call *c)
{
    struct reduced r = {.attribute_only = true};
    return reduce_dims(c, &r);
}

tare_status shape_arg(struct rule_call *c)
{
    struct reduced r = {.keep = rule_int(c, "keepdims", 1) != 0};
    int64_t axis = rule_int(c, "axis", 0);
    if (!rule_ranked(c, 0, &r.in)) return TARE_OK;
    tare_status s = mark_axes(c, &r, &axis, 1);
    return s < 0 ? s : reduce_shape(c, 0, &r);
}

tare_status shape_top_k(struct rule_call *c)
{
    struct rule_dims d;
    size_t axis;
    const struct poly *k = c->opset < 10 ? poly_int(c->space, rule_int(c, "k", 0)) : rule_int_at(c, 1, 0);
    rule_type(c, 1, ONNX_INT64);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = rule_axis(c, rule_int(c, "axis", -1), d.n, &axis);
    if (s < 0) return s;
    d.at[axis] = k;
    for (size_t i = 0; i < 2; i++) {
        if (!k) rule_data_dependent(c, i, "how many are taken is the contents of an input");
        if ((s = rule_state(c, i, &d)) < 0) return s;
    }
    return TARE_OK;
}

/* ---- normalisations ---- */

tare_status shape_layer_norm(struct rule_call *c)
{
    struct rule_dims d;
    size_t axis;
    int stash = (int)rule_int(c, "stash_type", ONNX_FLOAT);
    rule_same_type(c, 0, 0);
    rule_type(c, 1, stash);
    rule_type(c, 2, stash);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = rule_state(c, 0, &d);
    if (s < 0) return s;
    if ((s = rule_axis(c, rule_int(c, "axis", -1), d.n, &axis)) < 0) return s;
    for (size_t i = axis; i < d.n; i++)
        d.at[i] = poly_int(c->space, 1);
    if ((s = rule_state(c, 1, &d)) < 0) return s;
    return rule_state(c, 2, &d);
}

/* RMSNormalization and SimplifiedLayerNormalization: the scale decides the type. */
tare_status shape_rms_norm(struct rule_call *c)
{
    tare_status s = shape_layer_norm(c);
    if (s < 0) return s;
    rule_same_type(c, 0, rule_input_type(c, 1) != ONNX_UNDEFINED ? 1 : 0);
    return TARE_OK;
}

/* Mean and variance, running or of this batch, have the shape of those that come in. */
tare_status shape_batch_norm(struct rule_call *c)
{
    tare_status s = rule_same(c, 0, 0);
    for (size_t i = 1; s == TARE_OK && i < c->node->outputs.n; i++)
        s = rule_same(c, i, i % 2 == 1 ? 3 : 4);
    return s;
}

tare_status shape_boxes(struct rule_call *c)
{
    const struct poly *dims[] = {NULL, poly_int(c->space, 3)};
    rule_data_dependent(c, 0, "how many boxes remain hangs on their scores");
    return rule_shape(c, 0, dims, 2);
}
