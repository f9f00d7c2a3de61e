/* SPDX-License-Identifier: MIT
 * cost_rules_attention.c - cost of attention, whichever operator it is written as, and of rotary positions. Products
 * with masked keys are counted in full; `useful` leaves them out where the operator itself is causal. */
#include "model/cost/cost_rule.h"

/* Scaled dot-product attention, by its sizes. */
struct sdpa {
    const struct poly *batch, *queries, *keys; /* keys: all, those of the cache too */
    const struct poly *heads;
    const struct poly *qk_width, *v_width; /* over all heads of the query */
    const struct poly *past;               /* keys that every query sees */
    bool causal, masked, capped;
};

/* Two products per pair of query and key, with the widths of keys and of values: q k' and p v. Causal
 * attention computes all pairs in most runtimes, so that macs counts them all and `masked` takes back what
 * no query may see. */
static void count_sdpa(struct cost_call *c, const struct sdpa *a)
{
    const struct poly *rows = cost_mul(c, a->batch, a->queries);
    const struct poly *width = poly_add(c->s, a->qk_width, a->v_width);
    const struct poly *macs = cost_mul(c, cost_mul(c, rows, a->keys), width);
    const struct poly *scores = cost_mul(c, cost_mul(c, rows, a->keys), a->heads);
    struct cost_each each = {3 + 1, 1, 1}; /* softmax and the scale */
    each.simple += a->masked + a->capped;
    each.transcendental += a->capped;
    each.division += a->capped;
    cost_count_macs(c, cost_out(c, 0), macs);
    cost_count_float(c, scores, each);
    if (!a->causal) return;
    /* Query i sees the past and i + 1 keys; twice what it does not see, so that halves stay whole: */
    const struct poly *hidden = cost_times(c, poly_sub(c->s, a->keys, a->past), 2);
    hidden = poly_sub(c->s, hidden, poly_add(c->s, a->queries, poly_int(c->s, 1)));
    c->masked = poly_div_floor(c->s, cost_mul(c, cost_mul(c, rows, hidden), width), poly_int(c->s, 2));
}

static const struct poly *past_of(const struct cost_call *c, size_t input, int64_t axis)
{
    return cost_in(c, input) ? cost_dim(cost_in(c, input), axis) : poly_int(c->s, 0);
}

/* One fused projection of [batch, sequence, in] to queries, keys and values, then attention. */
struct projected {
    const struct poly *rows, *in, *qk, *v; /* rows: batch * sequence, or tokens */
};

static struct projected projected_of(const struct cost_call *c, const struct infer_value *x,
                                     const struct infer_value *w)
{
    struct projected p = {.in = cost_dim(x, -1)};
    const struct onnx_attribute *sizes = cost_attribute(c, "qkv_hidden_sizes");
    if (x && x->has_rank && x->rank) p.rows = cost_dims(c, x, 0, x->rank - 1);
    if (sizes && sizes->ints.n == 3) {
        p.qk = sizes->ints.items[0] > 0 ? poly_int(c->s, sizes->ints.items[0]) : NULL;
        p.v = sizes->ints.items[2] > 0 ? poly_int(c->s, sizes->ints.items[2]) : NULL;
    } else {
        p.qk = p.v = poly_div_exact(c->s, cost_dim(w, 1), poly_int(c->s, 3));
    }
    return p;
}

/* Products and the bias of the projection. */
static const struct poly *projection_macs(struct cost_call *c, const struct projected *p, bool bias)
{
    const struct poly *width = poly_add(c->s, cost_times(c, p->qk, 2), p->v);
    const struct poly *made = cost_mul(c, p->rows, width);
    if (bias) cost_count_float(c, made, COST_SIMPLE(1));
    return cost_mul(c, made, p->in);
}

static struct sdpa projected_sdpa(const struct cost_call *c, const struct projected *p, size_t past)
{
    const struct infer_value *x = cost_in(c, 0);
    struct sdpa a = {.batch = cost_dim(x, 0), .queries = cost_dim(x, 1), .qk_width = p->qk, .v_width = p->v};
    a.heads = cost_size(c, "num_heads");
    a.past = past_of(c, past, 3); /* [2, batch, heads, past, width] */
    a.keys = poly_add(c->s, a.queries, a.past);
    a.causal = cost_int(c, "unidirectional", 0) != 0;
    return a;
}

