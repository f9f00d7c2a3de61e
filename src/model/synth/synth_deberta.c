/* SPDX-License-Identifier: MIT
 * synth_deberta.c - DeBERTa v3: attention with content and relative position kept apart. Each layer
 * projects the table of relative positions with its own query and key weights, multiplies both ways
 * (content to position, position to content) and picks, for each pair of places, the bucket of their
 * distance. */
#include "model/synth/synth_block.h"

enum { BUCKETS = 256, DISTANCES = 512 }; /* position_buckets; max_relative_positions */

static const struct encoder_names names = {
    "attention/self/query_proj", "attention/self/key_proj", "attention/self/value_proj", "attention/self",
    "attention/output/dense", "attention/output/LayerNorm", "intermediate/dense", "output/dense", "output/LayerNorm",
};

/* What all layers share. */
struct relative {
    ow_val table;    /* [2 * BUCKETS, hidden] */
    ow_val c2p, p2c; /* rows of it for each pair of places: [1, 1, s, s] */
    ow_val hidden;   /* true where a pair may not see each other: [batch, 1, s, s] */
    ow_val pairs;    /* the shape [batch, heads, s, s] */
};

/* The distance of each pair, exact up to half the buckets, then in steps that grow: [s, s], int64. */
static ow_val bucket_positions(struct synth *s, ow_val ids)
{
    struct ow *w = s->w;
    const double mid = BUCKETS / 2.0, log_ratio = 1.3843393262840873; /* log((DISTANCES - 1) / mid) */
    ow_val range = ow_op(w, "Range", block_int(s, 0), block_dim(s, ids, 1), block_int(s, 1));
    ow_val d = ow_op(w, "Sub", block_unsqueeze(s, range, 1), block_unsqueeze(s, range, 0));
    ow_val size = ow_op(w, "Abs", d), near = ow_op(w, "Less", size, block_int(s, BUCKETS / 2));
    size = ow_op(w, "Where", near, block_int(s, BUCKETS / 2 - 1), size);
    ow_val x = ow_op(w, "Div", block_cast(s, size, ONNX_FLOAT), ow_scalar(w, ONNX_FLOAT, mid));
    x = ow_op(w, "Div", ow_op(w, "Log", x), ow_scalar(w, ONNX_FLOAT, log_ratio));
    x = ow_op(w, "Ceil", ow_op(w, "Mul", x, ow_scalar(w, ONNX_FLOAT, mid - 1)));
    x = ow_op(w, "Add", x, ow_scalar(w, ONNX_FLOAT, mid));
    x = ow_op(w, "Mul", block_cast(s, x, ONNX_INT64), ow_op(w, "Sign", d));
    return ow_op(w, "Where", ow_op(w, "LessOrEqual", size, block_int(s, BUCKETS / 2)), d, x);
}

/* Rows of the table: kept within it, with two axes before. */
static ow_val rows_of(struct synth *s, ow_val d)
{
    struct ow *w = s->w;
    ow_val row = ow_op(w, "Add", d, block_int(s, BUCKETS));
    row = ow_op(w, "Clip", row, block_int(s, 0), block_int(s, 2 * BUCKETS - 1));
    return block_unsqueeze(s, block_unsqueeze(s, row, 0), 0);
}

/* x [n, h*d] or [b, s, h*d] with its heads apart: [.., h, s, d]. */
static ow_val relative_heads(struct synth *s, ow_val x)
{
    int64_t heads = (int64_t)s->c->heads, width = (int64_t)(s->c->hidden / s->c->heads);
    x = ow_op(s->w, "Reshape", x, ow_ints_of(s->w, 1, -1, heads, width));
    return ow_transpose(s->w, x, 0, 2, 3, 1);
}

/* content [b, h, s, d] times positions [1, h, d, 2 * BUCKETS], then for each pair its bucket: [b, h, s, s]. */
static ow_val by_bucket(struct synth *s, ow_val content, ow_val positions, ow_val rows, ow_val pairs)
{
    struct ow *w = s->w;
    ow_val all = ow_op(w, "MatMul", content, positions), index = ow_op(w, "Expand", rows, pairs);
    return ow_op_axis(w, "GatherElements", -1, all, index);
}

/* Probabilities; those of pairs that may not see each other are 0, also where that is a whole row. */
static ow_val masked_softmax(struct synth *s, ow_val scores, const struct relative *r)
{
    struct ow *w = s->w;
    ow_val p = ow_op(w, "Where", r->hidden, block_const(s, block_lowest(s)), scores);
    p = ow_op_axis(w, "Softmax", -1, p);
    return ow_op(w, "Where", r->hidden, block_const(s, 0), p);
}

