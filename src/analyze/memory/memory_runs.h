/* SPDX-License-Identifier: MIT
 * memory_runs.h - the allocations of a run, from a trace of a few runs of which is known when each began and ended: how
 * many, how large, where. A pure function of the trace. */
#ifndef ANALYZE_MEMORY_RUNS_H
#define ANALYZE_MEMORY_RUNS_H

#include "analyze/memory/memory_sum.h"
#include "run/run.h"

/* Whose allocations count: those of the process `pid`, or of all but it. Times are of the trace; a window that ends at
 * 0 is none. */
struct memory_runs {
    uint32_t pid;
    bool others;
    struct memory_window load, first;
    struct memory_windows runs; /* one at least */
};

/* Fills c->allocations. TARE_UNSUPPORTED: nobody who counts has recorded anything, and why. */
tare_status memory_runs_record(struct trace *t, const struct memory_runs *of, struct run *run,
                               struct run_case *c, tare_error *err);

#endif
