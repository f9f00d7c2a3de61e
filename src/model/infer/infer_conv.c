/* SPDX-License-Identifier: MIT
 * infer_conv.c - rules of shape inference: windows that slide, convolutions and pools of all kinds, with the channels
 * last or in blocks too. Never guesses a size. */
#include "model/infer/infer_rule.h"

#include <string.h>

/* ==== one spatial dimension under a sliding window, as attributes say; axis i counts from 0 ==== */

enum window_pad { PAD_GIVEN, PAD_SAME, PAD_VALID };
struct window {
    enum window_pad pad;
    const struct poly *kernel; /* NULL: unknown */
    int64_t stride, dilation, begin, end;
    int64_t extra; /* transposed: more of the output */
    bool ceil;
};

static void window_pads(struct rule_call *c, size_t axis, size_t axes, struct window *out)
{
    const char *text = rule_text(c, "auto_pad");
    if (text && !strncmp(text, "SAME", 4)) {
        out->pad = PAD_SAME;
    } else if (text && !strcmp(text, "VALID")) {
        out->pad = PAD_VALID;
        out->ceil = false; /* no window begins where it does not fit */
    } else {
        out->begin = rule_int_of(c, "pads", axis, 0);
        out->end = rule_int_of(c, "pads", axes + axis, 0);
    }
}

/* So small that sums of a few of them are exact. */
static bool is_sane(int64_t v, int64_t least)
{
    return v >= least && v <= INT32_MAX;
}

/* What the attributes say of one axis; numbers that are out of all bounds are a fault. */
static bool window_of(struct rule_call *c, size_t axis, size_t axes, const struct poly *kernel,
                      struct window *out)
{
    *out = (struct window){.pad = PAD_GIVEN, .kernel = kernel};
    out->stride = rule_int_of(c, "strides", axis, 1);
    out->dilation = rule_int_of(c, "dilations", axis, 1);
    out->ceil = rule_int(c, "ceil_mode", 0) != 0;
    out->extra = rule_int_of(c, "output_padding", axis, 0);
    window_pads(c, axis, axes, out);
    const struct {
        const char *name;
        int64_t value, least;
    } all[] = {{"stride", out->stride, 1},
               {"dilation", out->dilation, 1},
               {"padding", out->begin, -INT32_MAX},
               {"padding", out->end, -INT32_MAX},
               {"padding of the output", out->extra, -INT32_MAX}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!is_sane(all[i].value, all[i].least))
            return rule_fault(c, "a %s of %lld", all[i].name, (long long)all[i].value);
    return true;
}

/* With its dilation. */
static const struct poly *window_kernel(struct poly_space *s, const struct window *w)
{
    const struct poly *gaps = poly_sub(s, w->kernel, poly_int(s, 1));
    return poly_add(s, poly_mul(s, gaps, poly_int(s, w->dilation)), poly_int(s, 1));
}

/* Rounded up, a window must still begin inside of the data or the padding before it. */
static const struct poly *steps_up(struct poly_space *s, const struct window *w, const struct poly *in,
                                   const struct poly *room)
{
    const struct poly *stride = poly_int(s, w->stride);
    const struct poly *steps = poly_div_ceil(s, room, stride);
    int64_t reach;
    if (poly_constant(window_kernel(s, w), &reach) && w->stride + w->end <= reach) return steps;
    const struct poly *last = poly_add(s, in, poly_int(s, w->begin - 1));
    return poly_min(s, steps, poly_div_floor(s, last, stride));
}

/* How many windows fit: (padded - kernel) / stride + 1. Padded to the SAME size, each stride has one. */
static bool window_out(struct rule_call *c, const struct window *w, const struct poly *in,
                       const struct poly **out)
{
    struct poly_space *s = c->space;
    const struct poly *stride = poly_int(s, w->stride);
    int64_t number;
    if (w->pad == PAD_SAME) {
        *out = poly_div_ceil(s, in, stride);
        return true;
    }
    const struct poly *padded = poly_add(s, in, poly_int(s, w->begin + w->end));
    const struct poly *room = poly_sub(s, padded, window_kernel(s, w));
    if (poly_constant(room, &number) && number < 0)
        return rule_fault(c, "the window is %lld larger than the padded data", -(long long)number);
    const struct poly *steps = w->ceil ? steps_up(s, w, in, room) : poly_div_floor(s, room, stride);
    *out = poly_add(s, steps, poly_int(s, 1));
    return true;
}

