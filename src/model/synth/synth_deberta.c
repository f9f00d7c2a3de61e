/* SPDX-License-Identifier: MIT
 * synth_deberta.c - DeBERTa v3: attention with content and relative position kept apart. Each layer
 * projects the table of relative positions with its own query and key weights, multiplies both ways
 * (content to position, position to content) and picks, for each pair of places, the bucket of their
 * distance. */
#include "model/synth/synth_block.h"

enum { BUCKETS = 256, DISTANCES = 512 }; /* position_buckets; max_relative_positions */

static const struct encoder_names names = {
    .query = "attention/self/query_proj",
    .key = "attention/self/key_proj",
    .value = "attention/self/value_proj",
    .attention = "attention/self",
    .out = "attention/output/dense",
    .attention_norm = "attention/output/LayerNorm",
    .up = "intermediate/dense",
    .down = "output/dense",
    .ffn_norm = "output/LayerNorm",
};
static const struct onnx_dim text_dims[] = {SYNTH_BATCH, SYNTH_SEQ};

/* What all layers share. */
struct relative {
    ow_val table;    /* [2 * BUCKETS, hidden] */
    ow_val c2p, p2c; /* rows of it for each pair of places: [1, 1, s, s] */
    ow_val hidden;   /* true where a pair may not see each other: [batch, 1, s, s] */
    ow_val pairs;    /* the shape [batch, heads, s, s] */
};

static ow_val int_scalar(struct synth *s, int64_t v)
{
    return ow_ints(s->w, &v, 1, 0);
}

/* The distance of each pair, exact up to half the buckets, then in steps that grow: [s, s], int64. */
static ow_val bucket_positions(struct synth *s, ow_val ids)
{
    struct ow *w = s->w;
    const double mid = BUCKETS / 2.0, log_ratio = 1.3843393262840873; /* log((DISTANCES - 1) / mid) */
    ow_val range = ow_op(w, "Range", int_scalar(s, 0), block_dim(s, ids, 1), int_scalar(s, 1));
    ow_val d = ow_op(w, "Sub", block_unsqueeze(s, range, 1), block_unsqueeze(s, range, 0));
    ow_val size = ow_op(w, "Abs", d), near = ow_op(w, "Less", size, int_scalar(s, BUCKETS / 2));
    size = ow_op(w, "Where", near, int_scalar(s, BUCKETS / 2 - 1), size);
    ow_val x = ow_op(w, "Div", block_cast(s, size, ONNX_FLOAT), ow_float(w, ONNX_FLOAT, mid));
    x = ow_op(w, "Div", ow_op(w, "Log", x), ow_float(w, ONNX_FLOAT, log_ratio));
    x = ow_op(w, "Ceil", ow_op(w, "Mul", x, ow_float(w, ONNX_FLOAT, mid - 1)));
    x = ow_op(w, "Add", x, ow_float(w, ONNX_FLOAT, mid));
    x = ow_op(w, "Mul", block_cast(s, x, ONNX_INT64), ow_op(w, "Sign", d));
    return ow_op(w, "Where", ow_op(w, "LessOrEqual", size, int_scalar(s, BUCKETS / 2)), d, x);
}

/* Rows of the table: kept within it, with two axes before. */
static ow_val rows_of(struct synth *s, ow_val d)
{
    struct ow *w = s->w;
    ow_val row = ow_op(w, "Add", d, int_scalar(s, BUCKETS));
    row = ow_op(w, "Clip", row, int_scalar(s, 0), int_scalar(s, 2 * BUCKETS - 1));
    return block_unsqueeze(s, block_unsqueeze(s, row, 0), 0);
}

/* x [n, h*d] or [b, s, h*d] with its heads apart: [.., h, s, d]. */
static ow_val relative_heads(struct synth *s, ow_val x)
{
    int64_t heads = (int64_t)s->c->heads, width = (int64_t)(s->c->hidden / s->c->heads);
    x = ow_op(s->w, "Reshape", x, ow_ints_of(s->w, 1, -1, heads, width));
    return ow_op_attr(s->w, "Transpose", OW_ATTRS(OW_ATTR_INTS("perm", 0, 2, 3, 1)), x);
}

/* content [b, h, s, d] times positions [1, h, d, 2 * BUCKETS], then for each pair its bucket: [b, h, s, s].
 * */
