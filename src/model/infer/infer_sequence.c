/* SPDX-License-Identifier: MIT
 * infer_sequence.c - rules of shape inference: sequences and optionals. Elements are kept one by one while it is known
 * which there are, else only what holds of all of them. Never guesses a size. */
#include <string.h>

#include "model/infer/infer_engine.h"

static const struct infer_list *list_of(const struct rule_call *c, size_t input)
{
    const struct infer_value *v = rule_input(c, input);
    return v ? v->list : NULL;
}

/* An output as a list, empty yet; NULL: nobody wants it, or no memory. */
static struct infer_list *state_list(struct rule_call *c, size_t output)
{
    struct infer_value *v = rule_output(c, output);
    struct infer_list *l = v ? engine_get(c->engine, 1, sizeof *l) : NULL;
    if (l) v->list = l;
    return l;
}

/* The elements in their order, and what they have in common. */
static bool list_exact(struct rule_call *c, struct infer_list *l, const struct infer_value *const *items,
                       size_t n)
{
    struct infer_value *all = engine_get(c->engine, n + 1, sizeof *all);
    bool changed = false;
    for (size_t i = 0; all && i < n; i++) {
        all[i] = *items[i];
        if (i)
            value_join(c, &l->common, items[i], &changed);
        else
            value_shape_copy(c, items[i], &l->common);
    }
    if (!all) return false;
    l->items = all;
    l->n = n;
    l->exact = n <= LIST_MAX;
    return true;
}

/* How many there are is not known, what they are like is. */
static bool list_loose(struct rule_call *c, struct infer_list *l, const struct infer_value *a,
                       const struct infer_value *b)
{
    bool changed = false;
    return value_shape_copy(c, a, &l->common) && (!b || value_join(c, &l->common, b, &changed));
}

static bool unknown_list(struct rule_call *c)
{
    return rule_unknown(c, "the elements of a sequence that comes in are not known");
}

/* ---- making them ---- */

bool shape_sequence_construct(struct rule_call *c)
{
    struct infer_list *l = state_list(c, 0);
    if (!l) return false;
    for (size_t i = 0; i < c->node->inputs.n; i++)
        if (!rule_input(c, i)) return rule_fault(c, "element %zu is left out", i);
    return list_exact(c, l, (const struct infer_value *const *)c->at->inputs, c->node->inputs.n);
}

bool shape_sequence_empty(struct rule_call *c)
{
    struct infer_list *l = state_list(c, 0);
    if (!l) return false;
    l->exact = true;
    l->common.type = (int)rule_int(c, "dtype", ONNX_FLOAT);
    return true;
}

/* Where an element is put or taken: what an input holds, or where it is when that is left out; false: not known. Out of
 * range is a fault. */
static bool position(struct rule_call *c, size_t input, size_t n, size_t *at)
{
    int64_t given;
    if (!rule_has_input(c, input)) return true;
    if (!poly_constant(rule_int_at(c, input, 0), &given)) return false;
    int64_t place = given < 0 ? given + (int64_t)n : given;
    if (place < 0 || place > (int64_t)n)
        return rule_fault(c, "position %lld in a sequence of %zu", (long long)given, n);
    *at = (size_t)place;
    return true;
}

/* Items of `l` with one put before `put` (or none), and without the one at `drop`. */
static bool list_edit(struct rule_call *c, const struct infer_list *l, struct infer_list *out, size_t put,
                      size_t drop)
{
    const struct infer_value **items = engine_get(c->engine, l->n + 2, sizeof *items);
    size_t n = 0;
    if (!items) return false;
    for (size_t i = 0; i <= l->n; i++) {
        if (i == put) items[n++] = rule_input(c, 1);
        if (i < l->n && i != drop) items[n++] = &l->items[i];
    }
    return list_exact(c, out, items, n);
}

bool shape_sequence_insert(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    if (!l || !rule_input(c, 1)) return unknown_list(c);
    struct infer_list *out = state_list(c, 0);
    size_t at = l->n;
    if (!out) return false;
    if (l->exact && position(c, 2, l->n, &at) && l->n < LIST_MAX) return list_edit(c, l, out, at, SIZE_MAX);
    return c->engine->status >= 0 && list_loose(c, out, &l->common, rule_input(c, 1));
}

bool shape_sequence_erase(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    if (!l) return unknown_list(c);
    struct infer_list *out = state_list(c, 0);
    size_t at = l->n ? l->n - 1 : 0;
    if (!out) return false;
    if (l->exact && position(c, 1, l->n, &at)) return list_edit(c, l, out, SIZE_MAX, at);
    return c->engine->status >= 0 && list_loose(c, out, &l->common, NULL);
}

/* ---- taking them apart ---- */

