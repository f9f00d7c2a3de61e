/* SPDX-License-Identifier: MIT
 * onnx_write.h - build an ONNX graph and write it as a stream (ow: ONNX writer). Names, nodes and small
 * constants are held in memory; weights are only described, and made while they are written, so that a
 * model of any size needs the same few megabytes.
 *
 *     struct ow w;
 *     ow_init(&w, 17, seed, err);
 *     ow_val x = ow_input(&w, "x", ONNX_FLOAT, 2, (struct onnx_dim[]){{-1, "batch_size"}, {8, ""}});
 *     size_t mark = ow_enter(&w, "layer.0");                    // names begin with the scope
 *     ow_val k = ow_weight(&w, &(struct ow_spec){"weight", ONNX_FLOAT, 2, {8, 4}, .std = 0.02});
 *     ow_leave(&w, mark);
 *     ow_output(&w, "y", ow_port(ow_op(&w, "MatMul", x, k), ONNX_FLOAT, 2, dims));
 *     if (w.status == TARE_OK) ow_write(&w, &to);
 *     ow_release(&w);
 *
 * Failure is sticky: after it nothing more is added, values are 0, and w.status tells. Never opens files. */
#ifndef MODEL_ONNX_WRITE_H
#define MODEL_ONNX_WRITE_H

#include "core/buf.h"
#include "core/map.h"
#include "core/vec.h"
#include "model/onnx/onnx.h"
#include "model/onnx/weight.h"

enum { OW_OPSET_MIN = 13, OW_OPSET_MAX = 21, OW_RANK_MAX = 4 };
#define OW_FILE_MAX UINT64_C(2147483647) /* of one protobuf file: larger models need a data file */

typedef unsigned ow_val; /* a value of the graph; 0: none, as for an optional input left out */

struct ow_port { /* a graph input or output */
    ow_val value;
    int type;
    unsigned rank;
    struct onnx_dim dims[OW_RANK_MAX]; /* names must outlive the writer */
};

enum ow_fill {
    OW_NORMAL, /* seeded, with .std */
    OW_SAME,   /* every element .value */
    OW_BYTES,  /* made by ow_ints() and ow_scalar() */
    OW_SCALE   /* the scale of the quantised tensor before it */
};

/* A tensor to store. Its name is the scope, with dots, and `leaf`. */
struct ow_spec {
    const char *leaf;
    int type; /* FLOAT, FLOAT16; INT8 and UINT8 through ow_quantized() */
    unsigned rank;
    int64_t dims[OW_RANK_MAX];
    enum ow_fill fill;
    double std, value;
    bool transposed; /* rank 2: the same numbers as the tensor of dims swapped */
    bool buffer;     /* not counted as a parameter (running statistics, tables) */
};

struct ow_tensor {
    ow_val name;
    enum ow_fill fill;
    int type;
    unsigned rank;
    int64_t dims[OW_RANK_MAX];
    struct weight weight; /* OW_NORMAL; its peak is 0 while unknown */
    double value;         /* OW_SAME */
    size_t of;            /* OW_SCALE: which tensor; OW_BYTES: where in ow.bytes */
    uint64_t bytes;       /* of the data */
    uint64_t place;       /* in the data file; UINT64_MAX: inside */
};

struct ow_node {
    const char *op; /* must outlive the writer */
    ow_val name;
    unsigned n_in, n_out;
    size_t edges; /* first input in ow.edges; outputs follow */
    size_t attrs, attrs_len;
};

struct ow {
    int64_t opset;
    uint64_t seed;
    uint64_t parameters; /* elements of all weights that are no buffers */
    tare_status status;
    tare_error *err;
    struct buf text; /* names, each with its NUL */
    VEC(size_t) values;
    VEC(struct ow_node) nodes;
    VEC(ow_val) edges;
    VEC(struct ow_tensor) tensors;
    VEC(struct ow_port) inputs, outputs;
    struct buf attrs, bytes, scope;
    struct map_str taken, constants;
    const char *graph_name, *producer_version; /* must outlive the writer */
};

void ow_init(struct ow *w, int64_t opset, uint64_t seed, tare_error *err);
void ow_release(struct ow *w);
const char *ow_name(const struct ow *w, ow_val v); /* borrowed until the next addition */

/* ---- scopes: "/encoder/layer.0" before the names of nodes, "encoder.layer.0." before those of weights
 * ---- */

size_t ow_enter(struct ow *w, const char *part); /* one or more parts: "attention/self"; "" enters nothing */
size_t ow_enter_index(struct ow *w, const char *part, unsigned i); /* "layer", 3: "layer.3" */
void ow_leave(struct ow *w, size_t mark);                          /* with what entering returned */

/* ---- values ---- */