static ow_val by_bucket(struct synth *s, ow_val content, ow_val positions, ow_val rows, ow_val pairs)
{
    struct ow *w = s->w;
    ow_val all = ow_op(w, "MatMul", content, positions), index = ow_op(w, "Expand", rows, pairs);
    return ow_op_attr(w, "GatherElements", OW_ATTRS(OW_ATTR_INT("axis", -1)), all, index);
}

static ow_val weigh(struct synth *s, ow_val scores, const struct relative *r)
{
    struct ow *w = s->w;
    ow_val p = ow_op(w, "Where", r->hidden, block_const(s, block_lowest(s)), scores);
    p = ow_op_attr(w, "Softmax", OW_ATTRS(OW_ATTR_INT("axis", -1)), p);
    return ow_op(w, "Where", r->hidden, block_const(s, 0), p);
}

static ow_val attend(struct synth *s, const struct encoder *e, ow_val x)
{
    struct ow *w = s->w;
    const struct relative *r = e->ctx;
    uint64_t n = s->c->hidden, width = n / s->c->heads;
    const struct encoder_names *names_of = e->names;
    struct linear wq = block_linear_new(s, names_of->query, n, n);
    struct linear wk = block_linear_new(s, names_of->key, n, n);
    ow_val q = block_linear_use(s, names_of->query, &wq, x), k = block_linear_use(s, names_of->key, &wk, x);
    ow_val v = block_linear(s, names_of->value, x, n, n);
    ow_val pos_k = block_linear_use(s, names_of->key, &wk, r->table);
    ow_val pos_q = block_linear_use(s, names_of->query, &wq, r->table);
    size_t mark = ow_enter(w, names_of->attention);
    ow_val scale = block_const(s, __builtin_sqrt(3 * (double)width)); /* three kinds of score */
    q = block_transpose(s, block_split_heads(s, q));
    k = block_transpose(s, block_split_heads(s, k));
    v = block_transpose(s, block_split_heads(s, v));
    const struct ow_attr turn[] = {OW_ATTR_INTS("perm", 0, 1, 3, 2), {.kind = 0}};
    ow_val c2c = ow_op(w, "MatMul", q, ow_op(w, "Div", ow_op_attr(w, "Transpose", turn, k), scale));
    ow_val c2p = by_bucket(s, q, relative_heads(s, pos_k), r->c2p, r->pairs);
    ow_val p2c = by_bucket(s, k, relative_heads(s, pos_q), r->p2c, r->pairs);
    p2c = ow_op_attr(w, "Transpose", turn, p2c);
    ow_val bias = ow_op(w, "Add", ow_op(w, "Div", c2p, scale), ow_op(w, "Div", p2c, scale));
    ow_val p = weigh(s, ow_op(w, "Add", c2c, bias), r);
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
    r->pairs = ow_op_attr(w, "Concat", OW_ATTRS(OW_ATTR_INT("axis", 0)), batch, heads, length, length);
    size_t mark = ow_enter(w, "rel_embeddings");
    r->table = block_weight(s, "weight", 2 * BUCKETS, s->c->hidden);
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

static void classify(struct synth *s, ow_val x)
{
    size_t mark = ow_enter(s->w, "pooler");
    x = block_gelu(s, block_gemm(s, "dense", head_first_token(s, x), s->c->hidden, s->c->hidden));
    ow_leave(s->w, mark);
    head_classify(s, x);
}

void synth_deberta(struct synth *s)
{
    ow_val ids = ow_input(s->w, "input_ids", ONNX_INT64, 2, text_dims);
    ow_val seen = ow_input(s->w, "attention_mask", ONNX_INT64, 2, text_dims);
    struct relative r;
    struct encoder e = {.names = &names, .eps = 1e-7, .attend = attend, .ctx = &r};
    size_t mark = ow_enter(s->w, "deberta");
    ow_val x = embed(s, ids, seen);
    size_t encoder = ow_enter(s->w, "encoder");
    relative_init(s, &r, ids, seen);
    for (unsigned i = 0; i < s->c->layers; i++) {
        size_t layer = ow_enter_index(s->w, "layer", i);
        x = block_encoder_layer(s, &e, x);
        ow_leave(s->w, layer);
    }
    ow_leave(s->w, encoder);
    ow_leave(s->w, mark);
    if (s->c->head == SYNTH_HEAD_CLASSES) {
        classify(s, x);
        return;
    }
    ow_val hidden = head_hidden_states(s, x);
    if (s->c->head == SYNTH_HEAD_EMBEDDING) head_sentence_embedding(s, hidden, seen);
}