bool shape_sequence_at(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    size_t at = SIZE_MAX;
    if (!l) return unknown_list(c);
    bool known = l->exact && rule_has_input(c, 1) && position(c, 1, l->n, &at);
    if (known && at >= l->n) return rule_fault(c, "element %zu of a sequence of %zu", at, l->n);
    if (c->engine->status >= 0) rule_output_is(c, 0, known ? &l->items[at] : &l->common);
    return true;
}

bool shape_sequence_length(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    const struct poly *n = l && l->exact ? rule_number(c, (int64_t)l->n) : NULL;
    return rule_scalar(c, 0) && n && rule_contents(c, 0, &n, 1);
}

/* Joined along an axis: element by element, or, where it is not known how many there are, the other dimensions are
 * those that all have in common. */
static bool concat_dims(struct rule_call *c, const struct infer_list *l, struct rule_dims *d)
{
    bool exact = l->exact && l->n;
    size_t axis;
    *d = rule_dims_of(exact ? &l->items[0] : &l->common);
    if (!d->known || !rule_axis(c, rule_int(c, "axis", 0), d->n, &axis)) return false;
    if (!exact) d->at[axis] = NULL;
    for (size_t i = 1; exact && i < l->n; i++) {
        struct rule_dims more = rule_dims_of(&l->items[i]);
        if (!more.known || more.n != d->n || !rule_concat(c, d, &more, axis)) return false;
    }
    return true;
}

static bool stack_dims(struct rule_call *c, const struct infer_list *l, struct rule_dims *d)
{
    size_t axis;
    *d = rule_dims_of(&l->common);
    if (!d->known || !rule_axis(c, rule_int(c, "axis", 0), d->n + 1, &axis)) return false;
    rule_insert(d, axis, l->exact ? rule_number(c, (int64_t)l->n) : NULL);
    return true;
}

bool shape_concat_from_sequence(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    struct rule_dims d;
    if (!l) return unknown_list(c);
    rule_type(c, 0, l->common.type);
    bool known = rule_int(c, "new_axis", 0) ? stack_dims(c, l, &d) : concat_dims(c, l, &d);
    if (!l->exact) rule_data_dependent(c, 0, "how many elements there are is known only when it runs");
    return known && rule_state(c, 0, &d);
}

/* ---- SplitToSequence ---- */

struct pieces {
    struct rule_dims d;
    size_t axis;
    bool keep; /* pieces of 1 keep the axis */
};

/* A piece of a size, in the engine's memory; NULL: none is left. */
static struct infer_value *piece(struct rule_call *c, const struct pieces *p, const struct poly *size)
{
    struct infer_value *v = engine_get(c->engine, 1, sizeof *v);
    struct rule_dims d = p->d;
    d.at[p->axis] = size;
    if (!p->keep) rule_drop(&d, p->axis);
    if (!v || !scope_dims(c->engine, v, d.n)) return NULL;
    v->name = "";
    v->type = rule_input_type(c, 0);
    if (d.n) memcpy(v->dims, d.at, d.n * sizeof *v->dims);
    return v;
}

/* Pieces of `chunk` (0: unknown), the last one of what is left. */
static bool split_chunks(struct rule_call *c, const struct pieces *p, struct infer_list *out, int64_t chunk)
{
    const struct infer_value *items[LIST_MAX];
    int64_t length;
    bool counted = chunk > 0 && poly_constant(p->d.at[p->axis], &length) && length < INT64_MAX / 2 &&
                   length / chunk < LIST_MAX;
    if (!counted) {
        const struct infer_value *any = piece(c, p, chunk == 1 ? rule_number(c, 1) : NULL);
        return any && list_loose(c, out, any, NULL);
    }
    size_t n = 0;
    for (int64_t at = 0; at < length; at += chunk) {
        items[n] = piece(c, p, rule_number(c, length - at < chunk ? length - at : chunk));
        if (!items[n++]) return false;
    }
    return list_exact(c, out, items, n);
}

static bool split_listed(struct rule_call *c, const struct pieces *p, struct infer_list *out)
{
    const struct infer_value *sizes = rule_input(c, 1), *items[LIST_MAX];
    if (sizes->n_ints > LIST_MAX) return true;
    for (size_t i = 0; i < sizes->n_ints; i++)
        if (!(items[i] = piece(c, p, sizes->ints[i]))) return false;
    return list_exact(c, out, items, sizes->n_ints);
}

bool shape_split_to_sequence(struct rule_call *c)
{
    struct pieces p = {.keep = rule_has_input(c, 1) || rule_int(c, "keepdims", 1) != 0};
    const struct infer_value *sizes = rule_input(c, 1);
    struct infer_list *out = state_list(c, 0);
    int64_t chunk = 1;
    if (!out || !rule_ranked(c, 0, &p.d) || !rule_axis(c, rule_int(c, "axis", 0), p.d.n, &p.axis))
        return false;
    if (sizes && sizes->has_rank && sizes->rank == 1 && sizes->ints) return split_listed(c, &p, out);
    if (sizes && (!sizes->has_rank || sizes->rank > 0 || !poly_constant(rule_int_at(c, 1, 0), &chunk)))
        chunk = 0;
    return split_chunks(c, &p, out, chunk);
}