/* input, weights, bias, mask, past, bias of the scores. */
void cost_rule_ms_attention(struct cost_call *c)
{
    struct projected p = projected_of(c, cost_in(c, 0), cost_in(c, 1));
    struct sdpa a = projected_sdpa(c, &p, 4);
    a.masked = cost_in(c, 3) || cost_in(c, 5);
    cost_count_macs(c, cost_in(c, 0), projection_macs(c, &p, cost_in(c, 2) != NULL));
    count_sdpa(c, &a);
}

/* The projection is of 8-bit integers, attention itself is not. */
void cost_rule_q_attention(struct cost_call *c)
{
    struct projected p = projected_of(c, cost_in(c, 0), cost_in(c, 1));
    struct sdpa a = projected_sdpa(c, &p, 8);
    a.masked = cost_in(c, 5) != NULL;
    const struct poly *made = cost_mul(c, p.rows, poly_add(c->s, cost_times(c, p.qk, 2), p.v));
    cost_count_int_macs(c, projection_macs(c, &p, cost_in(c, 2) != NULL));
    cost_count_float(c, made, COST_SIMPLE(2));
    for (size_t zero = 6; zero <= 7; zero++) {
        if (cost_in(c, zero)) cost_count_integer(c, made);
    }
    count_sdpa(c, &a);
}

/* Padding was taken out: rows are tokens, each of which is taken to see a sequence of full length. */
static void packed(struct cost_call *c, const struct projected *p, size_t offsets, bool masked)
{
    struct sdpa a = {.batch = poly_int(c->s, 1), .queries = p->rows, .qk_width = p->qk, .v_width = p->v};
    a.heads = cost_size(c, "num_heads");
    a.keys = cost_dim(cost_in(c, offsets), 1);
    a.masked = masked;
    count_sdpa(c, &a);
}

void cost_rule_packed_attention(struct cost_call *c)
{
    struct projected p = projected_of(c, cost_in(c, 0), cost_in(c, 1));
    cost_count_macs(c, cost_in(c, 0), projection_macs(c, &p, cost_in(c, 2) != NULL));
    packed(c, &p, 3, cost_in(c, 5) != NULL);
}

void cost_rule_packed_multi_head(struct cost_call *c)
{
    const struct infer_value *q = cost_in(c, 0), *y = cost_out(c, 0);
    struct projected p = {.rows = cost_dim(q, 0), .v = cost_dim(y, -1)};
    p.qk = cost_in(c, 1) ? cost_dim(q, -1) : p.v; /* [tokens, heads, 3, width] has them all */
    if (cost_in(c, 3)) cost_count_float(c, cost_elements(c, q), COST_SIMPLE(1));
    packed(c, &p, 4, cost_in(c, 6) != NULL);
}

/* query, key, value, bias, padding mask, bias of the scores, past key, past value. */
void cost_rule_multi_head(struct cost_call *c)
{
    const struct infer_value *q = cost_in(c, 0), *k = cost_in(c, 1), *y = cost_out(c, 0);
    struct sdpa a = {.batch = cost_dim(q, 0), .queries = cost_dim(q, 1), .v_width = cost_dim(y, -1)};
    if (!q || !q->has_rank) {
        count_sdpa(c, &a);
        return;
    }
    bool packed_qkv = q->rank == 5, split = k && k->has_rank && k->rank == 4;
    a.heads = cost_size(c, "num_heads");
    a.qk_width = packed_qkv ? a.v_width : cost_dim(q, 2);
    a.past = past_of(c, 6, 2);
    a.keys = packed_qkv ? a.queries : cost_dim(k, 1);
    if (!packed_qkv && split) a.keys = cost_dim(k, 2);
    a.keys = poly_add(c->s, a.keys, a.past);
    a.masked = cost_in(c, 4) || cost_in(c, 5);
    a.causal = cost_int(c, "unidirectional", 0) != 0;
    if (cost_in(c, 3)) {
        const struct poly *n = cost_elements(c, q);
        if (k && !split)
            n = poly_add(c->s, poly_add(c->s, n, cost_elements(c, k)), cost_elements(c, cost_in(c, 2)));
        cost_count_float(c, n, COST_SIMPLE(1));
    }
    count_sdpa(c, &a);
}

