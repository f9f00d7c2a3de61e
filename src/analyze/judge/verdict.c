/* SPDX-License-Identifier: MIT
 * verdict.c - targets against measured cases. A percentile whose single times are in the document is
 * judged by counting the times beyond the limit (binomial, with as many samples as they are independently
 * worth); other numbers by their interval; a number measured once by itself, without a confidence. Never
 * rounds in favour. */
#include <math.h>
#include <string.h>

#include "analyze/judge/judge.h"
#include "core/mem.h"
#include "core/stats.h"

#define RISK 0.05 /* of a wrong pass or a wrong fail */

static bool is_at_most(enum target_op op)
{
    return op == TARGET_LE || op == TARGET_LT;
}

static bool meets(const struct target *t, double v)
{
    switch (t->op) {
    case TARGET_LE: return v <= t->value;
    case TARGET_GE: return v >= t->value;
    case TARGET_LT: return v < t->value;
    case TARGET_GT: return v > t->value;
    }
    return false;
}

/* ---- percentiles from single times ---- */

/* How many independent samples the case's times are worth, and how many break the limit. Runs that were due and not
 * served took longer than any limit. */
static tare_status count_times(const struct target *t, const struct run_case *c, double *n_eff,
                               double *breaking, tare_error *err)
{
    const struct run_samples *s = &c->samples_raw;
    const struct run_open_loop *o = &c->open_loop;
    double lost =
        o->due.known && o->served.known && o->due.v > o->served.v ? (double)(o->due.v - o->served.v) : 0;
    double *x = mem_new(s->n, sizeof *x);
    if (!x) return error_set(err, TARE_NOMEM, "out of memory for %zu samples", s->n);
    size_t over = 0;
    for (size_t i = 0; i < s->n; i++) {
        x[i] = (double)s->ns[i];
        over += !meets(t, x[i]);
    }
    tare_status st = stats_n_eff(x, s->n, n_eff, err);
    mem_free(x);
    double worth = *n_eff / (double)s->n;
    *breaking = ((double)over + (is_at_most(t->op) ? lost : 0)) * worth;
    *n_eff += lost * worth;
    return st;
}

/* An upper limit on quantile q holds when at most 1 - q of all times break it; a lower limit, q of them. */
static tare_status judge_quantile(const struct target *t, const struct run_case *c, double q,
                                  struct verdict *out, tare_error *err)
{
    double n_eff = 1, breaking = 0, share = is_at_most(t->op) ? 1 - q : q;
    tare_status st = count_times(t, c, &n_eff, &breaking, err);
    if (st < 0) return st;
    n_eff = fmax(floor(n_eff), 1);
    double wrong_pass = stats_binomial_cdf(ceil(breaking - 1e-9), n_eff, share);
    double wrong_fail = stats_binomial_at_least(floor(breaking + 1e-9), n_eff, share);
    if (wrong_pass <= RISK)
        out->word = "pass";
    else if (wrong_fail <= RISK)
        out->word = "fail";
    out->confidence = known_f64(1 - fmin(fmin(wrong_pass, wrong_fail), 1));
    return TARE_OK;
}

/* ---- intervals ---- */

static void judge_interval(const struct target *t, struct run_estimate e, double level, struct verdict *out)
{
    bool lo = meets(t, e.lo.v), hi = meets(t, e.hi.v);
    if (lo == hi) {
        out->word = lo ? "pass" : "fail";
        out->confidence = known_f64((1 + level) / 2);
        return;
    }
    double half = e.value > t->value ? e.value - e.lo.v : e.hi.v - e.value;
    double z = half > 0 ? fabs(e.value - t->value) / half * stats_normal_quantile((1 + level) / 2) : 0;
    out->confidence = known_f64(stats_normal_cdf(z));
}

/* ---- one target, one case ---- */

static struct known_f64 times_better(const struct target *t, double achieved)
{
    double r = is_at_most(t->op) ? t->value / achieved : achieved / t->value;
    return isfinite(r) && achieved > 0 && t->value > 0 ? known_f64(r) : (struct known_f64){0};
}

