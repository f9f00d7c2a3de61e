/* SPDX-License-Identifier: MIT
 * infer_help.c - what several rules of shape inference say in the same words. Must never state what an input does not
 * surely give. */
#include "model/infer/infer_help.h"

#include <string.h>

const struct poly *rule_dim(const struct infer_value *v, int64_t i)
{
    if (!v || !v->has_rank) return NULL;
    if (i < 0) i += (int64_t)v->rank;
    return i < 0 || i >= (int64_t)v->rank ? NULL : v->dims[i];
}

const struct poly *rule_input_dim(const struct rule_call *c, size_t input, int64_t i)
{
    return rule_dim(rule_input(c, input), i);
}

const struct poly *rule_int_at(const struct rule_call *c, size_t input, size_t i)
{
    const struct infer_value *v = rule_input(c, input);
    return v && v->ints && i < v->n_ints ? v->ints[i] : NULL;
}

bool rule_ranked(struct rule_call *c, size_t input, struct rule_dims *out)
{
    const struct infer_value *v = rule_input(c, input);
    *out = (struct rule_dims){.n = 0};
    if (v && v->has_rank) {
        *out = rule_dims_of(v);
        return out->known;
    }
    if (v)
        rule_unknown(c, "the shape of its input '%s' is not known", v->name);
    else
        rule_unknown(c, "its input %zu is not there", input);
    return false;
}

bool rule_ranked_as(struct rule_call *c, size_t input, size_t rank, struct rule_dims *out, tare_status *s)
{
    *s = TARE_OK;
    if (!rule_ranked(c, input, out)) return false;
    if (out->n == rank) return true;
    *s = rule_fault(c, "input '%s' has %zu dimensions, not %zu", rule_input(c, input)->name, out->n, rank);
    return false;
}

struct rule_dims rule_input_dims(const struct rule_call *c, size_t input)
{
    const struct infer_value *v = rule_input(c, input);
    return v && v->has_rank ? rule_dims_of(v) : (struct rule_dims){.n = 0, .known = false};
}

int rule_input_type(const struct rule_call *c, size_t input)
{
    const struct infer_value *v = rule_input(c, input);
    return v ? v->type : ONNX_UNDEFINED;
}

tare_status rule_state(struct rule_call *c, size_t output, const struct rule_dims *d)
{
    return d->known ? rule_shape(c, output, d->at, d->n) : TARE_OK;
}

tare_status rule_same_shape(struct rule_call *c, size_t output, size_t input)
{
    struct rule_dims d;
    return rule_ranked(c, input, &d) ? rule_state(c, output, &d) : TARE_OK;
}

void rule_same_type(struct rule_call *c, size_t output, size_t input)
{
    int type = rule_input_type(c, input);
    if (type != ONNX_UNDEFINED) rule_type(c, output, type);
}

tare_status rule_same(struct rule_call *c, size_t output, size_t input)
{
    rule_same_type(c, output, input);
    return rule_same_shape(c, output, input);
}

struct rule_dims rule_dims_none(void)
{
    return (struct rule_dims){.n = 0, .known = true};
}

void rule_push(struct rule_dims *d, const struct poly *dim)
{
    if (d->n >= INFER_RANK_MAX)
        d->known = false;
    else
        d->at[d->n++] = dim;
}

tare_status rule_agree(struct rule_call *c, const struct poly *a, const struct poly *b, const char *what,
                       const struct poly **out)
{
    int64_t x = 0;
    int64_t y = 0;
    bool a_number = poly_constant(a, &x);
    bool b_number = poly_constant(b, &y);
    *out = !a || (b_number && !a_number) ? b : a;
    if (!a_number || !b_number || x == y) return TARE_OK;
    return rule_fault(c, "%s do not match: %lld and %lld", what, (long long)x, (long long)y);
}

const struct poly *rule_part(const struct rule_call *c, const struct poly *a, const struct poly *b)
{
    int64_t number;
    const struct poly *exact = poly_div_exact(c->space, a, b);
    if (exact || poly_constant(a, &number) || poly_range(b).least < 1) return exact;
    return poly_div_floor(c->space, a, b);
}

int64_t rule_int_of(const struct rule_call *c, const char *name, size_t i, int64_t otherwise)
{
    const struct onnx_attribute *a = rule_attribute_of(c, name);
    return a && i < a->ints.n ? a->ints.items[i] : otherwise;
}

/* Contents of a tensor of floats: as such, or as whole numbers where it holds those. */
static bool real_at(const struct infer_value *v, size_t i, float *out)
{
    int64_t whole;
    if (v->reals) {
        *out = (float)v->reals[i];
        return true;
    }
    if (!v->ints || !poly_constant(v->ints[i], &whole)) return false;
    *out = (float)whole;
    return true;
}

bool rule_floats(const struct rule_call *c, const char *name, size_t input, struct rule_reals *out)
{
    const struct onnx_attribute *a = name ? rule_attribute_of(c, name) : NULL;
    const struct infer_value *v = rule_input(c, input);
    out->n = 0;
    if (a && a->floats.n > 0) {
        if (a->floats.n > INFER_RANK_MAX) return false;
        memcpy(out->at, a->floats.items, a->floats.n * sizeof *out->at);
        out->n = a->floats.n;
        return true;
    }
    if (!v || (!v->reals && !v->ints) || v->n_ints > INFER_RANK_MAX) return false;
    for (; out->n < v->n_ints; out->n++)
        if (!real_at(v, out->n, &out->at[out->n])) return false;
    return true;
}

const struct onnx_attribute *rule_attribute_of(const struct rule_call *c, const char *name)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, name);
    return a && a->ref ? NULL : a;
}

/* ---- outputs like inputs ---- */

tare_status shape_like_first(struct rule_call *c)
{
    return rule_same(c, 0, 0);
}

tare_status shape_by_likes(struct rule_call *c)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < OP_LIKE_MAX && s == TARE_OK; i++) {
        const struct op_like *like = &c->row->like[i];
        if (!like->stated) continue;
        if (like->type < 0)
            rule_type(c, i, -like->type);
        else
            rule_same_type(c, i, (size_t)like->type);
        s = rule_same_shape(c, i, (size_t)like->shape);
    }
    return s;
}

tare_status rule_as_standard(struct rule_call *c, const char *op, int64_t opset)
{
    struct rule_call as = *c;
    as.row = op_find("", op);
    as.opset = opset;
    if (as.row && as.row->shape) return as.row->shape(&as);
    rule_unknown(c, "no rule for %s", op);
    return TARE_OK;
}

tare_status rule_broadcast_inputs(struct rule_call *c, const size_t *inputs, size_t n)
{
    struct rule_dims all = rule_dims_none();
    for (size_t i = 0; i < n; i++) {
        struct rule_dims one;
        struct rule_dims before = all;
        if (!rule_ranked(c, inputs[i], &one)) return TARE_OK;
        tare_status s = rule_broadcast(c, &before, &one, &all);
        if (s < 0 || !all.known) return s;
    }
    return rule_state(c, 0, &all);
}
