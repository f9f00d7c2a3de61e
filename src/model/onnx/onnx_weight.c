/* SPDX-License-Identifier: MIT
 * onnx_weight.c - how many learned numbers a model has and of which type most are. Looks at names, types and
 * dimensions only, never at the elements. */
#include <string.h>

#include "core/buf.h"
#include "core/map.h"
#include "model/onnx/onnx_parse.h"

/* Operands that are scales, zero points or measured statistics, by input number; `packed` is an operand of
 * several weights per byte. */
struct quantized_op {
    const char *op;
    unsigned not_weights; /* bit i: input i */
    int packed;           /* -1: none */
};

static const struct quantized_op quantized_ops[] = {
    {"BatchNormalization", 1 << 3 | 1 << 4, -1}, /* running mean and variance */
    {"DequantizeLinear", 1 << 1 | 1 << 2, -1},
    {"QuantizeLinear", 1 << 1 | 1 << 2, -1},
    {"MatMulInteger", 1 << 2 | 1 << 3, -1},
    {"ConvInteger", 1 << 2 | 1 << 3, -1},
    {"QLinearMatMul", 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7, -1},
    {"QLinearConv", 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7, -1},
    {"QGemm", 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8, -1},
    {"DynamicQuantizeMatMul", 1 << 2 | 1 << 3, -1},
    {"MatMulIntegerToFloat", 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5, -1},
    {"QAttention", 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7, -1},
    {"MatMulNBits", 1 << 2 | 1 << 3, 1},
    {"GatherBlockQuantized", 1 << 2 | 1 << 3, 0},
};

/* What a name is used as; absent: a plain weight. */
enum { NOT_A_WEIGHT = UINT8_MAX };

struct weight_search {
    struct map_u64 uses; /* name (its address) -> bits per weight, or NOT_A_WEIGHT */
    struct map_str tied; /* external bytes already seen */
    onnx_weight_seen *each;
    void *ctx;
    tare_error *err;
};

static uint64_t key_of(const char *name)
{
    return (uint64_t)(uintptr_t)name;
}

/* Scales, zero points and running means look like weights to whoever sees only initializers: the operator
 * that reads them tells. Below 8 bits a byte holds several weights, and how many is said by the node's
 * "bits". */
static tare_status note_uses(struct weight_search *w, const struct onnx_node *n)
{
    const struct quantized_op *q = NULL;
    for (size_t i = 0; i < sizeof quantized_ops / sizeof *quantized_ops && !q; i++) {
        if (n->op[0] == quantized_ops[i].op[0] && strcmp(n->op, quantized_ops[i].op) == 0)
            q = &quantized_ops[i];
    }
    for (size_t i = 0; q && i < n->inputs.n && i < 16; i++) {
        tare_status s = TARE_OK;
        const struct onnx_attribute *bits = onnx_attribute(n, "bits");
        int64_t width = bits ? bits->i : 4;
        if (q->not_weights >> i & 1)
            s = map_u64_put(&w->uses, key_of(n->inputs.items[i]), NOT_A_WEIGHT, w->err);
        if (q->packed == (int)i && width > 0 && width < 8)
            s = map_u64_put(&w->uses, key_of(n->inputs.items[i]), (uint64_t)width, w->err);
        if (s < 0) return s;
    }
    return TARE_OK;
}

static bool is_learned(int type)
{
    return type != ONNX_INT64 && type != ONNX_BOOL && type != ONNX_STRING;
}

/* Has this part of an external file been counted under another name? */
static tare_status is_tied(struct weight_search *w, const struct onnx_tensor *t, bool *tied)
{
    uint64_t *seen;
    struct buf key = BUF_INIT;
    *tied = false;
    if (!t->external || !t->elements) return TARE_OK;
    buf_printf(&key, "%llu %s", (unsigned long long)t->external_offset, t->external);
    tare_status s = buf_status(&key, w->err);
    if (s == TARE_OK) s = map_str_ref(&w->tied, key.data, key.len, &seen, w->err);
    if (s == TARE_OK) *tied = (*seen)++ > 0;
    buf_release(&key);
    return s;
}

