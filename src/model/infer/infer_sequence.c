/* SPDX-License-Identifier: MIT
 * infer_sequence.c - rules of shape inference: sequences and optionals. Elements are kept one by one while it is known
 * which there are, else only what holds of all of them. Never guesses a size. */
#include <string.h>

#include "model/infer/infer_list.h"

static const struct infer_list *list_of(const struct rule_call *c, size_t input)
{
    const struct infer_value *v = rule_input(c, input);
    return v ? v->list : NULL;
}

static tare_status state_list(struct rule_call *c, size_t output, struct infer_list **out)
{
    struct infer_value *v = rule_output(c, output);
    *out = NULL;
    if (!v) return TARE_OK;
    *out = engine_get(c->engine, 1, sizeof **out);
    if (!*out) return engine_nomem(c->engine);
    v->list = *out;
    return TARE_OK;
}

/* The elements in their order, and what they have in common. */
static tare_status list_exact(struct rule_call *c, struct infer_list *l,
                              const struct infer_value *const *items, size_t n)
{
    struct infer_value *all = engine_get(c->engine, n + 1, sizeof *all);
    bool changed = false;
    tare_status s = TARE_OK;
    if (!all) return engine_nomem(c->engine);
    for (size_t i = 0; s == TARE_OK && i < n; i++) {
        all[i] = *items[i];
        s = i ? value_join(c, &l->common, items[i], &changed) : value_shape_copy(c, items[i], &l->common);
    }
    l->items = all;
    l->n = n;
    l->exact = n <= LIST_MAX;
    return s;
}

/* How many there are is not known, what they are like is. */
static tare_status list_loose(struct rule_call *c, struct infer_list *l, const struct infer_value *a,
                              const struct infer_value *b)
{
    bool changed = false;
    tare_status s = value_shape_copy(c, a, &l->common);
    return s < 0 || !b ? s : value_join(c, &l->common, b, &changed);
}

static tare_status unknown_list(struct rule_call *c)
{
    rule_unknown(c, "the elements of a sequence that comes in are not known");
    return TARE_OK;
}

/* ---- making them ---- */

tare_status shape_sequence_construct(struct rule_call *c)
{
    struct infer_list *l;
    tare_status s = state_list(c, 0, &l);
    if (s < 0 || !l) return s;
    for (size_t i = 0; i < c->node->inputs.n; i++)
        if (!rule_input(c, i)) return rule_fault(c, "element %zu is left out", i);
    return list_exact(c, l, (const struct infer_value *const *)c->at->inputs, c->node->inputs.n);
}

tare_status shape_sequence_empty(struct rule_call *c)
{
    struct infer_list *l;
    tare_status s = state_list(c, 0, &l);
    if (s < 0 || !l) return s;
    l->exact = true;
    l->common.type = (int)rule_int(c, "dtype", ONNX_FLOAT);
    return TARE_OK;
}

/* Where an element is put or taken; false: not known. Out of range is a fault. */
static tare_status position(struct rule_call *c, size_t input, size_t n, size_t *out, bool *known)
{
    int64_t at;
    *known = false;
    if (!poly_constant(rule_int_at(c, input, 0), &at)) return TARE_OK;
    int64_t place = at < 0 ? at + (int64_t)n : at;
    if (place < 0 || place > (int64_t)n)
        return rule_fault(c, "position %lld in a sequence of %zu", (long long)at, n);
    *out = (size_t)place;
    *known = true;
    return TARE_OK;
}

/* Items of `l` with one put before `put` (or none), and without the one at `drop`. */
static tare_status list_edit(struct rule_call *c, const struct infer_list *l, struct infer_list *out,
                             size_t put, size_t drop)
{
    const struct infer_value **items = engine_get(c->engine, l->n + 2, sizeof *items);
    size_t n = 0;
    if (!items) return engine_nomem(c->engine);
    for (size_t i = 0; i <= l->n; i++) {
        if (i == put) items[n++] = rule_input(c, 1);
        if (i < l->n && i != drop) items[n++] = &l->items[i];
    }
    return list_exact(c, out, items, n);
}

