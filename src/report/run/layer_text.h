/* SPDX-License-Identifier: MIT
 * layer_text.h - the layers of a case for people: the costly ones, sums by operator and by group, how they were timed.
 * The texts are the same in `tare inspect`, `tare bench --layers` and `tare report`. */
#ifndef REPORT_LAYER_TEXT_H
#define REPORT_LAYER_TEXT_H

#include "report/run/layer_columns.h"
#include "report/table.h"

struct layer_view {
    size_t top;                      /* layers shown; 0: all */
    const struct layer_column *sort; /* NULL: the usual */
    bool in_order;                   /* as they stand in the document; `sort` is NULL */
};
#define LAYER_VIEW_INIT {10, NULL, false}

/* All sections of every case that has layers. */
void layer_text_write(struct stream *s, const struct run *run, const struct layer_view *view);

#endif
