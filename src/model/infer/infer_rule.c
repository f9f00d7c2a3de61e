/* SPDX-License-Identifier: MIT
 * infer_rule.c - see infer_rule.h: what every rule needs. Looking at the node, stating outputs, saying why not. */
#include "model/infer/infer_rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/infer/infer_engine.h"

/* ---- looking at the node ---- */

const struct infer_value *rule_input(const struct rule_call *c, size_t i)
{
    return i < c->node->inputs.n ? c->at->inputs[i] : NULL;
}

struct infer_value *rule_output(const struct rule_call *c, size_t i)
{
    return i < c->node->outputs.n ? c->at->outputs[i] : NULL;
}

bool rule_has_input(const struct rule_call *c, size_t i)
{
    return rule_input(c, i) != NULL;
}

int64_t rule_int(const struct rule_call *c, const char *attribute, int64_t otherwise)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, attribute);
    return a && a->kind == ONNX_ATTR_INT ? a->i : otherwise;
}

const char *rule_text(const struct rule_call *c, const char *attribute)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, attribute);
    if (!a || a->kind != ONNX_ATTR_STRING) return NULL;
    return a->s ? onnx_keep_text(c->engine->model, a->s, a->s_bytes) : "";
}

static bool all_constant(const struct infer_value *v, int64_t *out)
{
    for (size_t i = 0; i < v->n_ints; i++)
        if (!poly_constant(v->ints[i], &out[i])) return false;
    return true;
}

bool rule_ints(const struct rule_call *c, const char *attribute, size_t i, const int64_t **out, size_t *n)
{
    const struct onnx_attribute *a = attribute ? onnx_attribute(c->node, attribute) : NULL;
    if (a && a->kind == ONNX_ATTR_INTS) {
        *out = a->ints.items;
        *n = a->ints.n;
        return true;
    }
    const struct infer_value *v = rule_input(c, i);
    if (!v || !v->ints) return false;
    int64_t *all = engine_contents(c->engine, v->n_ints, sizeof *all);
    if (!all || !all_constant(v, all)) return false;
    *out = all;
    *n = v->n_ints;
    return true;
}

tare_status rule_axis(const struct rule_call *c, int64_t axis, size_t rank, size_t *out)
{
    int64_t r = (int64_t)rank;
    if (axis < -r || axis >= r)
        return rule_fault(c, "axis %lld does not exist: there are %zu dimensions", (long long)axis, rank);
    *out = (size_t)(axis < 0 ? axis + r : axis);
    return TARE_OK;
}

/* ---- stating outputs ---- */

void rule_type(struct rule_call *c, size_t output, int type)
{
    struct infer_value *v = rule_output(c, output);
    if (v && type > ONNX_UNDEFINED && type < ONNX_TYPES) v->type = type;
}

tare_status rule_shape(struct rule_call *c, size_t output, const struct poly *const *dims, size_t rank)
{
    struct infer_value *v = rule_output(c, output);
    if (!v) return TARE_OK;
    if (rank > INFER_RANK_MAX)
        return rule_fault(c, "output '%.60s' would have %zu dimensions, at most %d are possible", v->name,
                          rank, INFER_RANK_MAX);
    for (size_t i = 0; i < rank; i++)
        if (poly_range(dims[i]).most < 0)
            return rule_fault(c, "dimension %zu of output '%.60s' would be negative", i, v->name);
    tare_status s = scope_dims(c->engine, v, rank);
    if (s == TARE_OK && rank) memcpy(v->dims, dims, rank * sizeof *dims);
    return s;
}

tare_status rule_like(struct rule_call *c, size_t output, const struct infer_value *v)
{
    struct infer_value *out = rule_output(c, output);
    if (!out || !v) return TARE_OK;
    out->type = v->type;
    out->data_dependent |= v->data_dependent;
    return v->has_rank ? rule_shape(c, output, v->dims, v->rank) : TARE_OK;
}

/* No memory for them, or too many: they are not followed, and nothing that is stated gets wrong. */
tare_status rule_contents(struct rule_call *c, size_t output, const struct poly *const *ints, size_t n)
{
    struct infer_value *v = rule_output(c, output);
    const struct poly **all = v ? engine_contents(c->engine, n, sizeof *all) : NULL;
    if (!all) return TARE_OK;
    if (n) memcpy(all, ints, n * sizeof *ints);
    v->ints = all;
    v->n_ints = n;
    v->reals = NULL;
    v->ratios = NULL;
    return TARE_OK;
}

