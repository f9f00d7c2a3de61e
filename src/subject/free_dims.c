/* SPDX-License-Identifier: MIT
 * free_dims.c - see onnx_model.h. */
#include "subject/onnx_model.h"

#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/str.h"

/* ---- names ---- */

enum dim_class dim_class_of(const struct ort_io *io, size_t axis)
{
    return dimname_class_at(io->symbols[axis], axis, io->rank, io->type);
}

static void label_of(const struct ort_io *io, size_t axis, char *out, size_t size)
{
    if (io->symbols[axis][0])
        snprintf(out, size, "%s", io->symbols[axis]);
    else
        snprintf(out, size, "%s.%zu", io->name, axis);
}

/* ---- errors ---- */

static void list_free(struct buf *b, const struct ort_ios *inputs)
{
    bool any = false;
    struct buf seen = BUF_INIT; /* "\nname\n" each */
    for (size_t i = 0; i < inputs->items.n; i++) {
        const struct ort_io *io = &inputs->items.items[i];
        for (size_t d = 0; d < io->rank; d++) {
            char label[160], key[164];
            if (io->dims[d] >= 0) continue;
            label_of(io, d, label, sizeof label);
            snprintf(key, sizeof key, "\n%s\n", label);
            if (strstr(seen.data, key)) continue;
            buf_add_str(&seen, key);
            buf_printf(b, "%s%s", any ? ", " : "", label);
            any = true;
        }
    }
    if (!any) buf_add_str(b, "none");
    buf_release(&seen);
}

static tare_status refuse_dims(const struct ort_ios *inputs, tare_error *err, const char *what)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s; its free dimensions are: ", what);
    list_free(&b, inputs);
    tare_status s = buf_status(&b, err);
    if (s == TARE_OK) s = error_set(err, TARE_INVALID, "%s", b.data);
    buf_release(&b);
    return s;
}

/* ---- values ---- */

struct resolving {
    struct free_dims *out;
    const struct ort_ios *inputs;
    const struct case_params *p;
    bool *used;     /* per explicit dimension */
    bool has_cache; /* some input is what earlier runs left */
};

static const struct chosen_dim *find_chosen(const struct free_dims *d, const char *name)
{
    for (size_t i = 0; i < d->chosen.n; i++) {
        if (strcmp(d->chosen.items[i].name, name) == 0) return &d->chosen.items[i];
    }
    return NULL;
}

/* Asked for by name, or as batch or sequence length. 0 is a size too, so this says whether. */
static bool asked_for(struct resolving *r, const char *label, enum dim_class class, int64_t *out)
{
    for (size_t i = 0; i < r->p->n_dims; i++) {
        if (strcmp(r->p->dims[i].name, label) != 0) continue;
        r->used[i] = true;
        *out = r->p->dims[i].value;
        return true;
    }
    *out = 0;
    if (class == DIM_BATCH) *out = r->p->batch;
    if (class == DIM_SEQ) *out = r->p->seq;
    return *out > 0;
}

/* What a name in a sum comes to: that dimension's value, or that of the class that the name belongs to. */
static int64_t part_value(void *ctx, const char *part)
{
    struct resolving *r = ctx;
    int64_t v;
    const struct chosen_dim *known = find_chosen(r->out, part);
    if (known) return known->value;
    enum dim_class class = dimname_class(part);
    if (asked_for(r, part, class, &v)) return v;
    for (size_t i = 0; i < r->out->chosen.n; i++) {
        if (r->out->chosen.items[i].class == class && class != DIM_OTHER)
            return r->out->chosen.items[i].value;
    }
    return dimname_default(class, part, r->has_cache);
}

static tare_status choose_dim(struct resolving *r, const struct ort_io *io, size_t axis,
                              const struct tensor *file, tare_error *err)
{
    char label[160];
    struct chosen_dim c = {.class = dim_class_of(io, axis)};
    label_of(io, axis, label, sizeof label);
    const struct chosen_dim *known = find_chosen(r->out, label);
    if (known) {
        if (!known->asked && file && axis < file->rank && file->dims[axis] != known->value)
            return error_set(err, TARE_INVALID,
                             "dimension '%s' is %lld elsewhere, but %lld in the data for input '%s'", label,
                             (long long)known->value, (long long)file->dims[axis], io->name);
        return TARE_OK;
    }
    c.asked = asked_for(r, label, c.class, &c.value);
    if (!c.asked && file && axis < file->rank)
        c.value = file->dims[axis];
    else if (!c.asked)
        c.value = c.class == DIM_TOTAL ? dimname_total(label, part_value, r)
                                       : dimname_default(c.class, label, r->has_cache);
    if (c.value < 0)
        return error_set(err, TARE_INVALID, "dimension '%s' cannot be %lld", label, (long long)c.value);
    c.name = mem_strdup(label);
    if (!c.name) return error_set(err, TARE_NOMEM, "out of memory");
    tare_status s = vec_push(&r->out->chosen, c, err);
    if (s < 0) mem_free(c.name);
    return s;
}

