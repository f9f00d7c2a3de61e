/* SPDX-License-Identifier: MIT
 * infer_basic.c - rules of operators that work element by element: types, broadcast shapes, contents of small ones.
 * Also what makes tensors from nothing: constants, random numbers. Shapes that are not sure stay unknown. */
#include <string.h>

#include "model/infer/infer_items.h"

/* ---- contents of element-wise results ---- */

static tare_status fold_unary(struct rule_call *c)
{
    item_unary *how = c->row->fold;
    const struct infer_value *v = rule_input(c, 0);
    struct items x = ITEMS_INIT;
    if (!how || !v) return TARE_OK;
    tare_status s = items_read(c, v, &x);
    for (size_t i = 0; i < x.n; i++) x.at[i] = how(c->space, v->type, x.at[i]);
    if (s == TARE_OK && x.at) s = items_write(c, 0, &x);
    items_release(&x);
    return s;
}

static item_binary *binary_of(const struct rule_call *c)
{
    if (strcmp(c->node->op, "Mod") == 0) return rule_int(c, "fmod", 0) ? NULL : item_floor_mod;
    return c->row->fold_two;
}

/* Of one or more inputs, from left to right. */
static tare_status fold_all(struct rule_call *c)
{
    item_binary *how = binary_of(c);
    const struct infer_value *v = rule_input(c, 0);
    struct items x = ITEMS_INIT, y = ITEMS_INIT;
    if (!how || !v) return TARE_OK;
    tare_status s = items_spread(c, v, &x);
    for (size_t i = 1; s == TARE_OK && x.at && i < c->node->inputs.n; i++) {
        s = items_spread(c, rule_input(c, i), &y);
        for (size_t k = 0; k < x.n; k++)
            x.at[k] = y.at ? how(c->space, v->type, x.at[k], y.at[k]) : item_none();
        items_release(&y);
    }
    if (s == TARE_OK && x.at) s = items_write(c, 0, &x);
    items_release(&x);
    return s;
}

/* ---- shapes ---- */

static tare_status shape_like(struct rule_call *c, size_t output, const struct infer_value *v)
{
    struct infer_value *out = rule_output(c, output);
    if (!out || !v) return TARE_OK;
    out->data_dependent |= v->data_dependent;
    return v->has_rank ? rule_shape(c, output, v->dims, v->rank) : TARE_OK;
}

tare_status shape_unary(struct rule_call *c)
{
    tare_status s = rule_like(c, 0, rule_input(c, 0));
    return s < 0 ? s : fold_unary(c);
}

tare_status shape_unary_bool(struct rule_call *c)
{
    tare_status s = shape_like(c, 0, rule_input(c, 0));
    return s < 0 ? s : fold_unary(c);
}

/* Operators before version 7: the second input is spread over the first where they say so. */
static bool is_old_broadcast(const struct rule_call *c)
{
    return c->opset > 0 && c->opset < 7 && !c->node->domain[0];
}

static tare_status broadcast_all(struct rule_call *c)
{
    struct rule_dims all = rule_dims_of(rule_input(c, 0));
    size_t n = is_old_broadcast(c) && onnx_attribute(c->node, "broadcast") ? 1 : c->node->inputs.n;
    for (size_t i = 1; i < n; i++) {
        const struct infer_value *v = rule_input(c, i);
        struct rule_dims more = rule_dims_of(v);
        tare_status s = v ? rule_broadcast(c, &all, &more, &all) : TARE_OK;
        if (s < 0) return s;
    }
    return all.known ? rule_shape(c, 0, all.at, all.n) : TARE_OK;
}

static int first_type(const struct rule_call *c, size_t from)
{
    for (size_t i = from; i < c->node->inputs.n; i++)
        if (rule_input(c, i) && rule_input(c, i)->type) return rule_input(c, i)->type;
    return ONNX_UNDEFINED;
}

tare_status shape_broadcast(struct rule_call *c)
{
    rule_type(c, 0, first_type(c, 0));
    tare_status s = broadcast_all(c);
    return s < 0 ? s : fold_all(c);
}

tare_status shape_compare(struct rule_call *c)
{
    tare_status s = broadcast_all(c);
    return s < 0 ? s : fold_all(c);
}

/* The exponent may be of another type. */
tare_status shape_pow(struct rule_call *c)
{
    if (rule_input(c, 0)) rule_type(c, 0, rule_input(c, 0)->type);
    tare_status s = broadcast_all(c);
    return s < 0 ? s : fold_all(c);
}

/* ---- choosing and casting ---- */

static struct item choose(struct item which, struct item x, struct item y)
{
    int yes = item_truth(which);
    if (yes >= 0) return yes ? x : y;
    return x.kind == ITEM_WHOLE && y.kind == ITEM_WHOLE && x.p == y.p ? x : item_none();
}

