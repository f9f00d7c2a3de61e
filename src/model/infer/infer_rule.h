/* SPDX-License-Identifier: MIT
 * infer_rule.h - what a rule of shape inference sees and does: one function per operator, rows in infer_table.c. A rule
 * states output types and shapes that surely hold and leaves the rest unknown; it may set contents of small integer
 * outputs. Private to src/model/infer*.c. */
#ifndef MODEL_INFER_RULE_H
#define MODEL_INFER_RULE_H

#include "model/infer/infer.h"

struct infer_engine; /* infer.c */

struct rule_call {
    struct infer_engine *engine;
    struct poly_space *space;
    struct infer_node *at;
    const struct onnx_node *node;
    int64_t opset;
    tare_error *err;
};

/* TARE_OK also when nothing could be said (call rule_unknown with the reason). Errors are for graphs that are wrong. */
typedef tare_status infer_rule(struct rule_call *c);

struct infer_row {
    const char *domain; /* "" is ai.onnx */
    const char *op;
    infer_rule *rule;
};
/* Tables of rows, each ends with op NULL; infer_table.c joins them. One table per file of rules. */
extern const struct infer_row
    infer_rows_basic[]; /* infer_basic.c: element-wise, casts, comparisons, constants */
extern const struct infer_row
    infer_rows_move[]; /* infer_move.c: reshape, transpose, slice, gather, concat, pad .. */
extern const struct infer_row
    infer_rows_reduce[]; /* infer_reduce.c: reductions, arg*, top-k, cumulative, norms */
extern const struct infer_row
    infer_rows_nn[]; /* infer_nn.c: conv, pool, matmul, gemm, einsum, rnn, resize, .. */
extern const struct infer_row
    infer_rows_contrib[]; /* infer_contrib.c: com.microsoft and nchwc, quantised operators */
extern const struct infer_row infer_rows_flow[]; /* infer_flow.c: If, Loop, Scan, sequences, optional */
extern const struct infer_row
    infer_rows_misc[]; /* infer_misc.c: signal, string, image, ml domain, the rest */
const struct infer_row *infer_row_find(const char *domain, const char *op); /* NULL: no rule */

/* ---- looking at the node ---- */
const struct infer_value *rule_input(const struct rule_call *c, size_t i); /* NULL: left out or not there */
struct infer_value *rule_output(const struct rule_call *c, size_t i);      /* NULL: nobody wants it */
int64_t rule_int(const struct rule_call *c, const char *attribute, int64_t otherwise);
/* A string attribute as text in the engine's memory; NULL: not there. */
const char *rule_text(const struct rule_call *c, const char *attribute);
/* Attribute "axes" or the like, or the contents of input i when the attribute is gone in newer opsets. *out points to
 * n items; false: neither is there, or the contents are not known. */
bool rule_ints(const struct rule_call *c, const char *attribute, size_t i, const int64_t **out, size_t *n);
bool rule_has_input(const struct rule_call *c, size_t i);
/* -rank .. rank-1 -> 0 .. rank-1. Errors name the node. */
tare_status rule_axis(const struct rule_call *c, int64_t axis, size_t rank, size_t *out);

/* ---- stating outputs; all tolerate an output that nobody wants ---- */
void rule_type(struct rule_call *c, size_t output, int type);
/* Copies the dims; an item may be NULL. */
tare_status rule_shape(struct rule_call *c, size_t output, const struct poly *const *dims, size_t rank);
tare_status rule_like(struct rule_call *c, size_t output, const struct infer_value *v); /* type and shape */
tare_status rule_contents(struct rule_call *c, size_t output, const struct poly *const *ints, size_t n);
tare_status rule_reals(struct rule_call *c, size_t output, const double *reals, size_t n);
/* All that a tensor in the file says: type, shape, small contents. */
tare_status rule_constant(struct rule_call *c, size_t output, const struct onnx_tensor *t);
/* The multi-directional broadcast of two shapes; *known false: cannot be told. An error when they surely clash. */
struct rule_dims {
    const struct poly *at[INFER_RANK_MAX];
    size_t n;
    bool known; /* the rank is */
};
tare_status rule_broadcast(struct rule_call *c, const struct rule_dims *a, const struct rule_dims *b,
                           struct rule_dims *out);
struct rule_dims rule_dims_of(const struct infer_value *v);
/* Remember why nothing more can be said. */
void rule_unknown(struct rule_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rule_data_dependent(struct rule_call *c, size_t output, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A graph that is wrong: "node 'x' (Conv): ...". */
tare_status rule_fault(const struct rule_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Infer a body (graph attribute) as a scope of this node, with its formal inputs set; for If, Loop, Scan. */
tare_status rule_body(struct rule_call *c, const struct onnx_graph *g,
                      const struct infer_value *const *formal, size_t n, struct infer_scope **out);

#endif
