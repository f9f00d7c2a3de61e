/* SPDX-License-Identifier: MIT
 * rate_search.c - see rate_search.h. A short window flatters a service that is slightly overloaded, since its queue has
 * not grown yet, and a single burst spoils it: the search goes by short windows, its result by long ones. */
#include "analyze/judge/rate_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/stats.h"

const char *const rate_stage_words[] = {"double", "halve", "confirm", "done"};

enum {
    STEP_LEAST = -7 * RATE_STEPS_PER_DOUBLING, /* one request in two minutes */
    STEP_MOST = 20 * RATE_STEPS_PER_DOUBLING,  /* a million a second */
    CONFIRMS_MOST = 10,
    DOUBTS_MOST = 4, /* of one end: then it is left open */
};

double rate_of_step(int step)
{
    double exact = exp2((double)step / RATE_STEPS_PER_DOUBLING), unit = pow(10, floor(log10(exact)) - 2);
    return unit < 1 ? round(exact / unit) / round(1 / unit) : round(exact / unit) * unit;
}

int step_of_rate(double per_s)
{
    int step = (int)floor(RATE_STEPS_PER_DOUBLING * log2(fmax(per_s, 1e-3))) - 1;
    if (step < STEP_LEAST) return STEP_LEAST;
    if (step > STEP_MOST) return STEP_MOST;
    while (step < STEP_MOST && rate_of_step(step + 1) <= per_s * (1 + 1e-9)) step++;
    return step;
}

void rate_search_begin(struct rate_search *s, double per_s, double least)
{
    *s = (struct rate_search){.stage = RATE_DOUBLE, .least = step_of_rate(least)};
    s->at = step_of_rate(fmax(per_s, least));
}

/* ---- where to go ---- */

static void confirm_next(struct rate_search *s)
{
    s->stage = RATE_CONFIRM;
    bool low_open = !s->has_passed && s->has_kept && s->kept >= s->least && s->low_doubts < DOUBTS_MOST;
    bool high_sure = s->has_failed && s->failed_firmly && s->failed <= s->missed;
    bool high_open = !high_sure && s->has_missed && !s->limited && s->high_doubts < DOUBTS_MOST;
    if (s->confirms >= CONFIRMS_MOST || (!low_open && !high_open)) {
        s->stage = RATE_DONE;
    } else {
        s->at = low_open ? s->kept : s->missed;
    }
}

static void go_on(struct rate_search *s)
{
    const int doubling = RATE_STEPS_PER_DOUBLING;
    if (s->stage == RATE_CONFIRM || s->limited) {
        confirm_next(s);
    } else if (!s->has_missed && s->kept + doubling <= STEP_MOST) {
        s->at = s->kept + doubling;
    } else if (!s->has_kept && s->missed - doubling >= s->least) {
        s->at = s->missed - doubling;
    } else if (s->has_kept && s->has_missed && s->missed - s->kept > 1) {
        s->stage = RATE_HALVE;
        s->at = s->kept + (s->missed - s->kept) / 2;
    } else {
        confirm_next(s);
    }
}

/* ---- what was learned ---- */

static void seems_kept(struct rate_search *s, int step)
{
    if (!s->has_kept || step > s->kept) s->kept = step;
    s->has_kept = true;
    if (s->has_missed && s->missed <= step) s->missed = step + 1; /* it is not so low */
}

static void seems_missed(struct rate_search *s, int step)
{
    if (!s->has_missed || step < s->missed) s->missed = step;
    s->has_missed = true;
    if (s->has_kept && s->kept >= step) s->kept = step - 1;
}

/* What is sure at one rate takes back what was sure and contradicts it: the service changed meanwhile. */
static void sure(struct rate_search *s, bool kept)
{
    if (kept && s->stage == RATE_CONFIRM) {
        if (!s->has_passed || s->at > s->passed) s->passed = s->at;
        s->has_passed = true;
        if (s->has_failed && s->failed <= s->at) s->has_failed = false;
    } else if (!kept) {
        bool firmly = s->stage == RATE_CONFIRM, first = !s->has_failed || (firmly && !s->failed_firmly);
        if (first || (s->at < s->failed && firmly == s->failed_firmly)) s->failed = s->at;
        s->failed_firmly = s->failed_firmly || firmly;
        s->has_failed = true;
        if (s->has_passed && s->passed >= s->at) s->has_passed = false;
    }
}

