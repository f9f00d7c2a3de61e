/* SPDX-License-Identifier: MIT
 * compare_saved.c - see compare_saved.h. */
#include "analyze/compare/compare_saved.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/compare_pairs.h"
#include "analyze/judge/launches.h"
#include "analyze/judge/plausible.h"
#include "core/fmt.h"
#include "analyze/judge/sweep.h"
#include "core/mem.h"
#include "core/stats.h"
#include "core/vec.h"

enum { PAST_MOST = 100 }; /* newest runs of the history that are asked for */
enum { FASTEST_OF = 5 };  /* runs of which one is the fastest; of fewer each may have been delayed */

/* What is compared, and what may fail the comparison when the user named nothing. */
static const struct compared {
    const char *metric;
    bool gate;
} compared[] = {
    {"latency.p50", true}, {"latency.mean", false}, {"latency.p95", false}, {"latency.p99", false},
    {"throughput", false}, {"cpu.time", true},      {"memory.peak", true},  {"load", false},
};
enum { N_COMPARED = sizeof compared / sizeof *compared };

static const struct compared *find_compared(const char *metric)
{
    for (size_t i = 0; i < N_COMPARED; i++)
        if (strcmp(compared[i].metric, metric) == 0) return &compared[i];
    return NULL;
}

/* ---- values of a side, one per run ---- */

struct runs_of { /* one case on one side */
    const struct run *const *runs;
    const struct run_case **at; /* of each run; NULL: it has none */
    size_t n;
};

static int by_time(const void *a, const void *b)
{
    const struct compare_moment *x = a, *y = b;
    return (x->ms > y->ms) - (x->ms < y->ms);
}

typedef VEC(struct compare_moment) moments;

static tare_status push_moment(moments *to, int64_t ms, double v, tare_error *err)
{
    struct compare_moment m = {ms, log(v)};
    return v > 0 && isfinite(v) ? vec_push(to, m, err) : TARE_OK;
}

static tare_status take_case(moments *to, const struct run *run, const struct run_case *c,
                             const struct measure *m, tare_error *err)
{
    tare_status s = TARE_OK;
    struct run_estimate e = {0};
    size_t before = to->n;
    double v;
    for (size_t i = 0; s == TARE_OK && i < c->launches.n; i++)
        if (measure_of_launch(c->launches.at[i], m, &v))
            s = push_moment(to, run_unix_ms(c->launches.at[i]->created), v, err);
    if (s == TARE_OK && to->n == before && measure_of(c, m, &e))
        s = push_moment(to, run_unix_ms(run->created), e.value, err);
    return s;
}

void compare_cluster(struct compare_values *out, const struct compare_moment *from, size_t n,
                     int64_t apart_ms)
{
    size_t in_it = 0;
    out->n = 0;
    out->taken = n;
    for (size_t i = 0; i < n; i++) {
        bool joins = i > 0 && from[i].ms - from[i - 1].ms < apart_ms;
        if (!joins) {
            out->y[out->n++] = from[i].y;
            in_it = 1;
            continue;
        }
        double *y = &out->y[out->n - 1];
        in_it++;
        *y += (from[i].y - *y) / (double)in_it;
    }
}

static tare_status take_values(const struct runs_of *side, const struct measure *m, int64_t apart_ms,
                               struct compare_values *out, tare_error *err)
{
    moments all = VEC_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < side->n; i++)
        if (side->at[i]) s = take_case(&all, side->runs[i], side->at[i], m, err);
    if (s == TARE_OK && all.n) {
        qsort(all.items, all.n, sizeof *all.items, by_time);
        out->y = mem_new(all.n, sizeof *out->y);
        if (out->y)
            compare_cluster(out, all.items, all.n, apart_ms);
        else
            s = compare_no_memory(err);
    }
    vec_release(&all);
    return s;
}

/* ---- a metric ---- */

struct judging_case {
    struct comparison *c;
    const struct compare_saved *in;
    struct comparison_case *to;
    struct runs_of base, new_;
    const struct run *own; /* whose case is looked for */
};

/* A single run as its document has it, with its interval; of several the geometric mean. Runs too close together to be
 * more than one have the interval that holds all of theirs. */