tare_status shape_sequence_insert(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    struct infer_list *out;
    bool known = true;
    size_t at = l ? l->n : 0;
    if (!l || !rule_input(c, 1)) return unknown_list(c);
    tare_status s = state_list(c, 0, &out);
    if (s < 0 || !out) return s;
    if (rule_has_input(c, 2) && l->exact) s = position(c, 2, l->n, &at, &known);
    if (s < 0) return s;
    if (l->exact && known && l->n < LIST_MAX) return list_edit(c, l, out, at, SIZE_MAX);
    return list_loose(c, out, &l->common, rule_input(c, 1));
}

tare_status shape_sequence_erase(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    struct infer_list *out;
    bool known = true;
    size_t at = l && l->n ? l->n - 1 : 0;
    if (!l) return unknown_list(c);
    tare_status s = state_list(c, 0, &out);
    if (s < 0 || !out) return s;
    if (rule_has_input(c, 1) && l->exact) s = position(c, 1, l->n, &at, &known);
    if (s < 0) return s;
    if (l->exact && known) return list_edit(c, l, out, SIZE_MAX, at);
    return list_loose(c, out, &l->common, NULL);
}

/* ---- taking them apart ---- */

tare_status shape_sequence_at(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    bool known = false;
    size_t at;
    if (!l) return unknown_list(c);
    if (l->exact) {
        tare_status s = position(c, 1, l->n, &at, &known);
        if (s < 0) return s;
        if (known && at >= l->n) return rule_fault(c, "element %zu of a sequence of %zu", at, l->n);
    }
    rule_output_is(c, 0, known ? &l->items[at] : &l->common);
    return TARE_OK;
}

tare_status shape_sequence_length(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    const struct poly *n = l && l->exact ? poly_int(c->space, (int64_t)l->n) : NULL;
    tare_status s = rule_shape(c, 0, NULL, 0);
    return s < 0 || !n ? s : rule_contents(c, 0, &n, 1);
}

static tare_status concat_dims(struct rule_call *c, const struct infer_list *l, struct rule_dims *d)
{
    size_t axis;
    *d = rule_dims_of(&l->items[0]);
    if (!d->known) return TARE_OK;
    tare_status s = rule_axis(c, rule_int(c, "axis", 0), d->n, &axis);
    for (size_t i = 1; s == TARE_OK && i < l->n; i++) {
        struct rule_dims more = rule_dims_of(&l->items[i]);
        if (!more.known || more.n != d->n) {
            d->known = false;
            return TARE_OK;
        }
        for (size_t k = 0; s == TARE_OK && k < d->n; k++)
            if (k != axis)
                s = rule_agree(c, d->at[k], more.at[k], "dimensions that are not joined", &d->at[k]);
        d->at[axis] = poly_add(c->space, d->at[axis], more.at[axis]);
    }
    return s;
}

static tare_status stack_dims(struct rule_call *c, const struct infer_list *l, struct rule_dims *out)
{
    struct rule_dims d = rule_dims_of(&l->common);
    size_t axis;
    *out = rule_dims_none();
    out->known = d.known;
    if (!d.known) return TARE_OK;
    tare_status s = rule_axis(c, rule_int(c, "axis", 0), d.n + 1, &axis);
    for (size_t i = 0; s == TARE_OK && i <= d.n; i++) {
        if (i == axis) rule_push(out, l->exact ? poly_int(c->space, (int64_t)l->n) : NULL);
        if (i < d.n) rule_push(out, d.at[i]);
    }
    return s;
}

/* Joined along an axis of an unknown number of elements: the other dimensions are those that all have in common. */
static tare_status loose_dims(struct rule_call *c, const struct infer_list *l, struct rule_dims *out)
{
    size_t axis;
    *out = rule_dims_of(&l->common);
    if (!out->known) return TARE_OK;
    tare_status s = rule_axis(c, rule_int(c, "axis", 0), out->n, &axis);
    if (s == TARE_OK) out->at[axis] = NULL;
    return s;
}