tare_status shape_where(struct rule_call *c)
{
    struct items which = ITEMS_INIT, x = ITEMS_INIT, y = ITEMS_INIT;
    rule_type(c, 0, first_type(c, 1));
    tare_status s = broadcast_all(c);
    if (s == TARE_OK) s = items_spread(c, rule_input(c, 0), &which);
    if (s == TARE_OK && which.at) s = items_spread(c, rule_input(c, 1), &x);
    if (s == TARE_OK && which.at) s = items_spread(c, rule_input(c, 2), &y);
    for (size_t i = 0; which.at && i < which.n; i++)
        which.at[i] = choose(which.at[i], x.at ? x.at[i] : item_none(), y.at ? y.at[i] : item_none());
    if (s == TARE_OK && which.at) s = items_write(c, 0, &which);
    items_release(&which);
    items_release(&x);
    items_release(&y);
    return s;
}

static tare_status cast_to(struct rule_call *c, int to)
{
    const struct infer_value *v = rule_input(c, 0);
    struct items x = ITEMS_INIT;
    rule_type(c, 0, to);
    tare_status s = shape_like(c, 0, v);
    if (s == TARE_OK) s = items_read(c, v, &x);
    for (size_t i = 0; i < x.n; i++) x.at[i] = item_cast(c->space, v->type, to, x.at[i]);
    if (s == TARE_OK && x.at && to) s = items_write(c, 0, &x);
    items_release(&x);
    return s;
}

static int type_attribute(const struct rule_call *c, const char *name, int otherwise)
{
    int64_t to = rule_int(c, name, otherwise);
    return to > 0 && to < ONNX_TYPES ? (int)to : otherwise;
}

tare_status shape_cast(struct rule_call *c)
{
    return cast_to(c, type_attribute(c, "to", ONNX_UNDEFINED));
}

tare_status shape_cast_like(struct rule_call *c)
{
    return cast_to(c, rule_input(c, 1) ? rule_input(c, 1)->type : ONNX_UNDEFINED);
}

/* Same bits, other type; the last axis changes when the sizes differ. */
tare_status shape_bit_cast(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    int to = type_attribute(c, "to", ONNX_UNDEFINED);
    rule_type(c, 0, to);
    if (!v || !onnx_type_bits(to) || onnx_type_bits(to) != onnx_type_bits(v->type)) return TARE_OK;
    return shape_like(c, 0, v);
}

tare_status shape_clip(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    struct items x = ITEMS_INIT, low = ITEMS_INIT, high = ITEMS_INIT;
    tare_status s = rule_like(c, 0, v);
    if (s == TARE_OK && rule_has_input(c, 1)) s = items_spread(c, rule_input(c, 1), &low);
    if (s == TARE_OK && rule_has_input(c, 2)) s = items_spread(c, rule_input(c, 2), &high);
    bool bounds = c->opset >= 11 && (low.at || !rule_has_input(c, 1)) && (high.at || !rule_has_input(c, 2));
    if (s == TARE_OK && bounds) s = items_read(c, v, &x);
    for (size_t i = 0; i < x.n; i++) {
        if (low.at) x.at[i] = item_max(c->space, v->type, x.at[i], low.at[i]);
        if (high.at) x.at[i] = item_min(c->space, v->type, x.at[i], high.at[i]);
    }
    if (s == TARE_OK && x.at) s = items_write(c, 0, &x);
    items_release(&x);
    items_release(&low);
    items_release(&high);
    return s;
}

tare_status shape_dropout(struct rule_call *c)
{
    tare_status s = rule_like(c, 0, rule_input(c, 0));
    if (s < 0) return s;
    rule_type(c, 1, c->opset >= 10 ? ONNX_BOOL : rule_input_type(c, 0));
    return shape_like(c, 1, rule_input(c, 0));
}

/* ---- quantisation ---- */

tare_status shape_quantize(struct rule_call *c)
{
    int type = rule_has_input(c, 2) ? rule_input(c, 2)->type : type_attribute(c, "output_dtype", ONNX_UINT8);
    rule_type(c, 0, type);
    return shape_like(c, 0, rule_input(c, 0));
}

tare_status shape_dequantize(struct rule_call *c)
{
    int scale = rule_has_input(c, 1) ? rule_input(c, 1)->type : ONNX_UNDEFINED;
    rule_type(c, 0, type_attribute(c, "output_dtype", scale));
    return shape_like(c, 0, rule_input(c, 0));
}

tare_status shape_dynamic_quantize(struct rule_call *c)
{
    rule_type(c, 1, ONNX_FLOAT);
    rule_type(c, 2, ONNX_UINT8);
    tare_status s = shape_like(c, 0, rule_input(c, 0));
    if (s == TARE_OK) s = rule_shape(c, 1, NULL, 0);
    return s < 0 ? s : rule_shape(c, 2, NULL, 0);
}

/* ---- from nothing ---- */

static tare_status list_constant(struct rule_call *c, int type, size_t n)
{
    const struct poly *length = poly_int(c->space, (int64_t)n);
    rule_type(c, 0, type);
    return rule_shape(c, 0, &length, 1);
}

