/* SPDX-License-Identifier: MIT
 * compare_traces.c - `tare compare --gpu|--memory|--stacks BASE NEW`: what GPUs did, who held memory, which functions
 * gained or lost share of the time, in two traces or in several of each side. What differs by what was recorded stands
 * in the table of kinds. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "analyze/compare/compare_gpu.h"
#include "analyze/compare/compare_memory.h"
#include "analyze/compare/compare_stacks.h"
#include "analyze/judge/launches.h"
#include "cli/compare/compare_args.h"
#include "cli/input.h"
#include "cli/output.h"
#include "core/mem.h"
#include "report/memory/memory_words.h"
#include "report/stacks/stacks_export.h"

struct traces {
    void *runs; /* of the kind's type, in order of time */
    size_t n;
};

struct judging {
    const struct compare_args *args;
    const struct traces *side;
    int64_t apart_ms;
    const struct compare_limits *limits;
};

struct kind {
    size_t run_size, begun_at; /* where a run's begun_ms lies */
    const struct measure *measures;
    tare_status (*read)(const struct compare_args *a, struct trace *t, const char *path, void *run,
                        tare_error *err);
    void (*release)(void *run);
    tare_status (*judge)(struct comparison *c, const struct judging *j, tare_error *err);
};

static int64_t begun_ms(const struct trace *t)
{
    return trace_n_processes(t) ? (int64_t)(trace_process(t, 0)->start_unix_ns / 1000000) : 0;
}

static void set_effect(const struct compare_args *a, double *min_effect, double *detect)
{
    if (a->min_effect >= 0) *min_effect = a->min_effect;
    *detect = fmax(*detect, 2.5 * *min_effect);
}

/* ---- GPUs ---- */

static tare_status gpu_read(const struct compare_args *a, struct trace *t, const char *path, void *run,
                            tare_error *err)
{
    (void)a, (void)path;
    return gpu_series_read(run, t, err);
}

static void gpu_release(void *run)
{
    gpu_series_release(run);
}

static tare_status gpu_judge(struct comparison *c, const struct judging *j, tare_error *err)
{
    struct compare_gpu in = {.rule = COMPARE_GPU_RULE_INIT, .apart_ms = j->apart_ms};
    for (int i = 0; i < PAIR_SIDES; i++)
        in.side[i] = (struct compare_gpu_side){j->side[i].runs, j->side[i].n};
    set_effect(j->args, &in.rule.min_effect, &in.rule.detect);
    in.limits = j->limits->items;
    in.n_limits = j->limits->n;
    return compare_gpu(c, &in, err);
}

/* ---- memory ---- */

static tare_status memory_read(const struct compare_args *a, struct trace *t, const char *path, void *run,
                               tare_error *err)
{
    struct compare_memory_run *out = run;
    (void)a;
    out->path = path;
    out->begun_ms = begun_ms(t);
    tare_status s = memory_sum(t, &out->profile, err);
    return s == TARE_OK ? memory_profile_symbols(&out->profile, err) : s;
}

static void memory_release(void *run)
{
    memory_profile_release(&((struct compare_memory_run *)run)->profile);
}

static tare_status memory_judge(struct comparison *c, const struct judging *j, tare_error *err)
{
    struct compare_memory in = {.by = (enum memory_by)j->args->by,
                                .name = memory_add_group,
                                .apart_ms = j->apart_ms,
                                .rule = BETWEEN_RULE_INIT,
                                .limits = j->limits->items,
                                .n_limits = j->limits->n};
    for (int i = 0; i < PAIR_SIDES; i++)
        in.side[i] = (struct compare_memory_side){j->side[i].runs, j->side[i].n};
    set_effect(j->args, &in.rule.min_effect, &in.rule.detect);
    return compare_memory(c, &in, err);
}

/* ---- stacks ---- */

static tare_status stacks_read(const struct compare_args *a, struct trace *t, const char *path, void *run,
                               tare_error *err)
{
    struct compare_stacks_run *out = run;
    enum stacks_time time = (enum stacks_time)a->time;
    out->path = path;
    out->begun_ms = begun_ms(t);
    tare_status s = stacks_sum(t, &(struct stacks_wish){.time = time}, &out->profile, err);
    if (s == TARE_OK && !(out->profile.sum_ns > 0))
        s = error_set(err, TARE_INVALID, "has no %s time in its samples", stacks_time_words[time]);
    if (s < 0) cli_name_file(err, path);
    return s;
}

static void stacks_release(void *run)
{
    stacks_profile_release(&((struct compare_stacks_run *)run)->profile);
}

