/* SPDX-License-Identifier: MIT
 * compare_sampled.c - see compare_sampled.h. */
#include "analyze/compare/compare_sampled.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/compare/compare_pairs.h"
#include "analyze/judge/plausible.h"
#include "core/fmt.h"
#include "core/stats.h"

static const struct measure *measure_of_name(const struct sampled_comparing *k, const char *name)
{
    const struct measure *m = k->rules->measures;
    while (m->name && strcmp(m->name, name) != 0) m++;
    return m;
}

const char *sampled_role(const struct sampled_comparing *k, const char *measure, bool gate,
                         struct between_rule *rule)
{
    *rule = k->rules->rule;
    for (size_t i = 0; i < k->rules->n_limits; i++) {
        const struct compare_limit *l = &k->rules->limits[i];
        if (strcmp(l->metric, measure) != 0) continue;
        if (!isnan(l->share)) rule->min_effect = l->share;
        rule->detect = fmax(rule->detect, rule->min_effect);
        return "gate";
    }
    return gate && !k->rules->n_limits ? "gate" : "advisory";
}

/* ---- numbers of a side ---- */

struct side_values {
    struct compare_values ln;
    double grain; /* for how much one sample stands: variance / sum */
    double mean;
    size_t zeros;
};

static tare_status take_side(struct sampled_comparing *k, const struct sampled_row *r, int side,
                             struct side_values *out)
{
    struct sampled_side *of = &k->side[side];
    *out = (struct side_values){.ln.y = arena_new(&k->c->arena, of->n, sizeof(double))};
    if (!out->ln.y) return compare_no_memory(k->err);
    for (size_t i = 0; i < of->n; i++) {
        const struct sampled_value b = r->of[side][i];
        out->zeros += !(b.sum > 0);
        of->at[i].y = log(b.sum);
        if (b.sum > 0) out->grain += b.variance / b.sum / (double)of->n;
        out->mean += b.sum / (double)of->n;
    }
    compare_cluster(&out->ln, of->at, of->n, k->rules->apart_ms);
    return TARE_OK;
}

static struct run_estimate middle_of(const struct sampled_comparing *k, const struct sampled_row *r, int side,
                                     const struct side_values *v)
{
    if (k->side[side].n == 1) return run_estimate_of(r->of[side][0].within);
    return (struct run_estimate){.known = true, .value = exp(stats_mean(v->ln.y, v->ln.n))};
}

/* ---- verdicts ---- */

/* How far samples scatter is that of the smaller side: if both sides are the same,
 * the larger one may be so by its samples alone, and says too little of how few were to be expected. */
static struct between_rule with_sampling(const struct sampled_comparing *k, struct between_rule rule,
                                         const struct measure *m, const struct side_values v[])
{
    double sd = plausible_sd(m, k->rules->waits, false), smaller = fmin(v[PAIR_A].mean, v[PAIR_B].mean),
           sampling = (v[PAIR_A].grain + v[PAIR_B].grain) / 2 / smaller;
    rule.plausible = sqrt(sd * sd + sampling);
    rule.least_sd = sqrt(sampling);
    return rule;
}

static void explain(struct sampled_comparing *k, struct comparison_metric *m, const struct between_result *b,
                    const struct between_rule *rule)
{
    struct arena *a = &k->c->arena;
    struct run_estimate within = estimate_ratio(m->new_, m->base);
    if (within.known && within.lo.known && within.hi.known) {
        run_map_real(a, &m->evidence, "within_runs_lo", within.lo.v);
        run_map_real(a, &m->evidence, "within_runs_hi", within.hi.v);
    }
    if (b->method == BETWEEN_NONE)
        m->why = arena_printf(a, "too few runs to know what they differ by: %s times as much would tell",
                              show_number(between_far(rule)).s);
    if (b->method == BETWEEN_FAR)
        m->why = arena_printf(a, "no plausible noise makes it %s times as %s",
                              show_number(between_far(rule)).s, b->log > 0 ? "much" : "little");
}

