/* SPDX-License-Identifier: MIT
 * input.c - see onnx_model.h: what a model is fed, from files or synthetic, and the sizes of its free dimensions. */
#include "subject/onnx_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/rng.h"
#include "core/str.h"

tare_status input_check_kind(const struct ort_io *io, tare_error *err)
{
    if (io->kind != ORT_TENSOR)
        return error_set(err, TARE_UNSUPPORTED, "input '%s' is %s; only tensors can be fed", io->name,
                         ort_kind_name(io->kind));
    if (io->type == ONNX_STRING)
        return error_set(err, TARE_UNSUPPORTED,
                         "input '%s' is a tensor of text (strings), which is not supported", io->name);
    if (onnx_type_bits(io->type) == 0)
        return error_set(err, TARE_UNSUPPORTED, "input '%s' has element type %s, which is not supported",
                         io->name, onnx_type_name(io->type));
    return TARE_OK;
}

/* ---- made up ---- */

static bool is_integer(int type)
{
    return (type >= ONNX_UINT8 && type <= ONNX_INT64) || type == ONNX_UINT32 || type == ONNX_UINT64;
}

static bool has_numbers(int type)
{
    return is_integer(type) || type == ONNX_BOOL || tensor_is_float(type);
}

static void fill_same(struct tensor *t, double v)
{
    for (uint64_t i = 0, n = tensor_elements(t); i < n; i++) tensor_set_value(t, i, v);
}

static void fill_positions(struct tensor *t, int64_t bound)
{
    uint64_t last = t->rank ? (uint64_t)t->dims[t->rank - 1] : 1;
    for (uint64_t i = 0, n = tensor_elements(t); i < n; i++) {
        uint64_t at = i % last;
        tensor_set_value(t, i, (double)(bound > 0 ? at % (uint64_t)bound : at));
    }
}

/* Largest value a type holds, so that a bound beyond it does not wrap. */
static uint64_t type_limit(int type)
{
    switch (type) {
    case ONNX_INT8: return 128;
    case ONNX_UINT8: return 256;
    case ONNX_INT16: return 32768;
    case ONNX_UINT16: return 65536;
    case ONNX_INT32: return UINT64_C(1) << 31;
    default: return UINT64_C(1) << 32;
    }
}

static void fill_indices(struct tensor *t, struct rng *r, int64_t bound)
{
    uint64_t limit = type_limit(t->type),
             below = bound > 0 && (uint64_t)bound < limit ? (uint64_t)bound : limit;
    if (bound <= 0) below = 2;
    for (uint64_t i = 0, n = tensor_elements(t); i < n; i++)
        tensor_set_value(t, i, (double)rng_below(r, below));
}

static void fill_bytes(struct tensor *t, struct rng *r, unsigned below, unsigned from)
{
    uint8_t *p = t->data;
    for (size_t i = 0; i < t->bytes; i++) p[i] = (uint8_t)(from + rng_below(r, below));
}

