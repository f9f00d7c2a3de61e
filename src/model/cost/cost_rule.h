/* SPDX-License-Identifier: MIT
 * cost_rule.h - what a cost rule sees and does: rows of cost_rules_*.c, joined by cost.c. A rule adds what the node
 * computes; bytes are counted by the row's word for them. An unknown size goes through all of this as NULL and makes
 * the count unknown. Private to src/model/cost*.c. */
#ifndef MODEL_COST_RULE_H
#define MODEL_COST_RULE_H

#include "model/cost/cost.h"

/* Which bytes a node has to move. */
enum cost_bytes {
    BYTES_ALL,    /* every input once, every output */
    BYTES_NONE,   /* a view, or nothing at run time */
    BYTES_PICKED, /* of input 0 only as much as comes out: Gather, Slice; the others whole */
    BYTES_WRITTEN /* outputs only: Shape looks at no element */
};

enum cost_flags { COST_VIEW = 1, COST_IN_PLACE = 2 };

struct cost_each { /* operations per element */
    unsigned simple, division, transcendental;
};

struct cost_call {
    struct poly_space *s;
    const struct infer_node *at;
    const struct onnx_node *node;
    const struct cost_row *row;
    struct cost *out;
    const struct poly *masked; /* MACs of it whose result is thrown away; NULL only when unknown */
};

typedef void cost_rule(struct cost_call *c);

struct cost_row {
    const char *domain; /* NULL: ONNX's own and ONNX Runtime's, where the name means the same */
    const char *op;
    cost_rule *rule; /* NULL: no arithmetic */
    struct cost_each each;
    enum cost_bytes bytes;
    unsigned flags;
};
/* Tables of rows, each ends with op NULL. */
extern const struct cost_row cost_rows_basic[]; /* element-wise, activations, reductions, norms */
extern const struct cost_row
    cost_rows_product[]; /* matrix products, convolutions, recurrent, pools, resize */
extern const struct cost_row cost_rows_quantized[]; /* integers and packed weights */
extern const struct cost_row cost_rows_attention[]; /* attention and what goes with it */
extern const struct cost_row cost_rows_move[];      /* bytes only */
const struct cost_row *cost_row_find(const char *domain, const char *op); /* NULL: no rule */

/* ---- looking at the node ---- */
const struct infer_value *cost_in(const struct cost_call *c, size_t i);  /* NULL: left out */
const struct infer_value *cost_out(const struct cost_call *c, size_t i); /* NULL: nobody wants it */
const struct onnx_attribute *cost_attribute(const struct cost_call *c, const char *name); /* NULL: none */
int64_t cost_int(const struct cost_call *c, const char *name, int64_t otherwise);
/* An attribute that is a size; NULL: not there, or not above 0. */
const struct poly *cost_size(const struct cost_call *c, const char *name);
float cost_float(const struct cost_call *c, const char *name, float otherwise);
bool cost_text_is(const struct cost_call *c, const char *name, const char *word);

/* ---- sizes; a value that is NULL has an unknown one ---- */
const struct poly *cost_dim(const struct infer_value *v, int64_t axis); /* from the end when negative */
const struct poly *cost_elements(const struct cost_call *c, const struct infer_value *v);
/* The product of dims from .. to - 1. */
const struct poly *cost_dims(const struct cost_call *c, const struct infer_value *v, size_t from, size_t to);
const struct poly *cost_times(const struct cost_call *c, const struct poly *n, int64_t k);
const struct poly *cost_mul(const struct cost_call *c, const struct poly *a, const struct poly *b);

/* ---- counting ---- */
bool cost_is_integer(int type); /* of elements; booleans are */
/* n elements of v's type, each at `each`. Integers are counted as such, in one class. */
void cost_count(struct cost_call *c, const struct infer_value *v, const struct poly *n,
                struct cost_each each);
void cost_count_float(struct cost_call *c, const struct poly *n, struct cost_each each);
void cost_count_integer(struct cost_call *c, const struct poly *n);
/* Of elements of v's type. */
void cost_count_macs(struct cost_call *c, const struct infer_value *v, const struct poly *n);
void cost_count_int_macs(struct cost_call *c, const struct poly *n);
/* The operator that the attribute names, on each output element; nothing when it is not there. */
void cost_count_activation(struct cost_call *c, const char *attribute);
/* What one application of a named activation takes; false: no such one. */
bool cost_activation(const char *name, struct cost_each *out);

/* ---- rules that more than one table uses ---- */
void cost_rule_each(struct cost_call *c); /* row.each per element of output 0, in the type of input 0 */
void cost_rule_pool(struct cost_call *c); /* row.each per element of output 0 and place of the kernel */
/* The numbers multiplied for one element of MatMul's, Gemm's and their like's output. */
const struct poly *cost_inner(const struct cost_call *c, const struct infer_value *a);
/* Convolution: products per element of its output, by its weights. */
const struct poly *cost_taps(const struct cost_call *c, const struct infer_value *w);

#endif
