/* SPDX-License-Identifier: MIT
 * infer_conv.c - rules of shape inference: convolutions of all kinds. Never guesses a size. */
#include "model/infer/infer_nn.h"

/* Kernel along a spatial axis: the attribute, or the weights' own shape. */
static const struct poly *conv_kernel(struct rule_call *c, const struct conv_form *f, size_t axis)
{
    int64_t given = rule_int_of(c, "kernel_shape", axis, 0);
    if (given > 0) return poly_int(c->space, given);
    return f->other_weights ? NULL : rule_input_dim(c, f->w, (int64_t)axis + 2);
}

static tare_status conv_ranks(struct rule_call *c, const struct rule_dims *x, size_t w)
{
    struct rule_dims k = rule_input_dims(c, w);
    if (x->n < 2) return rule_fault(c, "data of %zu dimensions; it takes batch and channels at least", x->n);
    if (k.known && k.n != x->n)
        return rule_fault(c, "data has %zu dimensions and weights have %zu", x->n, k.n);
    return TARE_OK;
}

static tare_status conv_channels(struct rule_call *c, const struct conv_form *f, const struct poly *channels)
{
    int64_t have;
    int64_t each;
    int64_t group = rule_int(c, "group", 1);
    int64_t all;
    if (!poly_constant(channels, &have) || !poly_constant(rule_input_dim(c, f->w, 1), &each)) return TARE_OK;
    if (group > 0 && !__builtin_mul_overflow(each, group, &all) && have == all) return TARE_OK;
    return rule_fault(c, "data has %lld channels; weights take %lld in each of %lld groups", (long long)have,
                      (long long)each, (long long)group);
}

tare_status conv_shape(struct rule_call *c, const struct conv_form *f)
{
    struct rule_dims d;
    if (!rule_ranked(c, f->x, &d)) return TARE_OK;
    tare_status s = conv_ranks(c, &d, f->w);
    if (s < 0) return s;
    size_t channels = f->channel_last ? d.n - 1 : 1;
    if (!f->other_weights && !f->blocked && (s = conv_channels(c, f, d.at[channels])) < 0) return s;
    d.at[channels] = rule_input_dim(c, f->w, 0);
    for (size_t i = 0; i + 2 < d.n; i++) {
        struct window w;
        size_t at = i + (f->channel_last ? 1 : 2);
        if ((s = window_of(c, i, d.n - 2, conv_kernel(c, f, i), &w)) < 0) return s;
        if ((s = window_out(c, &w, d.at[at], &d.at[at])) < 0) return s;
    }
    return rule_state(c, 0, &d);
}

tare_status shape_conv(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return conv_shape(c, &(struct conv_form){.x = 0, .w = 1});
}

tare_status shape_conv_integer(struct rule_call *c)
{
    rule_type(c, 0, ONNX_INT32);
    return conv_shape(c, &(struct conv_form){.x = 0, .w = 1});
}

/* com.microsoft's has the channels last when told so. */
tare_status shape_qlinear_conv(struct rule_call *c)
{
    rule_same_type(c, 0, 7);
    return conv_shape(c,
                      &(struct conv_form){.x = 0, .w = 3, .channel_last = rule_int(c, "channels_last", 0)});
}

/* ---- transposed ---- */

static tare_status transposed_axis(struct rule_call *c, size_t axis, size_t axes, const struct poly **dim)
{
    struct poly_space *s = c->space;
    struct window w;
    int64_t given = rule_int_of(c, "output_shape", axis, -1);
    const struct conv_form form = {.x = 0, .w = 1};
    int64_t full = rule_int_of(c, "output_shape", axis + 2, -1); /* old files name batch and channels too */
    tare_status status = window_of(c, axis, axes, conv_kernel(c, &form, axis), &w);
    if (status < 0) return status;
    const struct onnx_attribute *a = rule_attribute_of(c, "output_shape");
    if (a && a->ints.n == axes + 2) given = full;
    if (given > 0) {
        *dim = poly_int(s, given);
        return TARE_OK;
    }
    if (w.pad == PAD_SAME) {
        *dim = poly_mul(s, *dim, poly_int(s, w.stride));
        return TARE_OK;
    }
    int64_t more = w.extra - w.begin - w.end;
    const struct poly *steps = poly_mul(s, poly_sub(s, *dim, poly_int(s, 1)), poly_int(s, w.stride));
    *dim = poly_add(s, poly_add(s, steps, window_kernel(s, &w)), poly_int(s, more));
    return TARE_OK;
}

tare_status shape_conv_transpose(struct rule_call *c)
{
    struct rule_dims d;
    rule_same_type(c, 0, 0);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = conv_ranks(c, &d, 1);
    if (s < 0) return s;
    d.at[1] = poly_mul(c->space, rule_input_dim(c, 1, 1), poly_int(c->space, rule_int(c, "group", 1)));
    for (size_t i = 0; i + 2 < d.n; i++)
        if ((s = transposed_axis(c, i, d.n - 2, &d.at[i + 2])) < 0) return s;
    return rule_state(c, 0, &d);
}
