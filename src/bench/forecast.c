/* SPDX-License-Identifier: MIT
 * forecast.c - how long the bench still takes, and what a progress bar says of it. Never decides anything: when a case
 * stops is rounds.c's. */
#include <math.h>
#include <stdio.h>

#include "bench/engine.h"
#include "core/buf.h"
#include "core/fmt.h"

#define READY_GUESS 10   /* loading and warming up take this part of the budget, until one has done it */
#define STEP_MEAN 1.2    /* precision is looked at when runs have grown by sqrt 2: on average this much too late */

/* What the case needs in all: an interval narrows by the square root of the runs. */
static double needed_ns(const struct bench *b, const struct case_work *w)
{
    const struct bench_plan *p = b->plan;
    double budget = (double)p->budget_ns, run = (double)typical_ns(w), need = budget;
    double wide = p->percentile > 0 ? fmax(w->half_width, w->half_width_percentile) : w->half_width;
    if (p->load == BENCH_OPEN) return budget;
    if (w->looked_ns && isfinite(wide))
        need = fmin(budget, (double)w->looked_ns * pow(wide / p->precision, 2) * STEP_MEAN);
    need = fmax(need, run * (double)w->min_runs);
    return p->max_runs ? fmin(need, run * (double)p->max_runs) : need;
}

static double measuring_left_ns(const struct bench *b, const struct case_work *w)
{
    if (!w->max_runs) return (double)b->plan->budget_ns; /* not ready: nothing is known of it */
    return fmax(needed_ns(b, w) - (double)w->spent_ns, 0);
}

static double ready_left_ns(const struct bench *b, const struct case_work *w)
{
    double one = (double)b->plan->budget_ns / READY_GUESS;
    if (w->max_runs) return 0;
    if (b->n_ready) one = (double)b->ready_ns / (double)b->n_ready;
    double spent = w->began_ns ? (double)(bench_machine.now() - w->began_ns) : 0;
    return fmax(one - spent, 0);
}

/* Until all is measured, as far as it can be known. */
static uint64_t forecast_ns(const struct bench *b)
{
    double slow = 1, left = 0; /* slow: what lies between slices takes time as well */
    if (b->round_spent_ns > NS_PER_S / 10) slow = (double)b->round_ns / (double)b->round_spent_ns;
    for (size_t i = 0; i < b->n_cases; i++) {
        const struct case_work *w = &b->cases[i];
        if (!w->stopped) left += ready_left_ns(b, w) + slow * measuring_left_ns(b, w);
    }
    return left < 1e18 ? (uint64_t)left : (uint64_t)1e18;
}

/* "measuring batch=8: 120 ms +/- 6.0 %": the estimate so far; before the first look at the runs that of warming up. */
static void put_what(struct buf *out, const struct bench *b, const struct case_work *w, const char *stage)
{
    buf_printf(out, "%s ", stage);
    if (!w->max_runs && b->n_cases > 1) buf_printf(out, "%zu/%zu ", (size_t)(w - b->cases) + 1, b->n_cases);
    buf_add_str(out, w->what->name);
    double median = w->median_ns > 0 ? w->median_ns : (double)typical_ns(w);
    if (!w->max_runs || !(median > 0)) return;
    buf_add_str(out, ": ");
    fmt_duration(out, median);
    if (!isfinite(w->half_width)) return;
    buf_add_str(out, " +/- ");
    fmt_share(out, w->half_width);
}

void bench_tell(struct bench *b, const struct case_work *w, const char *stage)
{
    struct buf what = BUF_INIT;
    uint64_t spent = bench_machine.now() - b->began_ns;
    if (!b->plan->progress.report) return;
    put_what(&what, b, w, stage);
    const char *text = what.failed ? stage : what.data;
    b->plan->progress.report(b->plan->progress.ctx, text, spent, spent + forecast_ns(b));
    buf_release(&what);
}