/* Two at a time, by the polar form of Box and Muller. */
static void normal_pair(struct rng *r, double out[2])
{
    double radius = sqrt(-2 * log(1 - rng_unit(r))), angle = 6.283185307179586 * rng_unit(r);
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

static void fill_normal(struct tensor *t, struct rng *r)
{
    double pair[2];
    int type = t->type;
    uint64_t n = tensor_elements(t);
    if (type == ONNX_COMPLEX64 || type == ONNX_COMPLEX128) { /* two numbers each */
        t->type = type == ONNX_COMPLEX64 ? ONNX_FLOAT : ONNX_DOUBLE;
        n *= 2;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (i % 2 == 0) normal_pair(r, pair);
        tensor_set_value(t, i, pair[i % 2]);
    }
    t->type = type;
}

/* Types that tensor_set_value() does not have. Without a sign bit and below the top exponents all are finite. */
static void fill_small(struct tensor *t, struct rng *r)
{
    if (t->type == ONNX_FLOAT8E8M0)
        fill_bytes(t, r, 8, 120);
    else
        fill_bytes(t, r, onnx_type_bits(t->type) == 8 ? 64 : 256, 0);
}

/* The rows of the table in onnx_model.h, in its order: the first that fits decides. */
static void fill_tensor(struct tensor *t, const struct input_spec *spec)
{
    const char *name = spec->io->name;
    struct rng r;
    rng_seed(&r, spec->seed);
    bool numbers = has_numbers(t->type), integers = is_integer(t->type);
    bool bytes = t->type == ONNX_INT8 || t->type == ONNX_UINT8;
    if (numbers && strcasestr(name, "mask")) {
        fill_same(t, 1);
    } else if (integers && (strcasestr(name, "token_type") || strcasestr(name, "segment"))) {
        fill_same(t, 0);
    } else if (integers && strcasestr(name, "position")) {
        fill_positions(t, spec->bound);
    } else if (integers && strcasestr(name, "len")) {
        fill_same(t, (double)spec->seq);
    } else if (bytes && spec->bound <= 0) {
        fill_bytes(t, &r, 256, 0);
    } else if (integers) {
        fill_indices(t, &r, spec->bound);
    } else if (t->type == ONNX_BOOL) {
        for (uint64_t i = 0, n = tensor_elements(t); n > 1 && i < n; i++)
            tensor_set_value(t, i, (double)(rng_next(&r) >> 63));
    } else if (numbers || t->type == ONNX_COMPLEX64 || t->type == ONNX_COMPLEX128) {
        fill_normal(t, &r);
    } else {
        fill_small(t, &r);
    }
}

tare_status input_make(struct tensor *out, const struct input_spec *spec, tare_error *err)
{
    const struct ort_io *io = spec->io;
    tare_status s = input_check_kind(io, err);
    if (s < 0) return s;
    if (!io->has_shape)
        return error_set(err, TARE_INVALID,
                         "input '%s' has no shape in the model; give its data with --inputs", io->name);
    s = tensor_make(out, &(struct tensor_spec){io->name, io->type, spec->dims, io->rank}, err);
    if (s == TARE_OK) fill_tensor(out, spec);
    return s;
}

/* ---- from files ---- */

static tare_status refuse_missing(const struct ort_io *io, const struct tensor_set *files, tare_error *err)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < files->items.n; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", files->items.items[i].name);
    tare_status s = buf_status(&b, err);
    if (s == TARE_OK)
        s = error_set(err, TARE_INVALID, "no data for input '%s'; the file has: %.300s", io->name,
                      b.len ? b.data : "nothing");
    buf_release(&b);
    return s;
}

/* Arrays without names take the places in order. */
static const struct tensor *file_for(const struct ort_io *io, size_t i, const struct tensor_set *files)
{
    const struct tensor *by_name = tensor_find(files, io->name);
    if (by_name) return by_name;
    return i < files->items.n && !files->items.items[i].name[0] ? &files->items.items[i] : NULL;
}

/* An array that no input takes is refused, too: it is more likely a wrong file or name than something to
 * pass over. */
tare_status input_match(const struct ort_ios *inputs, const struct tensor_set *files,
                        const struct tensor **out, tare_error *err)
{
    if (inputs->items.n == 1 && files->items.n == 1) { /* whatever the file is called, it can only be this */
        out[0] = &files->items.items[0];
        return TARE_OK;
    }
    for (size_t i = 0; i < inputs->items.n; i++) {
        out[i] = file_for(&inputs->items.items[i], i, files);
        if (!out[i]) return refuse_missing(&inputs->items.items[i], files, err);
    }
    for (size_t f = 0; f < files->items.n; f++) {
        bool used = false;
        for (size_t i = 0; i < inputs->items.n; i++) used = used || out[i] == &files->items.items[f];
        if (used) continue;
        return error_set(err, TARE_INVALID, "the model has no input '%s', for which there are data",
                         files->items.items[f].name);
    }
    return TARE_OK;
}

/* The first axis is the batch, and input_fit() takes rows from the file as the case needs them: any number
 * but 0 will do. All other axes are part of the data and must be the ones of this case. */
