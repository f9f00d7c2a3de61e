/* SPDX-License-Identifier: MIT
 * line.c - see line.h. */
#include "analyze/tune/line.h"

#include <math.h>

#include "core/mem.h"
#include "core/stats.h"

static tare_status check(const double *x, const double *y, size_t n, tare_error *err)
{
    if (n < 2 || n > TUNE_LINE_POINTS_MAX)
        return error_set(err, TARE_INVALID, "%zu points: a line needs 2 to %d", n, TUNE_LINE_POINTS_MAX);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]) || !isfinite(y[i]) || !(y[i] > 0))
            return error_set(err, TARE_INVALID, "point %zu (%g, %g) is not a number with y above 0", i, x[i],
                             y[i]);
    return TARE_OK;
}

static size_t slopes_of(const double *x, const double *y, size_t n, double *out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (x[k] != x[i]) out[count++] = (y[k] - y[i]) / (x[k] - x[i]);
    return count;
}

tare_status tune_line_through(const double *x, const double *y, size_t n, struct tune_line *out,
                              tare_error *err)
{
    tare_status s = check(x, y, n, err);
    if (s != TARE_OK) return s;
    double *work = mem_new(n * (n - 1) / 2 + n, sizeof *work);
    if (!work) return error_nomem(err, "a line through %zu points", n);
    size_t slopes = slopes_of(x, y, n, work);
    if (slopes > 0) {
        stats_sort(work, slopes);
        *out = (struct tune_line){.slope = stats_median_sorted(work, slopes)};
        for (size_t i = 0; i < n; i++) work[i] = y[i] - out->slope * x[i];
        stats_sort(work, n);
        out->base = stats_median_sorted(work, n);
        for (size_t i = 0; i < n; i++)
            out->residual = fmax(out->residual, fabs(out->base + out->slope * x[i] - y[i]) / y[i]);
    }
    mem_free(work);
    return slopes > 0 ? TARE_OK : error_set(err, TARE_INVALID, "all %zu points are at %g", n, x[0]);
}
