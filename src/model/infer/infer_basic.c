/* SPDX-License-Identifier: MIT
 * infer_basic.c - rules of operators that work element by element: types, broadcast shapes, contents of small ones.
 * Also what makes tensors from nothing: constants, random numbers. Shapes that are not sure stay unknown. */
#include <string.h>

#include "model/infer/infer_engine.h"
#include "model/infer/infer_items.h"

/* Of the shape of input 0, and of its type where the row says no other. */
bool shape_same(struct rule_call *c)
{
    const struct op_type *t = &c->row->type;
    if (!t->attribute && !t->input && !t->otherwise) rule_same_type(c, 0, 0);
    if (!rule_same_shape(c, 0, 0) || !c->row->fold) return false;
    struct items x = items_read(c, rule_input(c, 0));
    for (size_t i = 0; i < x.n; i++) x.at[i] = c->row->fold(c->space, rule_input_type(c, 0), x.at[i]);
    return items_write(c, 0, x);
}

/* ---- two or more inputs ---- */

/* What the operator makes of one or more inputs, from left to right. */
static bool fold_all(struct rule_call *c)
{
    item_binary *how = rule_int(c, "fmod", 0) ? NULL : c->row->fold_two;
    if (!how) return true;
    struct items x = items_spread(c, rule_input(c, 0));
    for (size_t i = 1; x.at && i < c->node->inputs.n; i++) {
        struct items y = items_spread(c, rule_input(c, i));
        for (size_t k = 0; k < x.n; k++)
            x.at[k] = y.at ? how(c->space, rule_input_type(c, 0), x.at[k], y.at[k]) : item_none();
    }
    return items_write(c, 0, x);
}

/* Operators before version 7: the second input is spread over the first where they say so. */
static bool is_old_broadcast(const struct rule_call *c)
{
    return c->opset > 0 && c->opset < 7 && !c->node->domain[0] && onnx_attribute(c->node, "broadcast");
}

static bool broadcast_inputs(struct rule_call *c)
{
    struct rule_dims all = rule_dims_of(rule_input(c, 0));
    size_t n = is_old_broadcast(c) ? 1 : c->node->inputs.n;
    for (size_t i = 1; i < n; i++) {
        struct rule_dims more = rule_dims_of(rule_input(c, i));
        bool spread = !c->row->spread || (i < 32 && c->row->spread >> i & 1);
        if (spread && rule_has_input(c, i) && !rule_broadcast(c, &all, &more, &all)) return false;
    }
    return rule_state(c, 0, &all);
}

/* Of the first type there is where the row says none. */
bool shape_broadcast(struct rule_call *c)
{
    if (!c->row->type.input && !c->row->type.otherwise) rule_type(c, 0, rule_first_type(c, 0));
    return broadcast_inputs(c) && fold_all(c);
}

static struct item choose(struct item which, struct item x, struct item y)
{
    int yes = item_truth(which);
    if (yes >= 0) return yes ? x : y;
    return x.kind == ITEM_WHOLE && y.kind == ITEM_WHOLE && x.p == y.p ? x : item_none();
}

bool shape_where(struct rule_call *c)
{
    rule_type(c, 0, rule_first_type(c, 1));
    if (!broadcast_inputs(c)) return false;
    struct items which = items_spread(c, rule_input(c, 0));
    if (!which.at) return true;
    struct items x = items_spread(c, rule_input(c, 1)), y = items_spread(c, rule_input(c, 2));
    for (size_t i = 0; i < which.n; i++)
        which.at[i] = choose(which.at[i], x.at ? x.at[i] : item_none(), y.at ? y.at[i] : item_none());
    return items_write(c, 0, which);
}

/* Limits that are inputs: those that are there must be known. */
bool shape_clip(struct rule_call *c)
{
    int type = rule_input_type(c, 0);
    if (!rule_same(c, 0, 0) || c->opset < 11) return false;
    struct items low = items_spread(c, rule_input(c, 1)), high = items_spread(c, rule_input(c, 2));
    if ((!low.at && rule_has_input(c, 1)) || (!high.at && rule_has_input(c, 2))) return false;
    struct items x = items_read(c, rule_input(c, 0));
    for (size_t i = 0; i < x.n; i++) {
        if (low.at) x.at[i] = item_max(c->space, type, x.at[i], low.at[i]);
        if (high.at) x.at[i] = item_min(c->space, type, x.at[i], high.at[i]);
    }
    return items_write(c, 0, x);
}

/* ---- casting, quantisation; the row says the type ---- */

bool shape_cast(struct rule_call *c)
{
    const struct infer_value *out = rule_output(c, 0);
    if (!rule_same_shape(c, 0, 0) || !out || !out->type) return false;
    struct items x = items_read(c, rule_input(c, 0));
    for (size_t i = 0; i < x.n; i++) x.at[i] = item_cast(c->space, rule_input_type(c, 0), out->type, x.at[i]);
    return items_write(c, 0, x);
}

