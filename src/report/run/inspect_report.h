/* SPDX-License-Identifier: MIT
 * inspect_report.h - what a model costs before it runs, for people: one model, its raw and its optimised graph side by
 * side, or several models with ratios; and layers as CSV. Shows what documents say; a lower bound is ">=", what is
 * unknown "-" with its reason. */
#ifndef REPORT_INSPECT_REPORT_H
#define REPORT_INSPECT_REPORT_H

#include "analyze/layers/inspect.h"
#include "report/run/layer_columns.h"
#include "report/run/run_report.h"

struct inspect_view {
    struct layer_view layers;
    bool symbolic; /* formulas too */
    const struct inspected
        *whole; /* what the document does not hold: tensors alive at the peak, dimensions that
                                      nobody asked for. NULL: a document that was read */
};
#define INSPECT_VIEW_INIT {LAYER_VIEW_INIT, false, NULL}

/* One document of `tare inspect`. */
void report_inspect_text(struct stream *s, const struct run *run, const struct inspect_view *view);
/* The static sections alone, as `tare bench --layers` has them too. Nothing when the document has none. */
void report_static_text(struct stream *s, const struct run *run, const struct inspect_view *view);
/* Several: a row per quantity, a column per model, and its ratio to the first. */
void report_inspect_compare(struct stream *s, const struct run *const *runs, size_t n);

/* ---- side by side: static_table.c ---- */

struct static_side {
    const char *title;
    const struct run_static *graph;
    struct known_u64 file_bytes;
};
/* Titles of columns and, of the second one on, how they relate to the first. */
void static_table_write(struct stream *s, const struct static_side *sides, size_t n);
enum { STATIC_SIDES_MAX = 7 }; /* that one table has room for */

#endif
