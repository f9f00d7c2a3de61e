/* SPDX-License-Identifier: MIT
 * npy.c - one array in NumPy's file format, versions 1.0 to 3.0: a magic number, a header that is a Python dictionary
 * of three known keys, the bytes. Reads that dictionary and nothing more of Python; arrays of objects, text and records
 * are refused by name. */
#include <stdio.h>
#include <string.h>

#include "subject/tensor.h"

struct npy_header {
    const char *name; /* of the file, for errors */
    const char *at, *end;
    char descr[16];
    bool has_descr, has_order, has_shape, fortran;
    int64_t dims[TENSOR_RANK_MAX];
    size_t rank;
};

struct npy_type {
    char kind;
    unsigned bytes;
    int type;
};

static const struct npy_type npy_types[] = {
    {'f', 4, ONNX_FLOAT},     {'f', 8, ONNX_DOUBLE},      {'f', 2, ONNX_FLOAT16}, {'b', 1, ONNX_BOOL},
    {'i', 1, ONNX_INT8},      {'i', 2, ONNX_INT16},       {'i', 4, ONNX_INT32},   {'i', 8, ONNX_INT64},
    {'u', 1, ONNX_UINT8},     {'u', 2, ONNX_UINT16},      {'u', 4, ONNX_UINT32},  {'u', 8, ONNX_UINT64},
    {'c', 8, ONNX_COMPLEX64}, {'c', 16, ONNX_COMPLEX128},
};
enum { N_NPY_TYPES = sizeof npy_types / sizeof *npy_types };

/* ---- the dictionary ---- */

static void skip_blanks(struct npy_header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t' || *h->at == '\r')) h->at++;
}

static bool take_char(struct npy_header *h, char c)
{
    skip_blanks(h);
    if (h->at == h->end || *h->at != c) return false;
    h->at++;
    return true;
}

static bool take_word(struct npy_header *h, const char *word)
{
    size_t len = strlen(word);
    skip_blanks(h);
    if ((size_t)(h->end - h->at) < len || memcmp(h->at, word, len) != 0) return false;
    h->at += len;
    return true;
}

static tare_status bad_header(const struct npy_header *h, const char *what, tare_error *err)
{
    return error_set(err, TARE_FORMAT, "%s: the .npy header %s", h->name, what);
}

/* 'text' or "text", without escapes. */
static tare_status take_text(struct npy_header *h, char *out, size_t size, tare_error *err)
{
    size_t n = 0;
    char quote = take_char(h, '\'') ? '\'' : '"';
    if (quote == '"' && !take_char(h, quote)) return bad_header(h, "has no text where one is due", err);
    while (h->at < h->end && *h->at != quote) {
        if (n + 1 >= size || *h->at == '\\')
            return bad_header(h, "has a text that is too long or escaped", err);
        out[n++] = *h->at++;
    }
    if (h->at == h->end) return bad_header(h, "ends within a text", err);
    h->at++;
    out[n] = 0;
    return TARE_OK;
}

static tare_status take_number(struct npy_header *h, int64_t *out, tare_error *err)
{
    int64_t v = 0;
    skip_blanks(h);
    if (h->at == h->end || *h->at < '0' || *h->at > '9')
        return bad_header(h, "has a shape that is no list of sizes", err);
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
        if (v > (INT64_MAX - 9) / 10) return bad_header(h, "has a dimension beyond any array", err);
        v = v * 10 + (*h->at - '0');
    }
    if (h->at < h->end && *h->at == 'L') h->at++; /* written by Python 2 */
    *out = v;
    return TARE_OK;
}

static tare_status take_shape(struct npy_header *h, tare_error *err)
{
    if (!take_char(h, '(')) return bad_header(h, "has a shape that is no tuple", err);
    h->rank = 0;
    while (!take_char(h, ')')) {
        if (h->rank == TENSOR_RANK_MAX) return bad_header(h, "has more than 16 dimensions", err);
        tare_status s = take_number(h, &h->dims[h->rank], err);
        if (s < 0) return s;
        h->rank++;
        if (!take_char(h, ',')) {
            if (!take_char(h, ')')) return bad_header(h, "has a shape without its end", err);
            break;
        }
    }
    h->has_shape = true;
    return TARE_OK;
}

