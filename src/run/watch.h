/* SPDX-License-Identifier: MIT
 * watch.h - what a run document keeps of a program that was watched: how each metric went over the run, phases,
 * alerts, carbon. Data only, the rules of document.h apply. */
#ifndef RUN_WATCH_H
#define RUN_WATCH_H

#include "run/value.h"

struct run_metric { /* one series over the run; counters as rates per second */
    const char *metric, *label, *unit;
    struct known_u64 samples; /* in which it was known */
    struct known_f64 mean, min, max, p50, p95, p99;
    struct known_f64 at_max_s; /* seconds from the start of the run */
    struct known_f64 total;    /* of counters: growth over the run, in the counter's own unit */
};

struct run_phase {
    const char *name; /* "load", "steady", "idle" */
    struct known_f64 start_s, end_s;
    struct known_f64 cpu; /* processors that the program kept busy */
    struct known_f64 gpu; /* share of time with a kernel resident */
    struct known_u64 rss; /* bytes, mean */
};

struct run_alert {
    const char *rule;   /* as written */
    const char *metric; /* the quantity it speaks of */
    struct known_f64 value, threshold;
    struct known_f64 start_s, end_s; /* fired, cleared; end_s unknown: never cleared */
    const char *action;
};

struct run_carbon {
    bool known;
    struct known_f64 grams; /* CO2 equivalent of measured and estimated energy */
    struct known_f64 measured_joules, estimated_joules;
    struct known_f64 grid_g_per_kwh;
    const char *source; /* of the grid's figure */
    struct known_bool lower_bound;
    const char *absent; /* what was not measured; NULL: nothing is known to be missing */
};

struct run_watch {
    bool known;
    struct known_f64 interval_s;
    struct known_u64 samples;       /* moments taken */
    struct known_u64 late;          /* of these: by more than an interval */
    struct known_u64 lost;          /* of these: could not be written to the trace */
    struct known_u64 exit_code;     /* of the program */
    struct known_u64 signal;        /* that ended it */
    struct known_u64 still_running; /* processes that the program left behind */
    struct known_u64 started;       /* processes seen of it, itself included */
    struct known_u64 tree_rss_peak; /* bytes of all its processes together, as sampled */
    struct known_f64 rss_peak_at_s; /* when that was */
    struct known_f64 self_cpu_s;    /* what tare itself used meanwhile */
    struct known_u64 hooks,
        hooks_bad; /* commands and web hooks started on alerts; failed, killed or not started */
    RUN_LIST_OF(struct run_metric) metrics;
    RUN_LIST_OF(struct run_phase) phases;
    RUN_LIST_OF(struct run_alert) alerts;
    struct run_carbon carbon;
};

/* Pointers to n zeroed items, for one of the lists: assign to `at`, then set `n`. NULL: no memory. */
void *run_list_new(struct arena *a, size_t n, size_t size);

#endif
