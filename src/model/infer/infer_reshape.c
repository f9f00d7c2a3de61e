/* SPDX-License-Identifier: MIT
 * infer_reshape.c - rules of Reshape and Flatten: a dimension that is left open follows from the others, also where
 * they are symbols. What may come out as "copy this one" or "the rest" only at run time is not stated. */
#include "model/infer/infer_move.h"

struct reshape {
    struct rule_dims in, out;
    const struct poly *rest[INFER_RANK_MAX]; /* of the input: dims that were not copied */
    bool copied[INFER_RANK_MAX];
    size_t open; /* the one dimension that follows from the others; SIZE_MAX: none */
    size_t n_open;
};

/* A dimension that is not said: -1, not known, or a size that might come out as -1. */
static void leave_open(struct reshape *r, size_t i)
{
    r->out.at[i] = NULL;
    r->open = i;
    r->n_open++;
}

static tare_status take_dim(struct rule_call *c, struct reshape *r, const struct poly *want, size_t i)
{
    int64_t v;
    bool sure = poly_constant(want, &v);
    r->out.at[i] = want;
    if (sure ? v == -1 : poly_range(want).least < 0) {
        leave_open(r, i);
        return TARE_OK;
    }
    if (sure && v < -1) return rule_fault(c, "dimension %zu cannot be %lld", i, (long long)v);
    if (!poly_is(want, 0) || rule_int(c, "allowzero", 0)) return TARE_OK;
    if (r->in.known && i >= r->in.n)
        return rule_fault(c, "dimension %zu is to be copied but is not there", i);
    r->out.at[i] = r->in.known ? r->in.at[i] : NULL;
    r->copied[i] = true;
    return TARE_OK;
}

/* What is left for the open dimension: all elements over those of the others. Copied ones cancel, known or not. */
static const struct poly *left_over(struct rule_call *c, const struct reshape *r)
{
    const struct poly *in = poly_int(c->space, 1), *out = in;
    if (!r->in.known) return NULL;
    for (size_t i = 0; i < r->in.n; i++)
        if (!r->copied[i]) in = poly_mul(c->space, in, r->in.at[i]);
    for (size_t i = 0; i < r->out.n; i++)
        if (!r->copied[i] && i != r->open) out = poly_mul(c->space, out, r->out.at[i]);
    return poly_div_floor(c->space, in, out);
}

static tare_status check_elements(struct rule_call *c, const struct reshape *r)
{
    int64_t in, out;
    if (!r->in.known) return TARE_OK;
    const struct poly *had = poly_product(c->space, r->in.at, r->in.n);
    const struct poly *got = poly_product(c->space, r->out.at, r->out.n);
    if (!poly_constant(had, &in) || !poly_constant(got, &out) || in == out) return TARE_OK;
    return rule_fault(c, "%lld elements cannot become %lld", (long long)in, (long long)out);
}

tare_status shape_reshape(struct rule_call *c)
{
    struct reshape r = {.in = rule_dims_of(rule_input(c, 0)), .open = SIZE_MAX};
    struct move_list want;
    rule_type(c, 0, move_type(c, 0));
    tare_status s = move_list(c, "shape", 1, &want);
    if (s < 0) return s;
    if (!want.known || want.n > INFER_RANK_MAX) {
        rule_data_dependent(c, 0, "the new shape is not known before running");
        return TARE_OK;
    }
    r.out.known = true;
    r.out.n = want.n;
    for (size_t i = 0; s == TARE_OK && i < want.n; i++) s = take_dim(c, &r, want.at[i], i);
    if (s == TARE_OK && r.n_open == 1) r.out.at[r.open] = left_over(c, &r);
    if (s == TARE_OK) s = check_elements(c, &r);
    if (s == TARE_OK) s = rule_shape(c, 0, r.out.at, r.out.n);
    if (r.n_open > 1) rule_data_dependent(c, 0, "the new shape is not wholly known before running");
    return s < 0 ? s : move_same_items(c);
}

tare_status shape_flatten(struct rule_call *c)
{
    struct rule_dims in;
    int64_t axis = rule_int(c, "axis", 1);
    rule_type(c, 0, move_type(c, 0));
    if (!move_ranked(c, 0, &in)) {
        struct rule_dims two = {.known = true, .n = 2};
        return rule_shape(c, 0, two.at, 2);
    }
    if (axis < 0) axis += (int64_t)in.n;
    if (axis < 0 || axis > (int64_t)in.n) return rule_fault(c, "axis %lld does not exist", (long long)axis);
    const struct poly *dims[2] = {poly_product(c->space, in.at, (size_t)axis),
                                  poly_product(c->space, in.at + axis, in.n - (size_t)axis)};
    tare_status s = rule_shape(c, 0, dims, 2);
    return s < 0 ? s : move_same_items(c);
}
