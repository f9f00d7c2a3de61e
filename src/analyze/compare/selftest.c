/* SPDX-License-Identifier: MIT
 * selftest.c - see selftest.h. Medians and ninth deciles over comparisons: one that was disturbed does not decide. */
#include "analyze/compare/selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

#define LEVEL 0.95

/* ---- the rate of false alarms ---- */

/* The p at which the tail falls to `a`: it rises or falls with p all the way. */
static double solve(uint64_t hits, uint64_t n, double a, bool upper)
{
    double lo = 0, hi = 1;
    for (int i = 0; i < 60; i++) {
        double p = (lo + hi) / 2;
        double tail = upper ? stats_binomial_cdf((double)hits, (double)n, p)
                            : stats_binomial_at_least((double)hits, (double)n, p);
        bool too_small = upper ? tail > a : tail < a; /* p is */
        *(too_small ? &lo : &hi) = p;
    }
    return (lo + hi) / 2;
}

void selftest_share(uint64_t hits, uint64_t n, double level, double *lo, double *hi)
{
    double a = (1 - level) / 2;
    *lo = hits == 0 ? 0 : solve(hits, n, a, false);
    *hi = hits >= n ? 1 : solve(hits, n, a, true);
}

bool selftest_alarming(const struct selftest *s, const struct paired_rule *r)
{
    return s->rate_lo > 2 * r->alpha;
}

/* ---- one kind of work ---- */

struct column { /* one number of each comparison of a kind; NANs are left out */
    double *x;
    size_t n;
};

static void put(struct column *c, double v)
{
    if (isfinite(v)) c->x[c->n++] = v;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(struct column *c, double q)
{
    if (c->n == 0) return NAN;
    qsort(c->x, c->n, sizeof *c->x, by_value);
    return stats_quantile_sorted(c->x, c->n, q);
}

struct trials {
    const struct selftest_trial *at;
    size_t n, kind;
    enum paired_metric metric;
    double least_s; /* the shortest comparison: none ends earlier, however precise */
    const struct paired_rule *rule;
};

enum number { SD_PAIR, SD_LAUNCH, ERROR_1S, DETECT_S };

static double number_of(const struct trials *t, const struct selftest_trial *one, enum number which)
{
    const struct selftest_seen *s = &one->by[t->metric];
    double times = s->error / paired_error_wanted(t->rule);
    switch (which) {
    case SD_PAIR: return s->sd_pair;
    case SD_LAUNCH: return s->sd_launch;
    case ERROR_1S: return s->error * sqrt(one->spent_s);
    default: return fmax(one->spent_s * times * times, isfinite(times) ? t->least_s : NAN);
    }
}

static double typical(const struct trials *t, enum number which, double q, double *room)
{
    struct column c = {room, 0};
    for (size_t i = 0; i < t->n; i++)
        if (t->at[i].kind == t->kind) put(&c, number_of(t, &t->at[i], which));
    return quantile(&c, q);
}

static void fill_times(struct selftest_times *out, const struct trials *t, double *room)
{
    out->sd_pair = typical(t, SD_PAIR, 0.5, room);
    out->sd_launch = typical(t, SD_LAUNCH, 0.5, room);
    out->error_1s = typical(t, ERROR_1S, 0.5, room);
    out->detect_s = typical(t, DETECT_S, 0.9, room);
}

static void fill_kind(struct selftest_kind *out, struct trials *t, double *room)
{
    t->least_s = INFINITY;
    out->comparisons = out->alarms = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct selftest_trial *one = &t->at[i];
        if (one->kind != t->kind) continue;
        out->comparisons++;
        out->alarms += one->verdict == PAIRED_REGRESSED || one->verdict == PAIRED_IMPROVED;
        t->least_s = fmin(t->least_s, one->spent_s);
    }
    for (int m = 0; m < PAIRED_METRICS; m++) {
        t->metric = (enum paired_metric)m;
        fill_times(&out->by[m], t, room);
    }
}

/* ---- all ---- */

tare_status selftest_sum_up(struct selftest *out, const struct selftest_trial *trials, size_t n,
                            const struct paired_rule *r, tare_error *err)
{
    double *room = mem_new(n ? n : 1, sizeof *room);
    struct trials t = {.at = trials, .n = n, .rule = r};
    if (!room) return error_set(err, TARE_NOMEM, "out of memory for %zu comparisons", n);
    out->comparisons = n;
    out->regressed = out->improved = out->inconclusive = out->contended = 0;
    for (size_t i = 0; i < n; i++) {
        out->regressed += trials[i].verdict == PAIRED_REGRESSED;
        out->improved += trials[i].verdict == PAIRED_IMPROVED;
        out->inconclusive += trials[i].verdict == PAIRED_INCONCLUSIVE;
        out->contended += trials[i].contended;
    }
    selftest_share(out->regressed + out->improved, n, LEVEL, &out->rate_lo, &out->rate_hi);
    for (t.kind = 0; t.kind < out->n_kinds; t.kind++) fill_kind(&out->kind[t.kind], &t, room);
    mem_free(room);
    return TARE_OK;
}

double selftest_mde(const struct selftest_times *t, double seconds, const struct paired_rule *r)
{
    return seconds > 0 ? paired_mde(t->error_1s / sqrt(seconds), r) : NAN;
}

void selftest_sentence(const struct selftest *s, const struct paired_rule *r, struct buf *out)
{
    uint64_t alarms = s->regressed + s->improved;
    buf_printf(out, "%llu of %llu comparisons of a thing with itself were called different",
               (unsigned long long)alarms, (unsigned long long)s->comparisons);
    buf_printf(out, " (between %.2g and %.2g %% of all such, at 95 %% confidence)", 100 * s->rate_lo,
               100 * s->rate_hi);
    buf_printf(out,
               selftest_alarming(s, r) ? ": more than the %.2g %% that is promised, so do not trust "
                                         "verdicts of this machine"
                                       : "; %.2g %% at most is promised",
               200 * r->alpha);
}
