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

static ow_val int_scalar(struct synth *s, int64_t v)
{
    return ow_ints(s->w, &v, 1, 0);
}

static ow_val gelu_new(struct synth *s, ow_val x)
{
    struct ow *w = s->w;
    ow_val cube = ow_op(w, "Mul", ow_op(w, "Pow", x, block_const(s, 3)), block_const(s, 0.044715));
    ow_val t = ow_op(w, "Mul", ow_op(w, "Add", x, cube), block_const(s, 0.7978845608028654));
    t = ow_op(w, "Add", ow_op(w, "Tanh", t), block_const(s, 1));
    return ow_op(w, "Mul", ow_op(w, "Mul", x, block_const(s, 0.5)), t);
}

/* [b, s, h*d] to [b, h, s, d]. */
static ow_val heads_of(struct synth *s, ow_val x)
{
    return block_transpose(s, block_split_heads(s, x));
}

/* What came before, and the new; the result is an output of the model. */
static ow_val join_past(struct synth *s, const struct decoder *d, ow_val now, unsigned which)
{
    static const char *const kinds[] = {"key", "value"};
    char name[64];
    if (!d->past[which]) return now;
    ow_val all = ow_op_attr(s->w, "Concat", OW_ATTRS(OW_ATTR_INT("axis", 2)), d->past[which], now);
    snprintf(name, sizeof name, "present.%u.%s", d->layer, kinds[which]);
    uint64_t heads = s->c->heads, width = s->c->hidden / heads;
    struct onnx_dim dims[] = {SYNTH_BATCH, SYNTH_FIXED(heads), TOTAL, SYNTH_FIXED(width)};
    block_output(s, all, name, 4, dims);
    return all;
}

static ow_val attend(struct synth *s, const struct decoder *d, ow_val x)
{
    struct ow *w = s->w;
    uint64_t n = s->c->hidden, width = n / s->c->heads;
    ow_val all = block_linear(s, "c_attn", x, n, 3 * n);
    int64_t part = (int64_t)n;
    ow_val in[] = {all, ow_ints_of(w, part, part, part)};
    const struct ow_attr last[] = {OW_ATTR_INT("axis", -1), {.kind = 0}};
    ow_val q = ow_node(w, &(struct ow_call){"Split", 2, 3, in, last}), k = q + 1, v = q + 2;
    q = heads_of(s, q);
    k = join_past(s, d, heads_of(s, k), 0);
    v = join_past(s, d, heads_of(s, v), 1);
    k = ow_op_attr(w, "Transpose", OW_ATTRS(OW_ATTR_INTS("perm", 0, 1, 3, 2)), k);
    ow_val scores = ow_op(w, "MatMul", q, k);
    scores = ow_op(w, "Div", scores, block_const(s, __builtin_sqrt((double)width)));
    scores = ow_op(w, "Where", d->see, scores, block_const(s, block_lowest(s)));
    ow_val p = ow_op_attr(w, "Softmax", last, scores);
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
    ow_val zero = int_scalar(s, 0), one = int_scalar(s, 1);
    ow_val total = block_dim(s, mask, 1), now = block_dim(s, ids, 1);
    ow_val keys = ow_op(w, "Range", zero, total, one);
    ow_val queries = ow_op(w, "Range", ow_op(w, "Sub", total, now), total, one);
    ow_val causal = ow_op(w, "LessOrEqual", block_unsqueeze(s, keys, 0), block_unsqueeze(s, queries, 1));
    ow_val m = block_cast(s, block_unsqueeze(s, block_unsqueeze(s, mask, 1), 2), ONNX_BOOL);
    return ow_op(w, "And", causal, m);
}

static void take_past(struct synth *s, struct decoder *d)
{
    char name[64];
    uint64_t heads = s->c->heads, width = s->c->hidden / heads;
    struct onnx_dim dims[] = {SYNTH_BATCH, SYNTH_FIXED(heads), PAST, SYNTH_FIXED(width)};
    snprintf(name, sizeof name, "past_key_values.%u.key", d->layer);
    d->past[0] = block_real_input(s, name, 4, dims);
    snprintf(name, sizeof name, "past_key_values.%u.value", d->layer);
    d->past[1] = block_real_input(s, name, 4, dims);
}

/* The product with the table of tokens, turned. */
static ow_val tied_head(struct synth *s, const struct embedding *tokens, ow_val x)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, "lm_head");
    ow_val table = ow_op_attr(w, "Transpose", OW_ATTRS(OW_ATTR_INTS("perm", 1, 0)), tokens->table), y;
    if (tokens->scale) {
        struct ow_quantized k = {table, tokens->scale, tokens->zero};
        y = block_integer_product(s, &(struct ow_call){.op = "MatMulInteger"}, x, &k);
    } else {
        y = ow_op(w, "MatMul", x, table);
    }
    ow_leave(w, mark);
    return y;
}

void synth_gpt2(struct synth *s)
{
    struct ow *w = s->w;
    const struct synth_config *c = s->c;
    struct onnx_dim text[] = {SYNTH_BATCH, SYNTH_SEQ}, all[] = {SYNTH_BATCH, TOTAL};
    ow_val ids = ow_input(w, "input_ids", ONNX_INT64, 2, text);
    ow_val mask = ow_input(w, "attention_mask", ONNX_INT64, 2, c->kv_cache ? all : text);
    ow_val positions = ow_input(w, "position_ids", ONNX_INT64, 2, text);
    struct decoder d = {0};
    size_t mark = ow_enter(w, "transformer");
    d.see = visible(s, ids, mask);
    struct embedding tokens = block_embedding_new(s, "wte", c->vocab, c->hidden);
    ow_val x = ow_op(w, "Add", block_embedding_use(s, "wte", &tokens, ids),
                     block_embedding(s, "wpe", positions, c->positions, c->hidden));
    for (d.layer = 0; d.layer < c->layers; d.layer++) {
        if (c->kv_cache) take_past(s, &d);
        size_t layer = ow_enter_index(w, "h", d.layer);
        x = decoder_layer(s, &d, x);
        ow_leave(w, layer);
    }
    x = block_layer_norm(s, "ln_f", x, c->hidden, EPS);
    ow_leave(w, mark);
    block_output(s, tied_head(s, &tokens, x), "logits", 3,
                 (struct onnx_dim[]){SYNTH_BATCH, SYNTH_SEQ, SYNTH_FIXED(c->vocab)});
    ow_output_first(w); /* before the keys and values, as exporters have it */
}
