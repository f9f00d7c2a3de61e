/* SPDX-License-Identifier: MIT
 * stats.h - the statistics kit: estimates with honest intervals, as pure functions of arrays.
 *
 * Nothing here changes its input (but stats_sort), keeps state or looks at the clock. `level` is the
 * two-sided confidence, 0.95 for 95 %. An end of an interval that the data cannot bound is -INFINITY or
 * INFINITY; what cannot be said at all is NAN. Functions that need scratch memory return tare_status and
 * refuse (TARE_INVALID) arrays that are empty or hold NAN or infinities; those named _sorted take ascending
 * arrays and cannot fail. */
#ifndef CORE_STATS_H
#define CORE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/interval.h"

/* ---- describing ---- */

void stats_sort(double *x, size_t n); /* ascending; no NANs */
/* Whole numbers (times in ns) as an array to reckon with; owned. NULL: out of memory, and the error says so. */
double *stats_doubles(const uint64_t *v, size_t n, tare_error *err);
double stats_mean(const double *x, size_t n);   /* NAN if n is 0 */
double stats_stddev(const double *x, size_t n); /* sample, n - 1; NAN if n < 2 */
double stats_median_sorted(const double *x, size_t n);
double stats_quantile_sorted(const double *x, size_t n, double q); /* between order statistics: (n - 1) q */
tare_status stats_median(const double *x, size_t n, double *out, tare_error *err);

/* The median of |x - median|, not scaled to a standard deviation. */
tare_status stats_mad(const double *x, size_t n, double *out, tare_error *err);

/* ---- intervals ---- */

struct stats_sample {
    const double *x;
    size_t n;
};

/* A quantile between order statistics, with binomial ranks. n_eff (1 .. n) is the number of independent
 * samples that the n are worth; pass n if they are independent. */
struct interval stats_quantile_interval_sorted(const double *x, size_t n, double n_eff, double q,
                                               double level);

/* Wilson's interval of a share of n (independent) ones: sensible at 0 and 1, too. */
struct interval stats_share_interval(double share, double n, double level);

/* How many independent samples a series in time order is worth: autocorrelation of "at most the median",
 * summed in pairs while positive. Between 1 and n. Of very long series (130,000 and more) only the lags up to
 * 2^34 / n are looked at, so that the worst case stays under a second or so. */
tare_status stats_n_eff(const double *x, size_t n, double *out, tare_error *err);

/* The median of a series in time order: order statistics with n_eff, or, where that is wider (from 20 samples on), how
 * the medians of up to 32 consecutive batches wander, followed to the length of the whole. What a report of one run
 * prints; never a gate. */
tare_status stats_median_interval(const double *x, size_t n, double level, struct interval *out,
                                  tare_error *err);

/* The centre of differences: Hodges-Lehmann, the median of all pairwise means, with the signed-rank interval
 * (exact to n = 50, normal beyond). O(n log n) at any n: the pairwise means are counted, never stored. */
tare_status stats_hodges_lehmann(const double *d, size_t n, double level, struct interval *out,
                                 tare_error *err);

/* ---- distributions ---- */

double stats_normal_cdf(double z);
double stats_normal_quantile(double p);
double stats_t_cdf(double t, double df);
double stats_t_quantile(double p, double df);
double stats_binomial_cdf(double k, double n, double p);      /* P(X <= k) */
double stats_binomial_at_least(double k, double n, double p); /* P(X >= k), without cancellation */

/* Ranks (1 .. n) whose order statistics enclose quantile q: *low 0 or *high n + 1 where n is too small. */
void stats_quantile_ranks(uint64_t n, double q, double level, uint64_t *low, uint64_t *high);

/* The largest k with P(T+ <= k - 1) <= alpha for the signed-rank statistic of n differences; 0 if none. */
uint64_t stats_signed_rank_k(size_t n, double alpha);

#endif
