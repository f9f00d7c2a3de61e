/* SPDX-License-Identifier: MIT
 * paired.c - see paired.h. */
#include "analyze/compare/paired.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

#define MAD_TO_SD 1.4826
#define POWER_Z 1.6449    /* 95 of 100 */
#define WIDTH_SHARE 0.44  /* of ln((1 + detect) / (1 + min_effect)); measured to give 95 % power */
#define MOST_STRETCH 3.0  /* times the independent variance: beyond, ranks have no tail left to read */
#define LEAST_ALPHA 1e-12 /* of the stretched interval */

const char *paired_verdict_name(enum paired_verdict v)
{
    static const char *const names[] = {"inconclusive", "same", "regressed", "improved"};
    return names[v];
}

double paired_width(const struct paired_rule *r)
{
    return WIDTH_SHARE * (log1p(r->detect) - log1p(r->min_effect));
}

static double needed_z(const struct paired_rule *r)
{
    return stats_normal_quantile(1 - r->alpha) + POWER_Z;
}

double paired_mde(double error, const struct paired_rule *r)
{
    return isfinite(error) ? expm1(log1p(r->min_effect) + needed_z(r) * error) : NAN;
}

double paired_error_wanted(const struct paired_rule *r)
{
    return (log1p(r->detect) - log1p(r->min_effect)) / needed_z(r);
}

size_t paired_next_look(size_t n, size_t least)
{
    double next = (double)least;
    while ((size_t)next <= n) next *= M_SQRT2;
    return (size_t)next;
}

/* ---- launches ---- */

/* What the centre and the signed ranks about it say, launch by launch. */
struct launch_effects {
    size_t n;
    double stretch; /* variance of the launches' rank sums / that of independent pairs; 1 when unknown */
    double *median; /* of each; owned */
    double within;  /* robust sd of a pair about its launch's median */
    double between; /* sd of the medians beyond what `within` explains; NAN: one launch */
};

struct ranked {
    double size;
    size_t at;
};

static int by_size(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->size < y->size ? -1 : x->size > y->size;
}

/* Signed mid-ranks of d - centre into `out`. */
static tare_status signed_ranks(const struct paired_series *s, double centre, double *out, tare_error *err)
{
    struct ranked *r = mem_new(s->n, sizeof *r);
    if (!r) return error_nomem(err, "%zu pairs", s->n);
    for (size_t i = 0; i < s->n; i++) r[i] = (struct ranked){fabs(s->d[i] - centre), i};
    qsort(r, s->n, sizeof *r, by_size);
    for (size_t i = 0, end; i < s->n; i = end) {
        for (end = i; end < s->n && r[end].size <= r[i].size; end++) continue;
        double rank = ((double)i + 1 + (double)end) / 2;
        for (size_t k = i; k < end; k++) {
            double off = s->d[r[k].at] - centre;
            out[r[k].at] = off == 0 ? 0 : copysign(rank, off);
        }
    }
    mem_free(r);
    return TARE_OK;
}

static size_t launch_end(const struct paired_series *s, size_t i)
{
    size_t end = i + 1;
    while (s->epoch && end < s->n && s->epoch[end] == s->epoch[i]) end++;
    return end;
}

static double square(double x)
{
    return x * x;
}

/* Were all pairs independent, the sum of the signed ranks of one launch would have the sum of their squares as its
 * variance. What a launch shares (one layout of memory) gives its ranks one sign and its sum a larger square. The
 * quotient of the two, over all launches, is by how much the variance of the whole rank sum is larger than ranks
 * alone say; n / (n - 1) because the centre was fitted to these very launches. */
static double stretch_of(const struct paired_series *s, const double *ranks, size_t launches)
{
    double sums = 0, each = 0;
    for (size_t i = 0, end; i < s->n; i = end) {
        double sum = 0;
        end = launch_end(s, i);
        for (size_t k = i; k < end; k++) {
            sum += ranks[k];
            each += square(ranks[k]);
        }
        sums += square(sum);
    }
    if (launches < 2 || each <= 0) return 1;
    return sums / each * (double)launches / (double)(launches - 1);
}

/* Robust spread of a pair about the median of its launch, and what launches differ beyond it: the variance of their
 * medians less that which a median of so many pairs has by itself (pi / 2 / pairs of normal ones). */
