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
    double *y;
    int64_t *ms; /* when each was made */
    size_t n, max;
};

/* Logarithms of earlier values of a metric of a case, oldest first, without the runs that are compared. Up to `max`
 * into `y` and `ms`; none is no failure. Those too close together count as one, as those of a side do. */
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

#endif