static tare_status judge(struct sampled_comparing *k, struct comparison_metric *m,
                         const struct side_values v[], const struct between_rule *rule)
{
    struct between_sides sides = {
        {v[PAIR_A].ln.y, v[PAIR_A].ln.n}, {v[PAIR_B].ln.y, v[PAIR_B].ln.n}, {NULL, 0}, false, 0};
    struct between_result found = {0}, swapped = {0};
    tare_status s = between_runs(&sides, rule, &found, k->err);
    sides.more = true; /* the chance of a wrong "less" is that of a wrong "more" with the sides exchanged */
    if (s == TARE_OK) s = between_runs(&sides, rule, &swapped, k->err);
    if (s < 0) return s;
    compare_fill_between(k->c, m, &found, rule, false);
    explain(k, m, &found, rule);
    if (found.method == BETWEEN_NONE) return TARE_OK;
    s = vec_push(&k->judged, m, k->err);
    if (s == TARE_OK) s = vec_push(&k->more, found.p_worse, k->err);
    if (isnan(swapped.p_worse)) swapped.p_worse = 1;
    return s == TARE_OK ? vec_push(&k->less, swapped.p_worse, k->err) : s;
}

static void tell_one_side(struct sampled_comparing *k, const struct sampled_row *r, int side)
{
    double sum = 0;
    char shown[64];
    for (size_t i = 0; i < k->side[side].n; i++) sum += r->of[side][i].sum / (double)k->side[side].n;
    if (strcmp(r->unit, "bytes") == 0)
        snprintf(shown, sizeof shown, "%s", show_bytes(sum).s);
    else
        snprintf(shown, sizeof shown, "%s %s", show_number(sum).s, r->unit);
    comparison_add_unmatched(k->c, side == PAIR_A ? "base" : "new",
                             arena_printf(&k->c->arena, "%s: %s", r->name, shown));
}

tare_status sampled_row_add(struct sampled_comparing *k, const struct sampled_row *r)
{
    struct side_values v[PAIR_SIDES];
    struct between_rule rule;
    const char *role = sampled_role(k, r->measure, r->gate, &rule);
    bool none[PAIR_SIDES];
    for (int side = 0; side < PAIR_SIDES; side++) {
        tare_status s = take_side(k, r, side, &v[side]);
        if (s < 0) return s;
        none[side] = v[side].zeros == k->side[side].n;
    }
    if (none[PAIR_A] || none[PAIR_B]) {
        if (!none[PAIR_A] || !none[PAIR_B]) tell_one_side(k, r, none[PAIR_A] ? PAIR_B : PAIR_A);
        return TARE_OK;
    }
    struct comparison_metric *m = comparison_add_metric(k->c, k->to, r->name);
    if (!m) return compare_no_memory(k->err);
    m->unit = r->unit;
    m->better = "less";
    m->role = role;
    m->verdict = "inconclusive";
    if (v[PAIR_A].zeros || v[PAIR_B].zeros) {
        m->why = "cannot tell: it is not in every run";
        run_map_text(&k->c->arena, &m->unknown, "ratio", m->why);
        return TARE_OK;
    }
    m->samples = known_u64(v[PAIR_A].ln.n < v[PAIR_B].ln.n ? v[PAIR_A].ln.n : v[PAIR_B].ln.n);
    m->base = middle_of(k, r, PAIR_A, &v[PAIR_A]);
    m->new_ = middle_of(k, r, PAIR_B, &v[PAIR_B]);
    rule = with_sampling(k, rule, measure_of_name(k, r->measure), v);
    return judge(k, m, v, &rule);
}

/* ---- all rows ---- */

void sampled_rows_hold(struct sampled_comparing *k)
{
    static const char by_chance[] = "%s by itself, but among so many comparisons such a one comes by chance";
    paired_holm(k->more.items, k->more.n);
    paired_holm(k->less.items, k->less.n);
    for (size_t i = 0; i < k->judged.n; i++) {
        struct comparison_metric *m = k->judged.items[i];
        bool more = strcmp(m->verdict, "regressed") == 0, less = strcmp(m->verdict, "improved") == 0;
        m->p_value = known_f64(k->more.items[i]);
        double p = less ? k->less.items[i] : k->more.items[i];
        if ((!more && !less) || p <= k->rules->rule.alpha) continue;
        m->verdict = "inconclusive";
        m->why = arena_printf(&k->c->arena, by_chance, more ? "more" : "less");
    }
}

void sampled_rows_release(struct sampled_comparing *k)
{
    vec_release(&k->judged);
    vec_release(&k->more);
    vec_release(&k->less);
}