static struct run_estimate middle_of(const struct runs_of *side, const struct measure *m,
                                     const struct compare_values *v)
{
    struct run_estimate e = {0}, all = {.known = true, .value = exp(stats_mean(v->y, v->n))};
    bool bounded = v->n == 1;
    double lo = INFINITY, hi = 0;
    for (size_t i = 0; v->n == 1 && i < side->n; i++) {
        if (!side->at[i] || !measure_of(side->at[i], m, &e)) continue;
        if (v->taken == 1) return e;
        bounded = bounded && e.lo.known && e.hi.known;
        lo = fmin(lo, e.lo.v);
        hi = fmax(hi, e.hi.v);
    }
    return bounded && lo <= all.value && all.value <= hi ? run_estimate(all.value, lo, hi) : all;
}

static const char *unverified_why(struct comparison *c, const struct compare_values *a,
                                  const struct compare_values *b, const struct compare_values *past)
{
    bool close = a->taken > a->n || b->taken > b->n || past->taken > past->n;
    return arena_printf(&c->arena, "%zu and %zu runs, %zu earlier%s: no spread to judge by", a->n, b->n,
                        past->n, close ? " (closer than 30 s is one)" : "");
}

/* Why a number is not there, and what would decide. */
static void explain_unknown(struct comparison *c, struct comparison_metric *m, const struct between_result *b,
                            bool again)
{
    static const char *const unjudged[] = {"ratio", "mde", "p_value", "sd_launch", "needed"};
    struct arena *a = &c->arena;
    bool none = b->method == BETWEEN_NONE, open = strcmp(b->verdict, "inconclusive") == 0;
    if (b->method == BETWEEN_FAR) run_map_text(a, &m->unknown, "sd_launch", "too few runs to know it");
    for (size_t i = 0; none && i < sizeof unjudged / sizeof *unjudged; i++)
        run_map_text(a, &m->unknown, unjudged[i], "no spread between runs to judge by");
    if (!none && !m->needed.known)
        run_map_text(a, &m->unknown, "needed",
                     open ? "more runs than anyone makes, or the interval lies across a limit" : "decided");
    run_map_text(a, &m->unknown, "sd_sample", "runs are judged as wholes");
    if (open && b->needed)
        m->why = arena_printf(a, "undecided (detects %s or more); about %zu runs per side would decide%s",
                              show_percent(b->mde).s, b->needed, again ? ", or --ab" : "");
    else if (open)
        m->why = arena_printf(a, "undecided (detects %s or more)%s", show_percent(b->mde).s,
                              again ? "; measure interleaved: --ab" : "");
}

/* Where nothing could be judged (BETWEEN_NONE) there is no interval either, and a level of confidence would claim
 * one. */
void compare_fill_between(struct comparison *c, struct comparison_metric *m, const struct between_result *b,
                          const struct between_rule *r, bool again)
{
    static const char *const methods[] = {"single", "runs", "history", "far"};
    m->method = methods[b->method];
    m->ratio = compare_ratio(b->log, b->lo, b->hi);
    if (b->method != BETWEEN_NONE) {
        m->gate = compare_ratio(b->log, b->gate_lo, b->gate_hi);
        m->confidence = known_f64(r->level);
        m->gate_confidence = known_f64(1 - 2 * r->alpha);
    }
    m->verdict = b->verdict;
    m->min_effect = known_f64(r->min_effect);
    m->mde = known_if_finite(b->mde);
    m->p_value = known_if_finite(b->p_worse);
    m->sd_launch = known_if_finite(b->sd);
    if (b->needed) m->needed = known_u64(b->needed);
    explain_unknown(c, m, b, again);
}

/* Within-run intervals are shown as evidence and never judge: they were wrong in 28 to 39 of 100 comparisons. */
static void add_evidence(const struct judging_case *k, struct comparison_metric *m,
                         const struct compare_values *a, const struct compare_values *b, size_t past)
{
    struct arena *arena = &k->c->arena;
    run_map_int(arena, &m->evidence, "runs_base", (int64_t)a->n);
    run_map_int(arena, &m->evidence, "runs_new", (int64_t)b->n);
    if (a->taken != a->n || b->taken != b->n) {
        run_map_int(arena, &m->evidence, "launches_base", (int64_t)a->taken);
        run_map_int(arena, &m->evidence, "launches_new", (int64_t)b->taken);
    }
    run_map_int(arena, &m->evidence, "history_runs", (int64_t)past);
    struct run_estimate within = estimate_ratio(m->new_, m->base);
    if (!within.known) return;
    run_map_real(arena, &m->evidence, "within_runs_lo", within.lo.v);
    run_map_real(arena, &m->evidence, "within_runs_hi", within.hi.v);
}

struct judged {
    const struct measure *m;
    const char *role;
    struct between_rule rule;
};

