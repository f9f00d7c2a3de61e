/* SPDX-License-Identifier: MIT
 * summary.h - samples of one case -> latency, throughput and their intervals in the run document. */
#ifndef BENCH_SUMMARY_H
#define BENCH_SUMMARY_H

#include "run/run.h"

struct sampled {
    const uint64_t *ns; /* latencies, in time order */
    size_t n;
    uint64_t wall_ns; /* how long measuring them took, over all workers */
    double units;     /* per run */
    const char *unit;
    bool open_loop;
};

/* Fills latency_ns (intervals corrected for autocorrelation, null where too few), histogram, samples_raw and
 * throughput. */
tare_status summarise(struct run *run, struct run_case *c, const struct sampled *s, tare_error *err);

#endif
