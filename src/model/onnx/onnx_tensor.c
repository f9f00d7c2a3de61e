/* SPDX-License-Identifier: MIT
 * onnx_tensor.c - element types, and constants: read without touching their elements, decoded on demand in whatever
 * way they are stored. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/onnx/onnx_parse.h"

/* TensorProto's field numbers */
enum {
    T_DIMS = 1,
    T_TYPE = 2,
    T_SEGMENT = 3,
    T_FLOAT = 4,
    T_INT32 = 5,
    T_STRING = 6,
    T_INT64 = 7,
    T_NAME = 8,
    T_RAW = 9,
    T_DOUBLE = 10,
    T_UINT64 = 11,
    T_EXTERNAL = 13,
    T_LOCATION = 14
};

/* What a TensorProto becomes while it is read. */
struct tensor_message {
    struct onnx_tensor t;
    int64_t location; /* 1: external */
};

static tare_status refuse_segment(const struct parse *p, const struct place *at, const struct wire_field *f,
                                  void *out)
{
    (void)f, (void)out;
    return parse_fail(p, at, "is split into segments, which no version of ONNX allows");
}

static const struct parse_field tensor_fields[PARSE_FIELDS] = {
    [T_DIMS] = {"dims", AS_VARINT | AS_BYTES, PARSE_NUMBERS(struct tensor_message, t.dims)},
    [T_TYPE] = {"data_type", AS_VARINT, PARSE_ONE(struct tensor_message, t.type, parse_enum)},
    [T_SEGMENT] = {"segment", AS_BYTES, .read = refuse_segment},
    [T_FLOAT] = {.name = "float_data", .as = AS_FIXED32 | AS_BYTES},
    [T_INT32] = {.name = "int32_data", .as = AS_VARINT | AS_BYTES},
    [T_STRING] = {.name = "string_data", .as = AS_BYTES},
    [T_INT64] = {.name = "int64_data", .as = AS_VARINT | AS_BYTES},
    [T_NAME] = {"name", AS_BYTES, PARSE_ONE(struct tensor_message, t.name, parse_name)},
    [T_RAW] = {"raw_data", AS_BYTES, PARSE_ONE(struct tensor_message, t.raw, parse_bytes)},
    [T_DOUBLE] = {.name = "double_data", .as = AS_FIXED64 | AS_BYTES},
    [T_UINT64] = {.name = "uint64_data", .as = AS_VARINT | AS_BYTES},
    [T_EXTERNAL] = {.name = "external_data", .as = AS_BYTES},
    [T_LOCATION] = {"data_location", AS_VARINT, PARSE_ONE(struct tensor_message, location, parse_int)},
};

/* In which typed field a type is kept, how many numbers that is (per `per` elements), and their wire type. */
struct storage {
    unsigned field;
    unsigned numbers, per;
    enum wire_type as;
};

/* From the comments of onnx.proto: what is narrower than 32 bits is kept in int32_data, two or four to a
 * number below 8 bits; a complex number is two. */
static struct storage storage_of(int type)
{
    switch (type) {
    case ONNX_FLOAT: return (struct storage){T_FLOAT, 1, 1, WIRE_FIXED32};
    case ONNX_COMPLEX64: return (struct storage){T_FLOAT, 2, 1, WIRE_FIXED32};
    case ONNX_DOUBLE: return (struct storage){T_DOUBLE, 1, 1, WIRE_FIXED64};
    case ONNX_COMPLEX128: return (struct storage){T_DOUBLE, 2, 1, WIRE_FIXED64};
    case ONNX_INT64: return (struct storage){T_INT64, 1, 1, WIRE_VARINT};
    case ONNX_UINT32:
    case ONNX_UINT64: return (struct storage){T_UINT64, 1, 1, WIRE_VARINT};
    case ONNX_UINT4:
    case ONNX_INT4:
    case ONNX_FLOAT4E2M1: return (struct storage){T_INT32, 1, 2, WIRE_VARINT};
    case ONNX_UINT2:
    case ONNX_INT2: return (struct storage){T_INT32, 1, 4, WIRE_VARINT};
    case ONNX_STRING: return (struct storage){T_STRING, 1, 1, WIRE_BYTES};
    default: return (struct storage){T_INT32, 1, 1, WIRE_VARINT};
    }
}

static tare_status fail_tensor(const struct parse *p, const struct place *at, const struct onnx_tensor *t,
                               const char *what)
{
    return parse_fail(p, at, "'%.60s' %s", t->name, what);
}

