/* SPDX-License-Identifier: MIT
 * growth.h - does memory grow for good? A trend test on the floor of a series: the least value of each of
 * some consecutive blocks, so that what is taken and given back again does not count. Growth that ended (a
 * model was loaded, a cache filled) is none: the later half must rise, too, and by more than allocators do
 * by themselves. Values are bytes. Pure functions of arrays. */
#ifndef ANALYZE_GROWTH_H
#define ANALYZE_GROWTH_H

#include <stddef.h>

#include "core/error.h"

enum { GROWTH_SAMPLES_MIN = 16, GROWTH_BLOCKS_MAX = 32 };

struct growth_series { /* in time order */
    const double *at_s, *value;
    size_t n;
};

struct growth {
    size_t samples, blocks;
    double
        confidence; /* that it rises: 1 - p of the Mann-Kendall test; the lesser of all and the later half */
    double per_s, lo, hi; /* Theil-Sen slope of the floors, and its 95 % interval */
    double rise;          /* of the floor from the first to the last block */
    const char *verdict;  /* "growing", "steady", "inconclusive" */
};

/* Mann and Kendall: pairs that rise less pairs that fall, over the standard deviation that this number has in a series
 * without a trend; ties considered, one less for continuity. Above 1.64: it rises, with 95 %. 0: all are the same. */
double growth_trend_z(const double *v, size_t n);

/* TARE_INVALID: fewer than GROWTH_SAMPLES_MIN samples, no time between them, or a value that is no number. */
tare_status growth_test(const struct growth_series *x, struct growth *out, tare_error *err);

#endif
