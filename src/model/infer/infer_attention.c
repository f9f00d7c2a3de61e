/* SPDX-License-Identifier: MIT
 * infer_attention.c - rules of shape inference: attention and embedding of ONNX Runtime's own domain, whose inputs come
 * packed in many ways. Never guesses a size; a cache that is shared with the caller keeps its length. */
#include "model/infer/infer_rule.h"

static const struct poly *heads(struct rule_call *c)
{
    int64_t n = rule_int(c, "num_heads", 0);
    return n > 0 ? rule_number(c, n) : NULL;
}

/* ---- Attention: weights [in, q+k+v] ---- */

struct projected {
    const struct poly *k, *v; /* hidden sizes */
};

static struct projected projected_of(struct rule_call *c)
{
    const struct onnx_attribute *sizes = rule_attribute_of(c, "qkv_hidden_sizes");
    if (sizes && sizes->ints.n == 3)
        return (struct projected){rule_number(c, sizes->ints.items[1]), rule_number(c, sizes->ints.items[2])};
    const struct poly *third = rule_part(c, rule_input_dim(c, 1, 1), rule_number(c, 3));
    return (struct projected){third, third};
}

/* The cache is [2, batch, heads, past + steps, size], or the very buffer that came in. Output 1 has output 0's type. */
bool shape_packed_weights(struct rule_call *c)
{
    struct rule_dims x;
    size_t past = rule_second(c, 4);
    rule_same_type(c, 1, c->row->type.input - 1);
    if (!rule_ranked_as(c, 0, 3, &x)) return false;
    struct projected p = projected_of(c);
    if (rule_int(c, "past_present_share_buffer", 0))
        rule_same_shape(c, 1, past);
    else
        rule_shape_is(c, 1, rule_number(c, 2), x.at[0], heads(c), rule_behind(c, past, 3, x.at[1]),
                      rule_part(c, p.k, heads(c)));
    x.at[2] = p.v;
    return rule_state(c, 0, &x);
}

/* PackedAttention: tokens of all sequences one after the other, no padding. */
bool shape_packed_tokens(struct rule_call *c)
{
    struct rule_dims x;
    return rule_ranked_as(c, 0, 2, &x) && rule_shape_is(c, 0, x.at[0], projected_of(c).v);
}

bool shape_packed_heads(struct rule_call *c)
{
    struct rule_dims q;
    if (!rule_ranked(c, 0, &q) || q.n < 2) return false;
    const struct poly *all = q.n == 4 ? poly_mul(c->space, q.at[1], q.at[3]) : rule_input_dim(c, 2, 1);
    return rule_shape_is(c, 0, q.at[0], all);
}

/* ---- MultiHeadAttention ---- */

/* Hidden size of the values: [B,L,h*d], [B,h,L,d], or packed with the keys [B,L,h,2,d] or all three [B,L,h,3,d]. */
static const struct poly *value_hidden(struct rule_call *c, const struct rule_dims *q)
{
    struct rule_dims k = rule_dims_of(rule_input(c, 1)), v = rule_dims_of(rule_input(c, 2));
    if (q->n == 5) return poly_mul(c->space, q->at[2], q->at[4]);
    if (k.n == 5) return poly_mul(c->space, k.at[2], k.at[4]);
    if (v.n == 3) return v.at[2];
    return v.n == 4 ? poly_mul(c->space, v.at[1], v.at[3]) : NULL;
}

/* Keys or values of now [B,h,L,d], behind those of the past; nothing where their layout does not say it. */
static void state_present(struct rule_call *c, size_t output, const struct rule_dims *q)
{
    struct rule_dims d = *q;
    size_t past = output + 5; /* 6 and 7 */
    if (rule_has_input(c, 8)) {
        rule_same_shape(c, output, past);
        return;
    }
    if (q->n != 5) d = rule_dims_of(rule_input(c, rule_has_input(c, output) ? output : 1));
    if (d.n != 3 && d.n != 5) return;
    const struct poly *n = d.n == 5 ? d.at[2] : heads(c);
    const struct poly *size = d.n == 5 ? d.at[4] : rule_part(c, d.at[2], n);
    rule_shape_is(c, output, d.at[0], n, rule_behind(c, past, 2, d.at[1]), size);
}

bool shape_multi_head(struct rule_call *c)
{
    struct rule_dims q;
    rule_same_types(c, 3, 0);
    if (!rule_ranked(c, 0, &q)) return false;
    if (q.n != 3 && q.n != 5) return rule_fault(c, "a query of %zu dimensions, not 3 or 5", q.n);
    rule_shape_is(c, 0, q.at[0], q.at[1], value_hidden(c, &q));
    for (size_t i = 1; i < 3; i++) state_present(c, i, &q);
    return true;
}

/* DecoderMaskedMultiHeadAttention: one step; its caches are mostly shared. */
bool shape_decoder_heads(struct rule_call *c)
{
    struct rule_dims q;
    rule_same_types(c, 3, 0);
    for (size_t i = 1; i < 3 && rule_int(c, "past_present_share_buffer", 0); i++)
        rule_same_shape(c, i, i + 4);
    if (!rule_ranked_as(c, 0, 3, &q)) return false;
    q.at[2] = value_hidden(c, &q);
    return rule_state(c, 0, &q);
}

/* ---- GroupQueryAttention: fewer heads of keys than of queries; all may be packed in the query ---- */

static const struct poly *query_head(struct rule_call *c, const struct poly *hidden)
{
    int64_t n = rule_int(c, "num_heads", 0), kv = rule_int(c, "kv_num_heads", 0);
    if (n < 1 || n > INT32_MAX || kv < 0 || kv > INT32_MAX) return NULL;
    return rule_part(c, hidden, rule_number(c, rule_has_input(c, 1) ? n : n + 2 * kv));
}

/* As long as the longer of what is in the cache and what there is with the new tokens. */
static void state_group_present(struct rule_call *c, size_t output, const struct rule_dims *q,
                                const struct poly *size)
{
    size_t past = output + 2;
    const struct poly *total = rule_int_at(c, 6, 0), *length = total;
    if (rule_has_input(c, past)) {
        length = poly_max(c->space, total, rule_input_dim(c, past, 2));
        size = rule_input_dim(c, past, 3);
        rule_same_type(c, output, past);
    }
    if (!total) rule_data_dependent(c, output, "the length of the cache is the contents of an input");
    rule_shape_is(c, output, q->at[0], rule_number(c, rule_int(c, "kv_num_heads", 0)), length, size);
}

bool shape_group_query(struct rule_call *c)
{
    struct rule_dims q;
    rule_same_types(c, 3, 0);
    if (!rule_ranked_as(c, 0, 3, &q)) return false;
    const struct poly *size = query_head(c, q.at[2]);
    for (size_t i = 1; i < 3; i++) state_group_present(c, i, &q, size);
    q.at[2] = poly_mul(c->space, size, heads(c));
    return rule_state(c, 0, &q);
}

/* EmbedLayerNormalization: the sum that is normalised, output 2, is like the result. */
bool shape_embed_norm(struct rule_call *c)
{
    struct rule_dims ids;
    rule_type(c, 1, ONNX_INT32);
    rule_same_type(c, 2, c->row->type.input - 1);
    if (!rule_ranked_as(c, 0, 2, &ids)) return false;
    rule_shape(c, 1, ids.at, 1);
    rule_push(&ids, rule_input_dim(c, 2, 1));
    return rule_state(c, 0, &ids) && rule_state(c, 2, &ids);
}
