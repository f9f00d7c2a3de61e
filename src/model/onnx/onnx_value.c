/* SPDX-License-Identifier: MIT
 * onnx_value.c - what a model says about its inputs, outputs and values: name, element type, shape. Types
 * that are no tensors are named, not looked into. */
#include "model/onnx/onnx_parse.h"

static const struct parse_field value_fields[PARSE_FIELDS] = {
    [1] = {"name", AS_BYTES},
    [2] = {"type", AS_BYTES},
};

/* TypeProto: which kind it is, by field number */
static const struct parse_field type_fields[PARSE_FIELDS] = {
    [1] = {"tensor", AS_BYTES},   [4] = {"sequence", AS_BYTES},      [5] = {"map", AS_BYTES},
    [7] = {"opaque", AS_BYTES},   [8] = {"sparse tensor", AS_BYTES}, [9] = {"optional", AS_BYTES},
};

static const struct parse_field tensor_type_fields[PARSE_FIELDS] = {
    [1] = {"elem_type", AS_VARINT},
    [2] = {"shape", AS_BYTES},
};

static const struct parse_field shape_fields[PARSE_FIELDS] = {
    [1] = {"dim", AS_BYTES},
};

static const struct parse_field dim_fields[PARSE_FIELDS] = {
    [1] = {"dim_value", AS_VARINT},
    [2] = {"dim_param", AS_BYTES},
};

static tare_status parse_dim(const struct parse *p, const struct place *at, const struct wire_field *whole,
                             struct onnx_dim *d)
{
    struct message m = message_of(whole, dim_fields, at);
    struct wire_field f;
    int got;
    *d = (struct onnx_dim){-1, ""};
    while ((got = parse_next(p, &m, &f)) > 0) {
        if (f.number == 1) {
            int64_t value = (int64_t)f.value; /* some exporters write a negative one for "not fixed" */
            *d = (struct onnx_dim){value < 0 ? -1 : value, ""};
            continue;
        }
        d->value = -1;
        tare_status s = parse_name(p, at, &f, &d->name);
        if (s < 0) return s;
    }
    return got < 0 ? (tare_status)got : TARE_OK;
}

static tare_status parse_shape(const struct parse *p, const struct place *at, const struct wire_field *whole,
                               struct onnx_value *v)
{
    struct message m = message_of(whole, shape_fields, at);
    struct parse_counts counts;
    struct wire_field f;
    int got;
    tare_status s = parse_count(p, m, &counts);
    if (s < 0) return s;
    if ((s = parse_list(p, &v->dims, counts.of[1])) < 0) return s;
    v->dims.n = 0;
    v->has_shape = true;
    while ((got = parse_next(p, &m, &f)) > 0) {
        struct place inner;
        if ((s = parse_enter(p, &inner, at, "dim", (int64_t)v->dims.n)) < 0) return s;
        if ((s = parse_dim(p, &inner, &f, &v->dims.items[v->dims.n++])) < 0) return s;
    }
    return got < 0 ? (tare_status)got : TARE_OK;
}

static tare_status parse_tensor_type(const struct parse *p, const struct place *at,
                                     const struct wire_field *whole, struct onnx_value *v)
{
    struct message m = message_of(whole, tensor_type_fields, at);
    struct wire_field f;
    int got;
    while ((got = parse_next(p, &m, &f)) > 0) {
        tare_status s = TARE_OK;
        if (f.number == 1)
            v->type = f.value >= ONNX_TYPES ? ONNX_UNDEFINED : (int)f.value;
        else
            s = parse_shape(p, at, &f, v);
        if (s < 0) return s;
    }
    return got < 0 ? (tare_status)got : TARE_OK;
}

static tare_status parse_type(const struct parse *p, const struct place *at, const struct wire_field *whole,
                              struct onnx_value *v)
{
    struct message m = message_of(whole, type_fields, at);
    struct wire_field f;
    int got;
    while ((got = parse_next(p, &m, &f)) > 0) {
        v->kind = type_fields[f.number].name;
        tare_status s = f.number == 1 ? parse_tensor_type(p, at, &f, v) : TARE_OK;
        if (s < 0) return s;
    }
    return got < 0 ? (tare_status)got : TARE_OK;
}

tare_status parse_value(const struct parse *p, const struct place *at, const struct wire_field *whole,
                        struct onnx_value *v)
{
    struct message m = message_of(whole, value_fields, at);
    struct wire_field f;
    int got;
    *v = (struct onnx_value){.name = "", .kind = ""};
    while ((got = parse_next(p, &m, &f)) > 0) {
        tare_status s = f.number == 1 ? parse_name(p, at, &f, &v->name) : parse_type(p, at, &f, v);
        if (s < 0) return s;
    }
    if (got < 0) return (tare_status)got;
    return v->name[0] ? TARE_OK : parse_fail(p, at, "a value without a name");
}
