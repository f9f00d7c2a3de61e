/* SPDX-License-Identifier: MIT
 * buckets.h - readings of a series over a time, in so many pieces of one length: least, mean and greatest of each. A
 * piece without readings is empty: nothing is ever made up between two. Pure. */
#ifndef SERVER_BUCKETS_H
#define SERVER_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/rollup.h"

/* Of a counter the rate between two readings counts, unless they are further apart: then nobody knows. */
enum { BUCKETS_GAP_MS = 60 * 1000 };

struct buckets_range { /* [from_ms, to_ms) */
    int64_t from_ms, to_ms, step_ms;
    size_t n;
    int64_t first_ms, end_ms; /* what is put in is of [first_ms, end_ms): all of it, at first */
};
/* At most `points` pieces; the last may reach beyond to_ms. The range is widened to multiples
 * of width_ms, and their length is one: so they can be made of sums over that much. 1: any. */
struct buckets_range buckets_range(int64_t from_ms, int64_t to_ms, size_t points, int64_t width_ms);
/* The piece that a time lies in; NULL: none. */
struct bucket *buckets_at(struct bucket *at, const struct buckets_range *range, int64_t at_ms);

struct buckets_point {
    int64_t at_ms;
    double value;
};

/* Adds `v`, in any order, which is changed, to range->n buckets. A counter that fell began anew: no rate there.
 * Of a counter readings from BUCKETS_GAP_MS before the range on are wanted. */
void buckets_fill(struct bucket *out, const struct buckets_range *range, bool counter,
                  struct buckets_point *v, size_t n);

#endif
