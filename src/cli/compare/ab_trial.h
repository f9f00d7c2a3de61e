/* SPDX-License-Identifier: MIT
 * ab_trial.h - two lanes measured in turn until their ratio is known well enough: the engine of src/bench asked by
 * the rule of src/analyze, as every command that compares does it. */
#ifndef CLI_AB_TRIAL_H
#define CLI_AB_TRIAL_H

#include "analyze/compare/paired.h"
#include "bench/ab.h"

struct ab_trial {
    struct ab_lane *lane[PAIR_SIDES];
    const char *name;
    uint64_t budget_ns, seed, max_pairs; /* max_pairs 0: no limit */
    const struct paired_rule *rule;
    struct bench_progress progress;
};

/* As ab_run(): *set is to be released with ab_pairs_release(), whatever the result. */
tare_status ab_trial_run(const struct ab_trial *t, struct pair_set *set, struct ab_outcome *out,
                         tare_error *err);

/* "precise", "budget", .. */
const char *ab_trial_stop_word(enum ab_stop s);

uint64_t ab_trial_seed(void); /* a new one */

#endif