tare_status shape_concat_from_sequence(struct rule_call *c)
{
    const struct infer_list *l = list_of(c, 0);
    struct rule_dims d;
    tare_status s;
    if (!l) return unknown_list(c);
    rule_type(c, 0, l->common.type);
    if (rule_int(c, "new_axis", 0))
        s = stack_dims(c, l, &d);
    else
        s = l->exact && l->n ? concat_dims(c, l, &d) : loose_dims(c, l, &d);
    if (s < 0) return s;
    if (!l->exact) rule_data_dependent(c, 0, "how many elements there are is known only when it runs");
    return rule_state(c, 0, &d);
}

/* ---- SplitToSequence ---- */

struct pieces {
    struct rule_dims d;
    size_t axis;
    bool keep; /* pieces of 1 keep the axis */
};

static tare_status piece(struct rule_call *c, const struct pieces *p, const struct poly *size,
                         struct infer_value *v)
{
    size_t n = p->keep ? p->d.n : p->d.n - 1;
    *v = (struct infer_value){.name = "", .type = rule_input_type(c, 0)};
    tare_status s = scope_dims(c->engine, v, n);
    for (size_t i = 0, k = 0; s == TARE_OK && i < p->d.n; i++)
        if (p->keep || i != p->axis) v->dims[k++] = i == p->axis ? size : p->d.at[i];
    return s;
}

static tare_status chunks(struct rule_call *c, const struct pieces *p, struct infer_list *out, int64_t chunk)
{
    const struct infer_value *items[LIST_MAX];
    int64_t length;
    struct infer_value one = {.name = ""};
    tare_status s = piece(c, p, chunk == 1 ? poly_int(c->space, 1) : NULL, &one);
    if (s < 0) return s;
    bool counted = chunk > 0 && poly_constant(p->d.at[p->axis], &length) && length < INT64_MAX / 2 &&
                   length / chunk < LIST_MAX;
    if (!counted) return list_loose(c, out, &one, NULL);
    size_t n = 0;
    for (int64_t at = 0; at < length; at += chunk) {
        struct infer_value *v = engine_get(c->engine, 1, sizeof *v);
        if (!v) return engine_nomem(c->engine);
        int64_t size = length - at < chunk ? length - at : chunk;
        if ((s = piece(c, p, poly_int(c->space, size), v)) < 0) return s;
        items[n++] = v;
    }
    return list_exact(c, out, items, n);
}

static tare_status listed(struct rule_call *c, const struct pieces *p, struct infer_list *out)
{
    const struct infer_value *sizes = rule_input(c, 1);
    const struct infer_value *items[LIST_MAX];
    if (sizes->n_ints > LIST_MAX) return TARE_OK;
    for (size_t i = 0; i < sizes->n_ints; i++) {
        struct infer_value *v = engine_get(c->engine, 1, sizeof *v);
        if (!v) return engine_nomem(c->engine);
        tare_status s = piece(c, p, sizes->ints[i], v);
        if (s < 0) return s;
        items[i] = v;
    }
    return list_exact(c, out, items, sizes->n_ints);
}

tare_status shape_split_to_sequence(struct rule_call *c)
{
    struct pieces p = {.keep = rule_has_input(c, 1) || rule_int(c, "keepdims", 1) != 0};
    const struct infer_value *sizes = rule_input(c, 1);
    struct infer_list *out;
    int64_t chunk = 1;
    tare_status s = state_list(c, 0, &out);
    if (s < 0 || !out || !rule_ranked(c, 0, &p.d)) return s;
    if ((s = rule_axis(c, rule_int(c, "axis", 0), p.d.n, &p.axis)) < 0) return s;
    if (sizes && sizes->has_rank && sizes->rank == 1 && sizes->ints) return listed(c, &p, out);
    if (sizes && (!sizes->has_rank || sizes->rank > 0 || !poly_constant(rule_int_at(c, 1, 0), &chunk)))
        chunk = 0;
    return chunks(c, &p, out, chunk);
}

/* ---- SequenceMap: the body over one element stands for all ---- */