static tare_status ints_constant(struct rule_call *c, const int64_t *v, size_t n, bool scalar)
{
    struct items x = ITEMS_INIT;
    tare_status s = list_constant(c, ONNX_INT64, n);
    if (s == TARE_OK && scalar) s = rule_shape(c, 0, NULL, 0);
    if (s < 0 || n > INFER_INTS_MAX) return s;
    s = items_new(c, n, &x);
    for (size_t i = 0; s == TARE_OK && i < n; i++) x.at[i] = item_whole(poly_int(c->space, v[i]));
    if (s == TARE_OK) s = items_write(c, 0, &x);
    items_release(&x);
    return s;
}

static tare_status floats_constant(struct rule_call *c, const float *v, size_t n, bool scalar)
{
    struct items x = ITEMS_INIT;
    tare_status s = list_constant(c, ONNX_FLOAT, n);
    if (s == TARE_OK && scalar) s = rule_shape(c, 0, NULL, 0);
    if (s < 0 || n > INFER_INTS_MAX) return s;
    s = items_new(c, n, &x);
    for (size_t i = 0; s == TARE_OK && i < n; i++)
        x.at[i] = (struct item){.kind = ITEM_REAL, .real = (double)v[i]};
    if (s == TARE_OK) s = items_write(c, 0, &x);
    items_release(&x);
    return s;
}

static tare_status constant_of(struct rule_call *c, const struct onnx_attribute *a)
{
    switch (a->kind) {
    case ONNX_ATTR_TENSOR: return a->t ? rule_constant(c, 0, a->t) : TARE_OK;
    case ONNX_ATTR_INT: return ints_constant(c, &a->i, 1, true);
    case ONNX_ATTR_INTS: return ints_constant(c, a->ints.items, a->ints.n, false);
    case ONNX_ATTR_FLOAT: return floats_constant(c, &a->f, 1, true);
    case ONNX_ATTR_FLOATS: return floats_constant(c, a->floats.items, a->floats.n, false);
    case ONNX_ATTR_STRING: rule_type(c, 0, ONNX_STRING); return rule_shape(c, 0, NULL, 0);
    case ONNX_ATTR_STRINGS: return list_constant(c, ONNX_STRING, a->strings.n);
    default: return TARE_OK;
    }
}

tare_status shape_constant(struct rule_call *c)
{
    for (size_t i = 0; i < c->node->attributes.n; i++) {
        const struct onnx_attribute *a = &c->node->attributes.items[i];
        if (strncmp(a->name, "value", 5) == 0) return constant_of(c, a);
    }
    rule_unknown(c, "a constant that is no tensor");
    return TARE_OK;
}

/* A shape that is the contents of an input. */
static tare_status shape_from(struct rule_call *c, size_t input)
{
    const struct infer_value *v = rule_input(c, input);
    struct rule_dims none = {.known = false};
    int64_t rank;
    if (v && v->ints) return rule_shape(c, 0, v->ints, v->n_ints);
    rule_data_dependent(c, 0, "its shape is what input '%.80s' holds", v ? v->name : "");
    if (!v || v->rank != 1 || !poly_constant(v->dims[0], &rank) || rank < 0 || rank > INFER_RANK_MAX)
        return TARE_OK;
    return rule_shape(c, 0, none.at, (size_t)rank); /* so many dimensions, all unknown */
}

tare_status shape_constant_of_shape(struct rule_call *c)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, "value");
    int64_t value = 0, dims[INFER_RANK_MAX];
    struct items x = ITEMS_INIT;
    size_t n;
    bool whole = a && a->t && onnx_tensor_ints(a->t, &value, 1, NULL) == TARE_OK && a->t->elements == 1;
    rule_type(c, 0, a && a->t ? a->t->type : ONNX_FLOAT);
    tare_status s = shape_from(c, 0);
    if (s == TARE_OK && rule_output(c, 0) && (whole || !a))
        rule_output(c, 0)->every = poly_int(c->space, value);
    if (s < 0 || !rule_output(c, 0) || !(whole || !a) || !items_dims(rule_output(c, 0), dims, &n)) return s;
    s = items_new(c, n, &x);
    for (size_t i = 0; s == TARE_OK && i < n; i++) x.at[i] = item_whole(poly_int(c->space, value));
    if (s == TARE_OK) s = items_write(c, 0, &x);
    items_release(&x);
    return s;
}

tare_status shape_random(struct rule_call *c)
{
    const struct poly *dims[INFER_RANK_MAX];
    const int64_t *shape;
    size_t n;
    rule_type(c, 0, type_attribute(c, "dtype", ONNX_FLOAT));
    if (!rule_ints(c, "shape", SIZE_MAX, &shape, &n) || n > INFER_RANK_MAX) return TARE_OK;
    for (size_t i = 0; i < n; i++) dims[i] = poly_int(c->space, shape[i]);
    return rule_shape(c, 0, dims, n);
}

/* Of the type that an attribute says, or of the input's. */
tare_status shape_typed_like(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    rule_type(c, 0, type_attribute(c, "dtype", v ? v->type : ONNX_UNDEFINED));
    return shape_like(c, 0, v);
}
