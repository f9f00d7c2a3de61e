/* SPDX-License-Identifier: MIT
 * buckets.h - readings of a series over a time, in so many pieces of one length: least, mean and greatest of each. A
 * piece without readings is empty: nothing is ever made up between two. Pure. */
#ifndef SERVER_BUCKETS_H
#define SERVER_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a counter the rate between two readings counts, unless they are further apart: then nobody knows. */
enum { BUCKETS_GAP_MS = 60 * 1000 };

struct bucket {
    double least, greatest;
    double sum, weight; /* the mean is sum / weight: of rates by their time */
    uint64_t n;         /* readings, or rates; 0: empty */
};

struct buckets_range { /* [from_ms, to_ms) */
    int64_t from_ms, to_ms, step_ms;
    size_t n;
};
/* At most `points` pieces; the last may reach beyond to_ms. */
struct buckets_range buckets_range(int64_t from_ms, int64_t to_ms, size_t points);

struct buckets_point {
    int64_t at_ms;
    double value;
};

/* Puts `v`, in any order, which is changed, into range->n empty buckets. A counter that fell began anew: no rate there.
 * Of a counter readings from BUCKETS_GAP_MS before the range on are wanted. */
void buckets_fill(struct bucket *out, const struct buckets_range *range, bool counter,
                  struct buckets_point *v, size_t n);

#endif