/* An end that is not as it should be moves away, faster the longer it goes on: a lower rate is surer to pass, a higher
 * one to fail. */
static void confirm(struct rate_search *s, struct rate_told t)
{
    bool low = s->has_kept && s->at == s->kept, as_hoped = t.surely && t.kept == low;
    s->confirms++;
    if (as_hoped) return;
    if (low) {
        s->kept -= 1 + (int)s->low_doubts++ / 2;
        if (t.surely && (!s->has_missed || s->at < s->missed)) s->missed = s->at;
    } else if (t.surely) {
        s->missed++;
    } else {
        s->missed += 1 + (int)s->high_doubts++ / 2;
    }
}

void rate_search_tell(struct rate_search *s, struct rate_told t)
{
    if (t.surely) sure(s, t.kept);
    if (s->stage == RATE_CONFIRM) {
        confirm(s, t);
    } else if (t.kept) {
        seems_kept(s, s->at);
    } else {
        seems_missed(s, s->at);
    }
    go_on(s);
}

void rate_search_limit(struct rate_search *s)
{
    if (s->stage == RATE_CONFIRM && s->has_kept && s->at == s->kept) s->has_kept = false;
    s->limited = true;
    confirm_next(s);
}

unsigned rate_search_left(const struct rate_search *s)
{
    enum { HALVES = 4, CONFIRMS = 2 };
    if (s->stage == RATE_DONE) return 0;
    if (s->stage == RATE_CONFIRM) return s->has_passed ? 1 : 2;
    if (s->stage == RATE_DOUBLE) return 2 + HALVES + CONFIRMS;
    return (unsigned)ceil(log2(s->missed - s->kept)) + CONFIRMS;
}

const char *rate_search_why(const struct rate_search *s)
{
    if (s->has_passed && s->has_failed) return NULL;
    if (s->limited) return "this client was at its limit: it cannot offer more";
    if (!s->has_kept && !s->has_passed) return "no rate that was tried keeps the limits";
    if (!s->has_missed) return "the highest rate that can be offered keeps the limits";
    return "windows of this length did not decide it: measure longer (--budget), or ask a lower percentile";
}

/* ---- the limits ---- */

#define QUEUE_SPANS 20 /* times the limit: what overloads by 1 / 20 shows within it */
#define QUEUE_SPANS_ROUGH 4
#define BEYOND_ROUGH 1 /* requests that may take longer than the limit: enough to see the direction */
#define BEYOND_SURE 5

/* The share of requests that has to keep it: of a percentile, and of goodput. */
static double share_of(const struct target *t)
{
    const struct measure *m = measure_find(t->metric);
    if (m && m->quantile > 0) return m->quantile;
    const char *dot = strrchr(t->metric, '.');
    double digits = dot && dot[1] == 'p' ? strtod(dot + 2, NULL) : 0;
    if (digits > 0) return digits >= 100 ? digits / 1000 : digits / 100;
    return m && m->kind == MEASURE_PLAIN && t->value > 0 && t->value < 1 ? t->value : 0.5;
}

double rate_window_ns(const struct rate_limits *l, double per_s, bool sure_of_it)
{
    double ns = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct measure *m = measure_find(l->of[i].metric);
        double beyond = sure_of_it ? BEYOND_SURE : BEYOND_ROUGH;
        ns = fmax(ns, beyond / (1 - share_of(&l->of[i])) / per_s * 1e9);
        if (m && m->kind == MEASURE_TIME)
            ns = fmax(ns, l->of[i].value * (sure_of_it ? QUEUE_SPANS : QUEUE_SPANS_ROUGH));
    }
    return ns;
}

/* ---- judging one window ---- */

enum { BATCHES = 20, BATCH_LEAST = 20 };
#define RISK 0.05 /* of a wrong pass or a wrong fail */

/* How many times wider than independent requests make it is the share of those that took longer than `limit`: slow ones
 * come together, while a queue is long. By how batches in a row differ; at least 1. INFINITY: too few to tell. */
static double clustering(const uint64_t *ns, size_t n, double limit)
{
    size_t each = n / BATCHES;
    double count[BATCHES] = {0};
    if (each < BATCH_LEAST) return INFINITY;
    for (size_t i = 0; i < each * BATCHES; i++) count[i / each] += (double)ns[i] > limit;
    double mean = stats_mean(count, BATCHES), sd = stats_stddev(count, BATCHES);
    double alone = mean * (1 - mean / (double)each);
    return alone > 0 ? fmax(sd * sd / alone, 1) : 1;
}