static void spread_of(const struct paired_series *s, struct launch_effects *l, double *scratch,
                      double *medians)
{
    size_t e = 0;
    double sizes = 0;
    for (size_t i = 0, end; i < s->n; i = end, e++) {
        end = launch_end(s, i);
        for (size_t k = i; k < end; k++) scratch[k] = s->d[k];
        stats_sort(scratch + i, end - i);
        medians[e] = stats_median_sorted(scratch + i, end - i);
        for (size_t k = i; k < end; k++) scratch[k] = fabs(s->d[k] - medians[e]);
        sizes += 1 / (double)(end - i);
    }
    stats_sort(scratch, s->n);
    double size = (double)l->n / sizes;                      /* harmonic mean of pairs per launch */
    double small = size > 1.5 ? sqrt(size / (size - 1)) : 1; /* few about their own median: too close to it */
    l->within = MAD_TO_SD * stats_median_sorted(scratch, s->n) * small;
    if (l->n < 2) return;
    double all = square(stats_stddev(medians, l->n)), own = square(l->within) * M_PI / 2 / size;
    l->between = all > own ? sqrt(all - own) : 0;
}

/* Without epochs nothing is known of launches: no stretch, and the spread is that of all pairs. spread_of() takes the
 * ranks as scratch, so stretch_of() must come before it. */
static tare_status look_at_launches(const struct paired_series *s, double centre, struct launch_effects *l,
                                    tare_error *err)
{
    *l = (struct launch_effects){.stretch = 1, .within = NAN, .between = NAN};
    for (size_t i = 0; i < s->n; i = launch_end(s, i)) l->n++;
    l->median = mem_new(s->n, sizeof *l->median);
    double *ranks = mem_new(s->n, sizeof *ranks);
    tare_status status =
        !l->median || !ranks ? error_nomem(err, "%zu pairs", s->n) : signed_ranks(s, centre, ranks, err);
    if (status == TARE_OK && s->epoch) {
        l->stretch = stretch_of(s, ranks, l->n);
        spread_of(s, l, ranks, l->median);
    }
    if (status == TARE_OK && !s->epoch) {
        double mad = 0;
        status = stats_mad(s->d, s->n, &mad, err);
        l->within = MAD_TO_SD * mad;
    }
    mem_free(ranks);
    return status;
}

/* ---- the interval ---- */

static double launch_quantile(const struct launch_effects *l, bool clustered, double level)
{
    if (!clustered || l->n < 2) return stats_normal_quantile((1 + level) / 2);
    return stats_t_quantile((1 + level) / 2, (double)(l->n - 1));
}

struct interval_kind {
    double level;
    bool careful; /* not narrower than independent pairs allow */
};

/* The signed-rank interval of all pairs, made wider for what pairs of one launch share: its quantile is multiplied by
 * the root of the variance ratio (`stretch`), with t for the few launches instead of the normal, and the level that
 * belongs to that quantile is asked of the ranks. Ranks of few pairs end somewhere; where launches differ so much that
 * the level would lie beyond their end, the launches' medians are taken as the sample and get a t interval. */
static tare_status interval_at(const struct paired_series *s, const struct launch_effects *l,
                               struct interval_kind want, struct interval *out, tare_error *err)
{
    double level = want.level;
    bool clustered = s->epoch && l->n >= 2;
    struct interval plain;
    tare_status status = stats_hodges_lehmann(s->d, s->n, level, &plain, err);
    *out = plain;
    if (status < 0 || !clustered) return status;
    if (l->stretch > MOST_STRETCH) {
        double half = launch_quantile(l, true, level) * stats_stddev(l->median, l->n) / sqrt((double)l->n);
        double centre = stats_mean(l->median, l->n);
        *out = (struct interval){plain.value, fmin(centre - half, plain.value),
                                 fmax(centre + half, plain.value)};
    } else {
        double alpha = stats_normal_cdf(-launch_quantile(l, true, level) * sqrt(l->stretch));
        if (alpha < LEAST_ALPHA) alpha = LEAST_ALPHA;
        status = stats_hodges_lehmann(s->d, s->n, 1 - 2 * fmin(alpha, 0.4), out, err);
    }
    if (status == TARE_OK && want.careful) {
        out->lo = fmin(out->lo, plain.lo);
        out->hi = fmax(out->hi, plain.hi);
    }
    return status;
}

/* One-sided p of "the centre is at most `limit`" from the gate's half-width, as the standard error there is. */
static double p_beyond(double value, double limit, double error, double df)
{
    if (!(error > 0)) return value > limit ? 0 : 1;
    double t = (value - limit) / error;
    return df > 0 ? stats_t_cdf(-t, df) : stats_normal_cdf(-t);
}

/* The gate's half-width over its own quantile is the standard error that the ranks imply on that side; with it, the
 * distance from the centre to the minimum effect is a t value. The same error of the stated interval gives the change
 * that would have been found in 95 of 100 cases. */