/* How many places there are from the first to the last one that `in` steps reach. */
static const struct poly *window_reach(struct rule_call *c, const struct window *w, const struct poly *in)
{
    return poly_mul(c->space, poly_sub(c->space, in, rule_number(c, 1)), rule_number(c, w->stride));
}

/* Batch and channels at least; says which axis the channels are, and of the others the first. */
static bool channel_axes(struct rule_call *c, const struct rule_dims *d, size_t *channels, size_t *spatial)
{
    bool last = c->row->flags & OP_NHWC || rule_int(c, "channels_last", 0);
    *channels = last ? d->n - 1 : 1;
    *spatial = last ? 1 : 2;
    return d->n >= 2 || rule_fault(c, "data of %zu dimensions; it takes batch and channels at least", d->n);
}

/* ==== convolutions ==== */

/* Kernel along a spatial axis: the attribute, or the weights' own shape. Of a provider's layout only the first
 * dimension, the channels out, is sure. */
static const struct poly *conv_kernel(struct rule_call *c, size_t axis)
{
    int64_t given = rule_int_of(c, "kernel_shape", axis, 0);
    if (given > 0) return rule_number(c, given);
    return c->row->flags & OP_NHWC ? NULL : rule_input_dim(c, rule_second(c, 1), (int64_t)axis + 2);
}

static bool conv_ranks(struct rule_call *c, const struct rule_dims *x)
{
    struct rule_dims k = rule_dims_of(rule_input(c, rule_second(c, 1)));
    if (!k.known || k.n == x->n) return true;
    return rule_fault(c, "data has %zu dimensions and weights have %zu", x->n, k.n);
}

static bool check_channels(struct rule_call *c, const struct poly *channels)
{
    int64_t have, each, all, group = rule_int(c, "group", 1);
    if (c->row->flags & (OP_NHWC | OP_BLOCKED) || !poly_constant(channels, &have)) return true;
    if (!poly_constant(rule_input_dim(c, rule_second(c, 1), 1), &each)) return true;
    if (group > 0 && !__builtin_mul_overflow(each, group, &all) && have == all) return true;
    return rule_fault(c, "data has %lld channels; weights take %lld in each of %lld groups", (long long)have,
                      (long long)each, (long long)group);
}

bool shape_conv(struct rule_call *c)
{
    struct rule_dims d;
    struct window w;
    size_t channels, spatial;
    if (!rule_ranked(c, 0, &d) || !channel_axes(c, &d, &channels, &spatial) || !conv_ranks(c, &d))
        return false;
    if (!check_channels(c, d.at[channels])) return false;
    d.at[channels] = rule_input_dim(c, rule_second(c, 1), 0);
    for (size_t i = 0; i + 2 < d.n; i++) {
        const struct poly **dim = &d.at[i + spatial];
        if (!window_of(c, i, d.n - 2, conv_kernel(c, i), &w) || !window_out(c, &w, *dim, dim)) return false;
    }
    return rule_state(c, 0, &d);
}

/* One axis of a transposed convolution: as output_shape says, else what the steps cover. Old files name batch and
 * channels in output_shape too. */
static bool transposed_axis(struct rule_call *c, size_t axis, size_t axes, const struct poly **dim)
{
    struct poly_space *s = c->space;
    struct window w;
    const struct onnx_attribute *a = rule_attribute_of(c, "output_shape");
    int64_t given = rule_int_of(c, "output_shape", a && a->ints.n == axes + 2 ? axis + 2 : axis, -1);
    if (!window_of(c, axis, axes, conv_kernel(c, axis), &w)) return false;
    const struct poly *more = poly_int(s, w.extra - w.begin - w.end);
    if (given > 0)
        *dim = poly_int(s, given);
    else if (w.pad == PAD_SAME)
        *dim = poly_mul(s, *dim, poly_int(s, w.stride));
    else
        *dim = poly_add(s, poly_add(s, window_reach(c, &w, *dim), window_kernel(s, &w)), more);
    return true;
}

