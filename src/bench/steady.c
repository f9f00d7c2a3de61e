/* SPDX-License-Identifier: MIT
 * steady.c - see steady.h. */
#include "bench/steady.h"

#include <math.h>

#include "bench/engine.h"

enum { FIVES_FROM = 50, FAR_FROM = 20 };

/* ---- steady? ---- */

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
    double *y = stats_doubles(ns, n, err);
    if (!y) return TARE_NOMEM;
    for (size_t i = 0; i < n; i++) y[i] = log(fmax(y[i], 1));
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

/* ---- precise? ---- */

/* Half the interval over its value: what "+/- 2 %" is. Where the value is 0 (runs below the clock's step) only an
 * interval of no width is precise. */
static double half_width(struct interval i)
{
    if (!(i.value > 0)) return i.lo == i.hi ? 0 : INFINITY;
    return (i.hi - i.lo) / 2 / i.value;
}

/* Run times follow one another and are alike, so n of them tell less than n independent ones. n_eff is how many
 * independent ones tell as much; the ranks that bound the percentile are taken for that many. Sorts x. */
static tare_status of_percentile(double *x, size_t n, double q, double *out, tare_error *err)
{
    double n_eff;
    tare_status s = stats_n_eff(x, n, &n_eff, err);
    if (s < 0) return s;
    stats_sort(x, n);
    *out = half_width(stats_quantile_interval_sorted(x, n, n_eff, q, BENCH_CONFIDENCE));
    return TARE_OK;
}

tare_status stopping_precision(const uint64_t *ns, size_t n, double percentile, struct precision *out,
                               tare_error *err)
{
    *out = (struct precision){INFINITY, percentile > 0 ? INFINITY : 0, 0};
    if (n == 0) return TARE_OK;
    double *x = stats_doubles(ns, n, err);
    if (!x) return TARE_NOMEM;
    struct interval median;
    tare_status s = stats_median_interval(x, n, BENCH_CONFIDENCE, &median, err);
    if (s == TARE_OK) out->median = half_width(median);
    if (s == TARE_OK) out->median_ns = median.value;
    if (s == TARE_OK && percentile > 0) s = of_percentile(x, n, percentile, &out->percentile, err);
    mem_free(x);
    return s;
}

size_t stopping_next(size_t n)
{
    size_t next = (size_t)ceil((double)n * M_SQRT2);
    return next > n ? next : n + 1;
}