/* PAST_MOST of them have room in out->y. */
static tare_status take_past(const struct judging_case *k, const struct measure *m,
                             struct compare_values *out, tare_error *err)
{
    struct compare_moment at[PAST_MOST];
    struct compare_series past = {at, 0, PAST_MOST};
    const struct compare_past *p = &k->in->past;
    tare_status s = p->values ? p->values(p->ctx, k->to->name, m->name, &past, err) : TARE_OK;
    if (s == TARE_OK) compare_cluster(out, at, past.n, k->in->apart_ms);
    return s;
}

static tare_status take_both(const struct judging_case *k, const struct measure *m, struct compare_values *a,
                             struct compare_values *b, tare_error *err)
{
    tare_status s = take_values(&k->base, m, k->in->apart_ms, a, err);
    return s == TARE_OK ? take_values(&k->new_, m, k->in->apart_ms, b, err) : s;
}

/* ln of the fastest run of a side; NAN where a run of it has too few for a fastest. */
static double fastest_of(const struct runs_of *side)
{
    double least = NAN;
    for (size_t i = 0; i < side->n; i++) {
        const struct run_case *c = side->at[i];
        if (!c) continue;
        if (!c->latency_ns.min.known || !c->samples.known || c->samples.v < FASTEST_OF) return NAN;
        least = fmin(least, (double)c->latency_ns.min.v); /* fmin takes no NAN */
    }
    return log(least);
}

/* ln of how many times the mean run is as long as the fastest one: what a rate could be more, had nothing delayed any
 * run. NAN: not known. */
static tare_status delayed_by(const struct judging_case *k, const struct runs_of *side, double *out,
                              tare_error *err)
{
    struct compare_values mean = {0};
    tare_status s = take_values(side, measure_find("latency.mean"), k->in->apart_ms, &mean, err);
    *out = s == TARE_OK && mean.n ? fmax(stats_mean(mean.y, mean.n) - fastest_of(side), 0) : NAN;
    if (isnan(fastest_of(side))) *out = NAN; /* fmax takes no NAN */
    mem_free(mean.y);
    return s;
}

/* What the ratio is at least, or at most, by the fastest runs. A document may say that its fastest run took longer than
 * the middle one: then the middle is the fastest that is known. */
static tare_status put_bound(const struct judging_case *k, const struct judged *j, struct between_sides *in,
                             tare_error *err)
{
    in->bound = 0;
    if (!(j->rule.plausible_bound > 0)) return TARE_OK;
    double base = stats_mean(in->base.x, in->base.n), new_ = stats_mean(in->new_.x, in->new_.n), least, most;
    if (j->m->kind == MEASURE_RATE) {
        double more_base = NAN, more_new = NAN;
        tare_status s = delayed_by(k, &k->base, &more_base, err);
        if (s == TARE_OK) s = delayed_by(k, &k->new_, &more_new, err);
        if (s < 0) return s;
        least = new_ - (base + more_base);
        most = new_ + more_new - base;
    } else {
        double fastest_base = fastest_of(&k->base), fastest_new = fastest_of(&k->new_);
        least = (fastest_new > new_ ? new_ : fastest_new) - base; /* NAN stays */
        most = new_ - (fastest_base > base ? base : fastest_base);
    }
    if (isfinite(least) && least > 0)
        in->bound = least;
    else if (isfinite(most) && most < 0)
        in->bound = most;
    return TARE_OK;
}

/* "even the fastest run of new took 9.5 times that of base; no plausible noise makes it 3.8" */
static const char *bound_why(const struct judging_case *k, const struct judged *j, double bound)
{
    const char *slow = bound > 0 ? "new" : "base", *fast = bound > 0 ? "base" : "new";
    struct shown times = show_number(exp(fabs(bound))), far = show_number(between_far_bound(&j->rule));
    if (j->m->kind == MEASURE_RATE)
        return arena_printf(
            &k->c->arena,
            "even at the pace of its fastest run %s does 1/%s of %s; no plausible noise makes it 1/%s", fast,
            times.s, slow, far.s);
    return arena_printf(&k->c->arena,
                        "even the fastest run of %s took %s times that of %s; no plausible noise makes it %s",
                        slow, times.s, fast, far.s);
}

static const char *far_why(const struct judging_case *k, const struct judged *j,
                           const struct between_result *b, const struct between_sides *in)
{
    const char *times = b->log > 0 ? "much" : "little";
    if (!b->by_bound)
        return arena_printf(&k->c->arena, "%zu and %zu runs, but no plausible noise makes it %s times as %s",
                            in->base.n, in->new_.n, show_number(between_far(&j->rule)).s, times);
    return bound_why(k, j, in->bound);
}

