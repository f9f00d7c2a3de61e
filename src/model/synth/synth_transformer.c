/* SPDX-License-Identifier: MIT
 * synth_transformer.c - encoders of text, BERT and its relatives (MiniLM is a narrow BERT), and the encoder
 * of images, ViT. Inputs, outputs and names are those that the transformers exporters write. */
#include "model/synth/synth_block.h"

static const struct encoder_names bert_names = {
    .query = "attention/self/query",
    .key = "attention/self/key",
    .value = "attention/self/value",
    .attention = "attention/self",
    .out = "attention/output/dense",
    .attention_norm = "attention/output/LayerNorm",
    .up = "intermediate/dense",
    .down = "output/dense",
    .ffn_norm = "output/LayerNorm",
};
static const struct encoder_names distil_names = {
    .query = "attention/q_lin",
    .key = "attention/k_lin",
    .value = "attention/v_lin",
    .attention = "attention",
    .out = "attention/out_lin",
    .attention_norm = "sa_layer_norm",
    .up = "ffn/lin1",
    .down = "ffn/lin2",
    .ffn_norm = "output_layer_norm",
};
static const struct encoder_names vit_names = {
    .query = "attention/attention/query",
    .key = "attention/attention/key",
    .value = "attention/attention/value",
    .attention = "attention/attention",
    .out = "attention/output/dense",
    .attention_norm = "layernorm_before",
    .up = "intermediate/dense",
    .down = "output/dense",
    .ffn_norm = "layernorm_after",
};
static const struct onnx_dim text_dims[] = {SYNTH_BATCH, SYNTH_SEQ};

/* 0 where the mask is 1, the lowest number where it is 0; [batch, 1, 1, sequence]. */
static ow_val additive_mask(struct synth *s, ow_val mask)
{
    ow_val m = block_cast(s, block_unsqueeze(s, block_unsqueeze(s, mask, 1), 2), s->real);
    return ow_op(s->w, "Mul", ow_op(s->w, "Sub", block_const(s, 1), m), block_const(s, block_lowest(s)));
}

/* 0 .. sequence-1, as one row. */
static ow_val position_ids(struct synth *s, ow_val ids)
{
    struct ow *w = s->w;
    ow_val start = ow_ints(w, (int64_t[]){0}, 1, 0), step = ow_ints(w, (int64_t[]){1}, 1, 0);
    return block_unsqueeze(s, ow_op(w, "Range", start, block_dim(s, ids, 1), step), 0);
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

static ow_val encode_layers(struct synth *s, const struct encoder *e, ow_val x, const char *scope)
{
    size_t mark = ow_enter(s->w, scope);
    for (unsigned i = 0; i < s->c->layers; i++) {
        size_t layer = ow_enter_index(s->w, "layer", i);
        x = block_encoder_layer(s, e, x);
        ow_leave(s->w, layer);
    }
    ow_leave(s->w, mark);
    return x;
}

void synth_bert(struct synth *s)
{
    const struct synth_config *c = s->c;
    ow_val ids = ow_input(s->w, "input_ids", ONNX_INT64, 2, text_dims);
    ow_val mask = ow_input(s->w, "attention_mask", ONNX_INT64, 2, text_dims);
    ow_val types = ow_input(s->w, "token_type_ids", ONNX_INT64, 2, text_dims);
    struct encoder e = {.names = &bert_names, .eps = 1e-12, .attend = block_attend};
    e.mask = additive_mask(s, mask);
    ow_val x = encode_layers(s, &e, text_embeddings(s, ids, types), "encoder");
    size_t mark = ow_enter(s->w, "pooler");
    ow_val pooled = ow_op(s->w, "Tanh", block_gemm(s, "dense", head_first_token(s, x), c->hidden, c->hidden));
    ow_leave(s->w, mark);
    if (c->head == SYNTH_HEAD_CLASSES) {
        head_classify(s, pooled);
        return;
    }
    ow_val hidden = head_hidden_states(s, x);
    block_output(s, pooled, "pooler_output", 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_FIXED(c->hidden)});
    if (c->head == SYNTH_HEAD_EMBEDDING) head_sentence_embedding(s, hidden, mask);
}

void synth_distilbert(struct synth *s)
{
    const struct synth_config *c = s->c;
    ow_val ids = ow_input(s->w, "input_ids", ONNX_INT64, 2, text_dims);
    ow_val mask = ow_input(s->w, "attention_mask", ONNX_INT64, 2, text_dims);
    struct encoder e = {.names = &distil_names, .eps = 1e-12, .attend = block_attend};
    e.mask = additive_mask(s, mask);
    ow_val x = encode_layers(s, &e, text_embeddings(s, ids, 0), "transformer");
    if (c->head == SYNTH_HEAD_CLASSES) {
        ow_val y = block_gemm(s, "pre_classifier", head_first_token(s, x), c->hidden, c->hidden);
        head_classify(s, ow_op(s->w, "Relu", y));
        return;
    }
    ow_val hidden = head_hidden_states(s, x);
    if (c->head == SYNTH_HEAD_EMBEDDING) head_sentence_embedding(s, hidden, mask);
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
    x = ow_op_attr(w, "Transpose", OW_ATTRS(OW_ATTR_INTS("perm", 0, 2, 1)), x);
    struct ow_spec spec = {.leaf = "cls_token", .type = s->real, .rank = 3, .std = 0.02};
    spec.dims[0] = spec.dims[1] = 1;
    spec.dims[2] = (int64_t)c->hidden;
    ow_val token = ow_weight(w, &spec);
    ow_val batch = block_unsqueeze(s, block_dim(s, x, 0), 0), ones = ow_ints_of(w, 1, (int64_t)c->hidden);
    ow_val shape = ow_op_attr(w, "Concat", OW_ATTRS(OW_ATTR_INT("axis", 0)), batch, ones);
    token = ow_op(w, "Expand", token, shape);
    x = ow_op_attr(w, "Concat", OW_ATTRS(OW_ATTR_INT("axis", 1)), token, x);
    spec.leaf = "position_embeddings";
    spec.dims[1] = (int64_t)n + 1;
    x = ow_op(w, "Add", x, ow_weight(w, &spec));
    ow_leave(w, mark);
    return x;
}

void synth_vit(struct synth *s)
{
    const struct synth_config *c = s->c;
    struct onnx_dim dims[] = {SYNTH_BATCH, {3, ""}, SYNTH_FIXED(c->image), SYNTH_FIXED(c->image)};
    ow_val pixels = block_real_input(s, "pixel_values", 4, dims);
    struct encoder e = {.names = &vit_names, .eps = 1e-6, .attend = block_attend, .norm_first = true};
    size_t mark = ow_enter(s->w, "vit");
    ow_val x = encode_layers(s, &e, patch_embeddings(s, pixels), "encoder");
    x = block_layer_norm(s, "layernorm", x, c->hidden, 1e-6);
    ow_leave(s->w, mark);
    head_classify(s, head_first_token(s, x));
}
