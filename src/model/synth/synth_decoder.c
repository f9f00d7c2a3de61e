/* SPDX-License-Identifier: MIT
 * synth_decoder.c - GPT-2: a causal decoder with its output tied to the table of tokens; with --kv-cache
 * the keys and values of earlier steps come in as past_key_values.N.key/value and go out, grown, as
 * present.N.key/value. */
#include <stdio.h>

#include "model/synth/synth_block.h"

#define PAST {-1, "past_sequence_length"}
#define TOTAL {-1, "past_sequence_length + sequence_length"}
#define EPS 1e-5

struct decoder {
    ow_val see;     /* true where a place may look: [batch, 1, s, total] */
    ow_val past[2]; /* key and value of this layer; 0: none */
    unsigned layer;
};

static ow_val gelu_new(struct synth *s, ow_val x)
{
    struct ow *w = s->w;
    ow_val cube = ow_op(w, "Mul", ow_op(w, "Pow", x, block_const(s, 3)), block_const(s, 0.044715));
    ow_val t = ow_op(w, "Mul", ow_op(w, "Add", x, cube), block_const(s, 0.7978845608028654));
    t = ow_op(w, "Add", ow_op(w, "Tanh", t), block_const(s, 1));
    return ow_op(w, "Mul", ow_op(w, "Mul", x, block_const(s, 0.5)), t);
}

/* What a key or value of the cache is called and how large it is. */
struct cached {
    char name[64];
    struct onnx_dim dims[4];
};

static struct cached cached_port(struct synth *s, const char *lead, unsigned layer, unsigned which)
{
    uint64_t heads = s->c->heads;
    struct cached c = {.dims = {SYNTH_BATCH, SYNTH_FIXED(heads), PAST, SYNTH_FIXED(s->c->hidden / heads)}};
    snprintf(c.name, sizeof c.name, "%s.%u.%s", lead, layer, which ? "value" : "key");
    return c;
}

/* What came before, and the new; the result is an output of the model. */
static ow_val join_past(struct synth *s, const struct decoder *d, ow_val now, unsigned which)
{
    struct cached c = cached_port(s, "present", d->layer, which);
    if (!d->past[which]) return now;
    c.dims[2] = (struct onnx_dim)TOTAL;
    ow_val all = ow_op_axis(s->w, "Concat", 2, d->past[which], now);
    block_output(s, all, c.name, 4, c.dims);
    return all;
}

/* One projection for queries, keys and values, as GPT-2 exports it. The mask goes in by Where, with the
 * lowest finite number as in GPT-2: -inf would make NaN of a row in which nothing is seen. */
static ow_val attend(struct synth *s, const struct decoder *d, ow_val x)
{
    struct ow *w = s->w;
    uint64_t n = s->c->hidden;
    ow_val all = block_linear(s, "c_attn", x, n, 3 * n);
    int64_t part = (int64_t)n;
    ow_val in[] = {all, ow_ints_of(w, part, part, part)};
    struct ow_call split = {"Split", 2, 3, in, OW_ATTRS(OW_ATTR_INT("axis", -1))};
    ow_val q = ow_node(w, &split), k = q + 1, v = q + 2;
    q = block_split_heads(s, q);
    k = join_past(s, d, block_split_heads(s, k), 0);
    v = join_past(s, d, block_split_heads(s, v), 1);
    k = ow_transpose(w, k, 0, 1, 3, 2);
    ow_val scores = block_scale(s, ow_op(w, "MatMul", q, k));
    scores = ow_op(w, "Where", d->see, scores, block_const(s, block_lowest(s)));
    ow_val p = ow_op_axis(w, "Softmax", -1, scores);
    return block_linear(s, "c_proj", block_merge_heads(s, ow_op(w, "MatMul", p, v)), n, n);
}

static ow_val decoder_layer(struct synth *s, const struct decoder *d, ow_val x)
{
    struct ow *w = s->w;
    uint64_t n = s->c->hidden, ffn = s->c->ffn;
    ow_val y = block_layer_norm(s, "ln_1", x, n, EPS);
    size_t mark = ow_enter(w, "attn");
    y = attend(s, d, y);
    ow_leave(w, mark);
    x = ow_op(w, "Add", y, x);
    y = block_layer_norm(s, "ln_2", x, n, EPS);
    mark = ow_enter(w, "mlp");
    y = gelu_new(s, block_linear(s, "c_fc", y, n, ffn));
    y = block_linear(s, "c_proj", y, ffn, n);
    ow_leave(w, mark);
    return ow_op(w, "Add", x, y);
}

/* A place sees itself and what is before it, unless the mask is 0 there. */
static ow_val visible(struct synth *s, ow_val ids, ow_val mask)
{
    struct ow *w = s->w;
    ow_val zero = block_int(s, 0), one = block_int(s, 1);
    ow_val total = block_dim(s, mask, 1), now = block_dim(s, ids, 1);
    ow_val keys = ow_op(w, "Range", zero, total, one);
    ow_val queries = ow_op(w, "Range", ow_op(w, "Sub", total, now), total, one);
    ow_val causal = ow_op(w, "LessOrEqual", block_unsqueeze(s, keys, 0), block_unsqueeze(s, queries, 1));
    ow_val m = block_cast(s, block_unsqueeze(s, block_unsqueeze(s, mask, 1), 2), ONNX_BOOL);
    return ow_op(w, "And", causal, m);
}

static void take_past(struct synth *s, struct decoder *d)
{
    for (unsigned which = 0; which < 2; which++) {
        struct cached c = cached_port(s, "past_key_values", d->layer, which);
        d->past[which] = block_real_input(s, c.name, 4, c.dims);
    }
}

/* The product with the table of tokens, turned. */
static ow_val tied_head(struct synth *s, struct ow_quantized tokens, ow_val x)
{
    size_t mark = ow_enter(s->w, "lm_head");
    tokens.q = ow_transpose(s->w, tokens.q, 1, 0);
    x = block_product(s, x, &tokens);
    ow_leave(s->w, mark);
    return x;
}

/* The table of tokens is used twice: to read them, and, turned, to score them. */
void synth_gpt2(struct synth *s)
{
    struct ow *w = s->w;
    const struct synth_config *c = s->c;
    struct onnx_dim all[] = {SYNTH_BATCH, TOTAL};
    ow_val ids = block_text_input(s, "input_ids");
    ow_val mask = c->kv_cache ? ow_input(w, "attention_mask", ONNX_INT64, 2, all)
                              : block_text_input(s, "attention_mask");
    ow_val positions = block_text_input(s, "position_ids");
    struct decoder d = {0};
    size_t mark = ow_enter(w, "transformer");
    d.see = visible(s, ids, mask);
    struct ow_quantized tokens = block_table(s, "wte", c->vocab, c->hidden);
    ow_val x = ow_op(w, "Add", block_rows_of(s, "wte", &tokens, ids),
                     block_embedding(s, "wpe", positions, c->positions, c->hidden));
    for (d.layer = 0; d.layer < c->layers; d.layer++) {
        if (c->kv_cache) take_past(s, &d);
        size_t layer = ow_enter_index(w, "h", d.layer);
        x = decoder_layer(s, &d, x);
        ow_leave(w, layer);
    }
    x = block_layer_norm(s, "ln_f", x, c->hidden, EPS);
    ow_leave(w, mark);
    block_output(s, tied_head(s, tokens, x), "logits", 3,
                 (struct onnx_dim[]){SYNTH_BATCH, SYNTH_SEQ, SYNTH_FIXED(c->vocab)});
    ow_output_first(w); /* before the keys and values, as exporters have it */
}
