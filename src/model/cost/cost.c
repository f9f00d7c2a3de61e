/* SPDX-License-Identifier: MIT
 * cost.c - see cost.h: the joined table, what a rule may ask and count, bytes. Control flow and calls are in
 * cost_body.c. Never turns an unknown size into a number. */
#include "model/cost/cost.h"

#include <string.h>
#include <strings.h>

#include "model/cost/cost_rule.h"

/* ---- looking at the node ---- */

const struct infer_value *cost_in(const struct cost_call *c, size_t i)
{
    return i < c->node->inputs.n ? c->at->inputs[i] : NULL;
}

const struct infer_value *cost_out(const struct cost_call *c, size_t i)
{
    return i < c->node->outputs.n ? c->at->outputs[i] : NULL;
}

/* Inside a function an attribute may stand for one of the call. */
const struct onnx_attribute *cost_attribute(const struct cost_call *c, const char *name)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, name);
    const struct infer_scope *s = c->at->scope;
    while (a && a->ref) {
        while (s && !s->function) s = s->outer;
        if (!s || !s->call) return NULL;
        a = onnx_attribute(s->call->node, a->ref);
        s = s->call->scope;
    }
    return a;
}

int64_t cost_int(const struct cost_call *c, const char *name, int64_t otherwise)
{
    const struct onnx_attribute *a = cost_attribute(c, name);
    return a ? a->i : otherwise;
}

const struct poly *cost_size(const struct cost_call *c, const char *name)
{
    int64_t v = cost_int(c, name, 0);
    return v > 0 ? poly_int(c->s, v) : NULL;
}

float cost_float(const struct cost_call *c, const char *name, float otherwise)
{
    const struct onnx_attribute *a = cost_attribute(c, name);
    return a ? a->f : otherwise;
}

bool cost_text_is(const struct cost_call *c, const char *name, const char *word)
{
    const struct onnx_attribute *a = cost_attribute(c, name);
    return a && a->s && a->s_bytes == strlen(word) && memcmp(a->s, word, a->s_bytes) == 0;
}

/* ---- sizes ---- */

const struct poly *cost_dim(const struct infer_value *v, int64_t axis)
{
    if (!v || !v->has_rank) return NULL;
    if (axis < 0) axis += (int64_t)v->rank;
    return axis >= 0 && (size_t)axis < v->rank ? v->dims[axis] : NULL;
}

const struct poly *cost_elements(const struct cost_call *c, const struct infer_value *v)
{
    return v ? infer_elements(c->s, v) : NULL;
}

const struct poly *cost_dims(const struct cost_call *c, const struct infer_value *v, size_t from, size_t to)
{
    if (!v || !v->has_rank || from > to || to > v->rank) return NULL;
    return poly_product(c->s, v->dims + from, to - from);
}

const struct poly *cost_mul(const struct cost_call *c, const struct poly *a, const struct poly *b)
{
    return poly_mul(c->s, a, b);
}

const struct poly *cost_times(const struct cost_call *c, const struct poly *n, int64_t k)
{
    return k == 1 ? n : poly_mul(c->s, n, poly_int(c->s, k));
}

/* ---- counting ---- */

static void add_count(struct cost_call *c, const struct poly **to, const struct poly *n, unsigned per)
{
    if (per) *to = poly_add(c->s, *to, cost_times(c, n, per));
}

void cost_count_float(struct cost_call *c, const struct poly *n, struct cost_each each)
{
    add_count(c, &c->out->simple, n, each.simple);
    add_count(c, &c->out->division, n, each.division);
    add_count(c, &c->out->transcendental, n, each.transcendental);
}

void cost_count_integer(struct cost_call *c, const struct poly *n)
{
    add_count(c, &c->out->integer, n, 1);
}

void cost_count(struct cost_call *c, const struct infer_value *v, const struct poly *n, struct cost_each each)
{
    unsigned all = each.simple + each.division + each.transcendental;
    if (!v || v->type == ONNX_UNDEFINED) {
        cost_count_float(c, NULL, each);
    } else if (onnx_type_is_whole(v->type)) {
        add_count(c, &c->out->integer, n, all);
    } else {
        cost_count_float(c, n, each);
    }
}

void cost_count_int_macs(struct cost_call *c, const struct poly *n)
{
    add_count(c, &c->out->int_macs, n, 1);
}

void cost_count_macs(struct cost_call *c, const struct infer_value *v, const struct poly *n)
{
    bool typed = v && v->type != ONNX_UNDEFINED;
    if (typed && onnx_type_is_whole(v->type)) {
        cost_count_int_macs(c, n);
    } else {
        add_count(c, &c->out->macs, typed ? n : NULL, 1);
    }
}

