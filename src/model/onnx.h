/* SPDX-License-Identifier: MIT
 * onnx.h - an ONNX file as a graph: read over a mapping, weights never copied, memory in proportion to the graph.
 * Every byte is validated; a damaged file is an error that names the place ("graph.node[12].attribute[0]: ...").
 * Knows nothing of runtimes. */
#ifndef MODEL_ONNX_H
#define MODEL_ONNX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/vec.h"

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
    ONNX_TYPES = 27
};
const char *onnx_type_name(int type); /* "float32"; "unknown" beyond the table */
unsigned onnx_type_bits(int type);    /* 32; 0 for strings and unknown */

struct onnx_dim {
    int64_t value;    /* -1: not fixed */
    const char *name; /* "batch_size"; "" when it has none */
};

struct onnx_value { /* a graph input, output or annotated value */
    const char *name;
    int type; /* enum onnx_type; ONNX_UNDEFINED: not a tensor */
    bool has_shape;
    VEC(struct onnx_dim) dims;
};

struct onnx_tensor { /* an initializer or a constant */
    const char *name;
    int type;
    VEC(int64_t) dims;
    uint64_t elements;
    const uint8_t *raw; /* in the mapping; NULL: typed fields or external data */
    uint64_t raw_bytes;
    const char *external; /* location, relative to the model's folder; NULL: inside the file */
    uint64_t external_offset, external_bytes;
};

struct onnx_graph;

struct onnx_attribute {
    const char *name;
    int kind; /* AttributeProto.AttributeType */
    int64_t i;
    float f;
    const uint8_t *s; /* bytes, not terminated */
    size_t s_bytes;
    VEC(int64_t) ints;
    VEC(float) floats;
    struct onnx_tensor *t; /* NULL: none */
    struct onnx_graph *g;  /* NULL: none */
};

struct onnx_node {
    const char *name, *op, *domain;
    VEC(const char *) inputs, outputs; /* "" for a left-out optional one */
    VEC(struct onnx_attribute) attributes;
};

struct onnx_graph {
    const char *name;
    VEC(struct onnx_node) nodes;
    VEC(struct onnx_tensor) initializers;
    VEC(struct onnx_value) inputs, outputs, values; /* inputs without those that are initializers */
};

struct onnx_opset {
    const char *domain;
    int64_t version;
};

struct onnx_model {
    char *path;
    int64_t ir_version;
    const char *producer, *producer_version;
    VEC(struct onnx_opset) opsets;
    struct onnx_graph graph;
    uint64_t file_bytes;
    struct onnx_memory *memory; /* the mapping, and strings made NUL-terminated */
};
#define ONNX_MODEL_INIT {0}

tare_status onnx_open(struct onnx_model *out, const char *path, tare_error *err);
tare_status onnx_read(struct onnx_model *out, const char *name, const void *bytes, size_t n,
                      tare_error *err); /* borrows */
void onnx_close(struct onnx_model *m);

const struct onnx_tensor *onnx_initializer(const struct onnx_graph *g,
                                           const char *name); /* NULL: none; hashed */

/* What an integer input may hold so that the model runs: found by following it, through casts, reshapes and
 * arithmetic that keeps its range, to the Gather (embedding) and like nodes that use it as an index.
 * limit 0: no bound found. `why` names the node: "Gather '/embeddings/word' has 30522 rows". */
struct onnx_bound {
    int64_t limit; /* values 0 .. limit - 1 are valid */
    char why[160];
};
void onnx_input_bound(const struct onnx_model *m, const char *input, struct onnx_bound *out);

#endif
