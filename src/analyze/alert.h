/* SPDX-License-Identifier: MIT
 * alert.h - alert rules as data: a metric, a comparison, a threshold, for how long, and at what value it clears. Fed
 * with samples one by one; says when a rule fires and when it clears, each once. Pure: acts on nothing.
 *
 *     "cpu>80% for 10s"   "memory>80%"   "gpu.memory>80%"   "process.memory.rss>4GB for 1m clear 3GB" */
#ifndef ANALYZE_ALERT_H
#define ANALYZE_ALERT_H

#include "core/vec.h"
#include "trace/samples.h"

/* Quantities that rules, `tare top` and diagnosis speak of, derived from series of samples (rates of counters, shares
 * of totals): one table, derive.c. "cpu" is the busy share of all processors, "memory" the share in use, "gpu.memory",
 * "disk.busy", "process.cpu" .. ; every metric of metric.h is one too (counters as rates per second). */
struct derived {
    const char *name, *unit; /* "cpu", "1" */
    const char *help;
};
extern const struct derived derived_table[]; /* ends with name NULL */

/* Computes derived quantities of successive samples; keeps the sample before. */
struct deriver;
tare_status deriver_new(struct deriver **out, tare_error *err);
void deriver_free(struct deriver *d);
tare_status deriver_feed(struct deriver *d, const struct series_set *set, const struct sample *s,
                         tare_error *err);
/* Now; label "" is the whole, or the greatest over all labels where there is no whole. false: unknown. */
bool derived_value(const struct deriver *d, const char *name, const char *label, double *out);

struct alert_rule {
    char name[48];           /* of the quantity */
    char op;                 /* '>' or '<' */
    double threshold, clear; /* clear: falls back beyond this; the default is 5 % of the threshold inside */
    uint64_t for_ns;
    char unless[64];    /* a second condition that must hold: "gpu<70% while process.waiting>50%"; "" none */
    char text[128];     /* as written */
    const char *action; /* advice, for the default rules; "" */
};
tare_status alert_parse(struct alert_rule *out, const char *text, tare_error *err);
extern const char *const alert_defaults[]; /* the tables of the seeds; ends with NULL */

struct alert_event {
    size_t rule;
    bool fired; /* false: cleared */
    uint64_t at_ns, since_ns;
    double value;
};
struct alerts;
tare_status alerts_new(struct alerts **out, const struct alert_rule *rules, size_t n, tare_error *err);
void alerts_free(struct alerts *a);
/* Append what fires or clears at this sample. */
struct alert_events {
    VEC(struct alert_event) items;
};
tare_status alerts_feed(struct alerts *a, const struct deriver *d, uint64_t at_ns, struct alert_events *out,
                        tare_error *err);

#endif
