/* SPDX-License-Identifier: MIT
 * line.h - a line through a few points that one bad point cannot bend: memory or time over the batch size. Theil-Sen:
 * the median of the slopes of all pairs, then the median of what is left. Pure. */
#ifndef ANALYZE_TUNE_LINE_H
#define ANALYZE_TUNE_LINE_H

#include <stddef.h>

#include "core/error.h"

enum { TUNE_LINE_POINTS_MAX = 64 };

struct tune_line {
    double base, slope; /* y = base + slope * x */
    double residual;    /* the farthest that a point lies from the line, as a share of its y */
};

/* TARE_INVALID: fewer than two points or more than TUNE_LINE_POINTS_MAX, one that is not finite, all at
 * one x, a y not above 0. */
tare_status tune_line_through(const double *x, const double *y, size_t n, struct tune_line *out,
                              tare_error *err);

#endif
