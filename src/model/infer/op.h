/* SPDX-License-Identifier: MIT
 * op.h - what is known of an operator: one row of op/op_table.c each. To add one: 1. a row there; 2. where no rule that
 * is there fits, a shape rule in infer_<family>.c, declared in infer_rule.h, or a cost rule in cost_rules_<family>.c,
 * declared in cost_rule.h; 3. its line in docs/cost.md, which a test demands. Nothing else knows operators by name but
 * control flow (infer_bound.c, cost_body.c). */
#ifndef MODEL_OP_H
#define MODEL_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct rule_call; /* infer_rule.h */
struct cost_call; /* cost_rule.h */
struct item;      /* infer_items.h */
struct poly_space;

/* Types, shapes and small contents of the outputs. false: it ended early, since the graph is wrong (rule_fault) or
 * something is unknown (rule_unknown). Nobody has to ask: an error stays in the engine, a reason in the node. */
typedef bool infer_rule(struct rule_call *c);
/* Adds what the node computes. */
typedef void cost_rule(struct cost_call *c);
/* What an operator makes of followed items; `type` is that of its inputs. */
typedef struct item item_unary(struct poly_space *s, int type, struct item x);
typedef struct item item_binary(struct poly_space *s, int type, struct item x, struct item y);

/* Which bytes a node has to move. */
enum cost_bytes {
    BYTES_UNCOUNTED = 0, /* the row has no cost: it cannot be told */
    BYTES_ALL,           /* every input once, every output */
    BYTES_NONE,          /* a view, or nothing at run time */
    BYTES_PICKED,        /* of input 0 only as much as comes out: Gather, Slice; the others whole */
    BYTES_INDEXED,       /* of input 0 one element for each of input 1; the others whole */
    BYTES_WRITTEN        /* outputs only: Shape looks at no element */
};

struct cost_each { /* operations per element */
    unsigned simple, division, transcendental;
};

enum op_flags {
    OP_VIEW = 1,     /* the output is the memory of input 0 */
    OP_IN_PLACE = 2, /* the output may be written over an input */
    OP_RANDOM = 4,   /* not the same in every run, even of constants */
    OP_NHWC = 8,     /* channels come last, and weights in the provider's own layout */
    OP_BLOCKED = 16  /* channels come in blocks, which may be filled up */
};

/* What becomes of the range of an input that is followed to where it is used as an index (infer_bound.c). */
enum op_follow {
    FOLLOW_NOT,  /* the result has nothing to do with the input's values, or cannot be followed */
    FOLLOW_PASS, /* elements of the inputs in `from` */
    FOLLOW_ADD,
    FOLLOW_SUB,
    FOLLOW_MUL,
    FOLLOW_DIV,
    FOLLOW_MOD,
    FOLLOW_MIN,
    FOLLOW_MAX,
    FOLLOW_CLIP,
    FOLLOW_NEG,
    FOLLOW_RELU,
    FOLLOW_SUM
};
#define OP_ALL_INPUTS UINT32_MAX
#define OP_NO_INPUT UINT32_MAX

/* An input that is an index into another: how many rows that has. */
enum op_rows {
    BY_NO_USE,
    BY_AXIS,        /* along attribute "axis" */
    BY_GATHER_AXIS, /* along attribute "gather_axis" */
    BY_FIRST,       /* its first dimension */
    BY_SECOND,
    BY_LAST,
    BY_ALL,    /* a tuple of unknown length: the smallest dimension */
    BY_DEPTH,  /* the number that it holds */
    BY_NOTHING /* known at run time only */
};
struct op_index {
    unsigned index, data; /* numbers of inputs */
    enum op_rows how;
};

/* The element type of output 0: what an attribute says, else that of an input, else always this one. */
struct op_type {
    const char *attribute; /* NULL: none says it */
    unsigned input;        /* its number + 1; 0: none */
    int otherwise;         /* ONNX_UNDEFINED: the rule says it */
};

/* An output that is like an input, whatever the rule says of the others. */
struct op_like {
    unsigned input; /* its number + 1; 0: it is not */
    int type;       /* instead of that of the input; 0: the same */
};

enum { OP_INDEX_MAX = 3, OP_LIKE_MAX = 3 };

struct op_row {
    const char *domain; /* "" is ai.onnx; NULL: any of the common ones, see op_table.c */
    const char *op;
    infer_rule *shape; /* NULL: known only when it runs */
    struct op_type type;
    unsigned
        second; /* which input the rule takes for its second operand; 0: the usual one; OP_NO_INPUT: none */
    uint32_t spread; /* bit i: input i is broadcast; 0: all are */
    struct op_like like[OP_LIKE_MAX];
    item_unary *fold; /* NULL: its result is not followed */
    item_binary *fold_two;
    cost_rule *cost;       /* NULL: no arithmetic */
    struct cost_each each; /* what the cost rule counts */
    enum cost_bytes bytes;
    unsigned flags;
    enum op_follow follow;
    uint32_t from; /* bit i: elements of input i reach the output */
    struct op_index index[OP_INDEX_MAX];
};

extern const struct op_row op_table[]; /* ends with op NULL */

/* The row of an operator; NULL: none. */
const struct op_row *op_find(const char *domain, const char *op);
/* The row that says what it costs: its own, or that of the same operator in another common domain. NULL: none. */
const struct op_row *op_find_cost(const char *domain, const char *op);

#endif
