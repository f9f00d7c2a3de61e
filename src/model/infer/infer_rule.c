/* SPDX-License-Identifier: MIT
 * infer_rule.c - see infer_rule.h: what every rule needs. Looking at the node, stating outputs, saying why not. */
#include "model/infer/infer_rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/infer/infer_engine.h"

static bool has_failed(const struct rule_call *c)
{
    return c->engine->status < 0;
}

/* What the row says of the type of output 0: nothing where the attribute, the input and the constant are missing. */
static int row_type(const struct rule_call *c)
{
    const struct op_type *t = &c->row->type;
    int64_t said = t->attribute ? rule_int(c, t->attribute, 0) : 0;
    if (said > 0 && said < ONNX_TYPES) return (int)said;
    int type = t->input ? rule_input_type(c, t->input - 1) : ONNX_UNDEFINED;
    return type != ONNX_UNDEFINED ? type : t->otherwise;
}

bool rule_run(struct rule_call *c)
{
    rule_type(c, 0, row_type(c));
    for (size_t i = 0; i < OP_LIKE_MAX; i++) {
        const struct op_like *like = &c->row->like[i];
        if (!like->input) continue;
        rule_type(c, i, like->type ? like->type : rule_input_type(c, like->input - 1));
        rule_same_shape(c, i, like->input - 1);
    }
    if (!has_failed(c)) c->row->shape(c);
    engine_end_scratch(c->engine);
    return !has_failed(c);
}

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

size_t rule_second(const struct rule_call *c, size_t usual)
{
    return c->row->second ? c->row->second : usual;
}

int rule_input_type(const struct rule_call *c, size_t input)
{
    const struct infer_value *v = rule_input(c, input);
    return v ? v->type : ONNX_UNDEFINED;
}

int rule_first_type(const struct rule_call *c, size_t from)
{
    int type = ONNX_UNDEFINED;
    for (size_t i = from; i < c->node->inputs.n && !type; i++) type = rule_input_type(c, i);
    return type;
}

const struct poly *rule_input_dim(const struct rule_call *c, size_t input, int64_t i)
{
    const struct infer_value *v = rule_input(c, input);
    if (!v || !v->has_rank) return NULL;
    if (i < 0) i += (int64_t)v->rank;
    return i < 0 || i >= (int64_t)v->rank ? NULL : v->dims[i];
}

const struct poly *rule_int_at(const struct rule_call *c, size_t input, size_t i)
{
    const struct infer_value *v = rule_input(c, input);
    return v && v->ints && i < v->n_ints ? v->ints[i] : NULL;
}

const struct poly *rule_number(const struct rule_call *c, int64_t v)
{
    return poly_int(c->space, v);
}

const struct onnx_attribute *rule_attribute_of(const struct rule_call *c, const char *name)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, name);
    return a && a->ref ? NULL : a;
}

int64_t rule_int(const struct rule_call *c, const char *attribute, int64_t otherwise)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, attribute);
    return a && a->kind == ONNX_ATTR_INT ? a->i : otherwise;
}

int64_t rule_int_of(const struct rule_call *c, const char *name, size_t i, int64_t otherwise)
{
    const struct onnx_attribute *a = rule_attribute_of(c, name);
    return a && i < a->ints.n ? a->ints.items[i] : otherwise;
}

const char *rule_text(const struct rule_call *c, const char *attribute)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, attribute);
    if (!a || a->kind != ONNX_ATTR_STRING) return NULL;
    return a->s ? onnx_keep_text(c->engine->model, a->s, a->s_bytes) : "";
}

/* Of contents that are not followed the shape may still say how many there are. */
bool rule_list(struct rule_call *c, const char *attribute, size_t input, struct rule_list *out)
{
    const struct onnx_attribute *a = attribute ? onnx_attribute(c->node, attribute) : NULL;
    const struct infer_value *v = rule_input(c, input);
    bool listed = a && a->kind == ONNX_ATTR_INTS;
    int64_t n = 0;
    *out = (struct rule_list){.given = listed || v, .known = true};
    if (listed)
        n = (int64_t)a->ints.n;
    else if (v && v->ints)
        n = (int64_t)v->n_ints;
    else if (v)
        out->known = v->has_rank && v->rank == 1 && poly_constant(v->dims[0], &n);
    if (n < 0 || n > (int64_t)(sizeof out->at / sizeof out->at[0]))
        return rule_fault(c, "%lld dimensions are more than possible", (long long)n);
    out->n = (size_t)n;
    for (size_t i = 0; i < out->n; i++)
        out->at[i] = listed ? rule_number(c, a->ints.items[i]) : rule_int_at(c, input, i);
    return true;
}