static void judge_p(const struct paired_series *s, const struct launch_effects *l,
                    const struct paired_rule *r, struct paired_result *out)
{
    double quantile = launch_quantile(l, s->epoch != NULL, 1 - 2 * r->alpha);
    double df = s->epoch && l->n >= 2 ? (double)(l->n - 1) : 0, limit = log1p(r->min_effect);
    double up = (out->log.value - out->gate_lo) / quantile, down = (out->gate_hi - out->log.value) / quantile;
    out->p_slower = p_beyond(out->log.value, limit, up, df);
    out->p_faster = p_beyond(-out->log.value, limit, down, df);
    out->error = (out->log.hi - out->log.lo) / 2 / launch_quantile(l, s->epoch != NULL, r->level);
    out->mde = paired_mde(out->error, r);
}

/* ---- the verdict ---- */

/* Both ends of the gate judge, never the centre: regressed and improved need the whole gate beyond the minimum effect,
 * "same" needs it within what should be found. A gate that lies across a limit decides nothing. Each wrong verdict of
 * the first two has chance alpha, because the gate is at 1 - 2 alpha. */
enum paired_verdict paired_decide(double lo, double hi, double min_effect, double detect)
{
    if (lo > log1p(min_effect)) return PAIRED_REGRESSED;
    if (hi < -log1p(min_effect)) return PAIRED_IMPROVED;
    return lo > -log1p(detect) && hi < log1p(detect) ? PAIRED_SAME : PAIRED_INCONCLUSIVE;
}

bool paired_enough(const struct paired_result *p, const struct paired_rule *r)
{
    return p->gate_hi - p->gate_lo <= 2 * paired_width(r);
}

/* The half-width falls with the root of the pairs: a half as wide takes four times as many. */
static uint64_t pairs_needed(const struct paired_result *p, const struct paired_rule *r)
{
    double half = (p->gate_hi - p->gate_lo) / 2, more = square(half / paired_width(r));
    if (paired_enough(p, r)) return 0;
    if (!isfinite(more)) { /* too few to say by the interval: by the spread of pairs */
        double n = 1.05 * square(p->sd_pair / paired_error_wanted(r));
        return n > (double)r->least ? (uint64_t)ceil(n) : r->least;
    }
    return (uint64_t)ceil((double)p->n * more);
}

/* The centre first; launches are looked at about it, and then both intervals and the p values follow from them. */
tare_status paired_judge(const struct paired_series *s, const struct paired_rule *r,
                         struct paired_result *out, tare_error *err)
{
    struct interval gate;
    struct launch_effects l = {0};
    *out = (struct paired_result){.n = s->n, .sd_launch = NAN};
    tare_status status = stats_hodges_lehmann(s->d, s->n, r->level, &out->log, err);
    if (status == TARE_OK) status = look_at_launches(s, out->log.value, &l, err);
    if (status == TARE_OK)
        status = interval_at(s, &l, (struct interval_kind){r->level, false}, &out->log, err);
    if (status == TARE_OK)
        status = interval_at(s, &l, (struct interval_kind){1 - 2 * r->alpha, true}, &gate, err);
    if (status == TARE_OK) {
        out->epochs = s->epoch ? l.n : s->n;
        out->gate_lo = gate.lo;
        out->gate_hi = gate.hi;
        out->sd_pair = l.within;
        out->sd_launch = l.between;
        judge_p(s, &l, r, out);
        out->verdict = paired_decide(out->gate_lo, out->gate_hi, r->min_effect, r->detect);
        out->needed = pairs_needed(out, r);
    }
    mem_free(l.median);
    return status;
}

/* ---- several metrics ---- */

/* The smallest p value is multiplied by the count of all, the next by one less, and so on. `least` carries the greatest
 * so far, so that a larger p value never becomes a smaller one than its predecessor. */
void paired_holm(double *p, size_t m)
{
    struct ranked *r = mem_new(m, sizeof *r);
    size_t n = 0;
    double least = 0;
    if (!r) { /* without memory for an order: Bonferroni, which is never less careful. fmin() would make NAN a 1 */
        for (size_t i = 0; i < m; i++)
            if (!isnan(p[i])) p[i] = fmin(1, p[i] * (double)m);
        return;
    }
    for (size_t i = 0; i < m; i++)
        if (!isnan(p[i])) r[n++] = (struct ranked){p[i], i};
    qsort(r, n, sizeof *r, by_size);
    for (size_t i = 0; i < n; i++) {
        least = fmax(least, fmin(1, r[i].size * (double)(n - i)));
        p[r[i].at] = least;
    }
    mem_free(r);
}