/* Operators that work on one element at a time, and two that only recurrent layers know. */
bool cost_activation(const char *name, struct cost_each *out)
{
    static const struct op_row others[] = {
        {.op = "Affine", .each = {2, 0, 0}},
        {.op = "ScaledTanh", .each = {2, 0, 1}},
    };
    for (const struct op_row *r = op_table; r->op; r++) {
        if (!(r->flags & OP_IN_PLACE) || strcasecmp(r->op, name) != 0) continue;
        *out = r->each;
        return true;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcasecmp(others[i].op, name) != 0) continue;
        *out = others[i].each;
        return true;
    }
    return false;
}

void cost_count_activation(struct cost_call *c, const char *attribute)
{
    const struct onnx_attribute *a = cost_attribute(c, attribute);
    struct cost_each each = {1, 0, 0};
    char name[64];
    if (!a || !a->s || !a->s_bytes) return;
    size_t n = a->s_bytes < sizeof name ? a->s_bytes : sizeof name - 1;
    memcpy(name, a->s, n);
    name[n] = 0;
    bool known = cost_activation(name, &each);
    cost_count_float(c, known ? cost_elements(c, cost_out(c, 0)) : NULL, each);
}

/* ---- rules that more than one table uses ---- */

void cost_count_out(struct cost_call *c, struct cost_each each)
{
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_out(c, 0)), each);
}

void cost_rule_each(struct cost_call *c)
{
    cost_count_out(c, c->row->each);
}

/* ---- bytes ---- */

static bool seen_before(const struct cost_call *c, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (c->at->inputs[k] == c->at->inputs[i]) return true;
    }
    return false;
}

static const struct poly *outputs_bytes(const struct cost_call *c)
{
    const struct poly *sum = poly_int(c->s, 0);
    for (size_t i = 0; i < c->node->outputs.n; i++) {
        if (c->at->outputs[i]) sum = poly_add(c->s, sum, infer_bytes(c->s, c->at->outputs[i]));
    }
    return sum;
}

/* Inputs from `from` on, each value once. */
static const struct poly *inputs_bytes(const struct cost_call *c, size_t from)
{
    enum {
        COMPARED_MAX = 64
    }; /* operands that are looked at for the same value twice; more are all counted */
    const struct poly *sum = poly_int(c->s, 0);
    for (size_t i = from; i < c->node->inputs.n; i++) {
        if (!c->at->inputs[i] || (i < COMPARED_MAX && seen_before(c, i))) continue;
        sum = poly_add(c->s, sum, infer_bytes(c->s, c->at->inputs[i]));
    }
    return sum;
}

/* Rows say how an operator reads: all of its inputs, none, or of the first only what it picks (Gather,
 * Slice). A value that stands in two inputs is read once; one without a known shape leaves the whole sum
 * unknown. */
static void count_bytes(struct cost_call *c)
{
    enum cost_bytes how = c->row->bytes;
    if (how == BYTES_NONE) return;
    c->out->written = outputs_bytes(c);
    if (how == BYTES_WRITTEN) return;
    if (how == BYTES_ALL) {
        c->out->read = inputs_bytes(c, 0);
    } else {
        /* What was picked was read in the type of what it came from; a sequence has none of its own. */
        struct infer_value picked = {.rank = 0};
        const struct infer_value *from = cost_in(c, 0),
                                 *to = how == BYTES_INDEXED ? cost_in(c, 1) : cost_out(c, 0);
        if (from && to) picked = *to;
        if (from && to && (from->type || !from->list)) picked.type = from->type;
        c->out->read = poly_add(c->s, from && to ? infer_bytes(c->s, &picked) : NULL, inputs_bytes(c, 1));
    }
}

/* ---- a node ---- */

static bool all_known(const struct cost *c)
{
    return c->macs && c->int_macs && c->simple && c->division && c->transcendental && c->integer && c->read &&
           c->written && c->useful_macs;
}

void cost_zero(struct cost *c, struct poly_space *s)
{
    const struct poly *zero = poly_int(s, 0);
    *c =
        (struct cost){zero, zero, zero, zero, zero, zero, zero, zero, zero, false, false, zero != NULL, NULL};
}

/* By its row: an operator that computes, or moves, on its own. */
void cost_of_row(struct cost *out, struct poly_space *s, const struct infer_node *n)
{
    const struct op_row *row = op_find_cost(n->node->domain, n->node->op);
    if (!row) {
        *out = (struct cost){.why = "there is no rule for this operator"};
        return;
    }
    cost_zero(out, s);
    struct cost_call c = {s, n, n->node, row, out, poly_int(s, 0)};
    if (row->cost) row->cost(&c);
    count_bytes(&c);
    out->useful_macs = poly_sub(s, poly_add(s, out->macs, out->int_macs), c.masked);
    out->known = all_known(out);
    if (!out->known) out->why = n->why ? n->why : "the size of an operand is not known";
}

const struct poly *cost_flops(const struct cost *c, struct poly_space *s)
{
    return poly_add(s, poly_mul(s, c->macs, poly_int(s, 2)), c->simple);
}
