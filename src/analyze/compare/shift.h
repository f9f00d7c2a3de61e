/* SPDX-License-Identifier: MIT
 * shift.h - by how much two independent samples differ: the median of all differences between them, with the
 * rank-sum interval. Holds whatever the shape of the distributions, as long as it is the same. Pure. */
#ifndef ANALYZE_SHIFT_H
#define ANALYZE_SHIFT_H

#include "core/stats.h"

/* b - a. An end that the samples are too small to bound is infinite. n * m is at most 2^24. */
tare_status shift_between(struct stats_sample a, struct stats_sample b, double level, struct interval *out,
                          tare_error *err);

/* The largest k with P(U <= k - 1) <= alpha for the rank-sum statistic of n and m values; 0: none. */
uint64_t shift_rank_k(size_t n, size_t m, double alpha);

#endif