/* One metric of one case: both sides and the history to a verdict, and to why there is none. */
static tare_status judge_values(const struct judging_case *k, const struct judged *j,
                                const struct compare_values *a, const struct compare_values *b,
                                tare_error *err)
{
    double y[PAST_MOST];
    struct compare_values past = {.y = y};
    tare_status s = take_past(k, j->m, &past, err);
    if (s < 0) return s;
    struct between_sides sides = {{a->y, a->n}, {b->y, b->n}, {y, past.n}, j->m->more_is_better, 0};
    struct between_result found;
    s = put_bound(k, j, &sides, err);
    if (s == TARE_OK) s = between_runs(&sides, &j->rule, &found, err);
    struct comparison_metric *m = s == TARE_OK ? compare_add_metric(k->c, k->to, j->m, j->role) : NULL;
    if (!m) return s < 0 ? s : compare_no_memory(err);
    if (j->m->kind == MEASURE_RATE && k->new_.at[0] && k->new_.at[0]->throughput.unit)
        m->unit = k->new_.at[0]->throughput.unit;
    m->samples = known_u64(a->n < b->n ? a->n : b->n);
    m->base = middle_of(&k->base, j->m, a);
    m->new_ = middle_of(&k->new_, j->m, b);
    compare_fill_between(k->c, m, &found, &j->rule, true);
    if (found.method == BETWEEN_NONE) m->why = unverified_why(k->c, a, b, &past);
    if (found.method == BETWEEN_FAR) m->why = far_why(k, j, &found, &sides);
    add_evidence(k, m, a, b, past.n);
    return TARE_OK;
}

static bool is_brief(const struct runs_of *side)
{
    for (size_t i = 0; i < side->n; i++)
        if (side->at[i] && plausible_is_brief(side->at[i])) return true;
    return false;
}

static double plausible_of(const struct judging_case *k, const struct measure *m)
{
    return plausible_sd(m, k->to->interference.contended.v, is_brief(&k->base) || is_brief(&k->new_));
}

/* How far apart two runs may lie where no spread between runs is known, in their middles and in their fastest. */
static void set_plausible(const struct judging_case *k, struct judged *j)
{
    j->rule.plausible = plausible_of(k, j->m);
    j->rule.plausible_bound = plausible_fastest_sd(j->m, is_brief(&k->base) || is_brief(&k->new_));
}

/* ---- a metric that one side does not have ---- */

/* Why the case has no such number, as its document says it; of the first run without it. */
static const char *absent_why(const struct runs_of *side, const struct measure *m)
{
    struct run_estimate e;
    for (size_t i = 0; i < side->n; i++) {
        const struct run_case *c = side->at[i];
        if (!c || measure_of(c, m, &e)) continue;
        const char *why = c->failure && !c->samples.known ? c->failure : run_reason(&c->unknown, m->path);
        if (why) return why;
    }
    return "not measured";
}

/* Did the case fail in all of these runs? */
static bool has_failed(const struct runs_of *side)
{
    bool any = false;
    for (size_t i = 0; i < side->n; i++) {
        const struct run_case *c = side->at[i];
        if (c && (!c->failure || c->samples.known)) return false;
        any = any || c;
    }
    return any;
}

/* What all of these runs took at least, ln: of arrivals that were not served only that is known. False: not even it. */
static bool least_of(const struct runs_of *side, const struct measure *m, double *log_ns)
{
    double least = INFINITY, ns;
    for (size_t i = 0; i < side->n; i++) {
        struct run_estimate e;
        if (!side->at[i]) continue;
        if (measure_of(side->at[i], m, &e))
            ns = e.value;
        else if (!measure_exceeds(side->at[i], m, &ns))
            return false;
        least = fmin(least, ns);
    }
    *log_ns = log(least);
    return isfinite(least) && least > 0;
}

/* Does a number that takes the place of an unknown one leave no doubt that it got worse? What is at least known of it
 * counts, and the fastest runs. NULL: no. */
