/* SPDX-License-Identifier: MIT
 * onnx.h - an ONNX file as a graph: read over a mapping, weights never copied, memory in proportion to the
 * graph. A damaged file is an error that names the place ("graph.node[12].attribute[0]: ...").
 * Knows nothing of runtimes. One model is for one thread at a time. */
#ifndef MODEL_ONNX_H
#define MODEL_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* TensorProto.DataType; note that ONNX Runtime's own numbers differ from 24 on. */
enum onnx_type {
    ONNX_UNDEFINED = 0,
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_UINT16 = 4,
    ONNX_INT16 = 5,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_UINT32 = 12,
    ONNX_UINT64 = 13,
    ONNX_COMPLEX64 = 14,
    ONNX_COMPLEX128 = 15,
    ONNX_BFLOAT16 = 16,
    ONNX_FLOAT8E4M3FN = 17,
    ONNX_FLOAT8E4M3FNUZ = 18,
    ONNX_FLOAT8E5M2 = 19,
    ONNX_FLOAT8E5M2FNUZ = 20,
    ONNX_UINT4 = 21,
    ONNX_INT4 = 22,
    ONNX_FLOAT4E2M1 = 23,
    ONNX_FLOAT8E8M0 = 24,
    ONNX_UINT2 = 25,
    ONNX_INT2 = 26,
    ONNX_FLOAT6E2M3 = 27,
    ONNX_FLOAT6E3M2 = 28,
    ONNX_TYPES = 29
};
const char *onnx_type_name(int type);      /* "float32"; "unknown" beyond the table */
const char *onnx_type_precision(int type); /* of weights of that type: "fp32", "int8"; "mixed" for odd ones */
unsigned onnx_type_bits(int type);         /* 32; 4; 0 for strings and unknown */
enum onnx_kind { ONNX_KIND_NONE, ONNX_KIND_FLOAT, ONNX_KIND_INT, ONNX_KIND_UINT };
enum onnx_kind onnx_type_kind(int type); /* booleans are unsigned; none: text, complex, unknown, 6 bits */
bool onnx_type_is_whole(int type);       /* signed or unsigned */
/* What `elements` of that type take when packed. false: strings, unknown types, or more than 2^63 bytes. */
bool onnx_type_bytes(int type, uint64_t elements, uint64_t *bytes);

/* A list inside a model: made once by the reader, never grown, freed with the model. */
#define ONNX_LIST(type) \
    struct {            \
        type *items;    \
        size_t n;       \
    }

struct onnx_dim {
    int64_t value;    /* -1: not fixed */
    const char *name; /* "batch_size"; "" when it has none */
};

struct onnx_value { /* a graph input, output or annotated value */
    const char *name;
    const char *kind; /* "tensor" "sparse tensor" "sequence" "map" "optional" "opaque"; "" when not said */
    int type;         /* enum onnx_type; ONNX_UNDEFINED: not a tensor */
    bool has_shape;
    ONNX_LIST(struct onnx_dim) dims;
};

struct onnx_memory; /* the mapping, strings made NUL-terminated, everything a model points to */

struct onnx_tensor { /* an initializer or a constant */
    const char *name;
    int type;
    ONNX_LIST(int64_t) dims;
    uint64_t elements;
    const uint8_t *raw; /* in the mapping; NULL: typed fields or external data */
    uint64_t raw_bytes;
    const char *external; /* location, relative to the model's folder; NULL: inside the file */
    uint64_t external_offset, external_bytes;
    const uint8_t *message; /* the TensorProto in the mapping: typed fields are read from it on demand */
    size_t message_bytes;
    struct onnx_memory *memory;
};

struct onnx_sparse { /* name and element type are those of `values`; the positions are not kept */
    struct onnx_tensor values;
    ONNX_LIST(int64_t) dims;
};

struct onnx_graph;

enum onnx_attribute_kind { /* AttributeProto.AttributeType */
                           ONNX_ATTR_NONE = 0,
                           ONNX_ATTR_FLOAT = 1,
                           ONNX_ATTR_INT = 2,
                           ONNX_ATTR_STRING = 3,
                           ONNX_ATTR_TENSOR = 4,
                           ONNX_ATTR_GRAPH = 5,
                           ONNX_ATTR_FLOATS = 6,
                           ONNX_ATTR_INTS = 7,
                           ONNX_ATTR_STRINGS = 8
};

struct onnx_attribute {
    const char *name;
    int kind; /* inferred where an old file does not say */
    float f;
    int64_t i;
    const uint8_t *s; /* bytes in the mapping, not terminated; NULL: none */
    size_t s_bytes;
    ONNX_LIST(int64_t) ints;
    ONNX_LIST(float) floats;
    struct onnx_tensor *t;           /* NULL: none */
    struct onnx_graph *g;            /* NULL: none */
    const char *ref;                 /* in a function: the attribute of the call it stands for; NULL: none */
    ONNX_LIST(const char *) strings; /* one with a NUL inside ends there */
};

