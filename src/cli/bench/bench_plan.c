/* SPDX-License-Identifier: MIT
 * bench_plan.c - from what the user asked for to what will be measured: the load, the sweep, the targets. Reads files
 * that are needed later, to say early that they are missing; measures nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/compare/compare_saved.h"
#include "cli/bench/bench_args.h"
#include "cli/compare/compare_args.h"
#include "cli/html_out.h"
#include "core/unit.h"

/* ---- the load ---- */

static int read_rate(struct cli *cli, const struct bench_args *a, struct bench_plan *to)
{
    if (!a->rate) return 0;
    double v;
    if (!unit_parse(UNIT_FREQUENCY, a->rate, &v) || !(v > 0) || v > 1e9)
        return cli_usage_error(cli, "--rate %s: expected runs per second, as in 200/s", a->rate);
    to->rate = v;
    to->load = BENCH_OPEN;
    return 0;
}

static int read_warmup(struct cli *cli, const struct bench_args *a, struct bench_plan *to)
{
    if (!a->warmup || strcmp(a->warmup, "auto") == 0) return 0;
    char *end;
    long long v = strtoll(a->warmup, &end, 10);
    if (end == a->warmup || *end || v < 0 || v > 1000000000)
        return cli_usage_error(cli, "--warmup %s: expected auto or a number of runs", a->warmup);
    to->warmup_runs = v;
    return 0;
}

/* A preset sets the load; what the user asked for beside it stays. */
static int apply_scenario(struct cli *cli, const struct bench_args *a, struct bench_planned *p)
{
    const struct bench_preset *preset = NULL;
    if (!a->scenario) return 0;
    if (bench_preset_apply(&p->plan, a->scenario, &preset, &cli->error) != TARE_OK)
        return cli_usage_error(cli, "%s", cli->error.text);
    if (preset->needs_rate && !a->rate)
        return cli_usage_error(cli, "--scenario %s needs --rate, as in --rate 200/s", preset->name);
    if (a->rate && !preset->needs_rate)
        return cli_usage_error(cli, "--scenario %s has no --rate", preset->name);
    p->plan.concurrency = (unsigned)a->concurrency;
    if (preset->batch && !a->command && !a->grid.batch.values.n &&
        vec_push(&p->own.batch.values, preset->batch, &cli->error) != TARE_OK)
        return cli_fail(cli);
    return 0;
}

/* What one unit is called, where the user does not say it. A Python function counts calls, unless it has items. */
static const char *usual_unit(const struct bench_args *a, bool built_in)
{
    if (built_in) return "texts";
    if (a->kind == BENCH_COMMAND) return "runs";
    if (a->kind == BENCH_MODEL) return "samples";
    return a->inputs || a->grid.batch.values.n ? "items" : "calls";
}

static struct bench_plan asked_plan(const struct bench_args *a, bool built_in)
{
    struct bench_plan p = BENCH_PLAN_INIT;
    p.budget_ns = (uint64_t)a->budget.ns;
    p.precision = a->precision;
    p.percentile = a->percentile / 100.0;
    p.min_runs = a->min_runs;
    p.max_runs = a->max_runs;
    p.arrivals = (enum bench_arrivals)a->arrivals;
    p.concurrency = (unsigned)a->concurrency;
    p.per_run = (int64_t)a->per_run;
    p.seed = a->seed;
    p.unit = a->unit ? a->unit : usual_unit(a, built_in);
    p.interrupted = &interrupted;
    return p;
}

/* ---- the sweep ---- */

/* Lengths of texts are one more dimension. */
static int add_lengths(struct cli *cli, const struct bench_args *a, struct bench_planned *p)
{
    struct buf text = BUF_INIT;
    if (!a->length) return 0;
    buf_printf(&text, "length=%s", a->length);
    tare_status s = buf_status(&text, &cli->error);
    if (s == TARE_OK) s = grid_parse_dim(&p->own, text.data, &cli->error);
    buf_release(&text);
    return s == TARE_OK ? 0 : cli_usage_error(cli, "--length %s: %s", a->length, cli->error.text);
}