static tare_status witness(const struct judging_case *k, const struct judged *w, const char **why,
                           tare_error *err)
{
    struct compare_values a = {0}, b = {0};
    double then, log_ratio = 0, far = between_far(&w->rule);
    tare_status s = take_both(k, w->m, &a, &b, err);
    struct between_sides sides = {.base = {a.y, a.n}, .new_ = {b.y, b.n}};
    if (s == TARE_OK && a.n && least_of(&k->new_, w->m, &then)) log_ratio = then - stats_mean(a.y, a.n);
    if (s == TARE_OK && a.n && b.n) s = put_bound(k, w, &sides, err);
    if (log_ratio > log(far))
        *why =
            arena_printf(&k->c->arena, "%s is at least %s times as much, and no plausible noise makes it %s",
                         w->m->name, show_number(exp(log_ratio)).s, show_number(far).s);
    else if (sides.bound > log(between_far_bound(&w->rule)))
        *why = bound_why(k, w, sides.bound);
    mem_free(a.y);
    mem_free(b.y);
    return s;
}

/* Where a percentile is not known, what it is at least, or median or mean, far beyond all plausible noise is the
 * verdict: the tail of runs that take ten times as long is not where it was. NULL: they tell nothing. */
static tare_status stand_in(const struct judging_case *k, const struct judged *j, const char **why,
                            tare_error *err)
{
    const char *const witnesses[] = {j->m->name, "latency.p50", "latency.mean"};
    tare_status s = TARE_OK;
    *why = NULL;
    if (strncmp(j->m->name, "latency.", 8) != 0) return TARE_OK;
    for (size_t i = 0; s == TARE_OK && !*why && i < 3; i++) {
        struct judged w = *j;
        w.m = measure_find(witnesses[i]);
        set_plausible(k, &w);
        s = witness(k, &w, why, err);
    }
    return s;
}

/* A gate that cannot be read never passes in silence: it fails where what is known leaves no doubt, and is undecided
 * else. Gates that nobody asked for by name are told of only. */
static tare_status judge_absent(const struct judging_case *k, const struct judged *j, bool in_base,
                                bool in_new, tare_error *err)
{
    const char *side = in_base ? "new" : "base", *worse = NULL;
    if (!in_base && !in_new) side = "either side";
    bool failed = in_base && has_failed(&k->new_), named = k->in->n_limits > 0;
    const char *why = absent_why(in_base ? &k->new_ : &k->base, j->m);
    tare_status s = failed ? TARE_OK : stand_in(k, j, &worse, err);
    if (s < 0) return s;
    comparison_note(k->c, k->to, "metric.absent", named ? "warn" : "info", "%s is not known of %s: %s",
                    j->m->name, side, why);
    if (!named && !failed && !worse) return TARE_OK;
    struct comparison_metric *m = compare_add_metric(k->c, k->to, j->m, j->role);
    if (!m) return compare_no_memory(err);
    const char *none = arena_printf(&k->c->arena, "not known of %s", side);
    static const char *const unknown[] = {
        "base",   "new",        "ratio",           "gate",      "p_value",   "mde",
        "needed", "confidence", "gate_confidence", "sd_launch", "sd_sample", "samples",
        "method"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        run_map_text(&k->c->arena, &m->unknown, unknown[i], none);
    m->min_effect = known_f64(j->rule.min_effect);
    m->verdict = failed || worse ? "regressed" : "unverified";
    m->why = arena_printf(&k->c->arena, "%s: %s%s%s", none, why, worse ? "; but " : "", worse ? worse : "");
    if (failed) m->why = arena_printf(&k->c->arena, "the case failed: %s", why);
    return TARE_OK;
}

static tare_status judge_metric(const struct judging_case *k, const struct judged *j, tare_error *err)
{
    struct compare_values a = {0}, b = {0};
    tare_status s = take_both(k, j->m, &a, &b, err);
    if (s == TARE_OK && a.n && b.n)
        s = judge_values(k, j, &a, &b, err);
    else if (s == TARE_OK && strcmp(j->role, "gate") == 0)
        s = judge_absent(k, j, a.n > 0, b.n > 0, err);
    mem_free(a.y);
    mem_free(b.y);
    return s;
}

/* Whether the metric is compared at all, its role, and beyond which effect it fails. */
static bool choose_metric(const struct judging_case *k, const struct measure *m, struct judged *out)
{
    const struct compare_saved *in = k->in;
    const struct compared *s = find_compared(m->name);
    *out = (struct judged){m, s && s->gate && !in->n_limits ? "gate" : "advisory", in->rule};
    set_plausible(k, out);
    for (size_t i = 0; i < in->n_limits; i++) {
        if (strcmp(in->limits[i].metric, m->name) != 0) continue;
        out->role = "gate";
        if (!isnan(in->limits[i].share)) out->rule.min_effect = in->limits[i].share;
        if (out->rule.detect < out->rule.min_effect)
            out->rule.detect = out->rule.min_effect; /* within the limit */
        return true;
    }
    return s != NULL;
}

/* ---- a case ---- */

static void note_runs(const struct judging_case *k)
{
    const struct comparison_metric *first = k->to->metrics.n ? k->to->metrics.at[0] : NULL;
    if (!first || !first->sd_launch.known) return;
    bool runs = strcmp(first->method, "runs") == 0;
    comparison_note(k->c, k->to, "runs", "info", "%s varies by %s from run to run, over %s", first->metric,
                    show_percent(first->sd_launch.v).s, runs ? "both sides" : "the history of this machine");
}

/* The worst of all runs decides: one that was interrupted spoils the comparison as much as many. */
static void note_interference(const struct judging_case *k)
{
    double interrupted = 0, steal = 0;
    bool known = false;
    const struct runs_of *const sides[] = {&k->base, &k->new_};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s]->n; i++) {
            double here, stolen;
            if (!sides[s]->at[i] || !plausible_disturbed(sides[s]->at[i], &here, &stolen)) continue;
            known = true;
            interrupted = fmax(interrupted, here);
            steal = fmax(steal, stolen);
        }
    if (!known) return;
    k->to->interference =
        (struct comparison_evidence){.known = true,
                                     .contended = known_bool(plausible_is_busy(interrupted, steal)),
                                     .interrupted = known_f64(fmin(interrupted, 1)),
                                     .steal = known_f64(steal)};
    run_map_text(&k->c->arena, &k->to->unknown, "interference.cpu_share", "not in saved runs");
    run_map_text(&k->c->arena, &k->to->unknown, "interference.pressure", "not in saved runs");
    if (!k->to->interference.contended.v) return;
    comparison_note(k->c, k->to, "machine.busy", "warn",
                    "the machine was busy with other work while a run was made (%s a run, %s "
                    "stolen): trust cpu.time more than latency",
                    show_count(interrupted, "interruption").s, show_percent(steal).s);
}