static tare_status count_elements(const struct parse *p, const struct place *at, struct onnx_tensor *t)
{
    uint64_t bytes;
    t->elements = 1;
    for (size_t i = 0; i < t->dims.n; i++) {
        if (t->dims.items[i] < 0) return fail_tensor(p, at, t, "has a negative dimension");
        if (__builtin_mul_overflow(t->elements, (uint64_t)t->dims.items[i], &t->elements))
            return fail_tensor(p, at, t, "has more elements than 64 bits can count");
    }
    if (t->type <= ONNX_UNDEFINED || t->type >= ONNX_TYPES)
        return parse_fail(p, at, "'%.60s' has element type %d, which this version does not know", t->name,
                          t->type);
    if (t->type != ONNX_STRING && !onnx_type_bytes(t->type, t->elements, &bytes))
        return fail_tensor(p, at, t, "has more elements than 64 bits can count");
    return TARE_OK;
}

/* ---- external data ---- */

static tare_status parse_u64(const struct parse *p, const struct place *at, const char *text, uint64_t *out)
{
    char *end;
    if (text[0] < '0' || text[0] > '9' || strlen(text) > 19)
        return parse_fail(p, at, "'%.40s' is not a number of bytes", text);
    *out = strtoull(text, &end, 10);
    return *end ? parse_fail(p, at, "'%.40s' is not a number of bytes", text) : TARE_OK;
}

/* One key and value: location, offset, length are ours; checksum and others are not looked at. */
static tare_status parse_external(const struct parse *p, const struct place *at,
                                  const struct wire_field *entry, struct onnx_tensor *t)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"key", AS_BYTES, PARSE_ONE(struct onnx_property, key, parse_name)},
        [2] = {"value", AS_BYTES, PARSE_ONE(struct onnx_property, value, parse_name)},
    };
    struct onnx_property e = {"", ""};
    tare_status s = parse_fields(p, message_of(entry, fields, at), &e, NULL);
    if (s < 0) return s;
    if (strcmp(e.key, "location") == 0) t->external = e.value;
    if (strcmp(e.key, "offset") == 0) s = parse_u64(p, at, e.value, &t->external_offset);
    if (strcmp(e.key, "length") == 0) s = parse_u64(p, at, e.value, &t->external_bytes);
    return s;
}

/* The file is measured, not read: models of many gigabytes open at once. A length that is stated must be
 * the one that the dimensions need; where none is, it is that. */
static tare_status check_external(const struct parse *p, const struct place *at, struct onnx_tensor *t)
{
    uint64_t bytes;
    tare_error why = TARE_ERROR_INIT;
    if (!t->external) return fail_tensor(p, at, t, "has external data without a location");
    if (!onnx_type_bytes(t->type, t->elements, &bytes))
        return fail_tensor(p, at, t, "cannot be external data");
    if (t->external_bytes && t->external_bytes != bytes)
        return parse_fail(p, at,
                          "'%.60s' has %" PRIu64 " bytes of external data, its dimensions need %" PRIu64,
                          t->name, t->external_bytes, bytes);
    t->external_bytes = bytes;
    tare_status s = external_check(&p->memory->external, t->external, t->external_offset, bytes, &why);
    if (s == TARE_NOMEM) return parse_nomem(p);
    if (s < 0) {
        parse_fail(p, at, "'%.60s': %.160s", t->name, why.text);
        if (p->err) p->err->status = s;
    }
    return s;
}

/* ---- data inside the file ---- */

static tare_status check_raw(const struct parse *p, const struct place *at, struct onnx_tensor *t)
{
    uint64_t bytes;
    if (t->type == ONNX_STRING) return fail_tensor(p, at, t, "has strings as raw data");
    if (!onnx_type_bytes(t->type, t->elements, &bytes)) return fail_tensor(p, at, t, "is too large");
    if (bytes == t->raw_bytes) return TARE_OK;
    return parse_fail(p, at, "'%.60s' has %" PRIu64 " bytes of raw data, its dimensions need %" PRIu64,
                      t->name, t->raw_bytes, bytes);
}