static bool has_cache(const struct ort_ios *inputs)
{
    for (size_t i = 0; i < inputs->items.n; i++) {
        const struct ort_io *io = &inputs->items.items[i];
        for (size_t d = 0; d < io->rank; d++)
            if (io->dims[d] < 0 && dim_class_of(io, d) == DIM_PAST) return true;
    }
    return false;
}

/* Sums need the dimensions they are made of: one pass for these, then one for the sums. */
static tare_status choose_all(struct resolving *r, const struct tensor *const *files, bool sums,
                              tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < r->inputs->items.n; i++) {
        const struct ort_io *io = &r->inputs->items.items[i];
        for (size_t d = 0; s == TARE_OK && d < io->rank; d++) {
            if (io->dims[d] < 0 && (dim_class_of(io, d) == DIM_TOTAL) == sums)
                s = choose_dim(r, io, d, files ? files[i] : NULL, err);
        }
    }
    return s;
}

static tare_status fill_shapes(struct free_dims *out, const struct ort_ios *inputs, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < inputs->items.n; i++) {
        const struct ort_io *io = &inputs->items.items[i];
        for (size_t d = 0; s == TARE_OK && d < io->rank; d++) {
            char label[160];
            label_of(io, d, label, sizeof label);
            const struct chosen_dim *c = io->dims[d] < 0 ? find_chosen(out, label) : NULL;
            s = vec_push(&out->shapes, c ? c->value : io->dims[d], err);
        }
    }
    return s;
}

/* The size that all inputs of two dimensions and more have there, fixed; 0: they differ, or there are none. Only ids,
 * integers in two dimensions, have a plain sequence axis. */
static int64_t common_fixed(const struct ort_ios *inputs, size_t axis)
{
    int64_t v = 0;
    for (size_t i = 0; i < inputs->items.n; i++) {
        const struct ort_io *io = &inputs->items.items[i];
        bool ids = io->rank == 2 && (io->type == ONNX_INT64 || io->type == ONNX_INT32);
        if (axis == 0 ? io->rank < 2 : !ids) continue;
        if (io->dims[axis] <= 0 || (v && io->dims[axis] != v)) return 0;
        v = io->dims[axis];
    }
    return v;
}

static tare_status check_asked(const struct resolving *r, tare_error *err)
{
    char what[200];
    const struct case_params *p = r->p;
    for (size_t i = 0; i < p->n_dims; i++) {
        if (r->used[i]) continue;
        snprintf(what, sizeof what, "the model has no free dimension '%s'", p->dims[i].name);
        return refuse_dims(r->inputs, err, what);
    }
    bool no_batch = p->batch > 0 && r->out->batch != p->batch, no_seq = p->seq > 0 && r->out->seq != p->seq;
    if (!no_batch && !no_seq) return TARE_OK;
    snprintf(what, sizeof what, "the model has no free %s dimension to set to %lld",
             no_batch ? "batch" : "sequence", (long long)(no_batch ? p->batch : p->seq));
    return refuse_dims(r->inputs, err, what);
}

/* The first of each kind stands for it. */
static void note_classes(struct free_dims *out, const struct ort_ios *inputs)
{
    out->batch = common_fixed(inputs, 0);
    out->seq = common_fixed(inputs, 1);
    bool batch = false, seq = false;
    for (size_t i = 0; i < out->chosen.n; i++) {
        const struct chosen_dim *c = &out->chosen.items[i];
        if (c->class == DIM_BATCH && !batch) out->batch = c->value, batch = true;
        if (c->class == DIM_SEQ && !seq) out->seq = c->value, seq = true;
    }
}

tare_status free_dims_resolve(struct free_dims *out, const struct ort_ios *inputs,
                              const struct case_params *p, const struct tensor *const *files, tare_error *err)
{
    struct free_dims d = FREE_DIMS_INIT;
    struct resolving r = {.out = &d,
                          .inputs = inputs,
                          .p = p,
                          .used = mem_new(p->n_dims, sizeof(bool)),
                          .has_cache = has_cache(inputs)};
    tare_status s = r.used ? TARE_OK : error_set(err, TARE_NOMEM, "out of memory");
    if (s == TARE_OK) s = choose_all(&r, files, false, err);
    if (s == TARE_OK) s = choose_all(&r, files, true, err);
    if (s == TARE_OK) s = fill_shapes(&d, inputs, err);
    note_classes(&d, inputs);
    if (s == TARE_OK) s = check_asked(&r, err);
    mem_free(r.used);
    if (s < 0) {
        free_dims_release(&d);
        return s;
    }
    *out = d;
    return TARE_OK;
}

void free_dims_release(struct free_dims *d)
{
    for (size_t i = 0; i < d->chosen.n; i++) mem_free(d->chosen.items[i].name);
    vec_release(&d->chosen);
    vec_release(&d->shapes);
}

const int64_t *free_dims_of(const struct free_dims *d, const struct ort_ios *inputs, size_t i)
{
    size_t at = 0;
    for (size_t k = 0; k < i; k++) at += inputs->items.items[k].rank;
    return d->shapes.items ? d->shapes.items + at : NULL;
}
