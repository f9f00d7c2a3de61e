/* SPDX-License-Identifier: MIT
 * summary.h - samples of one case -> latency, throughput and their intervals in the run document.
 *
 * A percentile q of n samples is the sample of rank ceil(n q) (nearest rank). Its interval is of order
 * statistics with binomial ranks for n_eff samples (autocorrelation taken off); that of the median also not
 * narrower than the spread of ten batch medians says. A percentile above the median is null when even n
 * independent samples could not bound it; an end that n_eff samples cannot bound is null. Reasons go to the
 * case's `unknown`. */
#ifndef BENCH_SUMMARY_H
#define BENCH_SUMMARY_H

#include "run/run.h"

struct sampled_slice { /* some runs in a row and the wall time that they took */
    uint64_t n, wall_ns;
};

struct sampled {
    const uint64_t *ns; /* latencies, in time order */
    size_t n;
    uint64_t wall_ns; /* how long measuring them took, over all workers; 0: sum of the slices */
    double units;     /* per run */
    const char *unit;
    bool open_loop;
    const struct sampled_slice *slices; /* for the interval of the throughput; may be NULL */
    size_t n_slices;
};

/* Fills samples, confidence, latency_ns, histogram, samples_raw, throughput. */
tare_status summarise(struct run *run, struct run_case *c, const struct sampled *s, tare_error *err);

/* The fewest samples with which the 95 % interval of quantile q is bounded above. */
uint64_t summary_samples_needed(double q);

#endif