tare_status shape_sequence_map(struct rule_call *c)
{
    const struct onnx_attribute *a = rule_attribute_of(c, "body");
    const struct infer_list *first = list_of(c, 0);
    struct infer_scope *body;
    if (!a || !a->g) return rule_fault(c, "no body");
    const struct infer_value **formals = engine_get(c->engine, c->node->inputs.n + 1, sizeof *formals);
    if (!formals) return engine_nomem(c->engine);
    for (size_t i = 0; i < c->node->inputs.n; i++) {
        const struct infer_value *v = rule_input(c, i);
        if (v && v->list)
            formals[i] = &v->list->common;
        else if (v && v->type)
            formals[i] = v;
    }
    if (!first) return unknown_list(c);
    tare_status s = rule_body(c, a->g, formals, c->node->inputs.n, &body);
    for (size_t i = 0; s == TARE_OK && i < c->node->outputs.n && i < a->g->outputs.n; i++) {
        struct infer_list *l;
        if ((s = state_list(c, i, &l)) < 0 || !l) continue;
        s = list_loose(c, l, infer_value(body, a->g->outputs.items[i].name), NULL);
    }
    return s;
}

/* ---- optionals ---- */

tare_status shape_optional(struct rule_call *c)
{
    struct infer_list *l;
    const struct infer_value *v = rule_input(c, 0);
    tare_status s = state_list(c, 0, &l);
    if (s < 0 || !l) return s;
    l->optional = true;
    return list_exact(c, l, &v, v ? 1 : 0);
}

/* What is no optional is there; of an optional it is known only when it was made here. */
tare_status shape_optional_has(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    const struct infer_list *l = v ? v->list : NULL;
    bool plain = v && (v->type || (l && !l->optional));
    bool known = !v || plain || (l && l->exact);
    const struct poly *has = poly_int(c->space, plain || (l && l->n) ? 1 : 0);
    tare_status s = rule_shape(c, 0, NULL, 0);
    return s < 0 || !known ? s : rule_contents(c, 0, &has, 1);
}

tare_status shape_optional_get(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    const struct infer_list *l = v ? v->list : NULL;
    if (l && l->optional && l->exact && l->n == 1)
        rule_output_is(c, 0, &l->items[0]);
    else if (v && (v->type || (l && !l->optional)))
        rule_output_is(c, 0, v);
    else
        rule_unknown(c, "what an optional that comes in holds is not known");
    return TARE_OK;
}

/* ==== what is known of lists ==== */

tare_status value_shape_copy(struct rule_call *c, const struct infer_value *from, struct infer_value *to)
{
    const char *name = to->name;
    *to = (struct infer_value){.name = name};
    if (!from) return TARE_OK;
    to->type = from->type;
    to->data_dependent = from->data_dependent;
    to->list = from->list;
    if (!from->has_rank) return TARE_OK;
    tare_status s = scope_dims(c->engine, to, from->rank);
    if (s == TARE_OK && from->rank) memcpy(to->dims, from->dims, from->rank * sizeof *to->dims);
    return s;
}

static void forget_shape(struct infer_value *v, bool *changed)
{
    *changed = *changed || v->has_rank;
    v->has_rank = false;
    v->rank = 0;
    v->dims = NULL;
    v->data_dependent = true;
}

static tare_status join_lists(struct rule_call *c, struct infer_value *v, const struct infer_value *other,
                              bool *changed)
{
    if (!v->list || v->list == other->list) return TARE_OK;
    struct infer_list *both = NULL;
    bool gone = !other->list || v->list->exact; /* how many there are hangs on what runs */
    *changed = *changed || gone;
    if (other->list) {
        if (!(both = engine_get(c->engine, 1, sizeof *both))) return engine_nomem(c->engine);
        tare_status s = value_shape_copy(c, &v->list->common, &both->common);
        if (s == TARE_OK) s = value_join(c, &both->common, &other->list->common, changed);
        if (s < 0) return s;
    }
    v->list = both;
    return TARE_OK;
}

tare_status value_join(struct rule_call *c, struct infer_value *v, const struct infer_value *other,
                       bool *changed)
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