static tare_status add_built_in_sweep(const struct bench_args *a, struct grid *own, tare_error *err)
{
    tare_status s = TARE_OK;
    if (!a->grid.batch.values.n) s = grid_parse_ints(&own->batch, "1,4,8,16,32", err);
    if (s == TARE_OK && !a->grid.seq.values.n) s = grid_parse_ints(&own->seq, "128", err);
    return s;
}

static int plan_grid(struct cli *cli, const struct bench_args *a, bool built_in, struct bench_planned *p)
{
    int rc = add_lengths(cli, a, p);
    if (!rc && built_in && add_built_in_sweep(a, &p->own, &cli->error) != TARE_OK) rc = cli_fail(cli);
    p->grid = a->grid;
    if (p->own.batch.values.n) p->grid.batch = p->own.batch;
    if (p->own.seq.values.n) p->grid.seq = p->own.seq;
    if (p->own.dims.n) p->grid.dims = p->own.dims;
    p->grid.workers = p->plan.concurrency;
    p->grid.seed = p->plan.seed;
    return rc;
}

/* ---- what it is judged by ---- */

/* A rate of texts against a bench of images would be found out only after minutes of measuring. */
static int read_targets(struct cli *cli, const struct bench_args *a, struct bench_planned *p)
{
    for (size_t i = 0; i < a->targets.n; i++) {
        struct target t;
        if (target_parse(&t, a->targets.items[i], &cli->error) != TARE_OK)
            return cli_usage_error(cli, "--target %s", cli->error.text);
        if (target_check_unit(&t, p->plan.unit, &cli->error) != TARE_OK)
            return cli_usage_error(cli, "--target %s: %s", a->targets.items[i], cli->error.text);
        if (vec_push(&p->targets, t, &cli->error) != TARE_OK) return cli_fail(cli);
    }
    return 0;
}

static int check_baseline(struct cli *cli, const struct bench_args *a)
{
    struct compare_limit l;
    if (!a->baseline.n && a->fail_on.n) /* tare.yaml may hold it for all runs */
        cli_note(cli, "--fail-on has nothing to compare with: there is no --baseline");
    for (size_t i = 0; i < a->fail_on.n; i++)
        if (compare_limit_parse(&l, a->fail_on.items[i], &cli->error) < 0)
            return cli_usage_error(cli, "--fail-on %s", cli->error.text);
    return a->baseline.n ? compare_runs_check(cli, &a->baseline, &a->history, NULL) : 0;
}

static int check_files(struct cli *cli, const struct bench_args *a)
{
    if (a->expect && access(a->expect, R_OK) != 0)
        return cli_usage_error(cli, "--expect %s: %s", a->expect, strerror(errno));
    if (a->python && a->inputs && access(a->inputs, R_OK) < 0)
        return cli_usage_error(cli, "--inputs %s: cannot be read", a->inputs);
    for (size_t i = 0; i < a->variants.n; i++) {
        const char *text = a->variants.items[i], *eq = strchr(text, '=');
        if (!eq || eq == text || !eq[1])
            return cli_usage_error(cli, "--variant %s: expected NAME=FILE, as in int8=model-int8.onnx", text);
    }
    return html_out_check(cli, a->html);
}

int bench_make_plan(struct cli *cli, const struct bench_args *a, bool built_in, struct bench_planned *out)
{
    *out = (struct bench_planned){.args = a, .synth = built_in ? "minilm-l6" : a->synth, .own = GRID_INIT};
    out->plan = asked_plan(a, built_in);
    int rc = bench_anchor_check(cli, a);
    if (!rc) rc = check_files(cli, a);
    if (!rc) rc = read_rate(cli, a, &out->plan);
    if (!rc) rc = read_warmup(cli, a, &out->plan);
    if (!rc) rc = apply_scenario(cli, a, out);
    if (!rc) rc = plan_grid(cli, a, built_in, out);
    if (!rc) rc = read_targets(cli, a, out);
    if (!rc) rc = check_baseline(cli, a);
    return rc;
}

void bench_planned_release(struct bench_planned *p)
{
    vec_release(&p->targets);
    grid_release(&p->own);
}
