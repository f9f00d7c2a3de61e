/* SPDX-License-Identifier: MIT
 * tensor_pb.c - one array as ONNX stores it (a TensorProto message): what the files of a test_data_set are. Reads the
 * protobuf wire format of that one message; data kept in other files, text and segments are refused by name. */
#include <string.h>

#include "subject/tensor.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* Field numbers of TensorProto. */
enum field {
    DIMS = 1,
    DATA_TYPE = 2,
    SEGMENT = 3,
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    NAME = 8,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11,
    EXTERNAL_DATA = 13,
    DATA_LOCATION = 14
};

struct span {
    const uint8_t *at, *end;
};

struct proto {
    const char *file;
    struct span message;
    struct span name, raw;
    bool has_raw;
    int type;
    int64_t dims[TENSOR_RANK_MAX];
    size_t rank;
    uint64_t typed; /* numbers in the typed fields */
};

struct item { /* one field of the message */
    unsigned number, wire;
    uint64_t value;    /* varint and fixed */
    struct span bytes; /* wire type BYTES */
};

static tare_status damaged(const struct proto *p, const char *what, tare_error *err)
{
    return error_set(err, TARE_FORMAT, "%s: no tensor in .npy, .npz or ONNX form: %s", p->file, what);
}

static bool get_varint(struct span *s, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && s->at < s->end; shift += 7) {
        uint8_t b = *s->at++;
        if (shift == 63 && b > 1) return false;
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool get_fixed(struct span *s, unsigned n, uint64_t *out)
{
    if ((size_t)(s->end - s->at) < n) return false;
    *out = 0;
    memcpy(out, s->at, n);
    s->at += n;
    return true;
}

static bool get_item(struct span *s, struct item *out)
{
    uint64_t key, len;
    if (!get_varint(s, &key) || key >> 3 == 0 || key >> 3 > 536870911) return false;
    *out = (struct item){.number = (unsigned)(key >> 3), .wire = (unsigned)(key & 7)};
    switch (out->wire) {
    case VARINT: return get_varint(s, &out->value);
    case FIXED64: return get_fixed(s, 8, &out->value);
    case FIXED32: return get_fixed(s, 4, &out->value);
    case BYTES:
        if (!get_varint(s, &len) || len > (uint64_t)(s->end - s->at)) return false;
        out->bytes = (struct span){s->at, s->at + len};
        s->at += len;
        return true;
    default: return false;
    }
}

/* How the numbers of a typed field are written; 0 for other fields. */
static unsigned number_bytes(unsigned field)
{
    return field == FLOAT_DATA ? 4 : field == DOUBLE_DATA ? 8 : 0;
}

/* The next number of a field, packed or not: false at its end, or (*bad) in damaged bytes. */
static bool next_number(struct item *it, uint64_t *out, bool *bad)
{
    unsigned fixed = number_bytes(it->number);
    if (it->wire != BYTES) {
        bool right = it->wire == (fixed == 4 ? FIXED32 : fixed == 8 ? FIXED64 : VARINT);
        *bad = !right && it->wire != 99;
        if (!right) return false;
        *out = it->value;
        it->wire = 99; /* one number, now taken */
        return true;
    }
    if (it->bytes.at == it->bytes.end) return false;
    bool ok = fixed ? get_fixed(&it->bytes, fixed, out) : get_varint(&it->bytes, out);
    *bad = !ok;
    return ok;
}

static tare_status take_dims(struct proto *p, struct item it, tare_error *err)
{
    bool bad = false;
    for (uint64_t v; next_number(&it, &v, &bad);) {
        if (p->rank == TENSOR_RANK_MAX) return damaged(p, "more than 16 dimensions", err);
        p->dims[p->rank++] = (int64_t)v;
    }
    return bad ? damaged(p, "its dimensions are damaged", err) : TARE_OK;
}

static tare_status count_numbers(struct proto *p, struct item it, tare_error *err)
{
    bool bad = false;
    for (uint64_t v; next_number(&it, &v, &bad);) p->typed++;
    return bad ? damaged(p, "its numbers are damaged", err) : TARE_OK;
}

/* Fields that must be bytes: anything else is not this message at all, and must not be refused as a feature of it. */
static bool is_bytes_field(unsigned number)
{
    return number == NAME || number == RAW_DATA || number == SEGMENT || number == STRING_DATA ||
           number == EXTERNAL_DATA;
}

static tare_status take_item(struct proto *p, const struct item *it, tare_error *err)
{
    if (is_bytes_field(it->number) && it->wire != BYTES)
        return damaged(p, "a field is of the wrong kind", err);
    switch (it->number) {
    case DIMS: return take_dims(p, *it, err);
    case DATA_TYPE:
        if (it->wire != VARINT || it->value >= ONNX_TYPES) {
            return damaged(p, "an element type that ONNX does not have", err);
        }
        p->type = (int)it->value;
        return TARE_OK;
    case NAME: p->name = it->bytes; return TARE_OK;
    case RAW_DATA:
        p->raw = it->bytes;
        p->has_raw = true;
        return TARE_OK;
    case FLOAT_DATA:
    case INT32_DATA:
    case INT64_DATA:
    case DOUBLE_DATA:
    case UINT64_DATA: return count_numbers(p, *it, err);
    case SEGMENT:
        return error_set(err, TARE_UNSUPPORTED, "%s: a tensor in segments is not supported", p->file);
    case STRING_DATA:
        return error_set(err, TARE_UNSUPPORTED, "%s: arrays of text are not supported", p->file);
    case EXTERNAL_DATA: return error_set(err, TARE_UNSUPPORTED, "%s: its data are in another file", p->file);
    case DATA_LOCATION:
        if (it->wire != VARINT || it->value > 1) return damaged(p, "a field is of the wrong kind", err);
        if (it->value) return error_set(err, TARE_UNSUPPORTED, "%s: its data are in another file", p->file);
        return TARE_OK;
    default: return TARE_OK;
    }
}

/* Which typed field holds a type's numbers (onnx.proto), and how many of them make one element. */
static unsigned field_of(int type, unsigned *per_element)
{
    *per_element = type == ONNX_COMPLEX64 || type == ONNX_COMPLEX128 ? 2 : 1;
    switch (type) {
    case ONNX_FLOAT:
    case ONNX_COMPLEX64: return FLOAT_DATA;
    case ONNX_DOUBLE:
    case ONNX_COMPLEX128: return DOUBLE_DATA;
    case ONNX_INT64: return INT64_DATA;
    case ONNX_UINT32:
    case ONNX_UINT64: return UINT64_DATA;
    default: return INT32_DATA;
    }
}

/* Bytes that one number of the typed field becomes; for packed types, one number holds one byte of them. */
static unsigned stored_bytes(int type, unsigned per_element)
{
    unsigned bits = onnx_type_bits(type);
    return bits < 8 ? 1 : bits / 8 / per_element;
}

static tare_status copy_typed(struct proto *p, struct tensor *t, tare_error *err)
{
    unsigned per, field = field_of(t->type, &per), width = stored_bytes(t->type, per);
    size_t at = 0;
    struct item it;
    for (struct span rest = p->message; rest.at < rest.end && get_item(&rest, &it);) {
        bool bad = false;
        if (it.number != FLOAT_DATA && it.number != DOUBLE_DATA && it.number != INT32_DATA &&
            it.number != INT64_DATA && it.number != UINT64_DATA) {
            continue;
        }
        if (it.number != field) return damaged(p, "its numbers are in the field of another type", err);
        for (uint64_t v; next_number(&it, &v, &bad); at += width) {
            if (at + width > t->bytes) return damaged(p, "more numbers than its shape has", err);
            memcpy((char *)t->data + at, &v, width);
        }
    }
    if (at == t->bytes) return TARE_OK;
    return damaged(p, "fewer numbers than its shape has", err);
}

static tare_status fill(struct proto *p, struct tensor *t, tare_error *err)
{
    if (!p->has_raw) return copy_typed(p, t, err);
    if (p->typed) return damaged(p, "its data are there twice, raw and typed", err);
    if ((size_t)(p->raw.end - p->raw.at) != t->bytes) {
        return error_set(err, TARE_FORMAT, "%s: %zu bytes of data, its shape needs %zu", p->file,
                         (size_t)(p->raw.end - p->raw.at), t->bytes);
    }
    if (t->bytes) memcpy(t->data, p->raw.at, t->bytes);
    return TARE_OK;
}

static tare_status check_size(struct proto *p, tare_error *err)
{
    uint64_t elements, have = p->has_raw ? (uint64_t)(p->raw.end - p->raw.at) : p->typed * 16;
    size_t bytes;
    if (p->type == ONNX_UNDEFINED) return damaged(p, "no element type", err);
    if (p->type == ONNX_STRING)
        return error_set(err, TARE_UNSUPPORTED, "%s: arrays of text are not supported", p->file);
    if (!tensor_bytes(p->type, p->dims, p->rank, &elements, &bytes))
        return damaged(p, "its shape is impossible", err);
    if (bytes > have)
        return damaged(p, "fewer data than its shape needs", err); /* before memory is asked for */
    return TARE_OK;
}

tare_status tensor_read_pb(struct tensor *out, const char *name, const void *bytes, size_t n, tare_error *err)
{
    struct proto p = {.file = name, .message = {bytes, (const uint8_t *)bytes + n}};
    struct item it;
    tare_status s = TARE_OK;
    for (struct span rest = p.message; s == TARE_OK && rest.at < rest.end;) {
        s = get_item(&rest, &it) ? take_item(&p, &it, err) : damaged(&p, "its fields are damaged", err);
    }
    if (s == TARE_OK) s = check_size(&p, err);
    if (s < 0) return s;
    char own[256] = "";
    size_t len = p.name.at ? (size_t)(p.name.end - p.name.at) : 0;
    if (len >= sizeof own || (len && memchr(p.name.at, 0, len)))
        return damaged(&p, "its name is too long or not text", err);
    if (len) memcpy(own, p.name.at, len);
    struct tensor t;
    s = tensor_make(&t, &(struct tensor_spec){own, p.type, p.dims, p.rank}, err);
    if (s < 0) return s;
    s = fill(&p, &t, err);
    if (s < 0) {
        tensor_release(&t);
        return s;
    }
    *out = t;
    return TARE_OK;
}
