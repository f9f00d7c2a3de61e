/* SPDX-License-Identifier: MIT
 * infer_layout.c - rules of shape inference: convolutions and pools over data with the channels last, or in blocks as
 * ONNX Runtime's processors like them. The shape stated of blocked data is the logical one, [N, C, ..]. */
#include <string.h>

#include "model/infer/infer_nn.h"

tare_status shape_nhwc_conv(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return conv_shape(c, &(struct conv_form){.x = 0, .w = 1, .channel_last = true, .other_weights = true});
}

tare_status shape_nhwc_qlinear_conv(struct rule_call *c)
{
    rule_same_type(c, 0, 7);
    return conv_shape(c, &(struct conv_form){.x = 0, .w = 3, .channel_last = true, .other_weights = true});
}

tare_status shape_nhwc_pool(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    rule_type(c, 1, ONNX_INT64);
    tare_status s = pool_shape(c, 1, true);
    return s < 0 ? s : pool_shape(c, 0, true);
}

tare_status shape_nhwc_global_pool(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return global_pool_shape(c, true);
}

/* The weights are in blocks already, and the first input's channels may be: only the channels out are taken of them. */
tare_status shape_blocked_conv(struct rule_call *c)
{
    rule_same_type(c, 0, 0);
    return conv_shape(c, &(struct conv_form){.x = 0, .w = 1, .blocked = true});
}

tare_status shape_reorder_input(struct rule_call *c)
{
    struct rule_dims d;
    rule_same_type(c, 0, 0);
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
    rule_same_type(c, 0, 0);
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
    rule_same_type(c, 0, 0);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    for (size_t i = 0; i < d.n; i++)
        d.at[i] = poly_mul(c->space, d.at[i], poly_int(c->space, rule_int_of(c, "scales", i, 1)));
    return rule_state(c, 0, &d);
}
