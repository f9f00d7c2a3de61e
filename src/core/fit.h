/* SPDX-License-Identifier: MIT
 * fit.h - a linear sum whose parts are never below zero, such as the power of what ran in turns: least squares, with an
 * interval for each part. Pure. */
#ifndef CORE_FIT_H
#define CORE_FIT_H

#include <stddef.h>

#include "core/interval.h"

enum { FIT_COLUMNS_MOST = 32, FIT_ROWS_MORE = 10 }; /* than columns, at the least */

/* y[i] is about the sum of value[k] * x[i * columns + k], the rows in order of time. */
struct fit_rows {
    const double *y, *x;
    size_t rows, columns; /* at most FIT_COLUMNS_MOST */
    const double *blur;   /* columns x columns, NULL: none: what errors of x are to be feared to add to x'x */
};

/* Each value with its interval. All NAN: what that column adds cannot be told from what others do, or there are too few
 * rows. Errors may differ from row to row and hang on the row before (a reading that comes
 * late is missing here and too much there): the wider of two intervals is given, with and without that. Errors of x
 * draw all values to each other; by how much is in the interval, too. */
void fit_nonnegative(const struct fit_rows *in, double level, struct interval out[]);

#endif