/* A percentile whose single times are in the document. Near its highest rate a service has few, long queues, so that
 * all its times are worth few independent ones; but what counts is how often they pass the limit, and of that far more
 * is known. The clustering is that of the limit, or where few pass it of the percentile itself. */
static tare_status judge_times(const struct target *t, double q, const struct run_case *c,
                               struct rate_told *out, tare_error *err)
{
    const struct run_samples *s = &c->samples_raw;
    double *x = stats_doubles(s->ns, s->n, err), lost = 0, over = 0;
    if (!x) return TARE_NOMEM;
    stats_sort(x, s->n);
    double at = fmin(stats_quantile_sorted(x, s->n, q), t->value);
    mem_free(x);
    if (c->http.due.known && c->http.answered.known) lost = (double)(c->http.due.v - c->http.answered.v);
    for (size_t i = 0; i < s->n; i++) over += (double)s->ns[i] > t->value;
    double wider = clustering(s->ns, s->n, at), n = (double)s->n + lost, k = over + lost;
    double n_eff = fmax(floor(n / wider), 1), k_eff = k / wider, allowed = 1 - q;
    bool pass = stats_binomial_cdf(ceil(k_eff - 1e-9), n_eff, allowed) <= RISK;
    bool fail = stats_binomial_at_least(floor(k_eff + 1e-9), n_eff, allowed) <= RISK;
    *out = (struct rate_told){pass != fail, k <= allowed * n};
    return TARE_OK;
}

static tare_status judge_one(const struct target *t, const struct run_case *c, struct rate_told *out,
                             tare_error *err)
{
    const struct measure *m = measure_find(t->metric);
    struct run_target v = {0};
    if (m->quantile > 0 && c->samples_raw.known && c->samples_raw.n > 0)
        return judge_times(t, m->quantile, c, out, err);
    tare_status s = target_judge(t, c, &v, err);
    if (s < 0) return s;
    *out = (struct rate_told){v.verdict[0] != 'i', v.verdict[0] == 'p'};
    if (!out->surely) out->kept = target_seems_kept(t, c);
    return TARE_OK;
}

tare_status rate_judge(const struct rate_limits *l, const struct run_case *c, struct rate_told *out,
                       tare_error *err)
{
    struct rate_told all = {true, true};
    if (!c->samples.known && c->failure) { /* nothing was answered */
        *out = (struct rate_told){true, false};
        return TARE_OK;
    }
    for (size_t i = 0; i < l->n; i++) {
        struct rate_told one;
        tare_status s = judge_one(&l->of[i], c, &one, err);
        if (s < 0) return s;
        if (one.surely && !one.kept) {
            *out = one;
            return TARE_OK;
        }
        all.surely = all.surely && one.surely;
        all.kept = all.kept && one.kept;
    }
    if (c->open_loop.overloaded.known && c->open_loop.overloaded.v) all = (struct rate_told){false, false};
    *out = all;
    return TARE_OK;
}

#define LATE_SHARE 0.25 /* of the limit */

/* The percentile that a limit is on, of other times; NAN: not known. */
static double same_percentile(const struct target *t, const struct run_latency *of)
{
    const struct measure *m = measure_find(t->metric);
    const struct {
        double q;
        const struct run_estimate *at;
    } rows[] = {{0.5, &of->p50}, {0.9, &of->p90}, {0.95, &of->p95}, {0.99, &of->p99}, {0.999, &of->p999}};
    for (size_t i = 0; m && of->known && i < sizeof rows / sizeof *rows; i++)
        if (m->quantile == rows[i].q && rows[i].at->known) return rows[i].at->value;
    return NAN;
}

/* Counted from when it was sent, a request owes nothing to this client: what is too slow even so is the service's. */
bool rate_client_late(const struct rate_limits *l, const struct run_case *c)
{
    const struct run_latency *d = &c->http.delay_ns;
    double late = d->known && d->max.known ? (double)d->max.v : 0;
    bool is_late = false;
    if (d->known && d->p99.known) late = d->p99.value;
    for (size_t i = 0; i < l->n; i++) {
        const struct measure *m = measure_find(l->of[i].metric);
        if (same_percentile(&l->of[i], &c->http.service_ns) > l->of[i].value) return false;
        is_late = is_late || (m && m->kind == MEASURE_TIME && late > LATE_SHARE * l->of[i].value);
    }
    return is_late;
}
