/* SPDX-License-Identifier: MIT
 * spread.h - times of one kind over runs or requests, into their object of the document: mean, percentiles with their
 * intervals, histogram; of those that failed or were not served, that they took longer. */
#ifndef BENCH_SPREAD_H
#define BENCH_SPREAD_H

#include "bench/engine.h"

struct spread {
    struct run *run;
    struct run_case *c; /* for reasons */
    struct run_latency *into;
    const char *path;   /* of `into` in the case: "latency_ns" */
    const uint64_t *ns; /* in time order; at least one */
    size_t n;
    const struct wait *waits; /* that took longer than any of these; in time order */
    size_t n_waits;
};
tare_status spread_put(const struct spread *s, tare_error *err);

#endif