/* ---- SequenceMap: the body over one element stands for all ---- */

/* Sequences hand the body what all their elements have in common, tensors hand it themselves. */
bool shape_sequence_map(struct rule_call *c)
{
    const struct onnx_attribute *a = rule_attribute_of(c, "body");
    struct infer_scope *body;
    if (!a || !a->g) return rule_fault(c, "no body");
    const struct infer_value **formals = engine_get(c->engine, c->node->inputs.n + 1, sizeof *formals);
    if (!formals) return false;
    for (size_t i = 0; i < c->node->inputs.n; i++) {
        const struct infer_value *v = rule_input(c, i);
        if (v && v->list)
            formals[i] = &v->list->common;
        else if (v && v->type)
            formals[i] = v;
    }
    if (!list_of(c, 0)) return unknown_list(c);
    if (!rule_body(c, a->g, formals, c->node->inputs.n, &body)) return false;
    for (size_t i = 0; i < c->node->outputs.n && i < a->g->outputs.n; i++) {
        struct infer_list *l = state_list(c, i);
        if (l) list_loose(c, l, infer_value(body, a->g->outputs.items[i].name), NULL);
    }
    return true;
}

/* ---- optionals ---- */

bool shape_optional(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    struct infer_list *l = state_list(c, 0);
    if (!l) return false;
    l->optional = true;
    return list_exact(c, l, &v, v ? 1 : 0);
}

/* What is no optional is there; of an optional it is known only when it was made here. */
bool shape_optional_has(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    const struct infer_list *l = v ? v->list : NULL;
    bool plain = v && (v->type || (l && !l->optional));
    bool known = !v || plain || (l && l->exact);
    const struct poly *has = rule_number(c, plain || (l && l->n) ? 1 : 0);
    return rule_scalar(c, 0) && known && rule_contents(c, 0, &has, 1);
}

bool shape_optional_get(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    const struct infer_list *l = v ? v->list : NULL;
    if (l && l->optional && l->exact && l->n == 1)
        rule_output_is(c, 0, &l->items[0]);
    else if (v && (v->type || (l && !l->optional)))
        rule_output_is(c, 0, v);
    else
        return rule_unknown(c, "what an optional that comes in holds is not known");
    return true;
}

/* ==== what is known of two values alike ==== */

bool value_shape_copy(struct rule_call *c, const struct infer_value *from, struct infer_value *to)
{
    *to = (struct infer_value){.name = to->name};
    if (!from) return true;
    to->type = from->type;
    to->data_dependent = from->data_dependent;
    to->list = from->list;
    if (!from->has_rank) return true;
    if (!scope_dims(c->engine, to, from->rank)) return false;
    if (from->rank) memcpy(to->dims, from->dims, from->rank * sizeof *to->dims);
    return true;
}

static void forget_shape(struct infer_value *v, bool *changed)
{
    *changed = *changed || v->has_rank;
    v->has_rank = false;
    v->rank = 0;
    v->dims = NULL;
    v->data_dependent = true;
}

static bool join_lists(struct rule_call *c, struct infer_value *v, const struct infer_value *other,
                       bool *changed)
{
    if (!v->list || v->list == other->list) return true;
    struct infer_list *both = NULL;
    bool gone = !other->list || v->list->exact; /* how many there are hangs on what runs */
    *changed = *changed || gone;
    if (other->list) {
        if (!(both = engine_get(c->engine, 1, sizeof *both))) return false;
        if (!list_loose(c, both, &v->list->common, NULL)) return false;
        if (!value_join(c, &both->common, &other->list->common, changed)) return false;
    }
    v->list = both;
    return true;
}

/* Whatever differs is unknown afterwards, and hangs on which of the two it is at run time. */
bool value_join(struct rule_call *c, struct infer_value *v, const struct infer_value *other, bool *changed)
{
    static const struct infer_value nothing;
    if (!other) other = &nothing;
    if (v->type != other->type) {
        *changed = *changed || v->type != ONNX_UNDEFINED;
        v->type = ONNX_UNDEFINED;
    }
    v->data_dependent |= other->data_dependent;
    if (v->has_rank && (!other->has_rank || other->rank != v->rank)) forget_shape(v, changed);
    for (size_t i = 0; i < v->rank; i++) {
        if (v->dims[i] == other->dims[i]) continue;
        *changed = *changed || v->dims[i];
        v->dims[i] = NULL;
        v->data_dependent = true;
    }
    return join_lists(c, v, other, changed);
}

void rule_output_is(struct rule_call *c, size_t output, const struct infer_value *v)
{
    struct infer_value *out = rule_output(c, output);
    if (!out || !v) return;
    scope_copy(out, v);
    out->constant = NULL;
    out->folded = false;
}
