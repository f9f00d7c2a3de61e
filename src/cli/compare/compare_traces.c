/* SPDX-License-Identifier: MIT
 * compare_traces.c - `tare compare --gpu BASE NEW`: what GPUs did in two traces, judged by their steps. */
#include <math.h>

#include "analyze/compare/compare_gpu.h"
#include "cli/compare/compare_args.h"
#include "cli/compare/shell_words.h"
#include "cli/input.h"

static int read_series(struct cli *cli, const char *path, struct gpu_series *out)
{
    struct trace *t;
    int rc = input_trace(cli, path, &t);
    if (rc) return rc;
    tare_status s = gpu_series_read(out, t, &cli->error);
    trace_close(t);
    return s == TARE_OK ? 0 : cli_fail_input(cli);
}

static void tell_again(const struct compare_args *a, struct comparison *c)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "tare compare --gpu ");
    words_quote(&b, a->args[0]);
    buf_add_char(&b, ' ');
    words_quote(&b, a->args[1]);
    for (size_t i = 0; i < a->fail_on.n; i++) {
        buf_add_str(&b, " --fail-on ");
        words_quote(&b, a->fail_on.items[i]);
    }
    if (a->min_effect >= 0) buf_printf(&b, " --min-effect %.6g", a->min_effect);
    c->reproduce = b.failed ? NULL : arena_str(&c->arena, b.data);
    buf_release(&b);
}

static int judge_series(struct cli *cli, const struct compare_args *a, const struct gpu_series sides[])
{
    struct compare_gpu in = {.base = &sides[PAIR_A], .new_ = &sides[PAIR_B], .rule = COMPARE_GPU_RULE_INIT};
    struct comparison c;
    struct compare_limits limits = VEC_INIT;
    struct compare_saved_sides none = {0};
    if (a->min_effect >= 0) in.rule.min_effect = a->min_effect;
    in.rule.detect = fmax(in.rule.detect, 2.5 * in.rule.min_effect);
    tare_status s = comparison_init(&c, "steps", &cli->error);
    if (s < 0) return cli_fail(cli);
    s = compare_limits_read(&a->fail_on, gpu_measures, &limits, &cli->error);
    in.limits = limits.items;
    in.n_limits = limits.n;
    if (s == TARE_OK) s = compare_gpu(&c, &in, &cli->error);
    if (s == TARE_OK) tell_again(a, &c);
    int rc = s == TARE_OK ? compare_answer(cli, a, &c, &none) : cli_fail(cli);
    vec_release(&limits);
    comparison_release(&c);
    return rc;
}

int compare_traces(struct cli *cli, const struct compare_args *a)
{
    struct gpu_series sides[PAIR_SIDES] = {{.arena = ARENA_INIT}, {.arena = ARENA_INIT}};
    int rc = 0;
    for (int i = 0; i < PAIR_SIDES && !rc; i++) rc = read_series(cli, a->args[i], &sides[i]);
    if (!rc) rc = judge_series(cli, a, sides);
    for (int i = 0; i < PAIR_SIDES; i++) gpu_series_release(&sides[i]);
    return rc;
}