static tare_status compare_case(struct judging_case *k, const struct run_case *named, tare_error *err)
{
    tare_status s = TARE_OK;
    k->to = comparison_add_case(k->c, named->name);
    if (!k->to) return compare_no_memory(err);
    k->to->params = named->params;
    struct judged j;
    note_interference(k);
    for (size_t i = 0; s == TARE_OK && i < N_COMPARED; i++)
        if (choose_metric(k, measure_find(compared[i].metric), &j)) s = judge_metric(k, &j, err);
    for (const struct measure *m = measure_table; s == TARE_OK && m->name; m++)
        if (!find_compared(m->name) && choose_metric(k, m, &j)) s = judge_metric(k, &j, err);
    run_map_text(&k->c->arena, &k->to->unknown, "samples", "in the runs' own documents");
    if (s < 0) return s;
    note_runs(k);
    return TARE_OK;
}

/* ---- matching ---- */

static bool same_params(const struct run_map *a, const struct run_map *b)
{
    if (a->n != b->n || a->n == 0) return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct run_value *v = run_map_get(b, a->at[i].key);
        if (!v || !values_equal(&a->at[i].value, v)) return false;
    }
    return true;
}

/* The case of this name, else the one with the same parameters, unless `own` (the run that `like` is of) has one of
 * that one's name: then it was not renamed. */
static const struct run_case *match(const struct run *run, const struct run_case *like, const struct run *own)
{
    const struct run_case *found = case_named(run, like->name);
    for (size_t i = 0; !found && i < run->cases.n; i++)
        if (same_params(&run->cases.at[i]->params, &like->params) && !case_named(own, run->cases.at[i]->name))
            return run->cases.at[i];
    return found;
}

static size_t match_all(struct runs_of *side, const struct run_case *like, const struct run *own)
{
    size_t n = 0;
    for (size_t i = 0; i < side->n; i++) {
        side->at[i] = match(side->runs[i], like, own);
        n += side->at[i] != NULL;
    }
    return n;
}

static const struct run_case *first_of(const struct runs_of *side)
{
    for (size_t i = 0; i < side->n; i++)
        if (side->at[i]) return side->at[i];
    return NULL;
}

