/* SPDX-License-Identifier: MIT
 * input.c - see onnx_model.h. */
#include "subject/onnx_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/rng.h"

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

tare_status input_match(const struct ort_ios *inputs, const struct tensor_set *files,
                        const struct tensor **out, tare_error *err)
{
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
