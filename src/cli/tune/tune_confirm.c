/* SPDX-License-Identifier: MIT
 * tune_confirm.c - the best that was found against what is used today: pairs of measurements in turns, each side in a
 * worker that is launched afresh several times, until analyze/tune/confirm.h has a verdict or the budget is spent. */
#include <math.h>
#include <stdio.h>

#include "cli/tune/tune_args.h"
#include "core/clock.h"
#include "core/mem.h"

#define PAIR_NS UINT64_C(300000000) /* both sides of a pair together, at least */
#define LAUNCH_NS UINT64_C(400000000) /* of two workers, beside loading and warming up */
#define SINGLE_NS 2e9 /* of launching both: where it takes less, each pair has a launch of its own */
/* Launches differ, and few of them tell little about by how much. Where each pair has its own, none is spent on cold
 * caches, and the rule's least are enough; where launching takes long, six launches share more pairs. */
enum { LAUNCHES = 6, PAIRS_EACH = 3, PAIRS_MOST = 32 };

struct confirming {
    struct tuning *t;
    struct confirm_rule rule;
    double units[PAIR_SIDES];
};

/* Of a pair: ln(candidate / base), of a unit of work; NAN: not told. */
struct pair_logs {
    double *wall, *cpu, *memory;
    bool has_cpu, has_memory;
};

static double log_ratio(double candidate, double base)
{
    return candidate > 0 && base > 0 ? log(candidate / base) : NAN;
}

/* For the shortest run a unit is a run. */
static void fill_logs(const struct confirming *k, const struct pair_set *set, struct pair_logs *to)
{
    double per = log(k->units[PAIR_B] / k->units[PAIR_A]);
    to->has_cpu = to->has_memory = true;
    for (size_t i = 0; i < set->n; i++) {
        const struct pair_side *a = &set->at[i].side[PAIR_A], *b = &set->at[i].side[PAIR_B];
        const struct pair_epoch *e = &set->epochs[set->at[i].epoch];
        to->wall[i] = log_ratio((double)b->wall_ns, (double)a->wall_ns) - per;
        to->cpu[i] = log_ratio((double)b->cpu_ns, (double)a->cpu_ns) - per;
        to->memory[i] = log_ratio((double)e->side[PAIR_B].rss_peak, (double)e->side[PAIR_A].rss_peak);
        to->has_cpu = to->has_cpu && isfinite(to->cpu[i]);
        to->has_memory = to->has_memory && isfinite(to->memory[i]);
    }
}

/* Where memory is the objective, it is what is judged, and the time stands beside it. */
static tare_status judge(struct confirming *k, const struct pair_set *set, const struct confirm_rule *rule,
                         tare_error *err)
{
    double *room = mem_new(set->n ? set->n : 1, 3 * sizeof *room);
    uint32_t *epoch = mem_new(set->n ? set->n : 1, sizeof *epoch);
    if (!room || !epoch) {
        mem_free(room);
        mem_free(epoch);
        return error_nomem(err, "pairs");
    }
    for (size_t i = 0; i < set->n; i++) epoch[i] = set->at[i].epoch;
    struct pair_logs logs = {.wall = room, .cpu = room + set->n, .memory = room + 2 * set->n};
    fill_logs(k, set, &logs);
    bool memory = k->t->plan->args->objective == OBJECTIVE_MEMORY;
    struct confirm_pairs pairs = {.wall = logs.wall,
                                  .cpu = logs.has_cpu ? logs.cpu : NULL,
                                  .memory = logs.has_memory ? logs.memory : NULL,
                                  .n = set->n,
                                  .epoch = set->n == set->n_epochs ? NULL : epoch};
    tare_status s = TARE_OK;
    if (memory && !logs.has_memory) s = error_set(err, TARE_DENIED, "the workers' peak memory is not told");
    if (memory) {
        pairs.wall = logs.memory;
        pairs.memory = logs.wall;
    }
    if (s == TARE_OK) s = confirm_judge(&pairs, rule, &k->t->proof, err);
    mem_free(room);
    mem_free(epoch);
    return s;
}

static uint64_t budget_left(const struct tuning *t)
{
    uint64_t spent = clock_raw_ns() - t->began_ns, all = (uint64_t)t->plan->args->budget.ns;
    return spent < all ? all - spent : 0;
}

/* The first look is after the least pairs; beyond them the budget holds. */
static tare_status look(void *ctx, const struct pair_set *set, struct ab_advice *out, tare_error *err)
{
    struct confirming *k = ctx;
    tare_status s = judge(k, set, &k->rule, err);
    if (s < 0) return s;
    *out = (struct ab_advice){k->t->proof.next == 0 || !budget_left(k->t), k->t->proof.next, NAN};
    return TARE_OK;
}

static double both_ns(const struct tuning *t, size_t candidate)
{
    return t->trials.items[0].member.median_ns + t->trials.items[candidate].member.median_ns;
}

