/* SPDX-License-Identifier: MIT
 * watch_stacks.h - where the threads of the program are, again and again, into its trace: the sampler of `tare attach`
 * in a thread of its own beside the one that watches. */
#ifndef WATCH_WATCH_STACKS_H
#define WATCH_WATCH_STACKS_H

#include "sample/sampler.h"

struct watch_stacks {
    bool on;
    double hz, budget; /* budget: percent of a processor */
};

struct stacks_watch;
/* The trace is there already. From now on it looks at `pid` and all it starts, until they end or it is told to. */
tare_status stacks_watch_start(struct stacks_watch **out, const struct watch_stacks *how, pid_t pid,
                               const char *trace, tare_error *err);
/* All that was seen is in the trace when it returns. */
tare_status stacks_watch_end(struct stacks_watch *w, struct sampler_totals *out, tare_error *err);

#endif