/* The numbers in typed fields are counted where that needs no look at each one; else when they are decoded. */
static tare_status check_typed(const struct parse *p, const struct place *at, struct message m,
                               const struct onnx_tensor *t)
{
    struct storage in = storage_of(t->type);
    uint64_t need = (t->elements + in.per - 1) / in.per, least = 0, most = 0;
    struct wire_field f;
    int got;
    if (__builtin_mul_overflow(need, (uint64_t)in.numbers, &need))
        return fail_tensor(p, at, t, "is too large");
    while ((got = parse_next(p, &m, &f)) > 0) {
        if (f.number != in.field) continue;
        if (f.type != WIRE_BYTES || in.as == WIRE_BYTES) {
            least++, most++;
        } else if (in.as == WIRE_VARINT) {
            least += (f.n + 9) / 10;
            most += f.n;
        } else {
            size_t n = wire_packed_count(f.bytes, f.n, in.as);
            if (n == (size_t)-1) return fail_tensor(p, at, t, "ends inside a number");
            least += n, most += n;
        }
    }
    if (got < 0) return (tare_status)got;
    if (need >= least && need <= most) return TARE_OK;
    if (most == 0) return fail_tensor(p, at, t, "has no data");
    return parse_fail(p, at, "'%.60s' does not have the %" PRIu64 " elements that its dimensions say",
                      t->name, t->elements);
}

/* Where the values are is known only when all fields were seen, hence the second pass for external data.
 * Raw data beside an external location are not the tensor's and are dropped. */
tare_status parse_tensor(const struct parse *p, const struct place *at, const struct wire_field *whole,
                         void *out)
{
    struct message m = message_of(whole, tensor_fields, at);
    struct tensor_message read = {
        .t = {.name = "", .message = whole->bytes, .message_bytes = whole->n, .memory = p->memory}};
    struct onnx_tensor *t = out;
    struct wire_field f;
    int got;
    tare_status s = parse_fields(p, m, &read, NULL);
    if (s < 0) return s;
    *t = read.t;
    if ((s = count_elements(p, at, t)) < 0) return s;
    if (read.location != 1) return t->raw ? check_raw(p, at, t) : check_typed(p, at, m, t);
    t->raw = NULL;
    t->raw_bytes = 0;
    while ((got = parse_next(p, &m, &f)) > 0)
        if (f.number == T_EXTERNAL && (s = parse_external(p, at, &f, t)) < 0) return s;
    return got < 0 ? (tare_status)got : check_external(p, at, t);
}

/* Checked, and not kept. */
static tare_status parse_indices(const struct parse *p, const struct place *at, const struct wire_field *f,
                                 void *out)
{
    struct onnx_tensor indices;
    (void)out;
    return parse_tensor(p, at, f, &indices);
}

tare_status parse_sparse(const struct parse *p, const struct place *at, const struct wire_field *f, void *out)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"values", AS_BYTES, PARSE_MESSAGE(struct onnx_sparse, values, parse_tensor)},
        [2] = {"indices", AS_BYTES, .read = parse_indices, .inside = true},
        [3] = {"dims", AS_VARINT | AS_BYTES, PARSE_NUMBERS(struct onnx_sparse, dims)},
    };
    struct onnx_sparse *made = out;
    struct parse_counts counts;
    *made = (struct onnx_sparse){.values = {.name = ""}};
    tare_status s = parse_fields(p, message_of(f, fields, at), made, &counts);
    if (s < 0) return s;
    for (size_t i = 0; i < made->dims.n; i++)
        if (made->dims.items[i] < 0) return parse_fail(p, at, "has a negative dimension");
    return counts.of[1] ? TARE_OK : parse_fail(p, at, "a sparse tensor without values");
}

/* ---- elements on demand ---- */

static int64_t widen_int(uint64_t value, unsigned bits, bool sign)
{
    if (bits == 64) return (int64_t)value;
    value &= (UINT64_C(1) << bits) - 1;
    if (sign && value >> (bits - 1)) value |= ~UINT64_C(0) << bits;
    return (int64_t)value;
}

/* The numbers in a tensor's typed field, one after the other. */
struct numbers {
    struct storage in;
    struct wire fields, run; /* what is left of the message, and of the field in hand */
    const char *why;
};

/* 1: a number; 0: the end; -1: damaged, n->why says how. */
static int next_number(struct numbers *n, uint64_t *out)
{
    struct wire_field f;
    while (n->run.at == n->run.end) {
        int got = wire_next(&n->fields, &f, &n->why);
        if (got <= 0) return got;
        if (f.number == n->in.field) n->run = (struct wire){f.bytes, f.bytes + f.n};
    }
    return wire_packed(&n->run, n->in.as, out, &n->why);
}