static tare_status take_descr(struct npy_header *h, tare_error *err)
{
    skip_blanks(h);
    if (h->at < h->end && *h->at == '[')
        return error_set(err, TARE_UNSUPPORTED, "%s: arrays of records are not supported, only of numbers",
                         h->name);
    h->has_descr = true;
    return take_text(h, h->descr, sizeof h->descr, err);
}

static tare_status take_order(struct npy_header *h, tare_error *err)
{
    h->has_order = true;
    h->fortran = take_word(h, "True");
    if (!h->fortran && !take_word(h, "False"))
        return bad_header(h, "has a fortran_order that is neither True nor False", err);
    return TARE_OK;
}

static tare_status take_entry(struct npy_header *h, tare_error *err)
{
    char key[24];
    tare_status s = take_text(h, key, sizeof key, err);
    if (s < 0) return s;
    if (!take_char(h, ':')) return bad_header(h, "has a key without a value", err);
    if (strcmp(key, "descr") == 0 && !h->has_descr) return take_descr(h, err);
    if (strcmp(key, "fortran_order") == 0 && !h->has_order) return take_order(h, err);
    if (strcmp(key, "shape") == 0 && !h->has_shape) return take_shape(h, err);
    return bad_header(h, "has a key twice, or one other than descr, fortran_order and shape", err);
}

static tare_status read_header(struct npy_header *h, tare_error *err)
{
    if (!take_char(h, '{')) return bad_header(h, "is no dictionary", err);
    while (!take_char(h, '}')) {
        tare_status s = take_entry(h, err);
        if (s < 0) return s;
        if (!take_char(h, ',')) {
            if (!take_char(h, '}')) return bad_header(h, "is a dictionary without its end", err);
            break;
        }
    }
    skip_blanks(h);
    if (h->at != h->end) return bad_header(h, "goes on after its end", err);
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return bad_header(h, "lacks descr, fortran_order or shape", err);
    return TARE_OK;
}

/* "<f4": order, kind, bytes. */
static tare_status element_type(const struct npy_header *h, const struct npy_type **type, bool *swap,
                                tare_error *err)
{
    const char *d = h->descr;
    unsigned bytes = 0;
    if (!*d || !strchr("<>|=", *d)) return bad_header(h, "has a descr that is no element type", err);
    for (const char *p = d[1] ? d + 2 : d + 1; *p >= '0' && *p <= '9' && bytes < 1000; p++)
        bytes = bytes * 10 + (unsigned)(*p - '0');
    for (size_t i = 0; i < N_NPY_TYPES; i++) {
        if (npy_types[i].kind != d[1] || npy_types[i].bytes != bytes) continue;
        char plain[16];
        snprintf(plain, sizeof plain, "%c%c%u", d[0], d[1], bytes);
        if (strcmp(plain, d) != 0) break;
        *type = &npy_types[i];
        *swap = d[0] == '>';
        return TARE_OK;
    }
    static const struct {
        char kind;
        const char *what;
    } others[] = {{'U', "text"}, {'S', "text"}, {'O', "Python objects"}, {'M', "dates"}, {'m', "dates"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].kind == d[1])
            return error_set(err, TARE_UNSUPPORTED, "%s: arrays of %s are not supported, only of numbers",
                             h->name, others[i].what);
    return error_set(err, TARE_UNSUPPORTED, "%s: arrays of element type '%s' are not supported", h->name, d);
}

/* ---- the bytes ---- */

/* The other byte order; a complex number is two numbers. */
static void swap_bytes(struct tensor *t, const struct npy_type *type)
{
    unsigned width = type->kind == 'c' ? type->bytes / 2 : type->bytes;
    uint8_t *p = t->data;
    if (width == 1) return;
    for (size_t i = 0; i + width <= t->bytes; i += width) {
        for (unsigned k = 0; k < width / 2; k++) {
            uint8_t b = p[i + k];
            p[i + k] = p[i + width - 1 - k];
            p[i + width - 1 - k] = b;
        }
    }
}

