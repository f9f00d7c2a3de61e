/* SPDX-License-Identifier: MIT
 * stopping.c - see stopping.h. */
#include "bench/stopping.h"

#include <math.h>

#include "bench/engine.h"

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
    *out = (struct precision){INFINITY, percentile > 0 ? INFINITY : 0};
    if (n == 0) return TARE_OK;
    double *x = mem_new(n, sizeof *x);
    if (!x) return error_set(err, TARE_NOMEM, "out of memory for %zu run times", n);
    for (size_t i = 0; i < n; i++) x[i] = (double)ns[i];
    struct interval median;
    tare_status s = stats_median_interval(x, n, BENCH_CONFIDENCE, &median, err);
    if (s == TARE_OK) out->median = half_width(median);
    if (s == TARE_OK && percentile > 0) s = of_percentile(x, n, percentile, &out->percentile, err);
    mem_free(x);
    return s;
}

size_t stopping_next(size_t n)
{
    size_t next = (size_t)ceil((double)n * M_SQRT2);
    return next > n ? next : n + 1;
}