/* ---- from pairs ---- */

uint64_t paired_value(const struct pair_side *s, enum paired_metric metric)
{
    return metric == PAIRED_WALL ? s->wall_ns : s->cpu_ns;
}

/* A side that took no time that the clock tells has no logarithm: such pairs are left out. */
tare_status paired_metric_judge(const struct pair_set *set, enum paired_metric metric,
                                const struct paired_rule *r, struct paired_result *out, tare_error *err)
{
    static const struct paired_result nothing = {.log = {NAN, -INFINITY, INFINITY},
                                                 .gate_lo = -INFINITY,
                                                 .gate_hi = INFINITY,
                                                 .p_slower = NAN,
                                                 .p_faster = NAN,
                                                 .sd_pair = NAN,
                                                 .sd_launch = NAN,
                                                 .error = NAN,
                                                 .mde = NAN};
    double *d = mem_new(set->n, sizeof *d);
    uint32_t *epoch = mem_new(set->n, sizeof *epoch);
    size_t n = 0;
    tare_status s = TARE_OK;
    for (size_t i = 0; d && epoch && i < set->n; i++) {
        uint64_t a = paired_value(&set->at[i].side[PAIR_A], metric);
        uint64_t b = paired_value(&set->at[i].side[PAIR_B], metric);
        if (!a || !b) continue;
        epoch[n] = set->at[i].epoch;
        d[n++] = log((double)b) - log((double)a);
    }
    if (!d || !epoch) {
        s = error_nomem(err, "%zu pairs", set->n);
    } else if (n == 0) {
        *out = nothing;
        out->needed = r->least;
    } else {
        s = paired_judge(&(struct paired_series){d, set->own_launch ? NULL : epoch, n}, r, out, err);
    }
    mem_free(d);
    mem_free(epoch);
    return s;
}

/* ---- contention ---- */

#define BUSY_SHARE 0.25    /* of measurements interrupted */
#define SOME_SHARE 0.05    /* interrupted, when the CPU time also falls short of the wall time */
#define FULL_CPU 0.95
#define CPU_HALF 0.5
#define OWN_WAITS 0.1 /* of the time that others left it */
#define BUSY_PRESSURE 0.20
#define BUSY_STEAL 0.02

/* What a measurement waited for by itself (a disk, a clock, another process) is its wall time without its CPU time
 * and without what others took. A side needs little but CPU time if most of its measurements waited little; where
 * what others took is not told, if one of them had a processor for half of the time. */
static bool needs_cpu_alone(const struct pair_set *set, int side)
{
    size_t told = 0, few = 0;
    double best = 0;
    for (size_t i = 0; i < set->n; i++) {
        const struct pair_side *x = &set->at[i].side[side];
        double left = (double)x->wall_ns - (double)x->others.v;
        told += x->others.known;
        few += x->others.known && left - (double)x->cpu_ns <= OWN_WAITS * left;
        if (x->wall_ns) best = fmax(best, (double)x->cpu_ns / (double)x->wall_ns);
    }
    return told ? 2 * few > told : best >= CPU_HALF;
}

struct paired_contention paired_contention(const struct pair_set *set)
{
    struct paired_contention c = {
        .pressure = set->pressure, .steal = set->steal, .cpu_share = NAN};
    double wall = 0, cpu = 0, hit = 0;
    for (size_t i = 0; i < set->n; i++) {
        for (int side = 0; side < PAIR_SIDES; side++) {
            const struct pair_side *x = &set->at[i].side[side];
            wall += (double)x->wall_ns;
            cpu += (double)x->cpu_ns;
            hit += x->involuntary > 0;
        }
    }
    if (wall > 0) c.cpu_share = cpu / wall;
    if (set->elsewhere) c.cpu_share = NAN;
    c.cpu_bound = !set->elsewhere && needs_cpu_alone(set, PAIR_A) && needs_cpu_alone(set, PAIR_B);
    c.interrupted = set->n ? hit / (double)(2 * set->n) : 0;
    /* A command that waits for a disk also has little CPU time: alone, that is no sign of others. */
    bool squeezed = c.cpu_share < FULL_CPU && c.interrupted > SOME_SHARE;
    c.contended = squeezed || c.interrupted > BUSY_SHARE ||
                  (c.pressure.known && c.pressure.v > BUSY_PRESSURE) ||
                  (c.steal.known && c.steal.v > BUSY_STEAL);
    return c;
}
