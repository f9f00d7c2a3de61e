/* SPDX-License-Identifier: MIT
 * infer_nn.h - rules that rows of several tables share: infer_nn.c names those of the standard, infer_contrib.c those
 * of ONNX Runtime's domains, which mostly are the same operators with other inputs. Private to src/model/infer*.c. */
#ifndef MODEL_INFER_NN_H
#define MODEL_INFER_NN_H

#include "model/infer/infer_rule.h"

/* infer_conv.c: windows over spatial dimensions */
struct conv_form {
    size_t w;          /* which input are the weights; data is input 0 */
    bool channel_last; /* data is N, spatial, C */
    bool
        other_weights; /* their layout hangs on the provider: only the first dimension, the channels out, is sure */
    bool blocked; /* channels come in blocks, which may be filled up */
};
tare_status conv_shape(struct rule_call *c, const struct conv_form *f);

/* infer_pool.c */
tare_status pool_shape(struct rule_call *c, size_t output, bool channel_last);
tare_status global_pool_shape(struct rule_call *c, bool channel_last);

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

/* infer_matmul.c: contractions */
struct matmul_form {
    bool transpose_a, transpose_b; /* last two */
    bool transpose_batch_a,
        transpose_batch_b; /* FusedMatMul: the first dimension goes before the last but one */
};
tare_status matmul_shape(struct rule_call *c, size_t a, size_t b, const struct matmul_form *f);
tare_status gemm_shape(struct rule_call *c, size_t a, size_t b);

#endif