struct onnx_node {
    const char *name, *op, *domain;          /* domain "" for ai.onnx */
    ONNX_LIST(const char *) inputs, outputs; /* "" for a left-out optional one */
    ONNX_LIST(struct onnx_attribute) attributes;
};

struct onnx_graph {
    const char *name;
    ONNX_LIST(struct onnx_node) nodes;
    ONNX_LIST(struct onnx_tensor) initializers;
    ONNX_LIST(struct onnx_sparse) sparse;
    ONNX_LIST(struct onnx_value) inputs, outputs, values; /* inputs without those that are initializers */
    struct onnx_index *index;                             /* of the initializers' names */
};

struct onnx_opset {
    const char *domain; /* "" for ai.onnx */
    int64_t version;
};

struct onnx_function { /* model-local: a node of that domain and name is a call of it */
    const char *name, *domain, *overload;
    ONNX_LIST(const char *) inputs, outputs, attributes;
    ONNX_LIST(struct onnx_attribute) defaults; /* attributes that a call may leave out */
    ONNX_LIST(struct onnx_opset) opsets;       /* of its nodes; none: those of the model */
    ONNX_LIST(struct onnx_node) nodes;
};

struct onnx_property {
    const char *key, *value;
};

struct onnx_model {
    char *path;
    int64_t ir_version, version;
    const char *producer, *producer_version, *domain;
    ONNX_LIST(struct onnx_opset) opsets;
    ONNX_LIST(struct onnx_property) metadata;
    ONNX_LIST(struct onnx_function) functions;
    struct onnx_graph graph;
    uint64_t file_bytes;
    /* Learned numbers: elements of distinct initializers of all graphs (the same name or external bytes once) and of
     * Constant nodes of more than one element. Not counted: int64, bool and string tensors (shapes, positions, masks),
     * scalars of rank 0, scales, zero points, running statistics. 4-bit weights in bytes count unpacked. */
    uint64_t parameters;
    int weight_type; /* that most bytes of those have; ONNX_UNDEFINED: there are none */
    struct onnx_memory *memory;
};
#define ONNX_MODEL_INIT {0}

/* Map and read a file; external data must lie below the model's folder and be long enough. */
tare_status onnx_open(struct onnx_model *out, const char *path, tare_error *err);
/* Read bytes that stay valid until onnx_close(). There is no folder, so external data is not looked at. */
tare_status onnx_read(struct onnx_model *out, const char *name, const void *bytes, size_t n, tare_error *err);
/* Read one TensorProto (a file of a test_data_set): the only initializer of a model that is otherwise empty. */
tare_status onnx_read_tensor(struct onnx_model *out, const char *name, const void *bytes, size_t n,
                             tare_error *err);
void onnx_close(struct onnx_model *m); /* an ONNX_MODEL_INIT is fine */

const struct onnx_tensor *onnx_initializer(const struct onnx_graph *g,
                                           const char *name); /* NULL: none; hashed */
const struct onnx_attribute *onnx_attribute(const struct onnx_node *n, const char *name); /* NULL: none */
int64_t onnx_opset(const struct onnx_model *m, const char *domain); /* 0: not imported */
/* The pointer that stands for this name throughout the model; NULL: the name is not in it. */
const char *onnx_own_name(const struct onnx_model *m, const char *name);
/* A NUL-terminated copy, the same for the same bytes, that lives as long as the model; NULL: no memory. */
const char *onnx_keep_text(const struct onnx_model *m, const void *bytes, size_t n);

/* All elements of a small integer or boolean tensor (a shape, axes, indices), however they are stored.
 * TARE_INVALID when there are more than `max`, or they are no integers, or do not fit int64_t. */
tare_status onnx_tensor_ints(const struct onnx_tensor *t, int64_t *out, size_t max, tare_error *err);
/* The elements, packed and little-endian, however they are stored: `size` bytes, what they must take. */
tare_status onnx_tensor_copy(const struct onnx_tensor *t, void *to, size_t size, tare_error *err);
/* The packed little-endian elements, in the mapping or in external data mapped now. TARE_UNSUPPORTED when
 * they are in typed fields. Valid until onnx_close(). */
tare_status onnx_tensor_bytes(const struct onnx_tensor *t, const uint8_t **bytes, uint64_t *n,
                              tare_error *err);

/* ---- the tensors that a model file stores, one by one, by names, types and dimensions only ---- */

struct onnx_weight {
    const struct onnx_tensor *tensor;
    uint64_t elements; /* unpacked */
    uint64_t bytes;    /* as stored */
    int type;
    bool is_parameter; /* counts in onnx_model.parameters */
};
typedef tare_status onnx_weight_seen(void *ctx, const struct onnx_weight *w, tare_error *err);

/* Initializers of all graphs and Constant nodes of more than one element, each distinct one once. Strings have no size
 * and are left out. */
tare_status onnx_weights(const struct onnx_model *m, onnx_weight_seen *each, void *ctx, tare_error *err);

#endif
