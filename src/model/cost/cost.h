/* SPDX-License-Identifier: MIT
 * cost.h - what a node costs by its arithmetic: one table, operator -> multiply-accumulates, other operations in
 * classes, bytes that have to move, parameters. Rules in docs/cost.md. MACs are never turned into FLOPs by guess; an
 * operator without a rule, or a shape that is not known, makes the cost unknown, with the reason, never zero. */
#ifndef MODEL_COST_H
#define MODEL_COST_H

#include "core/map.h"
#include "model/infer/infer.h"

enum { COST_PARTS = 9 }; /* polynomials in a struct cost */

struct cost { /* polynomials of the free dimensions; NULL: unknown */
    const struct poly *macs, *int_macs;
    const struct poly *simple, *division, *transcendental, *integer;
    const struct poly *read, *written; /* bytes; values that are only viewed anew (Reshape) count nothing */
    const struct poly *useful_macs; /* causal attention: without the masked half; else == macs + int_macs */
    bool per_iteration;             /* of a Loop whose trip count is not known: for one iteration */
    bool at_most;    /* of an If whose branch is not known: each count is the greater of the two */
    bool known;      /* all of the above are; a total without it is a lower bound */
    const char *why; /* not known: the reason */
};

/* Of one node for one run of its scope. Control flow: If is the branch taken, or at most the dearer one, Loop and Scan
 * their body times trips, a function call the sum of its body. Never fails but for memory. */
tare_status cost_of_node(struct cost *out, const struct inferred *m, const struct infer_node *n,
                         tare_error *err);
void cost_zero(struct cost *c, struct poly_space *s);
void cost_add(struct cost *to, const struct cost *more,
              struct poly_space *s); /* unknown parts make a lower bound */
const struct poly *cost_flops(const struct cost *c, struct poly_space *s); /* 2 * macs + simple */

/* Many costs added up in memory that does not grow with their number: equal ones are only counted. Any order gives the
 * same sum. */
struct cost_sum {
    struct map_u64 counts[COST_PARTS]; /* polynomial (its address) -> how often */
    bool per_iteration, at_most, unknown;
    const char *why; /* the first reason */
};
#define COST_SUM_INIT {.unknown = false}
tare_status cost_sum_add(struct cost_sum *sum, const struct cost *more, tare_error *err);
void cost_sum_take(const struct cost_sum *sum, struct poly_space *s, struct cost *out);
void cost_sum_release(struct cost_sum *sum);

/* How a node gets its cost. */
enum cost_kind {
    COST_KIND_PLAIN, /* an operator by its row */
    COST_KIND_IF,
    COST_KIND_LOOP, /* Loop and Scan */
    COST_KIND_CALL  /* of a model-local function */
};
enum cost_kind cost_kind_of(const struct infer_node *n);

#endif
