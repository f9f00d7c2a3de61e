/* SPDX-License-Identifier: MIT
 * stopping.h - how precisely are the median and a percentile known? Pure functions of the run times. */
#ifndef BENCH_STOPPING_H
#define BENCH_STOPPING_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct precision { /* half the 95 % interval over the value; INFINITY: not bounded yet */
    double median, percentile;
};

/* The interval of the median is the wider of the order statistics with n_eff and of ten batch medians; that
 * of the percentile (0: none wanted, and its precision 0) is of order statistics with n_eff. */
tare_status stopping_precision(const uint64_t *ns, size_t n, double percentile, struct precision *out,
                               tare_error *err);

/* Look again when there are so many: sqrt 2 times as many. Looking rarely keeps looking from deciding. */
size_t stopping_next(size_t n);

#endif
