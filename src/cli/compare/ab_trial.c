/* SPDX-License-Identifier: MIT
 * ab_trial.c - see ab_trial.h. */
#include "cli/compare/ab_trial.h"

#include <unistd.h>

#include "analyze/compare/compare_pairs.h"
#include "cli/interrupt.h"
#include "core/clock.h"

struct looking {
    const struct ab_trial *t;
    uint64_t began_ns;
};

static tare_status ask_for_more(void *ctx, const struct pair_set *set, struct ab_advice *out, tare_error *err)
{
    const struct looking *k = ctx;
    uint64_t spent = clock_raw_ns() - k->began_ns;
    double share = spent ? (double)k->t->budget_ns / (double)spent : 1;
    struct compare_stop stop;
    tare_status s = compare_pairs_enough(set, k->t->rule, (uint64_t)((double)set->n * share), &stop, err);
    if (s < 0) return s;
    *out = (struct ab_advice){stop.enough, paired_next_look(set->n, k->t->rule->least), stop.launch_share};
    return TARE_OK;
}

tare_status ab_trial_run(const struct ab_trial *t, struct pair_set *set, struct ab_outcome *out,
                         tare_error *err)
{
    struct looking k = {t, clock_raw_ns()};
    struct ab_plan plan = {.lane = {t->lane[PAIR_A], t->lane[PAIR_B]},
                           .name = t->name,
                           .budget_ns = t->budget_ns,
                           .seed = t->seed,
                           .max_pairs = (size_t)t->max_pairs,
                           .look = {ask_for_more, &k, t->rule->least, t->rule->least_epochs},
                           .interrupted = &interrupted,
                           .progress = t->progress};
    return ab_run(&plan, set, out, err);
}

const char *ab_trial_stop_word(enum ab_stop s)
{
    static const char *const words[] = {"precise", "budget", "pairs", "interrupted"};
    return words[s];
}

uint64_t ab_trial_seed(void)
{
    uint64_t state = clock_unix_ns() ^ (uint64_t)getpid() << 40;
    return rng_splitmix(&state) >> 32;
}
