/* SPDX-License-Identifier: MIT
 * derive.h - the quantities that alert rules, `tare top`, reports and diagnosis speak of, computed from successive
 * samples: rates of counters, shares of totals, averages per event. Every metric of metric.h is one too (a counter as
 * its rate per second). Unknown stays unknown: a counter seen once or going backwards has no rate. Pure. */
#ifndef ANALYZE_DERIVE_H
#define ANALYZE_DERIVE_H

#include "trace/samples.h"

struct derived {
    const char *name, *unit; /* "cpu", "1" */
    const char *help;
};
extern const struct derived derived_table[]; /* those that are no metric themselves; ends with name NULL */

/* The unit of any quantity, derived or metric: "1", "s", "B", "B/s", "1/s", "W", "C", "Hz". NULL: there is none of
 * that name. */
const char *derived_unit(const char *name);
const char *derived_metric_unit(enum metric_id m); /* of a metric as it is shown: counters as rates */
bool derived_is_share(size_t index); /* never above 1, but for what rounding adds. See derived_index() */
bool derived_is_rate(
    size_t index); /* made of what a counter grew by; false: of gauges. See derived_index() */
/* The nearest name that there is; NULL: none is near. */
const char *derived_suggest(const char *name);

/* Computes quantities of successive samples; keeps the sample before. */
struct deriver;
tare_status deriver_new(struct deriver **out, tare_error *err);
void deriver_free(struct deriver *d); /* NULL is fine */
tare_status deriver_feed(struct deriver *d, const struct series_set *set, const struct sample *s,
                         tare_error *err);

/* A name looked up once: for whoever asks at every sample. DERIVED_NONE: there is none of that name. */
#define DERIVED_NONE SIZE_MAX
size_t derived_index(const char *name);
bool derived_at(const struct deriver *d, size_t index, const char *label, double *out);

/* Now. Label "" is the whole. Where there is none: the sum of what adds up (networks but loopback, processes,
 * packages' energy), else the greatest over all labels (disks, sensors, GPUs). false: unknown. */
bool derived_value(const struct deriver *d, const char *name, const char *label, double *out);
/* The same of one series of the set that was fed: a gauge as it is, a counter as its rate. */
bool derived_series(const struct deriver *d, size_t series, double *out);
/* Was it read for this sample? Gauges of GPUs stand for a while after they were (METRIC_GPU_HOLD_NS): no further
 * readings. */
bool derived_is_new(const struct deriver *d, size_t index);
bool derived_series_is_new(const struct deriver *d, size_t series);
/* The time that this value is of: of a counter that was not known at each sample more than the last step. */
uint64_t derived_series_ns(const struct deriver *d, size_t series);
uint64_t derived_span_ns(const struct deriver *d, size_t index); /* the same of a quantity as a whole */
/* Of a counter: what it grew since it was first seen. */
bool derived_growth(const struct deriver *d, size_t series, double *out);
uint64_t derived_step_ns(const struct deriver *d); /* from the sample before to this one; 0: none before */
/* This step is less than half of what they usually are: the program ended, or the sample before was late. What the
 * kernel counts in ticks then makes rates of any height: good for sums and means over time, not for extremes. */
bool derived_brief(const struct deriver *d);

#endif
