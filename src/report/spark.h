/* SPDX-License-Identifier: MIT
 * spark.h - a series of numbers as one line of text: eight heights of block, or ASCII where the terminal has no
 * UTF-8. Shows shape, never values: the text around it has those. */
#ifndef REPORT_SPARK_H
#define REPORT_SPARK_H

#include <stdbool.h>

#include "core/buf.h"

/* At most `width` characters; more points than that are drawn as medians of neighbours. Equal values are one low
 * line. An outlier does not flatten the rest: heights are cut at the 2nd and 98th percentile. */
void spark_add(struct buf *out, const double *y, size_t n, size_t width, bool utf8);

#endif
