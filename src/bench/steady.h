/* SPDX-License-Identifier: MIT
 * steady.h - two questions to the run times of a case so far, answered by pure functions: has it become steady (MSER:
 * White 1997), and how precisely are its median and a percentile known? */
#ifndef BENCH_STEADY_H
#define BENCH_STEADY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { WARMUP_LEAST = 10 }; /* of fewer runs nothing can be said */

struct warmup_verdict {
    bool judged; /* false: too few runs */
    bool steady;
    size_t cut; /* so many runs at the beginning were the transient */
};

/* ns: times in the order they were taken. Works on ln x, clipped to the median +/- 5 * 1.4826 MAD; means of
 * 5 neighbours (of 1 below 50 runs) are cut at the beginning so that the variance of the mean of the rest is
 * least, looking as far as three quarters. A best cut at half of them or later means that
 * the end is not steady yet. */
tare_status warmup_judge(const uint64_t *ns, size_t n, struct warmup_verdict *out, tare_error *err);

struct precision { /* half the 95 % interval over the value; INFINITY: not bounded yet */
    double median, percentile;
    double median_ns; /* the value itself; 0: unknown */
};

/* The interval of the median is the wider of the order statistics with n_eff and of how batch medians wander; that
 * of the percentile (0: none wanted, and its precision 0) is of order statistics with n_eff. */
tare_status stopping_precision(const uint64_t *ns, size_t n, double percentile, struct precision *out,
                               tare_error *err);

/* Look again when there are so many: sqrt 2 times as many. Looking rarely keeps looking from deciding. */
size_t stopping_next(size_t n);

#endif