ow_val ow_input(struct ow *w, const char *name, int type, unsigned rank, const struct onnx_dim *dims);
struct ow_port ow_port(ow_val v, int type, unsigned rank, const struct onnx_dim *dims);
void ow_output(struct ow *w, const char *name, struct ow_port p); /* its value is called `name` from now on */
void ow_output_first(struct ow *w); /* the output added last becomes the first */
ow_val ow_weight(struct ow *w, const struct ow_spec *spec);

struct ow_quantized {
    ow_val q, scale, zero;
};
/* The weight of `spec` (type INT8 or UINT8) in 8 bits: the very numbers that the float one would hold. */
struct ow_quantized ow_quantized(struct ow *w, const struct ow_spec *spec);

/* Small constants; equal ones are stored once. */
ow_val ow_ints(struct ow *w, const int64_t *v, size_t n); /* a vector */
ow_val ow_scalar(struct ow *w, int type, double v);       /* FLOAT, FLOAT16 or INT64 */

/* ---- nodes ---- */

struct ow_attr {
    const char *name;
    int kind; /* 0: end */
    int64_t i;
    float f;
    const char *s;
    unsigned n;
    int64_t ints[OW_RANK_MAX];
};
#define OW_ATTR_INT(n_, v) {.name = (n_), .kind = 2, .i = (v)}
#define OW_ATTR_FLOAT(n_, v) {.name = (n_), .kind = 1, .f = (v)}
#define OW_INTS_N_(...) (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define OW_ATTR_INTS(n_, ...) {.name = (n_), .kind = 7, .n = OW_INTS_N_(__VA_ARGS__), .ints = {__VA_ARGS__}}

/* The first output; the others have the numbers after it. `attrs` ends with kind 0, or is NULL. */
struct ow_call {
    const char *op;
    unsigned n_in, n_out;
    const ow_val *in;
    const struct ow_attr *attrs;
};
ow_val ow_node(struct ow *w, const struct ow_call *call);

#define OW_COUNT_(...) ((unsigned)(sizeof((ow_val[]){__VA_ARGS__}) / sizeof(ow_val)))
#define ow_op(w, name, ...) \
    ow_node(w, &(struct ow_call){name, OW_COUNT_(__VA_ARGS__), 1, (ow_val[]){__VA_ARGS__}, NULL})
#define ow_op_attr(w, name, attr_list, ...)                                                                 \
    ow_node(w, &(struct ow_call){name, OW_COUNT_(__VA_ARGS__), 1, (ow_val[]){__VA_ARGS__}, attr_list})
#define OW_ATTRS(...) (const struct ow_attr[]){__VA_ARGS__, {.kind = 0}}
#define ow_op_axis(w, name, axis, ...) ow_op_attr(w, name, OW_ATTRS(OW_ATTR_INT("axis", axis)), __VA_ARGS__)
#define ow_transpose(w, x, ...) ow_op_attr(w, "Transpose", OW_ATTRS(OW_ATTR_INTS("perm", __VA_ARGS__)), x)
#define ow_ints_of(w, ...) ow_ints(w, (int64_t[]){__VA_ARGS__}, OW_INTS_N_(__VA_ARGS__))

/* ---- writing ---- */

struct ow_sink {
    tare_status (*write)(void *ctx, const void *bytes, size_t n, tare_error *err);
    void *ctx;
};

struct ow_target {
    struct ow_sink file;
    struct ow_sink data;  /* used when `location` is set */
    const char *location; /* the data file's name, relative to the model; NULL: everything in one file */
};

/* Bytes that ow_write() will hand to each sink; *data 0 without a data file. */
tare_status ow_size(struct ow *w, const char *location, uint64_t *file, uint64_t *data);
tare_status ow_write(struct ow *w, const struct ow_target *to);

/* ---- onnx_encode.c, for onnx_write.c: the bytes of protobuf ---- */
size_t encode_number(unsigned char *out, int type, double v); /* one element; returns its length, at most 8 */
void encode_attribute(struct buf *b, const struct ow_attr *a); /* as a field of a node */

/* ---- onnx_amend.c: a model file with more graph outputs, as bytes in memory, without copying the file. Messages of
 * protobuf that stand one after the other are merged, so a second `graph` that has nothing but outputs is all that must
 * follow the file: its pages are mapped, and a few bytes stand behind them. Never writes to the file ---- */

struct onnx_amended {
    const void *bytes; /* of the whole model */
    size_t n;
    size_t mapped; /* bytes of address space */
};
#define ONNX_AMENDED_INIT {NULL, 0, 0}

/* `names` are values of the main graph that are no outputs yet; their types are left to whoever reads the model.
 * TARE_UNSUPPORTED when it would be larger than a protobuf message can be (2 GiB). */
tare_status onnx_amend_outputs(struct onnx_amended *out, const char *path, const char *const *names, size_t n,
                               tare_error *err);
void onnx_amended_release(struct onnx_amended *a); /* an ONNX_AMENDED_INIT is fine */

#endif