static uint64_t repeats_of(const struct tuning *t, size_t candidate)
{
    double both = both_ns(t, candidate), n = both > 0 ? ceil((double)PAIR_NS / both) : 1;
    return n > 1 ? (uint64_t)n : 1;
}

static double launch_ns(const struct tuning *t, size_t candidate)
{
    const struct ab_member *a = &t->trials.items[0].member, *b = &t->trials.items[candidate].member;
    return (double)ab_member_load_ns(a) + (double)ab_member_load_ns(b) + tune_warm_ns(both_ns(t, candidate)) +
           (double)LAUNCH_NS;
}

static bool is_single(const struct tuning *t, size_t candidate)
{
    return tune_is_slow(t) || launch_ns(t, candidate) < SINGLE_NS;
}

double tune_proof_ns(const struct tuning *t, size_t candidate)
{
    struct confirm_rule rule = CONFIRM_RULE_INIT;
    double pair = both_ns(t, candidate) * (double)repeats_of(t, candidate), launch = launch_ns(t, candidate);
    double need = LAUNCHES * ((PAIRS_EACH + 1) * pair + launch); /* one more finds cold caches */
    if (is_single(t, candidate)) need = (double)(rule.least + 1) * (pair + launch);
    return isfinite(need) ? need : 0;
}

/* A proof that was begun is given the time for its least launches in any case, also on a machine that became twice as
 * slow, because without them all the rest was for nothing; look() ends it when it has them. */
static uint64_t time_left(const struct tuning *t)
{
    uint64_t left = budget_left(t), need = 2 * (uint64_t)tune_proof_ns(t, t->best);
    return need > left ? need : left;
}

/* What the budget cut short is judged by what there is, as the last look. */
static tare_status run_pairs(struct confirming *k, struct ab_lane *const *lane, tare_error *err)
{
    struct tuning *t = k->t;
    bool single = is_single(t, t->best);
    struct pair_set set = {.repeats = repeats_of(t, t->best)};
    struct ab_outcome out;
    struct ab_plan plan = {.lane = {lane[PAIR_A], lane[PAIR_B]},
                           .name = "proof",
                           .budget_ns = time_left(t),
                           .per_launch = single ? 1 : 0,
                           .retake = true,
                           .seed = t->plan->args->seed,
                           .max_pairs = k->rule.most,
                           .look = {look, k, k->rule.least, single ? k->rule.least : LAUNCHES},
                           .interrupted = &interrupted,
                           .progress = {progress_time, &t->bar}};
    tare_status s = ab_run(&plan, &set, &out, err);
    if (s == TARE_OK && t->proof.verdict == CONFIRM_GOING_ON && set.n >= k->rule.least) {
        struct confirm_rule last = k->rule;
        last.most = set.n;
        s = judge(k, &set, &last, err);
    } else if (s == TARE_OK && t->proof.pairs < set.n && set.n >= 2) {
        s = judge(k, &set, &k->rule, err);
    }
    t->retaken = set.retaken;
    t->has_proof = s == TARE_OK && set.n >= 2;
    if (s == TARE_OK && !t->has_proof)
        snprintf(t->proof_failure, sizeof t->proof_failure, "%s",
                 interrupted ? "it was interrupted" : "no pair fitted into the budget");
    ab_pairs_release(&set);
    return s;
}

/* A side that fails now is a reason not to recommend it, and no end of the command. */
tare_status tune_confirm(struct tuning *t)
{
    struct confirming k = {.t = t, .rule = CONFIRM_RULE_INIT};
    struct ab_lane *lane[PAIR_SIDES] = {NULL, NULL};
    const size_t number[PAIR_SIDES] = {0, t->best};
    tare_error why = TARE_ERROR_INIT;
    tare_status s = TARE_OK;
    bool per_unit = t->plan->args->objective != OBJECTIVE_LATENCY;
    k.rule.threshold = t->plan->args->min_gain;
    t->proof_ns = clock_raw_ns();
    if (!is_single(t, t->best)) {
        k.rule.least = (size_t)LAUNCHES * PAIRS_EACH;
        k.rule.most = PAIRS_MOST;
    }
    for (int i = 0; s == TARE_OK && i < PAIR_SIDES; i++) {
        const struct tune_trial *trial = &t->trials.items[number[i]];
        k.units[i] = per_unit ? tune_units(t, trial) : 1;
        s = tune_lane(t->plan, &trial->at, &lane[i], &why);
    }
    if (s == TARE_OK) s = run_pairs(&k, lane, &why);
    for (int i = 0; i < PAIR_SIDES; i++) ab_lane_close(lane[i]);
    if (s < 0) {
        t->has_proof = false;
        snprintf(t->proof_failure, sizeof t->proof_failure, "%s", why.text);
    }
    return s == TARE_NOMEM ? error_set(&t->cli->error, s, "%s", why.text) : TARE_OK;
}