/* Content against content, content against position and position against content, summed before one softmax. */
static ow_val attend(struct synth *s, const struct encoder *e, ow_val x)
{
    struct ow *w = s->w;
    const struct relative *r = e->ctx;
    uint64_t n = s->c->hidden, width = n / s->c->heads;
    struct linear wq = block_linear_new(s, names.query, n, n), wk = block_linear_new(s, names.key, n, n);
    ow_val q = block_linear_use(s, names.query, &wq, x), k = block_linear_use(s, names.key, &wk, x);
    ow_val v = block_linear(s, names.value, x, n, n);
    ow_val pos_k = block_linear_use(s, names.key, &wk, r->table);
    ow_val pos_q = block_linear_use(s, names.query, &wq, r->table);
    size_t mark = ow_enter(w, names.attention);
    ow_val scale = block_const(s, __builtin_sqrt(3 * (double)width)); /* three kinds of score */
    q = block_split_heads(s, q);
    k = block_split_heads(s, k);
    v = block_split_heads(s, v);
    ow_val c2c = ow_op(w, "MatMul", q, ow_op(w, "Div", ow_transpose(w, k, 0, 1, 3, 2), scale));
    ow_val c2p = by_bucket(s, q, relative_heads(s, pos_k), r->c2p, r->pairs);
    ow_val p2c = by_bucket(s, k, relative_heads(s, pos_q), r->p2c, r->pairs);
    p2c = ow_transpose(w, p2c, 0, 1, 3, 2);
    ow_val bias = ow_op(w, "Add", ow_op(w, "Div", c2p, scale), ow_op(w, "Div", p2c, scale));
    ow_val p = masked_softmax(s, ow_op(w, "Add", c2c, bias), r);
    ow_val out = block_merge_heads(s, ow_op(w, "MatMul", p, v));
    ow_leave(w, mark);
    return out;
}

/* True where either of two places is masked: [batch, 1, s, s]. */
static ow_val hidden_pairs(struct synth *s, ow_val mask)
{
    struct ow *w = s->w;
    ow_val m = block_unsqueeze(s, block_unsqueeze(s, mask, 1), 2), other = block_unsqueeze(s, mask, 1);
    other = block_unsqueeze(s, other, -1);
    return ow_op(w, "Not", block_cast(s, ow_op(w, "Mul", m, other), ONNX_BOOL));
}

static void relative_init(struct synth *s, struct relative *r, ow_val ids, ow_val mask)
{
    struct ow *w = s->w;
    ow_val d = bucket_positions(s, ids), length = block_unsqueeze(s, block_dim(s, ids, 1), 0);
    r->c2p = rows_of(s, d);
    r->p2c = rows_of(s, ow_op(w, "Neg", d));
    r->hidden = hidden_pairs(s, mask);
    ow_val batch = block_unsqueeze(s, block_dim(s, ids, 0), 0), heads = ow_ints_of(w, (int64_t)s->c->heads);
    r->pairs = ow_op_axis(w, "Concat", 0, batch, heads, length, length);
    size_t mark = ow_enter(w, "rel_embeddings");
    struct ow_spec table = {.leaf = "weight", .rank = 2, .dims = {2 * BUCKETS, (int64_t)s->c->hidden}};
    table.std = s->std;
    r->table = block_weight(s, table);
    ow_leave(w, mark);
    r->table = block_layer_norm(s, "LayerNorm", r->table, s->c->hidden, 1e-7);
}

static ow_val embed(struct synth *s, ow_val ids, ow_val mask)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, "embeddings");
    ow_val x = block_embedding(s, "word_embeddings", ids, s->c->vocab, s->c->hidden);
    x = block_layer_norm(s, "LayerNorm", x, s->c->hidden, 1e-7);
    x = ow_op(w, "Mul", x, block_cast(s, block_unsqueeze(s, mask, -1), s->real));
    ow_leave(w, mark);
    return x;
}

static ow_val pool_deberta(struct synth *s, ow_val x)
{
    size_t mark = ow_enter(s->w, "pooler");
    x = block_gelu(s, block_gemm(s, "dense", head_first_token(s, x), s->c->hidden, s->c->hidden));
    ow_leave(s->w, mark);
    return x;
}

void synth_deberta(struct synth *s)
{
    ow_val ids = block_text_input(s, "input_ids"), mask = block_text_input(s, "attention_mask");
    struct relative r;
    struct encoder e = {.names = &names, .eps = 1e-7, .attend = attend, .ctx = &r};
    size_t mark = ow_enter(s->w, "deberta");
    ow_val x = embed(s, ids, mask);
    ow_enter(s->w, "encoder");
    relative_init(s, &r, ids, mask);
    x = block_encoder(s, &e, x);
    ow_leave(s->w, mark);
    head_text(s, x, mask, pool_deberta, false);
}
