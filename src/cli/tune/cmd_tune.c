/* SPDX-License-Identifier: MIT
 * cmd_tune.c - `tare tune`: look, bound, search, confirm, answer, keep. */
#include <math.h>

#include "cli/command.h"
#include "cli/tune/tune_args.h"
#include "core/clock.h"

static tare_status measure_all(struct tuning *t)
{
    bool timed = t->plan->args->latency != NULL;
    t->run->cases.n =
        0; /* what is used today was only looked at, with layers: it is measured like the others */
    tare_status s = tune_search(t);
    if (s == TARE_OK && t->trials.items[0].member.failed < 0)
        return error_set(&t->cli->error, TARE_DENIED, "what is used today cannot be measured: %s",
                         t->trials.items[0].member.failure);
    if (s == TARE_OK && t->best && !t->nothing_fits && !interrupted) s = tune_confirm(t);
    if (s == TARE_OK && timed && !interrupted) s = tune_measure_again(t);
    for (size_t i = 0; s == TARE_OK && i < t->trials.n; i++)
        tune_over_limit(t, &t->trials.items[i], &t->cli->error);
    if (s == TARE_OK && !t->trials.items[0].member.sampled)
        s = error_set(&t->cli->error, TARE_DENIED, "interrupted: nothing was measured");
    return s;
}

/* Not worth a search: not even the roof would be a gain. */
static bool is_hopeless(const struct tune_plan *p, const struct tune_bound *b)
{
    bool one_batch = p->of[TUNE_BATCH].n == 1;
    double most = one_batch ? b->gain : b->any_batch;
    return b->known && isfinite(most) && most < 1 + p->args->min_gain && !p->args->n_targets &&
           p->args->objective != OBJECTIVE_MEMORY && p->of[TUNE_PROVIDER].n == 1;
}

static int tune_model_file(struct cli *cli, const struct tune_args *a, struct run *run)
{
    struct tune_plan plan = {0};
    struct tune_bound bound;
    struct tuning t = {.cli = cli, .plan = &plan, .run = run, .bar = PROGRESS_INIT(cli)};
    struct run_map params;
    t.began_ns = clock_raw_ns();
    int rc = tune_look(cli, a, run);
    if (rc) return rc;
    tune_bound_find(&bound, run);
    params = run->cases.at[0]->params;
    t.params = &params;
    tare_status s = tune_plan_make(&plan, a, run, &cli->error);
    if (s == TARE_OK) s = tune_begin(&t, &bound);
    if (s == TARE_OK && !a->explain) rc = tune_precision(cli, &plan);
    bool bound_alone = a->explain || is_hopeless(&plan, &bound);
    t.looked_ns = clock_raw_ns();
    if (s == TARE_OK && !rc && !bound_alone) s = measure_all(&t);
    progress_end(&t.bar);
    if (s < 0)
        rc = cli_fail(cli);
    else if (!rc)
        rc = bound_alone ? tune_answer_bound(&t, &bound) : tune_conclude(&t, &bound);
    tuning_release(&t);
    tune_plan_release(&plan);
    return rc;
}

#define TUNE_ARGS_INIT                                                                              \
    {                                                                                               \
        .setup = MODEL_ARGS_INIT, .history = HISTORY_ARGS_INIT, .budget = {60000000000},            \
        .min_gain = 0.10, .max_batch = 64, .seed = 1                                                \
    }

int cmd_tune(struct cli *cli, int argc, char **argv)
{
    struct tune_args a = TUNE_ARGS_INIT;
    struct run run = {0};
    struct interrupt was;
    int rc = tune_args_read(cli, &a, argc, argv);
    if (!rc && !a.no_save) rc = output_dir_check(cli, &a.history);
    if (!rc) {
        interrupt_catch(&was);
        rc = (a.kind == KIND_PYTHON ? tune_loader : tune_model_file)(cli, &a, &run);
        interrupt_restore(&was);
    }
    run_release(&run);
    tune_args_release(&a);
    return rc;
}
