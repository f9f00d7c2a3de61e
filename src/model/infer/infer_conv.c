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

static tare_status window_of(struct rule_call *c, size_t axis, size_t axes, const struct poly *kernel,
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
    return TARE_OK;
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

static tare_status window_out(struct rule_call *c, const struct window *w, const struct poly *in,
                              const struct poly **out)
{
    struct poly_space *s = c->space;
    const struct poly *stride = poly_int(s, w->stride);
    int64_t number;
    if (w->pad == PAD_SAME) {
        *out = poly_div_ceil(s, in, stride);
        return TARE_OK;
    }
    const struct poly *padded = poly_add(s, in, poly_int(s, w->begin + w->end));
    const struct poly *room = poly_sub(s, padded, window_kernel(s, w));
    if (poly_constant(room, &number) && number < 0)
        return rule_fault(c, "the window is %lld larger than the padded data", -(long long)number);
    const struct poly *steps = w->ceil ? steps_up(s, w, in, room) : poly_div_floor(s, room, stride);
    *out = poly_add(s, steps, poly_int(s, 1));
    return TARE_OK;
}

/* ==== convolutions ==== */

struct conv_form {
    size_t w;          /* which input are the weights; data is input 0 */
    bool channel_last; /* data is N, spatial, C */
    bool
        other_weights; /* their layout hangs on the provider: only the first dimension, the channels out, is sure */
    bool blocked; /* channels come in blocks, which may be filled up */
};

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

static tare_status conv_shape(struct rule_call *c, const struct conv_form *f)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
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

/* QLinearConv of com.microsoft has the channels last when told so. */
tare_status shape_conv(struct rule_call *c)
{
    bool channel_last = rule_int(c, "channels_last", 0) != 0;
    return conv_shape(c, &(struct conv_form){.w = rule_second(c), .channel_last = channel_last});
}

/* ---- transposed ---- */

static tare_status transposed_axis(struct rule_call *c, size_t axis, size_t axes, const struct poly **dim)
{
    struct poly_space *s = c->space;
    struct window w;
    int64_t given = rule_int_of(c, "output_shape", axis, -1);
    const struct conv_form form = {.w = 1};
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
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = conv_ranks(c, &d, 1);
    if (s < 0) return s;
    d.at[1] = poly_mul(c->space, rule_input_dim(c, 1, 1), poly_int(c->space, rule_int(c, "group", 1)));
    for (size_t i = 0; i + 2 < d.n; i++)
        if ((s = transposed_axis(c, i, d.n - 2, &d.at[i + 2])) < 0) return s;
    return rule_state(c, 0, &d);
}

/* ==== pools ==== */

static tare_status pool_rank(struct rule_call *c, size_t rank)
{
    return rank >= 2 ? TARE_OK : rule_fault(c, "data of %zu dimensions; it takes batch and channels", rank);
}

static tare_status pool_shape(struct rule_call *c, size_t output, bool channel_last)
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
    return pool_shape(c, 0, rule_int(c, "channels_last", 0) != 0);
}

tare_status shape_max_pool(struct rule_call *c)
{
    tare_status s = shape_pool(c);
    if (s < 0) return s;
    rule_type(c, 1, ONNX_INT64);
    return pool_shape(c, 1, false);
}

static tare_status global_pool_shape(struct rule_call *c, bool channel_last)
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
    return global_pool_shape(c, rule_int(c, "channels_last", 0) != 0);
}

/* The size before the pool is lost when it did not divide: the third input says it then. */
tare_status shape_max_unpool(struct rule_call *c)
{
    struct rule_dims d;
    struct poly_space *p = c->space;
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

static tare_status shape_of_regions(struct rule_call *c, int64_t height, int64_t width)
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
    return shape_of_regions(c, rule_int_of(c, "pooled_shape", 0, 1), rule_int_of(c, "pooled_shape", 1, 1));
}

tare_status shape_roi_align(struct rule_call *c)
{
    return shape_of_regions(c, rule_int(c, "output_height", 1), rule_int(c, "output_width", 1));
}

/* ==== channels last, channels in blocks ==== */

tare_status shape_nhwc_conv(struct rule_call *c)
{
    return conv_shape(c,
                      &(struct conv_form){.w = rule_second(c), .channel_last = true, .other_weights = true});
}

tare_status shape_nhwc_pool(struct rule_call *c)
{
    rule_type(c, 1, ONNX_INT64);
    tare_status s = pool_shape(c, 1, true);
    return s < 0 ? s : pool_shape(c, 0, true);
}

tare_status shape_nhwc_global_pool(struct rule_call *c)
{
    return global_pool_shape(c, true);
}

/* The weights are in blocks already, and the first input's channels may be: only the channels out are taken of them. */
tare_status shape_blocked_conv(struct rule_call *c)
{
    return conv_shape(c, &(struct conv_form){.w = 1, .blocked = true});
}

tare_status shape_reorder_input(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d) || d.n < 2) return TARE_OK;
    if (rule_int(c, "channels_last", 0)) {
        const struct poly *channels = d.at[d.n - 1];
        memmove(&d.at[2], &d.at[1], (d.n - 2) * sizeof d.at[0]);
        d.at[1] = channels;
    }
    return rule_state(c, 0, &d);
}

tare_status shape_reorder_output(struct rule_call *c)
{
    struct rule_dims d;
    const struct poly *channels = poly_int(c->space, rule_int(c, "channels", 0));
    if (!rule_ranked(c, 0, &d) || d.n < 2) return TARE_OK;
    d.at[1] = channels;
    if (rule_int(c, "channels_last", 0)) {
        memmove(&d.at[1], &d.at[2], (d.n - 2) * sizeof d.at[0]);
        d.at[d.n - 1] = channels;
    }
    return rule_state(c, 0, &d);
}

tare_status shape_blocked_upsample(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    for (size_t i = 0; i < d.n; i++)
        d.at[i] = poly_mul(c->space, d.at[i], poly_int(c->space, rule_int_of(c, "scales", i, 1)));
    return rule_state(c, 0, &d);
}