/* Bytes that one number of the typed field becomes; of elements below eight bits it holds a byte full. */
static unsigned number_width(int type, const struct storage *in)
{
    unsigned bits = onnx_type_bits(type);
    return bits < 8 ? 1 : bits / 8 / in->numbers;
}

/* Counts while it copies: of packed varints nobody knew before how many there are, and a hostile file must
 * not write behind `to`. */
static tare_status copy_typed(const struct onnx_tensor *t, void *to, size_t size, tare_error *err)
{
    struct numbers n = {.in = storage_of(t->type), .fields = {t->message, t->message + t->message_bytes}};
    unsigned width = number_width(t->type, &n.in);
    uint64_t number;
    size_t at = 0;
    int got;
    while ((got = next_number(&n, &number)) > 0) {
        if (at + width > size)
            return error_set(err, TARE_FORMAT, "tensor '%.60s' has more numbers than its dimensions say",
                             t->name);
        memcpy((char *)to + at, &number, width); /* both are little-endian */
        at += width;
    }
    if (got < 0) return error_set(err, TARE_FORMAT, "tensor '%.60s': %s", t->name, n.why);
    if (at == size) return TARE_OK;
    return error_set(err, TARE_FORMAT, "tensor '%.60s' has fewer numbers than its dimensions say", t->name);
}

tare_status onnx_tensor_copy(const struct onnx_tensor *t, void *to, size_t size, tare_error *err)
{
    const uint8_t *bytes;
    uint64_t n = 0;
    if (!t->raw && !t->external) return copy_typed(t, to, size, err);
    tare_status s = onnx_tensor_bytes(t, &bytes, &n, err);
    if (s < 0) return s;
    if (n != size)
        return error_set(err, TARE_FORMAT, "tensor '%.60s' has %" PRIu64 " bytes, asked for are %zu", t->name,
                         n, size);
    if (size) memcpy(to, bytes, size);
    return TARE_OK;
}

/* The packed elements are copied to the start of `out` and widened there, so that no other memory is needed. */
tare_status onnx_tensor_ints(const struct onnx_tensor *t, int64_t *out, size_t max, tare_error *err)
{
    uint64_t bytes;
    unsigned bits = onnx_type_bits(t->type);
    const uint8_t *packed = (const uint8_t *)out;
    if (!onnx_type_is_whole(t->type))
        return error_set(err, TARE_INVALID, "tensor '%.60s' is of %s, not of integers", t->name,
                         onnx_type_name(t->type));
    if (t->elements > max || !onnx_type_bytes(t->type, t->elements, &bytes))
        return error_set(err, TARE_INVALID,
                         "tensor '%.60s' has %" PRIu64 " elements, at most %zu are asked for", t->name,
                         t->elements, max);
    tare_status s = onnx_tensor_copy(t, out, (size_t)bytes, err);
    if (s < 0) return s;
    for (uint64_t i = t->elements; i-- > 0;) { /* from the last on: each becomes wider in its place */
        uint64_t value = 0;
        if (bits < 8)
            value = packed[i * bits / 8] >> i * bits % 8;
        else
            memcpy(&value, packed + i * (bits / 8), bits / 8);
        out[i] = widen_int(value, bits, onnx_type_kind(t->type) == ONNX_KIND_INT);
        if (t->type == ONNX_UINT64 && out[i] < 0)
            return error_set(err, TARE_INVALID, "tensor '%.60s' holds a number above 2^63", t->name);
    }
    return TARE_OK;
}

/* An external tensor without elements must not touch its file: an empty one cannot be mapped. */
tare_status onnx_tensor_bytes(const struct onnx_tensor *t, const uint8_t **bytes, uint64_t *n,
                              tare_error *err)
{
    static const uint8_t nothing[1] = {0};
    if (t->external && t->elements == 0) {
        *bytes = nothing;
        *n = 0;
        return TARE_OK;
    }
    if (t->external) {
        tare_status s = external_bytes(&t->memory->external, t->external, t->external_offset, bytes, err);
        if (s == TARE_OK) *n = t->external_bytes;
        return s;
    }
    if (!t->raw) return error_set(err, TARE_UNSUPPORTED, "tensor '%.60s' is kept in typed fields", t->name);
    *bytes = t->raw;
    *n = t->raw_bytes;
    return TARE_OK;
}

/* ==== element types ==== */

