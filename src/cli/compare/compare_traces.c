/* SPDX-License-Identifier: MIT
 * compare_traces.c - `tare compare --gpu BASE NEW`: what GPUs did in two traces, judged by their steps, or in several
 * of each side, judged by what these differ by. */
#include <math.h>
#include <stdlib.h>

#include "analyze/compare/compare_gpu.h"
#include "analyze/judge/launches.h"
#include "cli/compare/compare_args.h"
#include "cli/input.h"
#include "core/mem.h"

static int read_series(struct cli *cli, const char *path, struct gpu_series *out)
{
    struct trace *t;
    int rc = input_trace(cli, path, &t);
    if (rc) return rc;
    tare_status s = gpu_series_read(out, t, &cli->error);
    trace_close(t);
    return s == TARE_OK ? 0 : cli_fail_input(cli);
}

struct traces {
    struct gpu_series *runs;
    size_t n;
};

static int by_time(const void *a, const void *b)
{
    const struct gpu_series *x = a, *y = b;
    return (x->begun_ms > y->begun_ms) - (x->begun_ms < y->begun_ms);
}

static int read_side(struct cli *cli, const struct opt_list *names, struct traces *out)
{
    out->runs = mem_new(names->n, sizeof *out->runs);
    if (!out->runs) {
        error_nomem(&cli->error, "%zu traces", names->n);
        return cli_fail(cli);
    }
    for (; out->n < names->n; out->n++) {
        int rc = read_series(cli, names->items[out->n], &out->runs[out->n]);
        if (rc) return rc;
    }
    qsort(out->runs, out->n, sizeof *out->runs, by_time);
    return 0;
}

static void release_side(struct traces *t)
{
    for (size_t i = 0; i < t->n; i++) gpu_series_release(&t->runs[i]);
    mem_free(t->runs);
}

static int judge_series(struct cli *cli, const struct compare_args *a, const struct traces sides[])
{
    struct compare_gpu in = {.rule = COMPARE_GPU_RULE_INIT,
                             .apart_ms = a->close_runs ? 0 : LAUNCHES_APART_MS};
    struct comparison c;
    struct compare_limits limits = VEC_INIT;
    struct compare_saved_sides none = {0};
    for (int i = 0; i < PAIR_SIDES; i++) in.side[i] = (struct compare_gpu_side){sides[i].runs, sides[i].n};
    if (a->min_effect >= 0) in.rule.min_effect = a->min_effect;
    in.rule.detect = fmax(in.rule.detect, 2.5 * in.rule.min_effect);
    tare_status s = comparison_init(&c, a->base.n + a->new_.n > PAIR_SIDES ? "traces" : "steps", &cli->error);
    if (s < 0) return cli_fail(cli);
    s = compare_limits_read(&a->fail_on, gpu_measures, &limits, &cli->error);
    in.limits = limits.items;
    in.n_limits = limits.n;
    if (s == TARE_OK) s = compare_gpu(&c, &in, &cli->error);
    if (s == TARE_OK) compare_tell_again(a, &c);
    int rc = s == TARE_OK ? compare_answer(cli, a, &c, &none) : cli_fail(cli);
    vec_release(&limits);
    comparison_release(&c);
    return rc;
}

int compare_traces(struct cli *cli, const struct compare_args *a)
{
    const struct opt_list *names[PAIR_SIDES] = {&a->base, &a->new_};
    struct traces sides[PAIR_SIDES] = {{NULL, 0}, {NULL, 0}};
    int rc = 0;
    for (int i = 0; i < PAIR_SIDES && !rc; i++) rc = read_side(cli, names[i], &sides[i]);
    if (!rc) rc = judge_series(cli, a, sides);
    for (int i = 0; i < PAIR_SIDES; i++) release_side(&sides[i]);
    return rc;
}
