/* SPDX-License-Identifier: MIT
 * growth.h - does memory grow for good? The one judge of leaks for whoever has a series of readings: `tare run`,
 * blocks and models in Python. (`tare bench`, which has few runs, asks memory_slope().) docs/judgement.md says what
 * it asks for, and how often it is wrong. Values are bytes, times in any unit (seconds, calls). Pure functions of
 * arrays. */
#ifndef ANALYZE_GROWTH_H
#define ANALYZE_GROWTH_H

#include <stddef.h>

#include "core/error.h"

enum { GROWTH_SAMPLES_MIN = 16, GROWTH_PARTS = 8 };

struct growth_series { /* in time order */
    const double *at, *value;
    size_t n;
};

struct growth {
    size_t samples;      /* of the series, of which the first third is not looked at */
    double from, to;     /* the middle of the first part and of the last one: in between it rose by `rise` */
    double confidence;   /* that it rises: 1 - p of the signed-rank test of the rises from part to part */
    double rate, lo, hi; /* per unit of time: the middle of those rises, and its 95 % interval */
    double rise;         /* from the first part to the last */
    const char *verdict; /* "growing", "steady" (surely not), "inconclusive" */
};

/* TARE_INVALID: fewer than GROWTH_SAMPLES_MIN samples, no time between them, or a value that is no number. */
tare_status growth_test(const struct growth_series *x, struct growth *out, tare_error *err);

#endif
