/* SPDX-License-Identifier: MIT
 * infer_attention.c - rules of shape inference: attention and embedding of ONNX Runtime's own domain, whose inputs come
 * packed in many ways. Never guesses a size; a cache that is shared with the caller keeps its length. */
#include "model/infer/infer_rule.h"

static const struct poly *number(struct rule_call *c, int64_t v)
{
    return poly_int(c->space, v);
}

static const struct poly *heads(struct rule_call *c)
{
    int64_t n = rule_int(c, "num_heads", 0);
    return n > 0 ? number(c, n) : NULL;
}

/* ---- Attention: weights [in, q+k+v] ---- */

struct projected {
    const struct poly *k, *v; /* hidden sizes */
};

static struct projected projected_of(struct rule_call *c, size_t weights)
{
    const struct onnx_attribute *sizes = rule_attribute_of(c, "qkv_hidden_sizes");
    if (sizes && sizes->ints.n == 3)
        return (struct projected){number(c, sizes->ints.items[1]), number(c, sizes->ints.items[2])};
    const struct poly *third = rule_part(c, rule_input_dim(c, weights, 1), number(c, 3));
    return (struct projected){third, third};
}

/* [2, batch, heads, past + steps, size], or the very buffer that came in. */
static tare_status present_both(struct rule_call *c, size_t past, const struct rule_dims *x,
                                const struct poly *k)
{
    if (rule_int(c, "past_present_share_buffer", 0)) return rule_same_shape(c, 1, past);
    const struct poly *before = rule_has_input(c, past) ? rule_input_dim(c, past, 3) : number(c, 0);
    const struct poly *dims[] = {number(c, 2), x->at[0], heads(c), poly_add(c->space, before, x->at[1]),
                                 rule_part(c, k, heads(c))};
    return rule_shape(c, 1, dims, 5);
}

static tare_status weighted(struct rule_call *c, size_t past)
{
    struct rule_dims x;
    tare_status s;
    if (!rule_ranked_as(c, 0, 3, &x, &s)) return s;
    struct projected p = projected_of(c, 1);
    if ((s = present_both(c, past, &x, p.k)) < 0) return s;
    x.at[2] = p.v;
    return rule_state(c, 0, &x);
}

tare_status shape_packed_weights(struct rule_call *c)
{
    rule_same_type(c, 1, 0);
    return weighted(c, 4);
}

tare_status shape_quantised_attention(struct rule_call *c)
{
    rule_same_type(c, 1, 2);
    return weighted(c, 8);
}

/* PackedAttention: tokens of all sequences one after the other, no padding. */
tare_status shape_packed_tokens(struct rule_call *c)
{
    struct rule_dims x;
    tare_status s;
    if (!rule_ranked_as(c, 0, 2, &x, &s)) return s;
    x.at[1] = projected_of(c, 1).v;
    return rule_state(c, 0, &x);
}

tare_status shape_packed_heads(struct rule_call *c)
{
    struct rule_dims q;
    if (!rule_ranked(c, 0, &q) || q.n < 2) return TARE_OK;
    const struct poly *all = q.n == 4 ? poly_mul(c->space, q.at[1], q.at[3]) : rule_input_dim(c, 2, 1);
    const struct poly *dims[] = {q.at[0], all};
    return rule_shape(c, 0, dims, 2);
}

/* ---- MultiHeadAttention ---- */

/* Hidden size of the values: [B,L,h*d], [B,h,L,d], or packed with the keys [B,L,h,2,d] or all three [B,L,h,3,d]. */
static const struct poly *value_hidden(struct rule_call *c, const struct rule_dims *q)
{
    struct rule_dims k = rule_input_dims(c, 1);
    struct rule_dims v = rule_input_dims(c, 2);
    if (q->n == 5) return poly_mul(c->space, q->at[2], q->at[4]);
    if (k.known && k.n == 5) return poly_mul(c->space, k.at[2], k.at[4]);
    if (!v.known) return NULL;
    if (v.n == 3) return v.at[2];
    return v.n == 4 ? poly_mul(c->space, v.at[1], v.at[3]) : NULL;
}

/* Keys or values of now, [B,h,L,d]; false: their layout does not say it. */
static bool cache_now(struct rule_call *c, size_t input, const struct rule_dims *q, struct rule_dims *out)
{
    struct rule_dims d = *q;
    if (q->n != 5) d = rule_input_dims(c, rule_has_input(c, input) ? input : 1);
    *out = (struct rule_dims){.n = 4, .known = true};
    if (!d.known || (d.n != 3 && d.n != 5)) return false;
    const struct poly *n = d.n == 5 ? d.at[2] : heads(c);
    const struct poly *size = d.n == 5 ? d.at[4] : rule_part(c, d.at[2], heads(c));
    out->at[0] = d.at[0];
    out->at[1] = n;
    out->at[2] = d.at[1];
    out->at[3] = size;
    return true;
}

