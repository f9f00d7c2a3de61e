/* SPDX-License-Identifier: MIT
 * infer_items.h - the contents of small tensors while rules compute with them: whole numbers that may depend on free
 * dimensions, quotients of such on their way to being rounded, plain real numbers. An item that cannot be told is none.
 * Arithmetic is done as the model would: floats are rounded to their type. Private to src/model/infer*.c. */
#ifndef MODEL_INFER_ITEMS_H
#define MODEL_INFER_ITEMS_H

#include "model/infer/infer_rule.h"

enum item_kind { ITEM_NONE, ITEM_WHOLE, ITEM_RATIO, ITEM_REAL };

struct item {
    enum item_kind kind;
    const struct poly *p; /* WHOLE: the number; RATIO: what is divided */
    int64_t by;           /* RATIO: at least 1 */
    double real;          /* REAL */
};

struct items { /* .at NULL: not followed, or the call has failed. Valid until the rule is done. */
    struct item *at;
    size_t n;
};

struct items items_new(struct rule_call *c, size_t n);                           /* all none */
struct items items_read(struct rule_call *c, const struct infer_value *v);       /* the contents of a value */
struct items items_fill(struct rule_call *c, size_t n, const struct poly *each); /* n times the same */
/* Keep them as an output's contents, if its shape is known and holds as many, and any is known. */
bool items_write(struct rule_call *c, size_t output, struct items x);
bool items_keep(struct rule_call *c); /* output 0 has those of input 0 */

/* Elements of an input in another order: element (i, j, ..) is the one at offset + i * stride[0] + j * stride[1] .. */
struct item_view {
    size_t rank;
    int64_t dims[INFER_RANK_MAX], stride[INFER_RANK_MAX], offset;
};
/* The view of a whole value as it is; false: its dims are no numbers. */
bool item_view_of(const struct infer_value *v, struct item_view *out);
struct items items_view(struct rule_call *c, const struct infer_value *v, const struct item_view *view);
/* The contents of an input broadcast to the elements of output 0. */
struct items items_spread(struct rule_call *c, const struct infer_value *v);

/* All dims are numbers: puts them out and gives how many elements; false: not so, or more than INFER_INTS_MAX. */
bool items_dims(const struct infer_value *v, int64_t *dims, size_t *elements);

struct item item_none(void);
struct item item_whole(const struct poly *p);               /* unknown: none */
struct item item_at(const struct infer_value *v, size_t i); /* none where contents are not followed */
bool item_number(struct item x, double *out);               /* false: it depends on dimensions, or is none */
/* infer_fold.c: what operators make of one item, of two */
item_unary item_neg, item_abs, item_floor, item_ceil, item_round, item_sqrt, item_not, item_same, item_sign,
    item_relu;
item_binary item_add, item_sub, item_mul, item_div, item_pow, item_min, item_max, item_equal, item_less,
    item_less_equal, item_greater, item_greater_equal, item_and, item_or, item_xor, item_floor_mod;
struct item item_cast(struct poly_space *s, int from, int to, struct item x);
/* 1: surely true, 0: surely not, -1: cannot be told. */
int item_truth(struct item x);

/* A real number as p/q with q a small power of two, so that a float product of it with a size is exact. */
bool item_dyadic(double v, int64_t *p, int64_t *q);
bool item_type_is_float(int type);

#endif
