/* SPDX-License-Identifier: MIT
 * liveness.h - activation memory by liveness: each value lives from its producer to its last reader, views share the
 * bytes of what they view, results may be written over an input that dies, captured values live over the body.
 * Numbers need all dimensions bound. */
#ifndef MODEL_LIVENESS_H
#define MODEL_LIVENESS_H

#include "model/infer/infer.h"

struct live_tensor {
    const char *name;
    uint64_t bytes;
};

struct liveness {
    bool known;                     /* false: some sizes are unknown; the numbers are then lower bounds */
    uint64_t unknown;               /* values of unknown size */
    uint64_t sum;                   /* of all intermediate values */
    const struct poly *sum_formula; /* the same in the free dimensions; NULL: too large to be told */
    uint64_t peak;                  /* the most alive at once: no allocator can do with less */
    uint64_t arena;                 /* a first-fit-by-size plan with offsets: what reuse can reach */
    const char *peak_node;          /* its name, or its first output's */
    struct live_tensor *alive;      /* at the peak, greatest first */
    size_t n_alive;
};
#define LIVENESS_INIT {0}

/* Intermediate values are what nodes of the graph make in every run: inputs are the caller's and weights the model's
 * memory, a view of either too; so is what is made of constants only, once. */
tare_status liveness_of(struct liveness *out, const struct inferred *m, const struct poly_binding *dims,
                        size_t n, tare_error *err);
void liveness_release(struct liveness *l);

/* ---- liveness_plan.c: where blocks that live for a while would lie in one stretch of memory: the largest first, each
 * at the lowest place that is free for as long as it lives. Knows nothing of models ---- */

struct plan_block {
    uint32_t first, last; /* steps at which it is alive, both included */
    uint64_t bytes;
    uint64_t offset; /* set by plan_place() */
};

/* Steps are 0 .. n_steps - 1. *end is the size of the stretch. Near n log n as long as few blocks live at the same
 * time; when too many do, the rest is put on top of what is there, which is still a plan, only not as tight. */
tare_status plan_place(struct plan_block *blocks, size_t n, uint32_t n_steps, uint64_t *end, tare_error *err);

#endif
