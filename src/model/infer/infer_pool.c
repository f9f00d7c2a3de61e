/* SPDX-License-Identifier: MIT
 * infer_pool.c - rules of shape inference: pools over windows, over everything and over regions. Never guesses a
 * size. */
#include "model/infer/infer_nn.h"

static tare_status pool_rank(struct rule_call *c, size_t rank)
{
    return rank >= 2 ? TARE_OK : rule_fault(c, "data of %zu dimensions; it takes batch and channels", rank);
}

tare_status pool_shape(struct rule_call *c, size_t output, bool channel_last)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = pool_rank(c, d.n);
    if (s < 0) return s;
    for (size_t i = 0; i + 2 < d.n; i++) {
        struct window w;
        size_t at = i + (channel_last ? 1 : 2);
        int64_t kernel = rule_int_of(c, "kernel_shape", i, 0);
        if (kernel < 1) return rule_fault(c, "no kernel_shape for axis %zu of the data", at);
        if ((s = window_of(c, i, d.n - 2, poly_int(c->space, kernel), &w)) < 0) return s;
        if ((s = window_out(c, &w, d.at[at], &d.at[at])) < 0) return s;
    }
    return rule_state(c, output, &d);
}

tare_status shape_pool(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return pool_shape(c, 0, false);
}

tare_status shape_max_pool(struct rule_call *c)
{
    tare_status s = shape_pool(c);
    if (s < 0) return s;
    rule_type(c, 1, ONNX_INT64);
    return pool_shape(c, 1, false);
}

tare_status global_pool_shape(struct rule_call *c, bool channel_last)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = pool_rank(c, d.n);
    if (s < 0) return s;
    for (size_t i = 0; i + 2 < d.n; i++) d.at[i + (channel_last ? 1 : 2)] = poly_int(c->space, 1);
    return rule_state(c, 0, &d);
}

tare_status shape_global_pool(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return global_pool_shape(c, false);
}

/* The size before the pool is lost when it did not divide: the third input says it then. */
tare_status shape_max_unpool(struct rule_call *c)
{
    struct rule_dims d;
    struct poly_space *p = c->space;
    rule_same_type(c, 0, 0);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = pool_rank(c, d.n);
    if (s < 0) return s;
    for (size_t i = 0; i < d.n && rule_has_input(c, 2); i++) d.at[i] = rule_int_at(c, 2, i);
    if (rule_has_input(c, 2) && !rule_input(c, 2)->ints)
        rule_data_dependent(c, 0, "its size is the contents of input '%s'", rule_input(c, 2)->name);
    for (size_t i = 0; i + 2 < d.n && !rule_has_input(c, 2); i++) {
        struct window w;
        if ((s = window_of(c, i, d.n - 2, poly_int(p, rule_int_of(c, "kernel_shape", i, 1)), &w)) < 0)
            return s;
        const struct poly *steps =
            poly_mul(p, poly_sub(p, d.at[i + 2], poly_int(p, 1)), poly_int(p, w.stride));
        d.at[i + 2] = poly_add(p, steps, poly_sub(p, w.kernel, poly_int(p, w.begin + w.end)));
    }
    return rule_state(c, 0, &d);
}

/* ---- regions: one result of fixed size per box ---- */

static tare_status regions(struct rule_call *c, int64_t height, int64_t width)
{
    struct rule_dims d = rule_dims_none();
    rule_same_type(c, 0, 0);
    rule_push(&d, rule_input_dim(c, 1, 0));
    rule_push(&d, rule_input_dim(c, 0, 1));
    rule_push(&d, poly_int(c->space, height));
    rule_push(&d, poly_int(c->space, width));
    return rule_state(c, 0, &d);
}

tare_status shape_max_roi_pool(struct rule_call *c)
{
    return regions(c, rule_int_of(c, "pooled_shape", 0, 1), rule_int_of(c, "pooled_shape", 1, 1));
}

tare_status shape_roi_align(struct rule_call *c)
{
    return regions(c, rule_int(c, "output_height", 1), rule_int(c, "output_width", 1));
}
