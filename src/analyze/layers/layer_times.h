/* SPDX-License-Identifier: MIT
 * layer_times.h - inside of layers.c: which events of a profile are the same node, and its own time in a typical run,
 * the mean over the fifth of the runs that is nearest to the median. Nodes are told apart by their place in a run when
 * all runs have the same sequence (names may repeat or be made up by the runtime), else by name; nodes of bodies by
 * name within the node around them. Knows no graph. */
#ifndef ANALYZE_LAYER_TIMES_H
#define ANALYZE_LAYER_TIMES_H

#include "core/vec.h"
#include "model/profile/ort_profile.h"

struct layer_slot {
    const struct ort_event *event; /* its first */
    size_t parent;                 /* slot of the node around it; SIZE_MAX: of the main graph */
    uint64_t calls;                /* in all runs that count */
    int64_t total_us;              /* own, in all of them */
    double time_us;                /* own, in a typical run */
};

struct layer_times {
    VEC(struct layer_slot) slots; /* by_position: the first n_main are the sequence of the main graph */
    bool by_position;
    size_t n_main;
    uint64_t runs, events; /* that count */
};
#define LAYER_TIMES_INIT {.slots = VEC_INIT}

tare_status layer_times_build(struct layer_times *out, const struct ort_profile *p, uint64_t skip_runs,
                              tare_error *err);
void layer_times_release(struct layer_times *t);

#endif
