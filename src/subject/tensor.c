/* SPDX-License-Identifier: MIT
 * tensor.c - see tensor.h: arrays in memory, and which reader a file gets. NumPy's are in npy.c and
 * npz.c. */
#include "subject/tensor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/looks.h"
#include "model/onnx/weight.h"

enum { ALIGNMENT = 64 };

/* ---- memory: the block that mem.h gave stands in the word before the data ---- */

static void *data_new(size_t bytes)
{
    if (bytes > SIZE_MAX - ALIGNMENT - sizeof(void *)) return NULL;
    char *block = mem_new(bytes + ALIGNMENT + sizeof(void *), 1);
    if (!block) return NULL;
    uintptr_t at = ((uintptr_t)block + sizeof(void *) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    void **data = (void **)(block + (at - (uintptr_t)block));
    data[-1] = block;
    return data;
}

void tensor_release(struct tensor *t)
{
    mem_free(t->name);
    if (t->data) mem_free(((void **)t->data)[-1]);
    *t = (struct tensor){0};
}

void tensor_set_release(struct tensor_set *s)
{
    for (size_t i = 0; i < s->items.n; i++) tensor_release(&s->items.items[i]);
    vec_release(&s->items);
}

/* An array with a dimension of 0 is empty, but the others must fit all the same. 2^46 elements at most, so
 * that no product overflows below. */
bool tensor_bytes(int type, const int64_t *dims, size_t rank, uint64_t *elements, size_t *bytes)
{
    const uint64_t most = UINT64_C(1) << 46;
    uint64_t n = 1;
    unsigned bits = onnx_type_bits(type);
    if (bits == 0) return false;
    bool empty = false;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        if (dims[i] == 0)
            empty = true;
        else if ((uint64_t)dims[i] > most / n)
            return false;
        else
            n *= (uint64_t)dims[i];
    }
    if (empty) n = 0;
    *elements = n;
    *bytes = (size_t)((n * bits + 7) / 8);
    return true;
}

/* Sizes are checked before memory is asked for: they come from files. */
tare_status tensor_make(struct tensor *out, const struct tensor_spec *spec, tare_error *err)
{
    struct tensor t = {.type = spec->type, .rank = spec->rank};
    const char *type = onnx_type_name(spec->type);
    uint64_t elements;
    char shape[160];
    if (t.rank > TENSOR_RANK_MAX)
        return error_set(err, TARE_INVALID, "%s: %zu dimensions, at most %d are read", spec->name, t.rank,
                         TENSOR_RANK_MAX);
    if (t.type == ONNX_STRING)
        return error_set(err, TARE_UNSUPPORTED, "%s: arrays of text are not supported", spec->name);
    tensor_shape_text(shape, sizeof shape, spec->dims, t.rank);
    if (!tensor_bytes(t.type, spec->dims, t.rank, &elements, &t.bytes))
        return error_set(err, TARE_INVALID, "%s: %s %s is no array that fits in memory", spec->name, type,
                         shape);
    if (t.rank) memcpy(t.dims, spec->dims, t.rank * sizeof *t.dims);
    t.name = mem_strdup(spec->name);
    t.data = t.name ? data_new(t.bytes) : NULL;
    if (!t.data) {
        tensor_release(&t);
        return error_set(err, TARE_NOMEM, "%s: out of memory for %s %s", spec->name, type, shape);
    }
    *out = t;
    return TARE_OK;
}

tare_status tensor_set_take(struct tensor_set *s, struct tensor *t, tare_error *err)
{
    tare_status st = vec_push(&s->items, *t, err);
    if (st < 0) tensor_release(t);
    *t = (struct tensor){0};
    return st;
}

struct tensor *tensor_find(const struct tensor_set *s, const char *name)
{
    for (size_t i = 0; i < s->items.n; i++) {
        if (strcmp(s->items.items[i].name, name) == 0) return &s->items.items[i];
    }
    return NULL;
}

uint64_t tensor_elements(const struct tensor *t)
{
    uint64_t n = 1;
    for (size_t i = 0; i < t->rank; i++) n *= (uint64_t)t->dims[i];
    return n;
}

void tensor_shape_text(char *out, size_t size, const int64_t *dims, size_t rank)
{
    size_t len = (size_t)snprintf(out, size, "[");
    for (size_t i = 0; i < rank && len < size; i++) {
        const char *sep = i ? ", " : "";
        len += dims[i] < 0 ? (size_t)snprintf(out + len, size - len, "%s?", sep)
                           : (size_t)snprintf(out + len, size - len, "%s%lld", sep, (long long)dims[i]);
    }
    if (len < size) snprintf(out + len, size - len, "]");
}

