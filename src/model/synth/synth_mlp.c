/* SPDX-License-Identifier: MIT
 * synth_mlp.c - a perceptron of any sizes: Gemm and Relu, the smallest model that does real work. */
#include "model/synth/synth_block.h"

void synth_mlp(struct synth *s)
{
    const struct synth_config *c = s->c;
    ow_val x = block_real_input(s, "input", 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_FIXED(c->sizes[0])});
    for (unsigned i = 1; i < c->n_sizes; i++) {
        size_t mark = ow_enter_index(s->w, "layers", i - 1);
        s->std = __builtin_sqrt(2.0 / (double)c->sizes[i - 1]); /* a Relu halves the power */
        x = block_gemm(s, "", x, c->sizes[i - 1], c->sizes[i]);
        if (i + 1 < c->n_sizes) x = ow_op(s->w, "Relu", x);
        ow_leave(s->w, mark);
    }
    block_output(s, x, "output", 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_FIXED(c->sizes[c->n_sizes - 1])});
}