static tare_status stacks_judge(struct comparison *c, const struct judging *j, tare_error *err)
{
    enum stacks_time time = (enum stacks_time)j->args->time;
    struct compare_stacks in = {.time = stacks_time_words[time],
                                .rules = {.rule = BETWEEN_RULE_INIT,
                                          .apart_ms = j->apart_ms,
                                          .measures = stacks_measures,
                                          .waits = time != STACKS_CPU,
                                          .limits = j->limits->items,
                                          .n_limits = j->limits->n}};
    for (int i = 0; i < PAIR_SIDES; i++)
        in.side[i] = (struct compare_stacks_side){j->side[i].runs, j->side[i].n};
    set_effect(j->args, &in.rules.rule.min_effect, &in.rules.rule.detect);
    return compare_stacks(c, &in, err);
}

/* ---- all kinds ---- */

static const struct kind gpu_kind = {
    sizeof(struct gpu_series), offsetof(struct gpu_series, begun_ms), gpu_measures, gpu_read, gpu_release, gpu_judge,
};
static const struct kind memory_kind = {
    sizeof(struct compare_memory_run), offsetof(struct compare_memory_run, begun_ms), memory_measures,
    memory_read, memory_release, memory_judge,
};
static const struct kind stacks_kind = {
    sizeof(struct compare_stacks_run), offsetof(struct compare_stacks_run, begun_ms), stacks_measures,
    stacks_read, stacks_release, stacks_judge,
};

static int by_time(const void *a, const void *b, void *kind)
{
    size_t at = ((const struct kind *)kind)->begun_at;
    const int64_t *x = (const void *)((const char *)a + at), *y = (const void *)((const char *)b + at);
    return (*x > *y) - (*x < *y);
}

static int read_run(struct cli *cli, const struct compare_args *a, const struct kind *k, const char *path,
                    void *run)
{
    struct trace *t;
    int rc = input_trace(cli, path, &t);
    if (rc) return rc;
    tare_status s = k->read(a, t, path, run, &cli->error);
    trace_close(t);
    return s == TARE_OK ? 0 : cli_fail_input(cli);
}

static int read_side(struct cli *cli, const struct compare_args *a, struct kind k,
                     const struct opt_list *names, struct traces *out)
{
    out->runs = mem_new(names->n, k.run_size);
    if (!out->runs) {
        error_nomem(&cli->error, "%zu traces", names->n);
        return cli_fail(cli);
    }
    for (size_t i = 0; i < names->n; i++) {
        out->n++; /* also one that was read in part is released */
        int rc = read_run(cli, a, &k, names->items[i], (char *)out->runs + i * k.run_size);
        if (rc) return rc;
    }
    qsort_r(out->runs, out->n, k.run_size, by_time, &k);
    return 0;
}

static const char *method_of(const struct compare_args *a)
{
    if (a->memory) return "memory";
    if (a->stacks) return "stacks";
    return a->base.n + a->new_.n > PAIR_SIDES ? "traces" : "steps";
}

static int judge(struct cli *cli, const struct kind *k, const struct judging *j)
{
    struct comparison c;
    struct compare_limits limits = VEC_INIT;
    struct compare_saved_sides none = {0};
    struct judging with = *j;
    if (comparison_init(&c, method_of(j->args), &cli->error) < 0) return cli_fail(cli);
    tare_status s = compare_limits_read(&j->args->fail_on, k->measures, &limits, &cli->error);
    with.limits = &limits;
    if (s == TARE_OK) s = k->judge(&c, &with, &cli->error);
    if (s == TARE_OK) compare_tell_again(j->args, &c);
    int rc = s == TARE_OK ? compare_answer(cli, j->args, &c, &none) : cli_fail(cli);
    vec_release(&limits);
    comparison_release(&c);
    return rc;
}

int compare_traces(struct cli *cli, const struct compare_args *a)
{
    const struct opt_list *names[PAIR_SIDES] = {&a->base, &a->new_};
    const struct kind *k = &gpu_kind;
    struct traces side[PAIR_SIDES] = {{NULL, 0}, {NULL, 0}};
    if (a->memory) k = &memory_kind;
    if (a->stacks) k = &stacks_kind;
    struct judging j = {.args = a, .side = side, .apart_ms = a->close_runs ? 0 : LAUNCHES_APART_MS};
    int rc = 0;
    for (int i = 0; i < PAIR_SIDES && !rc; i++) rc = read_side(cli, a, *k, names[i], &side[i]);
    if (!rc) rc = judge(cli, k, &j);
    for (int i = 0; i < PAIR_SIDES; i++) {
        for (size_t r = 0; r < side[i].n; r++) k->release((char *)side[i].runs + r * k->run_size);
        mem_free(side[i].runs);
    }
    return rc;
}