bool rule_axis(struct rule_call *c, int64_t axis, size_t rank, size_t *out)
{
    int64_t r = (int64_t)rank;
    if (axis < -r || axis >= r)
        return rule_fault(c, "axis %lld does not exist: there are %zu dimensions", (long long)axis, rank);
    *out = (size_t)(axis < 0 ? axis + r : axis);
    return true;
}

bool rule_mark_axes(struct rule_call *c, const struct rule_list *axes, size_t rank, bool *marks, bool *known)
{
    int64_t axis;
    size_t at = 0;
    *known = axes->given && axes->known;
    memset(marks, 0, rank * sizeof *marks);
    for (size_t i = 0; i < axes->n && *known; i++) {
        *known = poly_constant(axes->at[i], &axis);
        if (!*known) return true;
        if (!rule_axis(c, axis, rank, &at)) return false;
        marks[at] = true;
    }
    return true;
}

/* ---- shapes ---- */

struct rule_dims rule_dims_of(const struct infer_value *v)
{
    struct rule_dims d = {.n = 0};
    if (!v || !v->has_rank) return d;
    d.known = true;
    d.n = v->rank;
    for (size_t i = 0; i < v->rank; i++) d.at[i] = v->dims[i];
    return d;
}

struct rule_dims rule_dims_none(void)
{
    return (struct rule_dims){.n = 0, .known = true};
}

struct rule_dims rule_dims_unknown(size_t n)
{
    return (struct rule_dims){.n = n, .known = true};
}

void rule_push(struct rule_dims *d, const struct poly *dim)
{
    if (d->n >= INFER_RANK_MAX)
        d->known = false;
    else
        d->at[d->n++] = dim;
}

void rule_push_all(struct rule_dims *d, const struct poly *const *dims, size_t n)
{
    for (size_t i = 0; i < n; i++) rule_push(d, dims[i]);
}

void rule_insert(struct rule_dims *d, size_t axis, const struct poly *dim)
{
    size_t behind = d->n - axis;
    rule_push(d, dim);
    if (!d->known) return;
    memmove(&d->at[axis + 1], &d->at[axis], behind * sizeof d->at[0]);
    d->at[axis] = dim;
}

void rule_drop(struct rule_dims *d, size_t axis)
{
    d->n--;
    memmove(&d->at[axis], &d->at[axis + 1], (d->n - axis) * sizeof d->at[0]);
}

static bool has_rank(struct rule_call *c, size_t input)
{
    const struct infer_value *v = rule_input(c, input);
    if (!v) return rule_unknown(c, "its input %zu is not there", input);
    return v->has_rank || rule_unknown(c, "the shape of its input '%s' is not known", v->name);
}

bool rule_ranked(struct rule_call *c, size_t input, struct rule_dims *out)
{
    *out = rule_dims_of(rule_input(c, input));
    return has_rank(c, input);
}

bool rule_ranked_as(struct rule_call *c, size_t input, size_t rank, struct rule_dims *out)
{
    if (!rule_ranked(c, input, out)) return false;
    if (out->n == rank) return true;
    return rule_fault(c, "input '%s' has %zu dimensions, not %zu", rule_input(c, input)->name, out->n, rank);
}

/* From the last dimension on; two numbers that differ, neither of them 1, clash. */
bool rule_broadcast(struct rule_call *c, const struct rule_dims *a, const struct rule_dims *b,
                    struct rule_dims *out)
{
    struct rule_dims made = {.known = a->known && b->known, .n = a->n > b->n ? a->n : b->n};
    const struct poly *one = rule_number(c, 1);
    if (!made.known) made.n = 0;
    for (size_t i = 0; i < made.n; i++) {
        const struct poly *x = i < a->n ? a->at[a->n - 1 - i] : one,
                          *y = i < b->n ? b->at[b->n - 1 - i] : one;
        int64_t p, q;
        if (poly_constant(x, &p) && poly_constant(y, &q) && p != q && p != 1 && q != 1)
            return rule_fault(c, "dimensions %lld and %lld do not go together", (long long)p, (long long)q);
        made.at[made.n - 1 - i] = poly_broadcast(c->space, x, y);
    }
    *out = made;
    return true;
}

