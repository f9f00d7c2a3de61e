/* SPDX-License-Identifier: MIT
 * compare_stacks.h - sampled stacks of two sides -> a comparison document: the time of all threads, then for each
 * function that has a share that matters its own share of that time and that with all it calls. A function that "gains"
 * has a larger share, which it also has where others became faster: so rows are advisory unless a limit names them.
 * Pure: opens nothing. */
#ifndef ANALYZE_COMPARE_STACKS_H
#define ANALYZE_COMPARE_STACKS_H

#include "analyze/compare/compare_sampled.h"
#include "analyze/stacks/stacks_sum.h"

struct compare_stacks_run {
    const char *path;
    int64_t begun_ms; /* by the wall clock, since 1970; 0: not told */
    struct stacks_profile profile;
};

struct compare_stacks {
    struct compare_stacks_side {
        struct compare_stacks_run *runs; /* in order of time */
        size_t n;                        /* at least one */
    } side[PAIR_SIDES];
    const char *time; /* which time was summed up: "cpu" */
    struct sampled_rules rules;
};

extern const struct measure stacks_measures[]; /* what --fail-on may name; ends with name NULL */

/* Fills a document that comparison_init() made; it owns all that it has. */
tare_status compare_stacks(struct comparison *c, const struct compare_stacks *in, tare_error *err);

#endif
