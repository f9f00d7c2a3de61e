/* SPDX-License-Identifier: MIT
 * buckets.c - see buckets.h. */
#include "server/live/buckets.h"

#include <stdlib.h>

struct buckets_range buckets_range(int64_t from_ms, int64_t to_ms, size_t points, int64_t width_ms)
{
    from_ms -= from_ms % width_ms;
    if (to_ms % width_ms) to_ms += width_ms - to_ms % width_ms;
    int64_t n = (int64_t)points, length = to_ms - from_ms;
    int64_t step = length / n + (length % n != 0);
    if (step % width_ms) step += width_ms - step % width_ms;
    size_t pieces = (size_t)(length / step + (length % step != 0));
    return (struct buckets_range){from_ms, to_ms, step, pieces, from_ms, to_ms};
}

struct bucket *buckets_at(struct bucket *at, const struct buckets_range *r, int64_t at_ms)
{
    return at_ms >= r->first_ms && at_ms < r->end_ms ? &at[(at_ms - r->from_ms) / r->step_ms] : NULL;
}

static void put(struct bucket *out, const struct buckets_range *r, int64_t at_ms, double value, double weight)
{
    struct bucket *b = buckets_at(out, r, at_ms);
    if (b) bucket_merge(b, &(struct bucket){value, value, value * weight, weight, 1});
}

static int by_time(const void *a, const void *b)
{
    const struct buckets_point *x = a, *y = b;
    return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

void buckets_fill(struct bucket *out, const struct buckets_range *range, bool counter,
                  struct buckets_point *v, size_t n)
{
    if (counter && n) qsort(v, n, sizeof *v, by_time);
    for (size_t i = 0; i < n && !counter; i++) put(out, range, v[i].at_ms, v[i].value, 1);
    for (size_t i = 1; i < n && counter; i++) {
        int64_t ms = v[i].at_ms - v[i - 1].at_ms;
        double more = v[i].value - v[i - 1].value, s = (double)ms / 1e3;
        if (ms > 0 && ms <= BUCKETS_GAP_MS && more >= 0) put(out, range, v[i].at_ms, more / s, s);
    }
}