/* Calls `fn` for each case of a side once, whichever of its runs has it. */
static tare_status each_case(struct judging_case *k, const struct runs_of *side,
                             tare_status (*fn)(struct judging_case *, const struct run_case *, tare_error *),
                             tare_error *err)
{
    for (size_t r = 0; r < side->n; r++)
        for (size_t i = 0; i < side->runs[r]->cases.n; i++) {
            const struct run_case *c = side->runs[r]->cases.at[i];
            bool seen = false;
            k->own = side->runs[r];
            for (size_t q = 0; q < r && !seen; q++) seen = match(side->runs[q], c, k->own) != NULL;
            tare_status s = seen ? TARE_OK : fn(k, c, err);
            if (s < 0) return s;
        }
    return TARE_OK;
}

static tare_status note_environment(struct judging_case *k, const struct run_case *c, tare_error *err)
{
    (void)err;
    if (match_all(&k->base, c, k->own) && match_all(&k->new_, c, k->own))
        environment_compare_case(k->c, first_of(&k->base), first_of(&k->new_));
    return TARE_OK;
}

static tare_status judge_new(struct judging_case *k, const struct run_case *c, tare_error *err)
{
    match_all(&k->new_, c, k->own);
    if (match_all(&k->base, c, k->own)) return compare_case(k, c, err);
    comparison_add_unmatched(k->c, "new", c->name);
    return TARE_OK;
}

static tare_status note_base_only(struct judging_case *k, const struct run_case *c, tare_error *err)
{
    (void)err;
    if (!match_all(&k->new_, c, k->own)) comparison_add_unmatched(k->c, "base", c->name);
    return TARE_OK;
}

/* ---- the whole ---- */

static void describe_side(struct comparison *c, struct comparison_side *to, const struct run *const *runs,
                          size_t n)
{
    const struct run *r = runs[0];
    if (!to->name) to->name = r->subject.name;
    to->type = "run";
    to->sha256 = r->subject.sha256;
    to->runtime = r->subject.runtime;
    to->run_id = r->id;
    run_map_int(&c->arena, &to->options, "runs", (int64_t)n);
}

static tare_status check_side(const char *side, const struct run *const *runs, size_t n, tare_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (runs[i]->cases.n == 0)
            return error_set(err, TARE_INVALID, "%s: run %s of %s has no cases: nothing was measured", side,
                             runs[i]->id, runs[i]->subject.name);
        if (strcmp(runs[i]->kind, "inspect") == 0)
            return error_set(err, TARE_INVALID,
                             "%s: run %s is of kind inspect: it has no measured times to compare", side,
                             runs[i]->id);
        for (size_t k = 0; k < i; k++)
            if (strcmp(runs[i]->id, runs[k]->id) == 0)
                return error_set(err, TARE_INVALID, "%s: run %s is there twice; a copy is no second run",
                                 side, runs[i]->id);
    }
    return TARE_OK;
}

/* A search measures configurations as a bench does. */
static const char *kind_of_measuring(const struct run *r)
{
    return strcmp(r->kind, "tune") == 0 ? "bench" : r->kind;
}

static tare_status check_sides(const struct compare_saved *in, tare_error *err)
{
    tare_status s = check_side("base", in->base, in->n_base, err);
    if (s == TARE_OK) s = check_side("new", in->new_, in->n_new, err);
    if (s < 0) return s;
    for (size_t i = 0; i < in->n_base + in->n_new; i++) {
        const struct run *r = i < in->n_base ? in->base[i] : in->new_[i - in->n_base];
        if (strcmp(kind_of_measuring(in->base[0]), kind_of_measuring(r)) != 0)
            return error_set(err, TARE_INVALID,
                             "runs of different kinds: of tare %s and of tare %s; compare two of one kind",
                             in->base[0]->kind, r->kind);
    }
    return TARE_OK;
}

/* The command that is proposed names both files only where they are two models: of other subjects the document does not
 * hold what --ab would have to run, and one file with itself tells nothing. */
static void note_whole(struct comparison *c, const struct compare_saved *in)
{
    const struct run *a = in->base[0], *b = in->new_[0];
    if (strcmp(a->id, b->id) == 0)
        comparison_note(c, NULL, "runs.same", "warn", "both sides are the same run %s", a->id);
    if (strcmp(a->subject.name, b->subject.name) != 0)
        comparison_note(c, NULL, "subjects.two", "info",
                        "two subjects, %s and %s: each is a series of its own in the history; --name at both "
                        "benches makes them one",
                        a->subject.name, b->subject.name);
    if (environment_critical(c))
        comparison_note(
            c, NULL, "forced", "warn",
            "surroundings differ so that the numbers do not compare; --force compared them all the same");
    if (!c->verdict || strcmp(c->verdict, "unverified") != 0) return;
    bool models = a->subject.path && b->subject.path && strcmp(a->subject.type, "onnx") == 0 &&
                  strcmp(b->subject.type, "onnx") == 0 && strcmp(a->subject.path, b->subject.path) != 0;
    comparison_note(
        c, NULL, "unverified", "warn",
        "two saved runs cannot tell a change from noise of the machine; interleaved runs can: tare compare "
        "--ab %s %s",
        models ? a->subject.path : "<base>", models ? b->subject.path : "<new>");
}

