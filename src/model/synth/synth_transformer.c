/* SPDX-License-Identifier: MIT
 * synth_transformer.c - encoders of text, BERT and its relatives (MiniLM is a narrow BERT), and the encoder
 * of images, ViT. Inputs, outputs and names are those that the transformers exporters write. */
#include "model/synth/synth_block.h"

/* In the order of struct encoder_names: query, key, value, attention, out, its norm, up, down, their norm. */
static const struct encoder_names bert_names = {
    "attention/self/query", "attention/self/key", "attention/self/value", "attention/self",
    "attention/output/dense", "attention/output/LayerNorm", "intermediate/dense", "output/dense", "output/LayerNorm",
};
static const struct encoder_names distil_names = {
    "attention/q_lin", "attention/k_lin", "attention/v_lin", "attention",
    "attention/out_lin", "sa_layer_norm", "ffn/lin1", "ffn/lin2", "output_layer_norm",
};
static const struct encoder_names vit_names = {
    "attention/attention/query", "attention/attention/key", "attention/attention/value", "attention/attention",
    "attention/output/dense", "layernorm_before", "intermediate/dense", "output/dense", "layernorm_after",
};

/* 0 where the mask is 1, the lowest number where it is 0; [batch, 1, 1, sequence]. */
static ow_val additive_mask(struct synth *s, ow_val mask)
{
    ow_val m = block_cast(s, block_unsqueeze(s, block_unsqueeze(s, mask, 1), 2), s->real);
    return ow_op(s->w, "Mul", ow_op(s->w, "Sub", block_const(s, 1), m), block_const(s, block_lowest(s)));
}

/* 0 .. sequence-1, as one row. */
static ow_val position_ids(struct synth *s, ow_val ids)
{
    ow_val start = block_int(s, 0), step = block_int(s, 1);
    return block_unsqueeze(s, ow_op(s->w, "Range", start, block_dim(s, ids, 1), step), 0);
}

static ow_val text_embeddings(struct synth *s, ow_val ids, ow_val types)
{
    const struct synth_config *c = s->c;
    size_t mark = ow_enter(s->w, "embeddings");
    ow_val x = block_embedding(s, "word_embeddings", ids, c->vocab, c->hidden);
    if (types) x = ow_op(s->w, "Add", x, block_embedding(s, "token_type_embeddings", types, 2, c->hidden));
    ow_val p = block_embedding(s, "position_embeddings", position_ids(s, ids), c->positions, c->hidden);
    x = block_layer_norm(s, "LayerNorm", ow_op(s->w, "Add", x, p), c->hidden, 1e-12);
    ow_leave(s->w, mark);
    return x;
}

static ow_val encode_in(struct synth *s, const struct encoder *e, ow_val x, const char *scope)
{
    size_t mark = ow_enter(s->w, scope);
    x = block_encoder(s, e, x);
    ow_leave(s->w, mark);
    return x;
}

static ow_val pool_bert(struct synth *s, ow_val x)
{
    size_t mark = ow_enter(s->w, "pooler");
    x = ow_op(s->w, "Tanh", block_gemm(s, "dense", head_first_token(s, x), s->c->hidden, s->c->hidden));
    ow_leave(s->w, mark);
    return x;
}

void synth_bert(struct synth *s)
{
    ow_val ids = block_text_input(s, "input_ids"), mask = block_text_input(s, "attention_mask");
    ow_val types = block_text_input(s, "token_type_ids");
    struct encoder e = {.names = &bert_names, .eps = 1e-12, .attend = block_attend};
    e.mask = additive_mask(s, mask);
    ow_val x = encode_in(s, &e, text_embeddings(s, ids, types), "encoder");
    head_text(s, x, mask, pool_bert, true);
}

static ow_val pool_distilbert(struct synth *s, ow_val x)
{
    ow_val y = block_gemm(s, "pre_classifier", head_first_token(s, x), s->c->hidden, s->c->hidden);
    return ow_op(s->w, "Relu", y);
}

void synth_distilbert(struct synth *s)
{
    ow_val ids = block_text_input(s, "input_ids"), mask = block_text_input(s, "attention_mask");
    struct encoder e = {.names = &distil_names, .eps = 1e-12, .attend = block_attend};
    e.mask = additive_mask(s, mask);
    ow_val x = encode_in(s, &e, text_embeddings(s, ids, 0), "transformer");
    head_text(s, x, mask, pool_distilbert, false);
}

/* ---- images ---- */

/* Patches as a sequence, a learned token before them, learned positions added. */
static ow_val patch_embeddings(struct synth *s, ow_val pixels)
{
    struct ow *w = s->w;
    const struct synth_config *c = s->c;
    uint64_t patch = 16, n = c->image / patch * (c->image / patch);
    size_t mark = ow_enter(w, "embeddings");
    struct conv conv = {3, c->hidden, patch, patch, 1, 0, 0.02, true};
    ow_val x = block_conv(s, "patch_embeddings/projection", pixels, &conv);
    x = ow_op(w, "Reshape", x, ow_ints_of(w, 0, (int64_t)c->hidden, (int64_t)n));
    x = ow_transpose(w, x, 0, 2, 1);
    struct ow_spec spec = {.leaf = "cls_token", .rank = 3, .dims = {1, 1, (int64_t)c->hidden}, .std = 0.02};
    ow_val token = block_weight(s, spec);
    ow_val batch = block_unsqueeze(s, block_dim(s, x, 0), 0), ones = ow_ints_of(w, 1, (int64_t)c->hidden);
    token = ow_op(w, "Expand", token, ow_op_axis(w, "Concat", 0, batch, ones));
    x = ow_op_axis(w, "Concat", 1, token, x);
    spec.leaf = "position_embeddings";
    spec.dims[1] = (int64_t)n + 1;
    x = ow_op(w, "Add", x, block_weight(s, spec));
    ow_leave(w, mark);
    return x;
}

void synth_vit(struct synth *s)
{
    const struct synth_config *c = s->c;
    ow_val pixels = block_image_input(s, "pixel_values");
    struct encoder e = {.names = &vit_names, .eps = 1e-6, .attend = block_attend, .norm_first = true};
    size_t mark = ow_enter(s->w, "vit");
    ow_val x = encode_in(s, &e, patch_embeddings(s, pixels), "encoder");
    x = block_layer_norm(s, "layernorm", x, c->hidden, 1e-6);
    ow_leave(s->w, mark);
    head_classify(s, head_first_token(s, x));
}
