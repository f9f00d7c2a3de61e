/* SPDX-License-Identifier: MIT
 * warmup.c - see warmup.h. */
#include "bench/warmup.h"

#include <math.h>

#include "core/mem.h"
#include "core/stats.h"

enum { FIVES_FROM = 50, FAR_FROM = 20 };

/* Single stalls are no trend: what is further out than 5 deviations is moved to there. */
static tare_status clip_outliers(double *y, size_t n, tare_error *err)
{
    double middle, mad;
    tare_status s = stats_median(y, n, &middle, err);
    if (s < 0 || (s = stats_mad(y, n, &mad, err)) < 0) return s;
    double reach = 5 * 1.4826 * mad;
    if (reach == 0) return TARE_OK; /* more than half are equal: clipping would hide the transient */
    for (size_t i = 0; i < n; i++) y[i] = fmin(fmax(y[i], middle - reach), middle + reach);
    return TARE_OK;
}

/* How many items at the beginning are transient? Dropping some makes the rest more alike, but leaves fewer of them: the
 * best cut is where the variance of the mean of the rest, Var(rest) / |rest|, is least (MSER); of equals the smallest.
 * Looking beyond the half tells a trend, whose best cut is always further on, from a chance, but needs enough items. */
static size_t best_cut(const double *b, size_t m)
{
    size_t last = m < FAR_FROM ? m / 2 : m * 3 / 4;
    double mean = 0, squares = 0, least = INFINITY;
    size_t best = 0;
    for (size_t d = m; d-- > 0;) { /* from the end, so that each step adds one item */
        double count = (double)(m - d), off = b[d] - mean;
        mean += off / count;
        squares += off * (b[d] - mean);
        if (d > last) continue;
        double score = squares / (count * count);
        if (score <= least * (1 + 1e-12)) {
            least = score;
            best = d;
        }
    }
    return best;
}

tare_status warmup_judge(const uint64_t *ns, size_t n, struct warmup_verdict *out, tare_error *err)
{
    *out = (struct warmup_verdict){0};
    if (n < WARMUP_LEAST) return TARE_OK;
    double *y = mem_new(n, sizeof *y);
    if (!y) return error_set(err, TARE_NOMEM, "out of memory for %zu run times", n);
    for (size_t i = 0; i < n; i++) y[i] = log((double)(ns[i] ? ns[i] : 1));
    tare_status s = clip_outliers(y, n, err);
    if (s == TARE_OK) {
        size_t size = n < FIVES_FROM ? 1 : 5, m = n / size, skip = n - m * size; /* odd ones: the oldest */
        for (size_t j = 0; j < m; j++) y[j] = stats_mean(y + skip + j * size, size);
        size_t cut = best_cut(y, m);
        *out = (struct warmup_verdict){true, cut < m / 2, cut ? skip + cut * size : 0};
    }
    mem_free(y);
    return s;
}
