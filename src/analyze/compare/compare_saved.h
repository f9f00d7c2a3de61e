/* SPDX-License-Identifier: MIT
 * compare_saved.h - saved runs of two sides -> a comparison document: cases matched, surroundings compared, every
 * metric judged by the spread between runs, or told to be unverified. Pure: loads nothing, measures nothing. What it
 * cannot see it never calls a regression. */
#ifndef ANALYZE_COMPARE_SAVED_H
#define ANALYZE_COMPARE_SAVED_H

#include "analyze/compare/between_runs.h"
#include "analyze/judge/judge.h"
#include "run/comparison.h"

struct compare_series {
    struct compare_moment {
        int64_t ms; /* when it was made */
        double y;   /* ln of the value */
    } * at;
    size_t n, max;
};

/* Logarithms of earlier values of a metric of a case, oldest first, without the runs that are compared. Up to `max`
 * into `at`; none is no failure. Those too close together count as one, as those of a side do. */
struct compare_past {
    tare_status (*values)(void *ctx, const char *case_name, const char *metric, struct compare_series *out,
                          tare_error *err);
    void *ctx;
};

struct compare_saved {
    const struct run *const *base; /* at least one */
    size_t n_base;
    const struct run *const *new_;
    size_t n_new;
    struct between_rule rule;
    const struct compare_limit *limits;
    size_t n_limits;
    int64_t apart_ms;         /* runs of a side closer than this count as one; 0: they count */
    bool force;               /* also when surroundings differ so that numbers do not compare */
    struct compare_past past; /* values NULL: none */
};

/* Fills a document that comparison_init() made. It borrows from the runs: release it before them. TARE_INVALID: the
 * documents are not what can be compared; TARE_DENIED: surroundings differ too much, and `force` is not set. */
tare_status compare_saved(struct comparison *c, const struct compare_saved *in, tare_error *err);

/* ---- for whoever else has a value a run ---- */

struct compare_values {
    double *y;    /* ln, one per run that counts */
    size_t n;     /* of these */
    size_t taken; /* runs and launches before those too close together were made one */
};
/* Runs that began less than `apart_ms` after the one before are not independent: together they are one, their mean.
 * `from` is in order of time; out->y has room for all. */
void compare_cluster(struct compare_values *out, const struct compare_moment *from, size_t n,
                     int64_t apart_ms);
/* What runs say, into their metric. `again`: it can be measured anew, in turn. */
void compare_fill_between(struct comparison *c, struct comparison_metric *m, const struct between_result *b,
                          const struct between_rule *r, bool again);

/* The sides of a comparison of traces, and what they are judged by, into the document. */
struct compare_told {
    const char *path[2]; /* of the first trace of each side: base, new */
    size_t n[2];         /* traces */
    double min_effect, alpha;
    const struct compare_limit *limits;
    size_t n_limits;
};
void compare_tell_traces(struct comparison *c, const struct compare_told *t);

/* ---- environment.c: in what the surroundings of two sets of runs differ: machine, runtime, subject, load. Says what
 * and how bad; refuses nothing itself ---- */

struct environment_runs {
    const struct run *const *at;
    size_t n;
};

/* A row in c->differences for each property in which the sides, or runs of one side, differ. "critical": their
 * numbers do not compare; "warn": what differs explains a change as well as the code does. */
void environment_compare(struct comparison *c, struct environment_runs base, struct environment_runs new_);

/* The same for parameters of two cases that were taken to be the same case. */
void environment_compare_case(struct comparison *c, const struct run_case *base, const struct run_case *new_);

/* The first critical one; NULL: none. */
const struct comparison_difference *environment_critical(const struct comparison *c);

#endif