static void describe_comparison(struct comparison *c, const struct compare_saved *in)
{
    struct arena *a = &c->arena;
    c->host = in->new_[0]->host;
    describe_side(c, &c->base, in->base, in->n_base);
    describe_side(c, &c->new_, in->new_, in->n_new);
    run_map_real(a, &c->config, "min_effect", in->rule.min_effect);
    run_map_real(a, &c->config, "detect", in->rule.detect);
    run_map_real(a, &c->config, "alpha", in->rule.alpha);
    run_map_real(a, &c->config, "apart_s", (double)in->apart_ms / 1000);
    for (size_t i = 0; i < in->n_limits; i++)
        run_map_textf(a, &c->config, in->limits[i].metric, ">%.6g%%",
                      100 * (isnan(in->limits[i].share) ? in->rule.min_effect : in->limits[i].share));
    environment_compare(c, (struct environment_runs){in->base, in->n_base},
                        (struct environment_runs){in->new_, in->n_new});
}

static tare_status compare_cases(struct judging_case *k, tare_error *err)
{
    tare_status s = each_case(k, &k->new_, note_environment, err);
    const struct comparison_difference *d = k->in->force ? NULL : environment_critical(k->c);
    if (s == TARE_OK && d)
        return error_set(err, TARE_DENIED,
                         "results are not comparable: %s: %s, then %s (--force compares all the same)",
                         d->what, d->base ? d->base : "unknown", d->new_ ? d->new_ : "unknown");
    if (s == TARE_OK) s = each_case(k, &k->new_, judge_new, err);
    if (s == TARE_OK) s = each_case(k, &k->base, note_base_only, err);
    if (s == TARE_OK && k->c->cases.n == 0)
        return error_set(err, TARE_INVALID, "no case in common: base has %s, new has %s",
                         k->in->base[0]->cases.at[0]->name, k->in->new_[0]->cases.at[0]->name);
    if (s == TARE_OK) s = compare_finish(k->c, k->in->rule.alpha, err);
    return s;
}

tare_status compare_saved(struct comparison *c, const struct compare_saved *in, tare_error *err)
{
    struct judging_case k = {
        .c = c, .in = in, .base = {in->base, NULL, in->n_base}, .new_ = {in->new_, NULL, in->n_new}};
    tare_status s = check_sides(in, err);
    if (s < 0) return s;
    describe_comparison(c, in);
    k.base.at = mem_new(in->n_base, sizeof *k.base.at);
    k.new_.at = mem_new(in->n_new, sizeof *k.new_.at);
    s = k.base.at && k.new_.at ? compare_cases(&k, err) : compare_no_memory(err);
    mem_free(k.base.at);
    mem_free(k.new_.at);
    if (s < 0) return s;
    note_whole(c, in);
    return c->arena.failed ? compare_no_memory(err) : TARE_OK;
}

/* ---- traces ---- */

void compare_tell_traces(struct comparison *c, const struct compare_told *t)
{
    struct comparison_side *to[] = {&c->base, &c->new_};
    for (int i = 0; i < 2; i++) {
        to[i]->name = to[i]->path = arena_str(&c->arena, t->path[i]);
        to[i]->type = "trace";
        if (t->n[i] > 1)
            to[i]->name = arena_printf(&c->arena, "%s and %zu more", to[i]->path, t->n[i] - 1);
    }
    run_map_real(&c->arena, &c->config, "min_effect", t->min_effect);
    run_map_real(&c->arena, &c->config, "alpha", t->alpha);
    for (size_t i = 0; i < t->n_limits; i++)
        run_map_textf(&c->arena, &c->config, t->limits[i].metric, ">%.6g%%",
                      100 * (isnan(t->limits[i].share) ? t->min_effect : t->limits[i].share));
    struct run like = {.arena = c->arena, .host = c->host};
    run_explain_host(&like, RUN_BY_IMPORT); /* a trace does not tell the machine */
    c->arena = like.arena;
    c->host = like.host;
}