tare_status rule_reals(struct rule_call *c, size_t output, const double *reals, size_t n)
{
    struct infer_value *v = rule_output(c, output);
    double *all = v ? engine_contents(c->engine, n, sizeof *all) : NULL;
    if (!all) return TARE_OK;
    if (n) memcpy(all, reals, n * sizeof *all);
    v->reals = all;
    v->ints = NULL;
    v->ratios = NULL;
    v->n_ints = n;
    return TARE_OK;
}

tare_status rule_constant(struct rule_call *c, size_t output, const struct onnx_tensor *t)
{
    struct infer_value *v = rule_output(c, output);
    return v ? scope_constant(c->engine, v, t) : TARE_OK;
}

struct rule_dims rule_dims_of(const struct infer_value *v)
{
    struct rule_dims d = {.n = 0};
    if (!v || !v->has_rank) return d;
    d.known = true;
    d.n = v->rank;
    for (size_t i = 0; i < v->rank; i++) d.at[i] = v->dims[i];
    return d;
}

/* Two numbers, neither 1, that differ. */
static bool fail_clash(const struct poly *a, const struct poly *b, int64_t *x, int64_t *y)
{
    return poly_constant(a, x) && poly_constant(b, y) && *x != *y && *x != 1 && *y != 1;
}

tare_status rule_broadcast(struct rule_call *c, const struct rule_dims *a, const struct rule_dims *b,
                           struct rule_dims *out)
{
    struct rule_dims made = {.known = a->known && b->known, .n = a->n > b->n ? a->n : b->n};
    const struct poly *one = poly_int(c->space, 1);
    if (!made.known) made.n = 0;
    for (size_t i = 0; i < made.n; i++) { /* from the last dimension on */
        const struct poly *x = i < a->n ? a->at[a->n - 1 - i] : one,
                          *y = i < b->n ? b->at[b->n - 1 - i] : one;
        int64_t p, q;
        if (fail_clash(x, y, &p, &q))
            return rule_fault(c, "dimensions %lld and %lld do not go together", (long long)p, (long long)q);
        made.at[made.n - 1 - i] = poly_broadcast(c->space, x, y);
    }
    *out = made;
    return TARE_OK;
}

/* ---- saying why not ---- */

static void remember_why(struct rule_call *c, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void remember_why(struct rule_call *c, const char *format, va_list args)
{
    char text[240];
    if (c->at->why) return;
    int n = vsnprintf(text, sizeof text, format, args);
    if (n <= 0) return;
    c->at->why = arena_str(&c->engine->memory->arena, text);
}

void rule_unknown(struct rule_call *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    remember_why(c, format, args);
    va_end(args);
}

void rule_data_dependent(struct rule_call *c, size_t output, const char *format, ...)
{
    struct infer_value *v = rule_output(c, output);
    va_list args;
    if (!v) return;
    v->data_dependent = true;
    va_start(args, format);
    remember_why(c, format, args);
    va_end(args);
}

tare_status rule_fault(const struct rule_call *c, const char *format, ...)
{
    const struct onnx_function *f = c->at->scope->function;
    char node[160], text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->engine->fault = true;
    return error_set(c->err, TARE_INVALID, "%s%.60s%s%s: %s", f ? "function '" : "", f ? f->name : "",
                     f ? "': " : "", engine_node_text(c->node, node, sizeof node), text);
}

/* ==== in the same words ==== */

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

tare_status rule_run(struct rule_call *c)
{
    int type = c->row->type;
    if (type > 0) rule_same_type(c, 0, (size_t)type - 1);
    if (type < 0) rule_type(c, 0, -type);
    return c->row->shape(c);
}

size_t rule_second(const struct rule_call *c)
{
    return c->row->second ? c->row->second : 1;
}

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
    if (as.row && as.row->shape) return rule_run(&as);
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

tare_status shape_broadcast_two(struct rule_call *c)
{
    return rule_broadcast_inputs(c, (const size_t[]){0, rule_second(c)}, 2);
}