/* ---- numbers ---- */

static float float_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static float float_of_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return float_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    float small = (float)fraction * 0x1p-24f;
    return sign ? -small : small;
}

uint16_t tensor_to_bfloat(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* The 8-bit floats: `bias` of the exponent, `mantissa` bits; what is special differs. */
static double float8(uint8_t b, int mantissa, int bias, int type)
{
    int exponent = b >> mantissa & ((1 << (7 - mantissa)) - 1), fraction = b & ((1 << mantissa) - 1);
    double sign = b & 0x80 ? -1 : 1;
    bool fnuz = type == ONNX_FLOAT8E4M3FNUZ || type == ONNX_FLOAT8E5M2FNUZ;
    if (fnuz && b == 0x80) return __builtin_nan("");
    if (type == ONNX_FLOAT8E4M3FN && (b & 0x7f) == 0x7f) return __builtin_nan("");
    if (type == ONNX_FLOAT8E5M2 && exponent == 31)
        return fraction ? __builtin_nan("") : sign * __builtin_inf();
    double whole = (1 << mantissa) + (exponent ? fraction : fraction - (1 << mantissa));
    return sign * __builtin_ldexp(whole, (exponent ? exponent : 1) - bias - mantissa);
}

/* Element i of a type of less than 8 bits; the first is in the lowest bits of its byte. */
static double packed_value(const uint8_t *p, uint64_t i, int type)
{
    static const double fp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    unsigned bits = onnx_type_bits(type), per_byte = 8 / bits;
    unsigned v = p[i / per_byte] >> (i % per_byte * bits) & ((1u << bits) - 1);
    if (type == ONNX_FLOAT4E2M1) return v & 8 ? -fp4[v & 7] : fp4[v & 7];
    bool negative = onnx_type_kind(type) == ONNX_KIND_INT && v >> (bits - 1);
    return negative ? (double)v - (1 << bits) : v;
}

static double small_float(const struct tensor *t, uint64_t i)
{
    uint8_t b = ((const uint8_t *)t->data)[i];
    switch (t->type) {
    case ONNX_FLOAT8E4M3FN: return float8(b, 3, 7, t->type);
    case ONNX_FLOAT8E4M3FNUZ: return float8(b, 3, 8, t->type);
    case ONNX_FLOAT8E5M2: return float8(b, 2, 15, t->type);
    case ONNX_FLOAT8E5M2FNUZ: return float8(b, 2, 16, t->type);
    default: return b == 255 ? __builtin_nan("") : __builtin_ldexp(1, b - 127);
    }
}

/* Wide enough for all but the last digits of 64-bit integers. */
double tensor_value(const struct tensor *t, uint64_t i)
{
    const void *d = t->data;
    switch (t->type) {
    case ONNX_FLOAT: return ((const float *)d)[i];
    case ONNX_DOUBLE: return ((const double *)d)[i];
    case ONNX_COMPLEX64: return ((const float *)d)[2 * i];
    case ONNX_COMPLEX128: return ((const double *)d)[2 * i];
    case ONNX_FLOAT16: return float_of_half(((const uint16_t *)d)[i]);
    case ONNX_BFLOAT16: return float_of_bits((uint32_t)((const uint16_t *)d)[i] << 16);
    case ONNX_BOOL:
    case ONNX_UINT8: return ((const uint8_t *)d)[i];
    case ONNX_INT8: return ((const int8_t *)d)[i];
    case ONNX_UINT16: return ((const uint16_t *)d)[i];
    case ONNX_INT16: return ((const int16_t *)d)[i];
    case ONNX_UINT32: return ((const uint32_t *)d)[i];
    case ONNX_INT32: return ((const int32_t *)d)[i];
    case ONNX_UINT64: return (double)((const uint64_t *)d)[i];
    case ONNX_INT64: return (double)((const int64_t *)d)[i];
    case ONNX_UINT4:
    case ONNX_INT4:
    case ONNX_FLOAT4E2M1:
    case ONNX_UINT2:
    case ONNX_INT2: return packed_value(d, i, t->type);
    default: return onnx_type_bits(t->type) == 8 ? small_float(t, i) : __builtin_nan("");
    }
}

/* The nearest that a signed type of so many bits holds, but for the last digits that a double lacks. */
static int64_t whole_of(double v, int bits)
{
    double limit = __builtin_ldexp(1, bits - 1), step = bits > 53 ? 1024 : 1;
    if (__builtin_isnan(v)) return 0;
    if (v >= limit - step) return (int64_t)(limit - step);
    return v <= -limit ? (int64_t)-limit : (int64_t)v;
}

bool tensor_is_float(int type)
{
    return type == ONNX_FLOAT || type == ONNX_DOUBLE || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16;
}

bool tensor_set_value(struct tensor *t, uint64_t i, double v)
{
    void *d = t->data;
    switch (t->type) {
    case ONNX_FLOAT: ((float *)d)[i] = (float)v; return true;
    case ONNX_DOUBLE: ((double *)d)[i] = v; return true;
    case ONNX_FLOAT16: ((uint16_t *)d)[i] = weight_to_half((float)v); return true;
    case ONNX_BFLOAT16: ((uint16_t *)d)[i] = tensor_to_bfloat((float)v); return true;
    case ONNX_BOOL: ((uint8_t *)d)[i] = v != 0; return true;
    case ONNX_INT8: ((int8_t *)d)[i] = (int8_t)whole_of(v, 8); return true;
    case ONNX_UINT8: ((uint8_t *)d)[i] = (uint8_t)whole_of(fmin(fmax(v, 0), UINT8_MAX), 32); return true;
    case ONNX_INT16: ((int16_t *)d)[i] = (int16_t)whole_of(v, 16); return true;
    case ONNX_UINT16: ((uint16_t *)d)[i] = (uint16_t)whole_of(fmin(fmax(v, 0), UINT16_MAX), 32); return true;
    case ONNX_INT32: ((int32_t *)d)[i] = (int32_t)whole_of(v, 32); return true;
    case ONNX_UINT32: ((uint32_t *)d)[i] = (uint32_t)whole_of(fmin(fmax(v, 0), UINT32_MAX), 64); return true;
    case ONNX_INT64: ((int64_t *)d)[i] = whole_of(v, 64); return true;
    case ONNX_UINT64: ((uint64_t *)d)[i] = (uint64_t)whole_of(fmax(v, 0), 64); return true;
    default: return false;
    }
}

/* ---- files ---- */

/* A TensorProto, as the files of a test_data_set are, by the model's own reader; data kept in other files and text are
 * refused by name. */
tare_status tensor_read_pb(struct tensor *out, const char *name, const void *bytes, size_t n, tare_error *err)
{
    struct onnx_model holder = ONNX_MODEL_INIT;
    struct tensor made = {0};
    char file[512]; /* what tells other files apart has tried before: say so */
    const char *other = looks_like(bytes, n, LOOKS_TENSOR);
    if (other)
        return error_set(err, TARE_FORMAT, "%s: no tensor in .npy, .npz or ONNX form: %s", name, other);
    snprintf(file, sizeof file, "%.400s: no tensor in .npy, .npz or ONNX form", name);
    tare_status s = onnx_read_tensor(&holder, file, bytes, n, err);
    if (s == TARE_NOMEM) return error_set(err, s, "%s: out of memory", name);
    if (s < 0) return s;
    const struct onnx_tensor *t = holder.graph.initializers.items;
    if (t->external)
        s = error_set(err, TARE_UNSUPPORTED, "%s: its data are in another file", name);
    else if (t->type == ONNX_STRING)
        s = error_set(err, TARE_UNSUPPORTED, "%s: arrays of text are not supported", name);
    if (s < 0) goto out;
    s = tensor_make(&made, &(struct tensor_spec){t->name, t->type, t->dims.items, t->dims.n}, err);
    if (s < 0) goto out;
    s = onnx_tensor_copy(t, made.data, made.bytes, err);
    if (s == TARE_OK)
        *out = made;
    else
        tensor_release(&made);
out:
    if (s == TARE_FORMAT || s == TARE_INVALID) error_wrap(err, "%.200s", name);
    onnx_close(&holder);
    return s;
}

/* "dir/input_ids.npy" -> "input_ids" */
static void stem(char *out, size_t size, const char *path)
{
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    size_t len = strlen(base);
    if (len > 4 && strcmp(base + len - 4, ".npy") == 0) len -= 4;
    snprintf(out, size, "%.*s", (int)len, base);
}

static tare_status rename_to_stem(struct tensor *t, const char *path, tare_error *err)
{
    char name[NAME_MAX + 1];
    stem(name, sizeof name, path);
    mem_free(t->name);
    t->name = mem_strdup(name);
    if (t->name) return TARE_OK;
    tensor_release(t);
    return error_set(err, TARE_NOMEM, "%s: out of memory", path);
}

/* The first bytes tell the format, not the name. A protobuf has none of its own there and is what is left. */
static tare_status load_file(struct tensor_set *out, const char *path, tare_error *err)
{
    struct file_view view = FILE_VIEW_INIT;
    struct tensor t = {0};
    tare_status s = file_map(path, &view, err);
    if (s < 0) return s;
    if (view.size >= 4 && memcmp(view.data, "PK", 2) == 0) {
        s = tensor_read_npz(out, path, view.data, view.size, err);
    } else if (view.size >= 6 && memcmp(view.data, "\x93NUMPY", 6) == 0) {
        s = tensor_read_npy(&t, path, view.data, view.size, err);
        if (s == TARE_OK) s = rename_to_stem(&t, path, err);
        if (s == TARE_OK) s = tensor_set_take(out, &t, err);
    } else {
        s = tensor_read_pb(&t, path, view.data, view.size, err);
        if (s == TARE_OK) s = tensor_set_take(out, &t, err);
    }
    file_unmap(&view);
    return s;
}

struct folder_file {
    char *path;
    long number; /* of input_<number>.pb; -1: a .npy */
};
struct folder {
    const char *prefix; /* "input_" */
    VEC(struct folder_file) files;
};

/* False: no array is in a file of that name. */
static bool is_wanted(const char *prefix, const char *name, long *number)
{
    size_t len = strlen(name), n = strlen(prefix);
    char *end;
    *number = -1;
    if (len > 4 && strcmp(name + len - 4, ".npy") == 0) return true;
    if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9') return false;
    *number = strtol(name + n, &end, 10);
    return strcmp(end, ".pb") == 0 && *number < 100000;
}

static int compare_files(const void *a, const void *b)
{
    const struct folder_file *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Sorted by number and then by name: arrays without names take the inputs in this order, and readdir() has
 * none. */
static tare_status folder_read(struct folder *out, const char *path, tare_error *err)
{
    DIR *dir = opendir(path);
    if (!dir) return error_errno(err, "%s", path);
    tare_status s = TARE_OK;
    for (struct dirent *e; s == TARE_OK && (e = readdir(dir));) {
        struct folder_file f;
        struct buf full = BUF_INIT;
        if (!is_wanted(out->prefix, e->d_name, &f.number)) continue;
        buf_printf(&full, "%s/%s", path, e->d_name);
        s = buf_status(&full, err);
        f.path = buf_take(&full);
        if (s == TARE_OK) s = vec_push(&out->files, f, err);
        if (s < 0) mem_free(f.path);
    }
    closedir(dir);
    if (s == TARE_OK && out->files.n)
        qsort(out->files.items, out->files.n, sizeof *out->files.items, compare_files);
    return s;
}

static tare_status load_folder(struct tensor_set *out, const char *path, enum tensor_role role,
                               tare_error *err)
{
    struct folder found = {role == TENSOR_OUTPUTS ? "output_" : "input_", VEC_INIT};
    tare_status s = folder_read(&found, path, err);
    if (s == TARE_OK && found.files.n == 0)
        s = error_set(err, TARE_INVALID, "%s: this folder has neither %s0.pb nor .npy files", path,
                      found.prefix);
    for (size_t i = 0; s == TARE_OK && i < found.files.n; i++)
        s = load_file(out, found.files.items[i].path, err);
    for (size_t i = 0; i < found.files.n; i++) mem_free(found.files.items[i].path);
    vec_release(&found.files);
    return s;
}

/* Fills a set of our own first: *out stays untouched on failure. */
tare_status tensor_load(struct tensor_set *out, const char *path, enum tensor_role role, tare_error *err)
{
    struct tensor_set set = TENSOR_SET_INIT;
    struct stat st;
    if (stat(path, &st) < 0) return error_errno(err, "%s", path);
    tare_status s = S_ISDIR(st.st_mode) ? load_folder(&set, path, role, err) : load_file(&set, path, err);
    if (s < 0) {
        tensor_set_release(&set);
        return s;
    }
    *out = set;
    return TARE_OK;
}
