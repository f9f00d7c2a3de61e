/* SPDX-License-Identifier: MIT
 * infer_nn.h - rules that rows of several tables share: infer_nn.c names those of the standard, infer_contrib.c those
 * of ONNX Runtime's domains, which mostly are the same operators with other inputs. Private to src/model/infer*.c. */
#ifndef MODEL_INFER_NN_H
#define MODEL_INFER_NN_H

#include "model/infer/infer_help.h"

/* infer_conv.c: windows over spatial dimensions */
struct conv_form {
    size_t x, w;       /* which inputs are data and weights */
    bool channel_last; /* data is N, spatial, C */
    bool
        other_weights; /* their layout hangs on the provider: only the first dimension, the channels out, is sure */
    bool blocked; /* channels come in blocks, which may be filled up */
};
tare_status conv_shape(struct rule_call *c, const struct conv_form *f);
infer_rule rule_conv, rule_conv_integer, rule_qlinear_conv, rule_conv_transpose;

/* infer_pool.c */
tare_status pool_shape(struct rule_call *c, size_t output, bool channel_last);
tare_status global_pool_shape(struct rule_call *c, bool channel_last);
infer_rule rule_pool, rule_max_pool, rule_global_pool, rule_max_unpool, rule_max_roi_pool, rule_roi_align;

/* infer_window.c: one spatial dimension under a sliding window, as attributes say. Axis i counts from 0. */
enum window_pad { PAD_GIVEN, PAD_SAME, PAD_VALID };
struct window {
    enum window_pad pad;
    const struct poly *kernel; /* NULL: unknown */
    int64_t stride, dilation, begin, end;
    int64_t extra; /* transposed: more of the output */
    bool ceil;
};
tare_status window_of(struct rule_call *c, size_t axis, size_t axes, const struct poly *kernel,
                      struct window *out);
tare_status window_out(struct rule_call *c, const struct window *w, const struct poly *in,
                       const struct poly **out);
const struct poly *window_kernel(struct poly_space *s, const struct window *w); /* with its dilation */

/* infer_resize.c */
infer_rule rule_resize, rule_upsample, rule_grid_sample, rule_affine_grid, rule_col2im;

/* infer_matmul.c: contractions */
struct matmul_form {
    bool transpose_a, transpose_b; /* last two */
    bool transpose_batch_a,
        transpose_batch_b; /* FusedMatMul: the first dimension goes before the last but one */
};
tare_status matmul_shape(struct rule_call *c, size_t a, size_t b, const struct matmul_form *f);
tare_status gemm_shape(struct rule_call *c, size_t a, size_t b);
infer_rule rule_matmul, rule_gemm, rule_einsum, rule_matmul_integer, rule_qlinear_matmul;

/* infer_layout.c: channels last, channels in blocks */
infer_rule rule_nhwc_conv, rule_nhwc_qlinear_conv, rule_nhwc_pool, rule_nhwc_global_pool, rule_blocked_conv,
    rule_reorder_input, rule_reorder_output, rule_blocked_upsample;

/* infer_reduce.c: axes are an attribute, never an input; the type is not said */
infer_rule rule_reduce_by_attribute;

/* infer_attention.c: attention of ONNX Runtime's domain */
infer_rule rule_packed_weights, rule_quantised_attention, rule_multi_head, rule_group_query,
    rule_packed_tokens, rule_packed_heads, rule_decoder_heads, rule_embed_norm, rule_embed_norm_quantised;

/* infer_nn.c */
infer_rule rule_lstm;

#endif