/* From the order in which the first index runs fastest. Walks the target in order, keeping its indices. */
static void from_fortran(struct tensor *t, const uint8_t *from, unsigned width)
{
    uint64_t strides[TENSOR_RANK_MAX], at = 0, n = tensor_elements(t);
    int64_t index[TENSOR_RANK_MAX] = {0};
    uint64_t stride = 1;
    for (size_t d = 0; d < t->rank; d++) {
        strides[d] = stride;
        stride *= (uint64_t)t->dims[d];
    }
    uint8_t *to = t->data;
    for (uint64_t i = 0; i < n; i++) {
        memcpy(to + i * width, from + at * width, width);
        for (size_t d = t->rank; d-- > 0;) {
            at += strides[d];
            if (++index[d] < t->dims[d]) break;
            at -= strides[d] * (uint64_t)t->dims[d];
            index[d] = 0;
        }
    }
}

/* What the header says, and where the data begin. */
struct npy_array {
    struct npy_header h;
    const struct npy_type *type;
    bool swap;
    size_t head, want; /* bytes before the data, and of the data */
};

/* The length of the header has two bytes in version 1 and four since. The data itself is not looked at. */
static tare_status read_array(struct npy_array *a, const char *name, const uint8_t *p, size_t n,
                              tare_error *err)
{
    *a = (struct npy_array){.h = {.name = name}};
    if (n < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return error_set(err, TARE_FORMAT, "%s: no .npy file", name);
    if (p[6] < 1 || p[6] > 3)
        return error_set(err, TARE_FORMAT, "%s: .npy version %u.%u, 1.0 to 3.0 are read", name, p[6], p[7]);
    size_t head = p[6] == 1 ? 10 : 12, len = p[8] | (size_t)p[9] << 8;
    if (p[6] > 1 && n >= 12) len |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (n >= head && len > TENSOR_NPY_HEAD_MAX - head)
        return error_set(err, TARE_FORMAT, "%s: a .npy header of %zu bytes; at most %zu are read", name, len,
                         TENSOR_NPY_HEAD_MAX - head);
    if (n < head || len > n - head)
        return error_set(err, TARE_FORMAT, "%s: truncated: ends within its .npy header", name);
    a->head = head + len;
    a->h.at = (const char *)p + head;
    a->h.end = a->h.at + len;
    tare_status s = read_header(&a->h, err);
    if (s == TARE_OK) s = element_type(&a->h, &a->type, &a->swap, err);
    uint64_t elements;
    if (s == TARE_OK && !tensor_bytes(a->type->type, a->h.dims, a->h.rank, &elements, &a->want)) {
        char shape[160];
        tensor_shape_text(shape, sizeof shape, a->h.dims, a->h.rank);
        s = error_set(err, TARE_FORMAT, "%s: its bytes do not make %s %s, which no memory holds", name,
                      onnx_type_name(a->type->type), shape);
    }
    return s;
}

tare_status tensor_npy_bytes(const char *name, const void *head, size_t n, uint64_t *bytes, tare_error *err)
{
    struct npy_array a;
    tare_status s = read_array(&a, name, head, n, err);
    if (s == TARE_OK) *bytes = (uint64_t)a.head + a.want;
    return s;
}

/* Exactly as many bytes as type and shape make: more or less is another array than was saved. */
tare_status tensor_read_npy(struct tensor *out, const char *name, const void *bytes, size_t n,
                            tare_error *err)
{
    struct npy_array a;
    struct tensor t;
    tare_status s = read_array(&a, name, bytes, n, err);
    if (s < 0) return s;
    const uint8_t *data = (const uint8_t *)bytes + a.head;
    if (a.want != n - a.head) {
        char shape[160];
        tensor_shape_text(shape, sizeof shape, a.h.dims, a.h.rank);
        return error_set(err, TARE_FORMAT, "%s: %zu bytes of data do not make %s %s", name, n - a.head,
                         onnx_type_name(a.type->type), shape);
    }
    s = tensor_make(&t, &(struct tensor_spec){name, a.type->type, a.h.dims, a.h.rank}, err);
    if (s < 0) return s;
    if (a.h.fortran && a.h.rank > 1)
        from_fortran(&t, data, a.type->bytes);
    else if (a.want)
        memcpy(t.data, data, a.want);
    if (a.swap) swap_bytes(&t, a.type);
    *out = t;
    return TARE_OK;
}