bool rule_agree(struct rule_call *c, const struct poly *a, const struct poly *b, const char *what,
                const struct poly **out)
{
    int64_t x = 0, y = 0;
    bool a_number = poly_constant(a, &x), b_number = poly_constant(b, &y);
    *out = !a || (b_number && !a_number) ? b : a;
    if (!a_number || !b_number || x == y) return true;
    return rule_fault(c, "%s do not match: %lld and %lld", what, (long long)x, (long long)y);
}

const struct poly *rule_behind(const struct rule_call *c, size_t past, int64_t axis, const struct poly *now)
{
    return rule_has_input(c, past) ? poly_add(c->space, rule_input_dim(c, past, axis), now) : now;
}

const struct poly *rule_part(const struct rule_call *c, const struct poly *a, const struct poly *b)
{
    int64_t number;
    const struct poly *exact = poly_div_exact(c->space, a, b);
    if (exact || poly_constant(a, &number) || poly_range(b).least < 1) return exact;
    return poly_div_floor(c->space, a, b);
}

/* ---- stating outputs ---- */

void rule_type(struct rule_call *c, size_t output, int type)
{
    struct infer_value *v = rule_output(c, output);
    if (v && type > ONNX_UNDEFINED && type < ONNX_TYPES) v->type = type;
}

void rule_same_type(struct rule_call *c, size_t output, size_t input)
{
    rule_type(c, output, rule_input_type(c, input));
}

void rule_same_types(struct rule_call *c, size_t outputs, size_t input)
{
    for (size_t i = 0; i < outputs; i++) rule_same_type(c, i, input);
}

bool rule_shape(struct rule_call *c, size_t output, const struct poly *const *dims, size_t rank)
{
    struct infer_value *v = rule_output(c, output);
    if (!v || has_failed(c)) return !has_failed(c);
    if (rank > INFER_RANK_MAX)
        return rule_fault(c, "output '%.60s' would have %zu dimensions, at most %d are possible", v->name,
                          rank, INFER_RANK_MAX);
    for (size_t i = 0; i < rank; i++)
        if (poly_range(dims[i]).most < 0)
            return rule_fault(c, "dimension %zu of output '%.60s' would be negative", i, v->name);
    if (!scope_dims(c->engine, v, rank)) return false;
    if (rank) memcpy(v->dims, dims, rank * sizeof *dims);
    return true;
}

bool rule_scalar(struct rule_call *c, size_t output)
{
    return rule_shape(c, output, NULL, 0);
}

bool rule_state(struct rule_call *c, size_t output, const struct rule_dims *d)
{
    return d->known ? rule_shape(c, output, d->at, d->n) : !has_failed(c);
}

bool rule_same_shape(struct rule_call *c, size_t output, size_t input)
{
    const struct infer_value *v = rule_input(c, input);
    if (v && rule_output(c, output)) rule_output(c, output)->data_dependent |= v->data_dependent;
    return has_rank(c, input) && v && rule_shape(c, output, v->dims, v->rank);
}

bool rule_same(struct rule_call *c, size_t output, size_t input)
{
    rule_same_type(c, output, input);
    return rule_same_shape(c, output, input);
}

void *rule_keep(struct rule_call *c, size_t output, const void *contents, size_t n, size_t size)
{
    struct infer_value *v = rule_output(c, output);
    void *all = v && !has_failed(c) ? engine_contents(c->engine, n, size) : NULL;
    if (!all) return NULL;
    if (n) memcpy(all, contents, n * size);
    v->ints = NULL;
    v->reals = NULL;
    v->ratios = NULL;
    v->n_ints = n;
    return all;
}

bool rule_contents(struct rule_call *c, size_t output, const struct poly *const *ints, size_t n)
{
    const struct poly **all = rule_keep(c, output, ints, n, sizeof *ints);
    if (all) rule_output(c, output)->ints = all;
    return true;
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

bool rule_unknown(struct rule_call *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    remember_why(c, format, args);
    va_end(args);
    return false;
}

bool rule_data_dependent(struct rule_call *c, size_t output, const char *format, ...)
{
    struct infer_value *v = rule_output(c, output);
    va_list args;
    if (!v) return false;
    v->data_dependent = true;
    va_start(args, format);
    remember_why(c, format, args);
    va_end(args);
    return false;
}

bool rule_fault(struct rule_call *c, const char *format, ...)
{
    const struct onnx_function *f = c->at->scope->function;
    char node[160], text[200];
    va_list args;
    if (has_failed(c)) return false;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->engine->fault = true;
    return engine_error(c->engine, "%s%.60s%s%s: %s", f ? "function '" : "", f ? f->name : "", f ? "': " : "",
                        engine_node_text(c->node, node, sizeof node), text);
}
