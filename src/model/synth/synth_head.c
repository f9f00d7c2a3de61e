/* SPDX-License-Identifier: MIT
 * synth_head.c - what transformers answer: hidden states, a vector per text, logits. */
#include "model/synth/synth_block.h"

/* The first position of each row: [batch, hidden]. */
ow_val head_first_token(struct synth *s, ow_val x)
{
    ow_val zero = ow_ints(s->w, (int64_t[]){0}, 1, 0);
    return ow_op_attr(s->w, "Gather", OW_ATTRS(OW_ATTR_INT("axis", 1)), x, zero);
}

/* The mean of the positions that the mask leaves, scaled to length 1; in float32 in every precision. */
void head_sentence_embedding(struct synth *s, ow_val hidden, ow_val mask)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, "pooling");
    ow_val axis = ow_ints_of(w, 1), m = block_cast(s, block_unsqueeze(s, mask, -1), ONNX_FLOAT);
    const struct ow_attr flat[] = {OW_ATTR_INT("keepdims", 0), {.kind = 0}};
    ow_val sum = ow_op_attr(w, "ReduceSum", flat, ow_op(w, "Mul", hidden, m), axis);
    ow_val count = ow_op(w, "Clip", ow_op_attr(w, "ReduceSum", flat, m, axis), ow_float(w, ONNX_FLOAT, 1e-9));
    ow_val mean = ow_op(w, "Div", sum, count);
    ow_val length = w->opset < 18 ? ow_op_attr(w, "ReduceL2", OW_ATTRS(OW_ATTR_INTS("axes", 1)), mean)
                                  : ow_op(w, "ReduceL2", mean, axis);
    ow_val out = ow_op(w, "Div", mean, ow_op(w, "Clip", length, ow_float(w, ONNX_FLOAT, 1e-12)));
    ow_leave(w, mark);
    struct onnx_dim dims[] = {SYNTH_BATCH, SYNTH_FIXED(s->c->hidden)};
    ow_output(w, "sentence_embedding", ow_port(out, ONNX_FLOAT, 2, dims));
}

void head_classify(struct synth *s, ow_val pooled)
{
    ow_val y = block_gemm(s, "classifier", pooled, s->c->hidden, s->c->classes);
    block_output(s, y, "logits", 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_FIXED(s->c->classes)});
}

ow_val head_hidden_states(struct synth *s, ow_val x)
{
    return block_output(s, x, "last_hidden_state", 3,
                        (struct onnx_dim[]){SYNTH_BATCH, SYNTH_SEQ, SYNTH_FIXED(s->c->hidden)});
}
