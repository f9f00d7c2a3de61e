/* SPDX-License-Identifier: MIT
 * inspect_dims.c - see inspect_dims.h. */
#include "analyze/layers/inspect_dims.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/mem.h"
#include "model/onnx/dimname.h"

struct choosing {
    struct inspected *out;
    const struct inspect_options *o;
    VEC(enum dim_class) classes; /* per dim */
    VEC(bool) given;             /* per dim: has its value */
    bool *used;                  /* per asked dimension */
};

enum { DIMS_MAX = 4096 }; /* of one model; they are looked up one by one, and real ones have a handful */

static tare_status add_dim(struct choosing *c, const char *label, enum dim_class class, tare_error *err)
{
    struct inspected *i = c->out;
    for (size_t k = 0; k < i->dims.n; k++) {
        if (strcmp(i->dims.items[k].name, label) == 0) return TARE_OK;
    }
    if (i->dims.n == DIMS_MAX)
        return error_set(err, TARE_INVALID, "the model has more than %d free dimensions", DIMS_MAX);
    char *name = mem_strdup(label);
    if (!name) return error_set(err, TARE_NOMEM, "out of memory");
    tare_status s = vec_push(&i->names, name, err);
    if (s < 0) {
        mem_free(name);
        return s;
    }
    s = vec_push(&i->dims, ((struct poly_binding){name, 1}), err);
    if (s == TARE_OK) s = vec_push(&i->asked, false, err);
    if (s == TARE_OK) s = vec_push(&c->classes, class, err);
    return s == TARE_OK ? vec_push(&c->given, false, err) : s;
}

/* The label of a dimension without a name is the input's and the axis, as in shape inference. */
static tare_status add_dims_of(struct choosing *c, const struct onnx_value *v, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t d = 0; s == TARE_OK && v->has_shape && d < v->dims.n; d++) {
        char label[220];
        const char *name = v->dims.items[d].name;
        if (v->dims.items[d].value >= 0) continue;
        enum dim_class class = dimname_class_at(name, d, v->dims.n, v->type);
        snprintf(label, sizeof label, "%.180s.%zu", v->name, d);
        s = add_dim(c, name[0] ? name : label, class, err);
    }
    return s;
}

static void give(struct choosing *c, size_t dim, int64_t value, bool asked)
{
    if (dim >= c->given.n) return;
    c->out->dims.items[dim].value = value;
    c->out->asked.items[dim] = asked;
    c->given.items[dim] = true;
}

static void give_named(struct choosing *c, size_t k)
{
    const struct poly_binding *b = &c->o->dims[k];
    for (size_t i = 0; i < c->out->dims.n; i++) {
        if (strcmp(c->out->dims.items[i].name, b->name) != 0) continue;
        give(c, i, b->value, true);
        c->used[k] = true;
    }
}

/* "batch" and "seq" are for whatever the model calls those. */
static void give_class(struct choosing *c, size_t k)
{
    const struct poly_binding *b = &c->o->dims[k];
    enum dim_class class = strcasecmp(b->name, "batch") == 0 ? DIM_BATCH
                           : strcasecmp(b->name, "seq") == 0 ? DIM_SEQ
                                                             : DIM_OTHER;
    for (size_t i = 0; class != DIM_OTHER && i < c->classes.n; i++) {
        if (c->classes.items[i] != class || c->given.items[i]) continue;
        give(c, i, b->value, true);
        c->used[k] = true;
    }
}

static tare_status no_such_dim(const struct choosing *c, const char *name, tare_error *err)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "the model has no free dimension '%s'; its free dimensions are: ", name);
    for (size_t i = 0; i < c->out->dims.n; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", c->out->dims.items[i].name);
    if (c->out->dims.n == 0) buf_add_str(&b, "none");
    tare_status s = buf_status(&b, err);
    if (s == TARE_OK) s = error_set(err, TARE_INVALID, "%s", b.data);
    buf_release(&b);
    return s;
}

static tare_status give_asked(struct choosing *c, tare_error *err)
{
    for (size_t k = 0; k < c->o->n_dims; k++) {
        if (c->o->dims[k].value < 0)
            return error_set(err, TARE_INVALID, "dimension '%s' cannot be %lld", c->o->dims[k].name,
                             (long long)c->o->dims[k].value);
        give_named(c, k);
    }
    for (size_t k = 0; k < c->o->n_dims; k++) give_class(c, k);
    for (size_t k = 0; k < c->o->n_dims; k++) {
        if (!c->used[k]) return no_such_dim(c, c->o->dims[k].name, err);
    }
    return TARE_OK;
}

static bool has_cache(const struct choosing *c)
{
    for (size_t i = 0; i < c->classes.n; i++)
        if (c->classes.items[i] == DIM_PAST) return true;
    return false;
}

/* What a name in a sum comes to: that dimension, else the first of its class. */
static int64_t part_value(void *ctx, const char *name)
{
    const struct choosing *c = ctx;
    enum dim_class class = dimname_class(name);
    for (size_t i = 0; i < c->out->dims.n; i++) {
        if (strcmp(c->out->dims.items[i].name, name) == 0) return c->out->dims.items[i].value;
    }
    for (size_t i = 0; class != DIM_OTHER && i < c->out->dims.n; i++) {
        if (c->classes.items[i] == class) return c->out->dims.items[i].value;
    }
    return dimname_default(class, name, has_cache(c));
}

static void give_rest(struct choosing *c)
{
    bool cache = has_cache(c);
    for (size_t i = 0; i < c->classes.n; i++) {
        enum dim_class class = c->classes.items[i];
        if (!c->given.items[i] && class != DIM_TOTAL)
            give(c, i, dimname_default(class, c->out->dims.items[i].name, cache), false);
    }
    for (size_t i = 0; i < c->given.n; i++) { /* sums, once their parts are there */
        if (!c->given.items[i]) give(c, i, dimname_total(c->out->dims.items[i].name, part_value, c), false);
    }
}

tare_status inspect_dims(struct inspected *out, const struct onnx_model *m, const struct inspect_options *o,
                         tare_error *err)
{
    struct choosing c = {out, o, VEC_INIT, VEC_INIT, mem_new(o->n_dims, sizeof(bool))};
    tare_status s = c.used ? TARE_OK : error_set(err, TARE_NOMEM, "out of memory");
    for (size_t i = 0; s == TARE_OK && i < m->graph.inputs.n; i++)
        s = add_dims_of(&c, &m->graph.inputs.items[i], err);
    if (s == TARE_OK) s = give_asked(&c, err);
    if (s == TARE_OK) give_rest(&c);
    mem_free(c.used);
    vec_release(&c.classes);
    vec_release(&c.given);
    return s;
}
