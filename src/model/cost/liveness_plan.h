/* SPDX-License-Identifier: MIT
 * liveness_plan.h - where blocks that live for a while would lie in one stretch of memory: the largest first, each at
 * the lowest place that is free for as long as it lives. Knows nothing of models. */
#ifndef MODEL_LIVENESS_PLAN_H
#define MODEL_LIVENESS_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct plan_block {
    uint32_t first, last; /* steps at which it is alive, both included */
    uint64_t bytes;
    uint64_t offset; /* set by plan_place() */
};

/* Steps are 0 .. n_steps - 1. *end is the size of the stretch. Near n log n as long as few blocks live at the same
 * time; when too many do, the rest is put on top of what is there, which is still a plan, only not as tight. */
tare_status plan_place(struct plan_block *blocks, size_t n, uint32_t n_steps, uint64_t *end, tare_error *err);

#endif