static tare_status add_weight(struct weight_search *w, const struct onnx_tensor *t, const char *name)
{
    struct onnx_weight seen = {.tensor = t, .elements = t->elements, .type = t->type};
    uint64_t *use = map_u64_find(&w->uses, key_of(name));
    bool tied = false;
    tare_status s = is_tied(w, t, &tied);
    if (s < 0 || tied) return s;
    if (!onnx_type_bytes(t->type, t->elements, &seen.bytes)) return TARE_OK;
    seen.is_parameter = is_learned(t->type) && t->dims.n && !(use && *use == NOT_A_WEIGHT);
    if (seen.is_parameter && use && onnx_type_bits(t->type) == 8) {
        seen.elements = seen.bytes / *use * 8 + seen.bytes % *use * 8 / *use;
        if (*use == 4) seen.type = ONNX_UINT4;
        if (*use == 2) seen.type = ONNX_UINT2;
    }
    return w->each(w->ctx, &seen, w->err);
}

/* First all uses, then all weights: a use may stand in a graph inside the one that has the weight. */
enum pass { PASS_USES, PASS_WEIGHTS };
static tare_status weigh_graph(struct weight_search *w, const struct onnx_graph *g, enum pass pass);

static tare_status weigh_node(struct weight_search *w, const struct onnx_node *n, enum pass pass)
{
    tare_status s = pass == PASS_USES ? note_uses(w, n) : TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < n->attributes.n; i++) {
        const struct onnx_attribute *a = &n->attributes.items[i];
        if (a->g) s = weigh_graph(w, a->g, pass);
        if (s < 0 || !a->t || pass != PASS_WEIGHTS || n->outputs.n != 1) continue;
        if (a->t->elements < 2 || strcmp(n->op, "Constant") != 0) continue;
        s = add_weight(w, a->t, n->outputs.items[0]);
    }
    return s;
}

static tare_status weigh_graph(struct weight_search *w, const struct onnx_graph *g, enum pass pass)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < g->nodes.n; i++) s = weigh_node(w, &g->nodes.items[i], pass);
    if (pass == PASS_USES) return s;
    for (size_t i = 0; s == TARE_OK && i < g->initializers.n; i++)
        s = add_weight(w, &g->initializers.items[i], g->initializers.items[i].name);
    for (size_t i = 0; s == TARE_OK && i < g->sparse.n; i++)
        s = add_weight(w, &g->sparse.items[i].values, g->sparse.items[i].values.name);
    return s;
}

static tare_status weigh_model(struct weight_search *w, const struct onnx_model *m, enum pass pass)
{
    tare_status s = weigh_graph(w, &m->graph, pass);
    for (size_t i = 0; i < m->functions.n; i++) {
        const struct onnx_function *f = &m->functions.items[i];
        for (size_t k = 0; s == TARE_OK && k < f->nodes.n; k++) s = weigh_node(w, &f->nodes.items[k], pass);
    }
    return s;
}

tare_status onnx_weights(const struct onnx_model *m, onnx_weight_seen *each, void *ctx, tare_error *err)
{
    struct weight_search w = {
        .uses = MAP_U64_INIT, .tied = MAP_STR_INIT, .each = each, .ctx = ctx, .err = err};
    tare_status s = weigh_model(&w, m, PASS_USES);
    if (s == TARE_OK) s = weigh_model(&w, m, PASS_WEIGHTS);
    map_u64_release(&w.uses);
    map_str_release(&w.tied);
    return s;
}

struct weighed {
    uint64_t parameters, bytes[ONNX_TYPES];
};

static tare_status add_up(void *ctx, const struct onnx_weight *w, tare_error *err)
{
    struct weighed *sum = ctx;
    (void)err;
    if (!w->is_parameter) return TARE_OK;
    if (__builtin_add_overflow(sum->parameters, w->elements, &sum->parameters)) sum->parameters = UINT64_MAX;
    if (__builtin_add_overflow(sum->bytes[w->type], w->bytes, &sum->bytes[w->type]))
        sum->bytes[w->type] = UINT64_MAX;
    return TARE_OK;
}

tare_status onnx_weigh(struct onnx_model *m, tare_error *err)
{
    struct weighed sum = {.parameters = 0};
    tare_status s = onnx_weights(m, add_up, &sum, err);
    m->parameters = sum.parameters;
    for (int type = 1; type < ONNX_TYPES; type++) {
        if (sum.bytes[type] > sum.bytes[m->weight_type]) m->weight_type = type;
    }
    return s;
}