struct row {
    const char *name, *precision;
    unsigned bits;
    enum onnx_kind kind;
};

static const struct row rows[ONNX_TYPES] = {
    [ONNX_UNDEFINED] = {"undefined", "mixed", 0, ONNX_KIND_NONE},
    [ONNX_FLOAT] = {"float32", "fp32", 32, ONNX_KIND_FLOAT},
    [ONNX_UINT8] = {"uint8", "int8", 8, ONNX_KIND_UINT},
    [ONNX_INT8] = {"int8", "int8", 8, ONNX_KIND_INT},
    [ONNX_UINT16] = {"uint16", "int16", 16, ONNX_KIND_UINT},
    [ONNX_INT16] = {"int16", "int16", 16, ONNX_KIND_INT},
    [ONNX_INT32] = {"int32", "int32", 32, ONNX_KIND_INT},
    [ONNX_INT64] = {"int64", "int64", 64, ONNX_KIND_INT},
    [ONNX_STRING] = {"string", "mixed", 0, ONNX_KIND_NONE},
    [ONNX_BOOL] = {"bool", "mixed", 8, ONNX_KIND_UINT},
    [ONNX_FLOAT16] = {"float16", "fp16", 16, ONNX_KIND_FLOAT},
    [ONNX_DOUBLE] = {"float64", "fp64", 64, ONNX_KIND_FLOAT},
    [ONNX_UINT32] = {"uint32", "int32", 32, ONNX_KIND_UINT},
    [ONNX_UINT64] = {"uint64", "int64", 64, ONNX_KIND_UINT},
    [ONNX_COMPLEX64] = {"complex64", "mixed", 64, ONNX_KIND_NONE},
    [ONNX_COMPLEX128] = {"complex128", "mixed", 128, ONNX_KIND_NONE},
    [ONNX_BFLOAT16] = {"bfloat16", "bf16", 16, ONNX_KIND_FLOAT},
    [ONNX_FLOAT8E4M3FN] = {"float8e4m3fn", "fp8", 8, ONNX_KIND_FLOAT},
    [ONNX_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", "fp8", 8, ONNX_KIND_FLOAT},
    [ONNX_FLOAT8E5M2] = {"float8e5m2", "fp8", 8, ONNX_KIND_FLOAT},
    [ONNX_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", "fp8", 8, ONNX_KIND_FLOAT},
    [ONNX_UINT4] = {"uint4", "int4", 4, ONNX_KIND_UINT},
    [ONNX_INT4] = {"int4", "int4", 4, ONNX_KIND_INT},
    [ONNX_FLOAT4E2M1] = {"float4e2m1", "fp4", 4, ONNX_KIND_FLOAT},
    [ONNX_FLOAT8E8M0] = {"float8e8m0", "fp8", 8, ONNX_KIND_FLOAT},
    [ONNX_UINT2] = {"uint2", "int2", 2, ONNX_KIND_UINT},
    [ONNX_INT2] = {"int2", "int2", 2, ONNX_KIND_INT},
    [ONNX_FLOAT6E2M3] = {"float6e2m3", "fp6", 6, ONNX_KIND_NONE},
    [ONNX_FLOAT6E3M2] = {"float6e3m2", "fp6", 6, ONNX_KIND_NONE},
};

static const struct row *type_row(int type)
{
    static const struct row none = {"unknown", "mixed", 0, ONNX_KIND_NONE};
    return type >= 0 && type < ONNX_TYPES ? &rows[type] : &none;
}

const char *onnx_type_name(int type)
{
    return type_row(type)->name;
}

const char *onnx_type_precision(int type)
{
    return type_row(type)->precision;
}

unsigned onnx_type_bits(int type)
{
    return type_row(type)->bits;
}

enum onnx_kind onnx_type_kind(int type)
{
    return type_row(type)->kind;
}

bool onnx_type_is_whole(int type)
{
    return onnx_type_kind(type) == ONNX_KIND_INT || onnx_type_kind(type) == ONNX_KIND_UINT;
}

bool onnx_type_bytes(int type, uint64_t elements, uint64_t *bytes)
{
    unsigned bits = onnx_type_bits(type);
    uint64_t whole, rest = (elements % 8 * bits + 7) / 8;
    if (!bits || __builtin_mul_overflow(elements / 8, (uint64_t)bits, &whole)) return false;
    if (__builtin_add_overflow(whole, rest, bytes) || *bytes > INT64_MAX) return false;
    return true;
}
