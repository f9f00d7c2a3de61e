/* SPDX-License-Identifier: MIT
 * hist.h - a histogram of uint64_t values whose every quantile is right to within 0.54 %, from 1 to 2^64.
 *
 * Base-2 exponential buckets of scale 6, the shape of OTLP exponential and Prometheus native histograms:
 * bucket i holds base^i < value <= base^(i+1) with base = 2^(1/64), 64 buckets an octave; zero has its own.
 * The greatest relative error of a quantile is (base - 1) / (base + 1) = 0.5416 %. Buckets are a dense array
 * from the least to the greatest used; every uint64_t has its bucket, so that none overflows. Not thread-safe. Counts
 * and the sum stop at UINT64_MAX instead of wrapping. Histograms of many hosts merge without any loss. */
#ifndef CORE_HIST_H
#define CORE_HIST_H

#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/error.h"

#define HIST_ERROR 0.005416 /* the greatest relative error of a quantile */

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
    uint64_t sum;
};
#define HIST_INIT                          \
    {                                      \
        NULL, 0, 0, 0, 0, UINT64_MAX, 0, 0 \
    }

void hist_release(struct hist *h);

/* A failed record (TARE_NOMEM) leaves the histogram as it was. */
tare_status hist_record(struct hist *h, uint64_t value, tare_error *err);
tare_status hist_record_n(struct hist *h, uint64_t value, uint64_t n, tare_error *err);

/* The value of rank ceil(q * count) to within the error bound; q <= 0 and q >= 1 give min and max exactly.
 * NAN if nothing was recorded: unknown is not zero. */
double hist_quantile(const struct hist *h, double q);

int hist_index(uint64_t value); /* exact */

/* Add all that `from` counted, which may be a borrowed array that hist_fault() finds nothing wrong with. As it was on
 * failure. */
tare_status hist_merge(struct hist *h, const struct hist *from, tare_error *err);

/* Count anew by buckets of 2^-scale octaves, scale from 0 to 6, as OTLP does: bucket i of the result holds the
 * 2^(6 - scale) buckets from i << (6 - scale). *n of them from *first on, the caller's to mem_free; NULL: none, or no
 * memory. */
uint64_t *hist_coarse(const struct hist *h, unsigned scale, int *first, size_t *n);

/* What is wrong with a histogram that came from elsewhere, or NULL; sets its count. */
const char *hist_fault(struct hist *h);

/* Varints: scale, zeros, sum, min, max, then for each bucket that counted something the empty ones before it and its
 * count. Nothing at all of an empty histogram. */
void hist_encode(const struct hist *h, struct buf *out);
/* Add what was encoded to `h`. The bytes may be anyone's: at most 32 KiB are taken. On failure, whose text is the cause
 * alone, `h` may hold a part of them. */
tare_status hist_decode(struct hist *h, const void *bytes, size_t n, tare_error *err);

#endif