static tare_status check_shape(const struct input_spec *spec, const struct tensor *file, tare_error *err)
{
    const struct ort_io *io = spec->io;
    char have[120], want[120];
    if (file->type != io->type)
        return error_set(err, TARE_INVALID, "input '%s' is %s, but its data are %s", io->name,
                         onnx_type_name(io->type), onnx_type_name(file->type));
    if (!io->has_shape) return TARE_OK;
    bool good = file->rank == io->rank;
    for (size_t d = 1; good && d < io->rank; d++) good = file->dims[d] == spec->dims[d];
    if (good && io->rank && (file->dims[0] > 0 || spec->dims[0] == 0)) return TARE_OK;
    if (good && io->rank == 0) return TARE_OK;
    tensor_shape_text(have, sizeof have, file->dims, file->rank);
    tensor_shape_text(want, sizeof want, spec->dims, io->rank);
    return error_set(err, TARE_INVALID,
                     "input '%s' is %s in this case, but its data are %s (only the first axis may differ)",
                     io->name, want, have);
}

/* Rows of the file from worker * wanted on, around its end; as many as there are need no cutting. */
tare_status input_fit(struct tensor *out, const struct input_spec *spec, const struct tensor *file,
                      unsigned worker, tare_error *err)
{
    const struct ort_io *io = spec->io;
    tare_status s = input_check_kind(io, err);
    if (s == TARE_OK) s = check_shape(spec, file, err);
    if (s < 0) return s;
    const int64_t *dims = io->has_shape ? spec->dims : file->dims;
    s = tensor_make(out, &(struct tensor_spec){io->name, io->type, dims, file->rank}, err);
    if (s < 0 || out->bytes == 0) return s;
    uint64_t rows = file->rank ? (uint64_t)file->dims[0] : 1, wanted = file->rank ? (uint64_t)dims[0] : 1;
    size_t row = file->bytes / rows;
    if (row * rows != file->bytes && wanted != rows) { /* packed below a byte: rows do not end on one */
        tensor_release(out);
        return error_set(err, TARE_UNSUPPORTED, "input '%s': rows of %s cannot be cut", io->name,
                         onnx_type_name(io->type));
    }
    if (wanted == rows) {
        memcpy(out->data, file->data, out->bytes);
        return TARE_OK;
    }
    for (uint64_t i = 0; i < wanted; i++) {
        uint64_t from = (worker * wanted + i) % rows;
        memcpy((char *)out->data + i * row, (const char *)file->data + from * row, row);
    }
    return TARE_OK;
}

/* ==== free dimensions ==== */

/* ---- names ---- */

enum dim_class dim_class_of(const struct ort_io *io, size_t axis)
{
    return dimname_class_at(io->name, io->symbols[axis], axis, io->rank, io->type);
}

static void label_of(const struct ort_io *io, size_t axis, char *out, size_t size)
{
    if (io->symbols[axis][0])
        snprintf(out, size, "%s", io->symbols[axis]);
    else
        snprintf(out, size, "%s.%zu", io->name, axis);
}

/* ---- errors ---- */

/* A name that several inputs share is said once: it is one dimension. */
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
    return dimname_default(class, r->has_cache);
}

/* What the user asked wins over files, files over defaults; a dimension that two inputs share must agree. */
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
                                       : dimname_default(c.class, r->has_cache);
    if (c.value < 0)
        return error_set(err, TARE_INVALID, "dimension '%s' cannot be %lld", label, (long long)c.value);
    c.name = arena_str(&r->out->texts, label);
    return c.name ? vec_push(&r->out->chosen, c, err) : error_nomem(err, "the name of a dimension");
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

/* What the user asked for is checked last, when it is known which of it found a use: a misspelt dimension
 * must be an error, not a default. */
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
    vec_release(&d->chosen);
    vec_release(&d->shapes);
    arena_release(&d->texts);
}

const int64_t *free_dims_of(const struct free_dims *d, const struct ort_ios *inputs, size_t i)
{
    size_t at = 0;
    for (size_t k = 0; k < i; k++) at += inputs->items.items[k].rank;
    return d->shapes.items ? d->shapes.items + at : NULL;
}
