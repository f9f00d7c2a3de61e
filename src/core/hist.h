/* SPDX-License-Identifier: MIT
 * hist.h - a histogram of uint64_t values whose every quantile is right to within 0.54 %, from 1 to 2^64.
 *
 * Base-2 exponential buckets of scale 6, the shape of OTLP exponential and Prometheus native histograms:
 * bucket i holds base^i < value <= base^(i+1) with base = 2^(1/64), 64 buckets an octave; zero has its own.
 * The greatest relative error of a quantile is (base - 1) / (base + 1) = 0.5416 %. Buckets are a dense array
 * from the least to the greatest used. Not thread-safe. Counts stop at UINT64_MAX instead of wrapping. */
#ifndef CORE_HIST_H
#define CORE_HIST_H

#include <stdint.h>

#include "core/error.h"

enum {
    HIST_SCALE = 6,
    HIST_INDEX_MIN = -1,        /* the bucket of the value 1 */
    HIST_INDEX_MAX = 4095,      /* the bucket of UINT64_MAX */
    HIST_INDEX_ZERO = INT32_MIN /* what hist_index says of 0 */
};

struct hist {
    uint64_t *counts; /* counts[k] is bucket first + k */
    uint32_t n_counts;
    int32_t first;
    uint64_t zeros, count;
    uint64_t min, max; /* min > max: none recorded */
};
#define HIST_INIT                          \
    {                                      \
        NULL, 0, 0, 0, 0, UINT64_MAX, 0 \
    }

void hist_release(struct hist *h);

/* A failed record (TARE_NOMEM) leaves the histogram as it was. */
tare_status hist_record(struct hist *h, uint64_t value, tare_error *err);
tare_status hist_record_n(struct hist *h, uint64_t value, uint64_t n, tare_error *err);

/* The value of rank ceil(q * count) to within the error bound; q <= 0 and q >= 1 give min and max exactly.
 * NAN if nothing was recorded: unknown is not zero. */
double hist_quantile(const struct hist *h, double q);

int hist_index(uint64_t value); /* exact */

#endif