static tare_status present_one(struct rule_call *c, size_t output, const struct rule_dims *q)
{
    struct rule_dims now;
    size_t past = output + 5; /* 6 and 7 */
    if (rule_has_input(c, 8)) return rule_same_shape(c, output, past);
    if (!cache_now(c, output, q, &now)) return TARE_OK;
    if (rule_has_input(c, past)) now.at[2] = poly_add(c->space, rule_input_dim(c, past, 2), now.at[2]);
    return rule_state(c, output, &now);
}

tare_status shape_multi_head(struct rule_call *c)
{
    struct rule_dims q;
    for (size_t i = 0; i < 3; i++) rule_same_type(c, i, 0);
    if (!rule_ranked(c, 0, &q)) return TARE_OK;
    if (q.n != 3 && q.n != 5) return rule_fault(c, "a query of %zu dimensions, not 3 or 5", q.n);
    const struct poly *dims[] = {q.at[0], q.at[1], value_hidden(c, &q)};
    tare_status s = rule_shape(c, 0, dims, 3);
    for (size_t i = 1; s == TARE_OK && i < 3; i++) s = present_one(c, i, &q);
    return s;
}

/* DecoderMaskedMultiHeadAttention: one step; its caches are mostly shared. */
tare_status shape_decoder_heads(struct rule_call *c)
{
    struct rule_dims q;
    tare_status s;
    for (size_t i = 0; i < 3; i++) rule_same_type(c, i, 0);
    if (rule_int(c, "past_present_share_buffer", 0)) {
        if ((s = rule_same_shape(c, 1, 5)) < 0 || (s = rule_same_shape(c, 2, 6)) < 0) return s;
    }
    if (!rule_ranked_as(c, 0, 3, &q, &s)) return s;
    q.at[2] = value_hidden(c, &q);
    return rule_state(c, 0, &q);
}

/* ---- GroupQueryAttention: fewer heads of keys than of queries; all may be packed in the query ---- */

static const struct poly *query_head(struct rule_call *c, const struct poly *hidden)
{
    int64_t n = rule_int(c, "num_heads", 0);
    int64_t kv = rule_int(c, "kv_num_heads", 0);
    if (n < 1 || n > INT32_MAX || kv < 0 || kv > INT32_MAX) return NULL;
    int64_t all = rule_has_input(c, 1) ? n : n + 2 * kv;
    return rule_part(c, hidden, number(c, all));
}

/* The longer of what is in the cache and what there is with the new tokens. */
static tare_status group_present(struct rule_call *c, size_t output, const struct rule_dims *q,
                                 const struct poly *size)
{
    size_t past = output + 2;
    int64_t kv = rule_int(c, "kv_num_heads", 0);
    const struct poly *total = rule_int_at(c, 6, 0);
    const struct poly *dims[] = {q->at[0], number(c, kv), total, size};
    if (rule_has_input(c, past)) {
        dims[2] = poly_max(c->space, total, rule_input_dim(c, past, 2));
        dims[3] = rule_input_dim(c, past, 3);
        rule_same_type(c, output, past);
    }
    if (!total) rule_data_dependent(c, output, "the length of the cache is the contents of an input");
    return rule_shape(c, output, dims, 4);
}

tare_status shape_group_query(struct rule_call *c)
{
    struct rule_dims q;
    tare_status s;
    for (size_t i = 0; i < 3; i++) rule_same_type(c, i, 0);
    if (!rule_ranked_as(c, 0, 3, &q, &s)) return s;
    const struct poly *size = query_head(c, q.at[2]);
    for (size_t i = 1; i < 3; i++)
        if ((s = group_present(c, i, &q, size)) < 0) return s;
    q.at[2] = poly_mul(c->space, size, heads(c));
    return rule_state(c, 0, &q);
}

/* ---- embeddings ---- */

static tare_status embed(struct rule_call *c, size_t typed)
{
    struct rule_dims ids;
    tare_status s;
    rule_same_type(c, 0, typed);
    rule_type(c, 1, ONNX_INT32);
    rule_same_type(c, 2, typed);
    if (!rule_ranked_as(c, 0, 2, &ids, &s)) return s;
    if ((s = rule_shape(c, 1, ids.at, 1)) < 0) return s;
    rule_push(&ids, rule_input_dim(c, 2, 1));
    if ((s = rule_state(c, 0, &ids)) < 0) return s;
    return rule_state(c, 2, &ids);
}

tare_status shape_embed_norm(struct rule_call *c)
{
    return embed(c, 5);
}

tare_status shape_embed_norm_quantised(struct rule_call *c)
{
    return embed(c, 8);
}
