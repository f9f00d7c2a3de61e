/* SPDX-License-Identifier: MIT
 * spark.c - see spark.h. */
#include "report/spark.h"

#include <math.h>

#include "core/mem.h"
#include "core/stats.h"

enum { HEIGHTS = 8 };
static const char *const blocks[HEIGHTS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const plain[HEIGHTS] = {"_", ".", ",", "-", "=", "+", "*", "#"};

static double median_of(const double *y, size_t n, double *scratch)
{
    for (size_t i = 0; i < n; i++) scratch[i] = y[i];
    stats_sort(scratch, n);
    return stats_median_sorted(scratch, n);
}

/* The first call of median_of() is for what it leaves in `scratch`, all values in order; the calls in the loop
 * overwrite it. */
void spark_add(struct buf *out, const double *y, size_t n, size_t width, bool utf8)
{
    size_t columns = n < width ? n : width;
    double *scratch = mem_new(n + 1, sizeof *scratch);
    if (!scratch || columns == 0) {
        mem_free(scratch);
        return;
    }
    median_of(y, n, scratch); /* leaves it sorted */
    double lo = stats_quantile_sorted(scratch, n, 0.02), hi = stats_quantile_sorted(scratch, n, 0.98);
    for (size_t c = 0; c < columns; c++) {
        size_t from = n * c / columns, to = n * (c + 1) / columns;
        double v = median_of(y + from, to - from, scratch);
        int h = hi > lo ? (int)floor((v - lo) / (hi - lo) * HEIGHTS) : 0;
        if (h < 0) h = 0;
        if (h >= HEIGHTS) h = HEIGHTS - 1;
        buf_add_str(out, (utf8 ? blocks : plain)[h]);
    }
    mem_free(scratch);
}