/* Same bits, other type; the last axis changes when the sizes differ. */
bool shape_bit_cast(struct rule_call *c)
{
    const struct infer_value *out = rule_output(c, 0);
    unsigned bits = out ? onnx_type_bits(out->type) : 0;
    return bits && bits == onnx_type_bits(rule_input_type(c, 0)) && rule_same_shape(c, 0, 0);
}

bool shape_dropout(struct rule_call *c)
{
    rule_type(c, 1, c->opset >= 10 ? ONNX_BOOL : rule_input_type(c, 0));
    return rule_same(c, 0, 0) && rule_same_shape(c, 1, 0);
}

bool shape_dynamic_quantize(struct rule_call *c)
{
    rule_type(c, 1, ONNX_FLOAT);
    rule_type(c, 2, ONNX_UINT8);
    rule_scalar(c, 1);
    rule_scalar(c, 2);
    return rule_same_shape(c, 0, 0);
}

/* ---- from nothing ---- */

static bool state_list(struct rule_call *c, int type, size_t n)
{
    rule_type(c, 0, type);
    return rule_shape_is(c, 0, rule_number(c, (int64_t)n));
}

/* Attributes value_int, value_ints, value_float, value_floats: only those in the plural have a dimension. */
static bool constant_numbers(struct rule_call *c, const struct onnx_attribute *a, size_t n)
{
    bool whole = a->kind == ONNX_ATTR_INT || a->kind == ONNX_ATTR_INTS;
    bool scalar = a->kind == ONNX_ATTR_INT || a->kind == ONNX_ATTR_FLOAT;
    if (!state_list(c, whole ? ONNX_INT64 : ONNX_FLOAT, n) || (scalar && !rule_scalar(c, 0))) return false;
    if (n > INFER_INTS_MAX) return true;
    struct items x = items_new(c, n);
    for (size_t i = 0; i < x.n; i++) {
        if (whole)
            x.at[i] = item_whole(rule_number(c, scalar ? a->i : a->ints.items[i]));
        else
            x.at[i] = (struct item){.kind = ITEM_REAL, .real = (double)(scalar ? a->f : a->floats.items[i])};
    }
    return items_write(c, 0, x);
}

static bool constant_of(struct rule_call *c, const struct onnx_attribute *a)
{
    struct infer_value *out = rule_output(c, 0);
    switch (a->kind) {
    case ONNX_ATTR_TENSOR: return !a->t || !out || scope_constant(c->engine, out, a->t);
    case ONNX_ATTR_INT:
    case ONNX_ATTR_FLOAT: return constant_numbers(c, a, 1);
    case ONNX_ATTR_INTS: return constant_numbers(c, a, a->ints.n);
    case ONNX_ATTR_FLOATS: return constant_numbers(c, a, a->floats.n);
    case ONNX_ATTR_STRING: rule_type(c, 0, ONNX_STRING); return rule_scalar(c, 0);
    case ONNX_ATTR_STRINGS: return state_list(c, ONNX_STRING, a->strings.n);
    default: return true;
    }
}

bool shape_constant(struct rule_call *c)
{
    for (size_t i = 0; i < c->node->attributes.n; i++) {
        const struct onnx_attribute *a = &c->node->attributes.items[i];
        if (strncmp(a->name, "value", 5) == 0) return constant_of(c, a);
    }
    return rule_unknown(c, "a constant that is no tensor");
}

/* A shape that is the contents of input 0; how many dimensions there are may be known without them. */
static bool shape_from_contents(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    int64_t rank;
    if (v && v->ints) return rule_shape(c, 0, v->ints, v->n_ints);
    rule_data_dependent(c, 0, "its shape is what input '%.80s' holds", v ? v->name : "");
    if (!v || v->rank != 1 || !poly_constant(v->dims[0], &rank) || rank < 0 || rank > INFER_RANK_MAX)
        return true;
    struct rule_dims none = rule_dims_unknown((size_t)rank);
    return rule_state(c, 0, &none);
}

/* Every element is the same: known also where there are too many to follow each. */
bool shape_constant_of_shape(struct rule_call *c)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, "value");
    struct infer_value *out = rule_output(c, 0);
    int64_t value = 0, dims[INFER_RANK_MAX];
    size_t n;
    bool whole = a && a->t && onnx_tensor_ints(a->t, &value, 1, NULL) == TARE_OK && a->t->elements == 1;
    rule_type(c, 0, a && a->t ? a->t->type : ONNX_FLOAT);
    if (!shape_from_contents(c) || !out || !(whole || !a)) return false;
    out->every = rule_number(c, value);
    return items_dims(out, dims, &n) && items_write(c, 0, items_fill(c, n, out->every));
}

bool shape_random(struct rule_call *c)
{
    struct rule_list shape;
    return rule_list(c, "shape", SIZE_MAX, &shape) && shape.given && rule_shape(c, 0, shape.at, shape.n);
}
