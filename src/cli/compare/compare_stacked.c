/* SPDX-License-Identifier: MIT
 * compare_stacked.c - `tare compare --stacks BASE NEW`: which functions gained or lost share of the time, in two traces
 * of sampled stacks or in several of each side. */
#include <math.h>
#include <stdlib.h>

#include "analyze/compare/compare_stacks.h"
#include "analyze/judge/launches.h"
#include "cli/compare/compare_args.h"
#include "cli/input.h"
#include "cli/output.h"
#include "core/mem.h"
#include "report/stacks/stacks_export.h"

static int read_run(struct cli *cli, const char *path, enum stacks_time time, struct compare_stacks_run *out)
{
    struct trace *t;
    int rc = input_trace(cli, path, &t);
    if (rc) return rc;
    out->path = path;
    if (trace_n_processes(t)) out->begun_ms = (int64_t)(trace_process(t, 0)->start_unix_ns / 1000000);
    tare_status s = stacks_sum(t, &(struct stacks_wish){.time = time}, &out->profile, &cli->error);
    if (s == TARE_OK && !(out->profile.sum_ns > 0))
        s = error_set(&cli->error, TARE_INVALID, "has no %s time in its samples", stacks_time_words[time]);
    if (s < 0) cli_name_file(&cli->error, path);
    trace_close(t);
    return s == TARE_OK ? 0 : cli_fail_input(cli);
}

static int by_time(const void *a, const void *b)
{
    const struct compare_stacks_run *x = a, *y = b;
    return (x->begun_ms > y->begun_ms) - (x->begun_ms < y->begun_ms);
}

static int read_side(struct cli *cli, const struct opt_list *names, enum stacks_time time,
                     struct compare_stacks_side *out)
{
    out->runs = mem_new(names->n, sizeof *out->runs);
    if (!out->runs) {
        error_nomem(&cli->error, "%zu traces", names->n);
        return cli_fail(cli);
    }
    for (size_t i = 0; i < names->n; i++) {
        out->n++; /* also one that was read in part is released */
        int rc = read_run(cli, names->items[i], time, &out->runs[i]);
        if (rc) return rc;
    }
    qsort(out->runs, out->n, sizeof *out->runs, by_time);
    return 0;
}

static void release_side(struct compare_stacks_side *s)
{
    for (size_t i = 0; i < s->n; i++) stacks_profile_release(&s->runs[i].profile);
    mem_free(s->runs);
}

static int judge(struct cli *cli, const struct compare_args *a, struct compare_stacks *in)
{
    struct comparison c;
    struct compare_limits limits = VEC_INIT;
    struct compare_saved_sides none = {0};
    struct between_rule *rule = &in->rules.rule;
    if (a->min_effect >= 0) rule->min_effect = a->min_effect;
    rule->detect = fmax(rule->detect, 2.5 * rule->min_effect);
    if (comparison_init(&c, "stacks", &cli->error) < 0) return cli_fail(cli);
    tare_status s = compare_limits_read(&a->fail_on, stacks_measures, &limits, &cli->error);
    in->rules.limits = limits.items;
    in->rules.n_limits = limits.n;
    if (s == TARE_OK) s = compare_stacks(&c, in, &cli->error);
    if (s == TARE_OK) compare_tell_again(a, &c);
    int rc = s == TARE_OK ? compare_answer(cli, a, &c, &none) : cli_fail(cli);
    vec_release(&limits);
    comparison_release(&c);
    return rc;
}

int compare_stacked(struct cli *cli, const struct compare_args *a)
{
    const struct opt_list *names[PAIR_SIDES] = {&a->base, &a->new_};
    enum stacks_time time = (enum stacks_time)a->time;
    struct compare_stacks in = {.time = stacks_time_words[time],
                                .rules = {.rule = BETWEEN_RULE_INIT,
                                          .apart_ms = a->close_runs ? 0 : LAUNCHES_APART_MS,
                                          .measures = stacks_measures,
                                          .waits = time != STACKS_CPU}};
    int rc = 0;
    for (int i = 0; i < PAIR_SIDES && !rc; i++) rc = read_side(cli, names[i], time, &in.side[i]);
    if (!rc) rc = judge(cli, a, &in);
    for (int i = 0; i < PAIR_SIDES; i++) release_side(&in.side[i]);
    return rc;
}