/* Keys and values of fewer heads; the cache and the new ones are all seen. */
void cost_rule_group_query(struct cost_call *c)
{
    const struct infer_value *q = cost_in(c, 0), *y = cost_out(c, 0), *total = cost_in(c, 6);
    int64_t heads = cost_int(c, "num_heads", 0), shared = cost_int(c, "kv_num_heads", 0);
    struct sdpa a = {.batch = cost_dim(q, 0), .queries = cost_dim(q, 1), .causal = true};
    a.heads = cost_size(c, "num_heads");
    a.qk_width = a.v_width = cost_dim(y, -1);
    a.keys = poly_add(c->s, a.queries, past_of(c, 3, 2));
    if (total && total->ints && total->n_ints == 1 && total->ints[0]) a.keys = total->ints[0];
    a.past = poly_sub(c->s, a.keys, a.queries);
    a.masked = cost_in(c, 10) != NULL;
    a.capped = cost_float(c, "softcap", 0) != 0;
    count_sdpa(c, &a);
    if (!cost_int(c, "do_rotary", 0)) return;
    const struct poly *per_head =
        heads > 0 ? poly_div_exact(c->s, cost_dim(y, -1), poly_int(c->s, heads)) : NULL;
    const struct poly *turned =
        cost_mul(c, cost_mul(c, a.batch, a.queries), cost_times(c, per_head, heads + shared));
    cost_count_float(c, turned, COST_SIMPLE(3));
}

/* ONNX's own: heads as an axis, or together with the width. */
void cost_rule_attention(struct cost_call *c)
{
    const struct infer_value *q = cost_in(c, 0), *k = cost_in(c, 1), *y = cost_out(c, 0);
    if (!q || !q->has_rank || !k || !k->has_rank) {
        count_sdpa(c, &(struct sdpa){.causal = false});
        return;
    }
    bool split = q->rank == 4;
    struct sdpa a = {.batch = cost_dim(q, 0), .queries = cost_dim(q, split ? 2 : 1)};
    a.heads = split ? cost_dim(q, 1) : cost_size(c, "q_num_heads");
    a.qk_width = split ? cost_mul(c, a.heads, cost_dim(q, 3)) : cost_dim(q, 2);
    a.v_width = split ? cost_mul(c, a.heads, cost_dim(y, 3)) : cost_dim(y, 2);
    a.past = past_of(c, 4, 2);
    a.keys = poly_add(c->s, cost_dim(k, k->rank == 4 ? 2 : 1), a.past);
    a.masked = cost_in(c, 3) != NULL;
    a.capped = cost_float(c, "softcap", 0) != 0;
    a.causal = cost_int(c, "is_causal", 0) != 0;
    count_sdpa(c, &a);
}

/* Token by token: the state [key, value] of each key head takes up one outer product, and each query head reads it.
 * Delta rules read it once more before, gated ones let it decay first. */
void cost_rule_linear_attention(struct cost_call *c)
{
    const struct infer_value *q = cost_in(c, 0), *v = cost_in(c, 2);
    const struct poly *tokens = cost_mul(c, cost_dim(q, 0), cost_dim(q, 1)),
                      *kv = cost_size(c, "kv_num_heads");
    const struct poly *key = poly_div_exact(c->s, cost_dim(cost_in(c, 1), 2), kv);
    const struct poly *value = poly_div_exact(c->s, cost_dim(v, 2), kv);
    const struct poly *numbers =
        cost_mul(c, tokens, cost_mul(c, key, value)); /* of one head's state, per token */
    const struct poly *of_keys = cost_mul(c, numbers, kv), *values = cost_mul(c, tokens, cost_dim(v, 2));
    bool linear = cost_text_is(c, "update_rule", "linear"), gated = cost_text_is(c, "update_rule", "gated");
    bool delta = !linear && !gated;
    gated = gated || (delta && !cost_text_is(c, "update_rule", "delta"));
    cost_count_macs(
        c, q,
        poly_add(c->s, cost_times(c, of_keys, 1 + delta), cost_mul(c, numbers, cost_size(c, "q_num_heads"))));
    cost_count_float(c, cost_elements(c, cost_out(c, 0)), COST_SIMPLE(1)); /* the scale */
    if (delta) cost_count_float(c, values, COST_SIMPLE(2));
    if (!gated) return;
    cost_count_float(c, of_keys, COST_SIMPLE(1));
    cost_count_float(c, cost_elements(c, cost_in(c, 4)), (struct cost_each){0, 0, 1});
}
