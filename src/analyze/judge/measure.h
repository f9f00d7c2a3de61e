/* SPDX-License-Identifier: MIT
 * measure.h - the numbers of a case that have a name: one row each, for targets, CSV columns, comparisons, the history,
 * recommendations and plans. The same name means the same number everywhere. A row names a field of the document
 * (run/run_fields.def), of a case and of a launch, or derives its number from several; to add a measure, add a row. */
#ifndef ANALYZE_MEASURE_H
#define ANALYZE_MEASURE_H

#include "run/run.h"

enum measure_kind { MEASURE_TIME, MEASURE_RATE, MEASURE_BYTES, MEASURE_PLAIN };

struct measure {
    const char *name; /* "latency.p95" */
    const char *path; /* its field: "latency_ns.p95"; of a derived one, the field whose reason explains it */
    const char *launch; /* the field of a launch; NULL: a launch does not tell */
    enum measure_kind kind;
    bool more_is_better;
    bool interval;   /* may come with bounds */
    double quantile; /* of single latencies; 0: it is none */
    bool (*derive)(const struct run_case *c, struct run_estimate *out); /* NULL: the field as it stands */
    const char *help;
};

extern const struct measure measure_table[]; /* ends with name NULL */

/* By name or short name: "latency" and "p95" are latency.p95, "memory" is memory.peak. NULL: none. */
const struct measure *measure_find(const char *name);
const char *measure_unit(const struct measure *m); /* of values in documents: "ns", "B", "/s", "" */

#define MEASURE_NAME_SIZE 48
void measure_column(const struct measure *m, char out[MEASURE_NAME_SIZE]); /* in CSV: "latency_p95_ns" */

/* The number of a case, or of one launch of it; false when unknown. */
bool measure_of(const struct run_case *c, const struct measure *m, struct run_estimate *out);
bool measure_named(const struct run_case *c, const char *name, struct run_estimate *out);
/* A time of which only a lower bound is known: what it measures falls on a run that was due and not served. */
bool measure_exceeds(const struct run_case *c, const struct measure *m, double *ns);
bool measure_of_launch(const struct run_launch *l, const struct measure *m, double *out);

/* b / a with the interval that follows when both errors are independent; known only if all bounds are. */
struct run_estimate estimate_ratio(struct run_estimate b, struct run_estimate a);

#endif