bool shape_conv_transpose(struct rule_call *c)
{
    struct rule_dims d;
    size_t channels, spatial;
    if (!rule_ranked(c, 0, &d) || !channel_axes(c, &d, &channels, &spatial) || !conv_ranks(c, &d))
        return false;
    d.at[1] = poly_mul(c->space, rule_input_dim(c, 1, 1), rule_number(c, rule_int(c, "group", 1)));
    for (size_t i = 0; i + 2 < d.n; i++)
        if (!transposed_axis(c, i, d.n - 2, &d.at[i + 2])) return false;
    return rule_state(c, 0, &d);
}

/* ==== pools ==== */

/* The result and, of a MaxPool, where each element came from. */
bool shape_pool(struct rule_call *c)
{
    struct rule_dims d;
    struct window w;
    size_t channels, spatial;
    rule_type(c, 1, ONNX_INT64);
    if (!rule_ranked(c, 0, &d) || !channel_axes(c, &d, &channels, &spatial)) return false;
    for (size_t i = 0; i + 2 < d.n; i++) {
        const struct poly **dim = &d.at[i + spatial];
        int64_t kernel = rule_int_of(c, "kernel_shape", i, 0);
        if (kernel < 1) return rule_fault(c, "no kernel_shape for axis %zu of the data", i + spatial);
        if (!window_of(c, i, d.n - 2, rule_number(c, kernel), &w) || !window_out(c, &w, *dim, dim))
            return false;
    }
    return rule_state(c, 0, &d) && rule_state(c, 1, &d);
}

bool shape_global_pool(struct rule_call *c)
{
    struct rule_dims d;
    size_t channels, spatial;
    if (!rule_ranked(c, 0, &d) || !channel_axes(c, &d, &channels, &spatial)) return false;
    for (size_t i = 0; i + 2 < d.n; i++) d.at[i + spatial] = rule_number(c, 1);
    return rule_state(c, 0, &d);
}

/* The size before the pool is lost when it did not divide: the third input says it then. */
bool shape_max_unpool(struct rule_call *c)
{
    const struct infer_value *size = rule_input(c, 2);
    struct rule_dims d;
    struct window w;
    size_t channels, spatial;
    if (!rule_ranked(c, 0, &d) || !channel_axes(c, &d, &channels, &spatial)) return false;
    for (size_t i = 0; i < d.n && size; i++) d.at[i] = rule_int_at(c, 2, i);
    if (size && !size->ints) rule_data_dependent(c, 0, "its size is the contents of input '%s'", size->name);
    for (size_t i = 0; i + 2 < d.n && !size; i++) {
        const struct poly *kernel = rule_number(c, rule_int_of(c, "kernel_shape", i, 1));
        if (!window_of(c, i, d.n - 2, kernel, &w)) return false;
        const struct poly *ends = poly_sub(c->space, kernel, rule_number(c, w.begin + w.end));
        d.at[i + 2] = poly_add(c->space, window_reach(c, &w, d.at[i + 2]), ends);
    }
    return rule_state(c, 0, &d);
}

/* One result of fixed size per box: MaxRoiPool says it in one attribute, RoiAlign in two. */
bool shape_regions(struct rule_call *c)
{
    int64_t height = rule_int_of(c, "pooled_shape", 0, rule_int(c, "output_height", 1));
    int64_t width = rule_int_of(c, "pooled_shape", 1, rule_int(c, "output_width", 1));
    return rule_shape_is(c, 0, rule_input_dim(c, 1, 0), rule_input_dim(c, 0, 1), rule_number(c, height),
                         rule_number(c, width));
}

/* ==== channels in blocks ==== */

bool shape_reorder_input(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d) || d.n < 2) return false;
    if (rule_int(c, "channels_last", 0)) {
        const struct poly *channels = d.at[--d.n];
        rule_insert(&d, 1, channels);
    }
    return rule_state(c, 0, &d);
}

bool shape_reorder_output(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d) || d.n < 2) return false;
    rule_drop(&d, 1);
    rule_insert(&d, rule_int(c, "channels_last", 0) ? d.n : 1, rule_number(c, rule_int(c, "channels", 0)));
    return rule_state(c, 0, &d);
}

bool shape_blocked_upsample(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return false;
    for (size_t i = 0; i < d.n; i++)
        d.at[i] = poly_mul(c->space, d.at[i], rule_number(c, rule_int_of(c, "scales", i, 1)));
    return rule_state(c, 0, &d);
}
