/* SPDX-License-Identifier: MIT
 * system_report.h - average, peak and percentiles of every quantity over a run, fed sample by sample in bounded memory:
 * up to 4,096 values of a quantity are kept as they are; of more, every second, fourth, .. in turn. Pure. */
#ifndef ANALYZE_SYSTEM_REPORT_H
#define ANALYZE_SYSTEM_REPORT_H

#include "analyze/watch/derive.h"
#include "run/run.h"

struct system_report;
tare_status system_report_new(struct system_report **out, tare_error *err);
void system_report_free(struct system_report *r); /* NULL is fine */

/* Call after deriver_feed() of the same sample. */
tare_status system_report_feed(struct system_report *r, const struct deriver *d, const struct series_set *set,
                               uint64_t at_ns, tare_error *err);

/* Rows for all that was ever known: watch->metrics. */
struct system_source {
    const struct deriver *deriver; /* after the last sample */
    const struct series_set *set;
    uint64_t start_ns; /* from which times are told */
};
tare_status system_report_fill(const struct system_report *r, const struct system_source *from,
                               struct run *run, struct run_watch *watch, tare_error *err);

/* A row of the document, or NULL. */
const struct run_metric *system_report_find(const struct run_watch *watch, const char *metric,
                                            const char *label);

#endif