tare_status target_judge(const struct target *t, const struct run_case *c, struct verdict *out,
                         tare_error *err)
{
    const struct measure *m = measure_find(t->metric);
    struct run_estimate e = {0};
    struct verdict v = {.word = "inconclusive"};
    tare_status s = TARE_OK;
    if (!m) return error_set(err, TARE_INVALID, "'%s' is not a metric", t->metric);
    bool known = measure_named(c, m->name, &e) && target_check_unit(t, c->unit, NULL) == TARE_OK;
    if (known) {
        v.achieved = known_f64(e.value);
        v.ratio = times_better(t, e.value);
    }
    if (m->quantile > 0 && c->samples_raw.known && c->samples_raw.n > 0) {
        s = judge_quantile(t, c, m->quantile, &v, err);
    } else if (known && e.lo.known && e.hi.known) {
        judge_interval(t, e, c->confidence.known ? c->confidence.v : 0.95, &v);
    } else if (known && m->quantile == 0) {
        v.word = meets(t, e.value) ? "pass" : "fail";
    }
    if (s == TARE_OK) *out = v;
    return s;
}

/* ---- all of them ---- */

static tare_status add_row(struct run *run, const struct target *t, const struct run_case *c, tare_error *err)
{
    struct verdict v;
    tare_status s = target_judge(t, c, &v, err);
    if (s < 0) return s;
    struct run_target *row = run_add_target(run, t->metric, target_op_text(t->op), t->value);
    if (!row) return error_set(err, TARE_NOMEM, "out of memory for the targets");
    const struct measure *m = measure_find(t->metric);
    const char *unit = m->kind == MEASURE_RATE && c->throughput.unit ? c->throughput.unit : measure_unit(m);
    row->unit = *unit ? unit : NULL;
    row->case_name = c->name;
    row->achieved = v.achieved;
    row->ratio = v.ratio;
    row->verdict = v.word;
    row->confidence = v.confidence;
    return TARE_OK;
}

struct score {
    size_t pass, fail;
    double worst; /* ratio */
};

static tare_status score_case(const struct run_case *c, const struct target *targets, size_t n,
                              struct score *out, tare_error *err)
{
    *out = (struct score){.worst = INFINITY};
    for (size_t i = 0; i < n; i++) {
        struct verdict v;
        tare_status s = target_judge(&targets[i], c, &v, err);
        if (s < 0) return s;
        out->pass += v.word[0] == 'p';
        out->fail += v.word[0] == 'f';
        out->worst = fmin(out->worst, v.ratio.known ? v.ratio.v : 0);
    }
    return TARE_OK;
}

static bool is_better(struct score a, struct score b)
{
    if (a.fail != b.fail) return a.fail < b.fail;
    if (a.pass != b.pass) return a.pass > b.pass;
    return a.worst > b.worst;
}

static tare_status best_case(const struct run *run, const struct target *targets, size_t n, size_t *best,
                             tare_error *err)
{
    struct score top = {0}, now;
    for (size_t i = 0; i < run->cases.n; i++) {
        tare_status s = score_case(run->cases.at[i], targets, n, &now, err);
        if (s < 0) return s;
        if (i > 0 && !is_better(now, top)) continue;
        top = now;
        *best = i;
    }
    return TARE_OK;
}

tare_status targets_judge(struct run *run, const struct target *targets, size_t n, bool best_only,
                          tare_error *err)
{
    size_t from = 0, to = run->cases.n;
    if (n == 0 || to == 0) return TARE_OK;
    if (best_only) {
        tare_status s = best_case(run, targets, n, &from, err);
        if (s < 0) return s;
        to = from + 1;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t c = from; c < to; c++) {
            tare_status s = add_row(run, &targets[i], run->cases.at[c], err);
            if (s < 0) return s;
        }
    }
    return TARE_OK;
}

size_t targets_missed(const struct run *run)
{
    size_t missed = 0;
    for (size_t i = 0; i < run->targets.n; i++) missed += strcmp(run->targets.at[i]->verdict, "fail") == 0;
    return missed;
}
