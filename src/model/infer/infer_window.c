/* SPDX-License-Identifier: MIT
 * infer_window.c - how many places a sliding window takes along one dimension: kernel, stride, dilation, padding as
 * Conv and the pools name them. Knows nothing of channels. */
#include <string.h>

#include "model/infer/infer_nn.h"

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
static bool sane(int64_t v, int64_t least)
{
    return v >= least && v <= INT32_MAX;
}

tare_status window_of(struct rule_call *c, size_t axis, size_t axes, const struct poly *kernel,
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
        if (!sane(all[i].value, all[i].least))
            return rule_fault(c, "a %s of %lld", all[i].name, (long long)all[i].value);
    return TARE_OK;
}

const struct poly *window_kernel(struct poly_space *s, const struct window *w)
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

tare_status window_out(struct rule_call *c, const struct window *w, const struct poly *in,
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
