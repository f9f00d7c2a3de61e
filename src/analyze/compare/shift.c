/* SPDX-License-Identifier: MIT
 * shift.c - see shift.h. */
#include "analyze/compare/shift.h"

#include <math.h>

#include "core/mem.h"

#define EXACT_CELLS 2500 /* n * m up to here: the distribution is counted, beyond it is as good as normal */
#define PAIRS_MAX ((size_t)1 << 24)

/* The chance of each value of U, adding one value after the other: the greatest of i + j values is of the
 * first sample with chance i / (i + j), and then lies above all j of the second. */
static double *rank_sum_shares(size_t n, size_t m)
{
    size_t cells = n * m + 1;
    double *all = mem_new((n + 1) * cells, sizeof *all);
    if (!all) return NULL;
    for (size_t i = 0; i <= n; i++) all[i * cells] = 1;
    for (size_t j = 1; j <= m; j++)
        for (size_t i = 1; i <= n; i++) {
            double *row = all + i * cells, *less = row - cells, share = (double)i / (double)(i + j);
            for (size_t u = i * j + 1; u-- > 0;)
                row[u] = (u >= j ? less[u - j] * share : 0) + row[u] * (1 - share);
        }
    return all;
}

uint64_t shift_rank_k(size_t n, size_t m, double alpha)
{
    double sum = 0, nm = (double)n * (double)m;
    double *all = nm <= EXACT_CELLS ? rank_sum_shares(n, m) : NULL;
    if (!all) {
        double z = stats_normal_quantile(1 - alpha), k = nm / 2 - z * sqrt(nm * (double)(n + m + 1) / 12);
        return k < 1 ? 0 : (uint64_t)k;
    }
    const double *shares = all + n * (n * m + 1);
    uint64_t k = 0;
    while (k < n * m && (sum += shares[k]) <= alpha) k++;
    mem_free(all);
    return k;
}

tare_status shift_between(struct stats_sample a, struct stats_sample b, double level, struct interval *out,
                          tare_error *err)
{
    size_t pairs = a.n * b.n;
    if (a.n == 0 || b.n == 0 || pairs / a.n != b.n || pairs > PAIRS_MAX)
        return error_set(err, TARE_INVALID, "%zu and %zu values: too few or too many to compare", a.n, b.n);
    double *d = mem_new(pairs, sizeof *d);
    if (!d) return error_set(err, TARE_NOMEM, "out of memory for %zu differences", pairs);
    for (size_t i = 0; i < a.n; i++)
        for (size_t j = 0; j < b.n; j++) d[i * b.n + j] = b.x[j] - a.x[i];
    stats_sort(d, pairs);
    uint64_t k = shift_rank_k(a.n, b.n, (1 - level) / 2);
    *out = (struct interval){stats_median_sorted(d, pairs), k ? d[k - 1] : -INFINITY,
                             k ? d[pairs - k] : INFINITY};
    mem_free(d);
    return TARE_OK;
}
