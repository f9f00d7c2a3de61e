/* SPDX-License-Identifier: MIT
 * spread.c - see spread.h.
 * A percentile q of n samples is the sample of rank ceil(n q) (nearest rank). Its interval is of order statistics with
 * binomial ranks for n_eff samples (autocorrelation taken off); that of the median also not narrower than how batch
 * medians wander says. A percentile above the median is null when even n independent samples could not bound it; an
 * end that n_eff samples cannot bound is null. A run that failed is longer than all that were served, by definition. So
 * is one that was due and still waited, for all that is known; but where so many of these may have been shorter than a
 * percentile that it would be another one, and where it falls on a run of either kind, it is null, and only what it
 * exceeds is known. */
#include "bench/spread.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/record.h"
#include "core/fmt.h"
#include "core/hist.h"

struct work {
    const struct spread *s;
    size_t n;                    /* samples and waits */
    double *time_order, *sorted; /* a wait as long as it was, what failed as the longest that was served */
    double *upper;               /* sorted; a wait is infinite */
    double n_eff;
    double stated; /* the greatest percentile so far: no later one is below it */
};

uint64_t summary_samples_needed(double q)
{
    double side =
        (1 - BENCH_CONFIDENCE) / 2; /* all n are below the quantile with chance q^n: that must be <= side */
    return (uint64_t)ceil(log(side) / log(q) - 1e-9);
}

static const char *path_of(const struct work *w, const char *key)
{
    const char *path = arena_printf(&w->s->run->arena, "%s.%s", w->s->path, key);
    return path ? path : w->s->path;
}

static uint64_t whole_ns(double ns)
{
    return ns <= 0 ? 0 : (uint64_t)(ns + 0.5);
}

static double nearest_rank(const double *sorted, size_t n, double q)
{
    double rank = ceil((double)n * q - 1e-9);
    size_t at = rank < 1 ? 1 : (size_t)rank;
    return sorted[(at > n ? n : at) - 1];
}

/* Of the runs that have no time. */
static const char *what_became(const struct spread *s)
{
    size_t failed = 0;
    for (size_t i = 0; i < s->n_waits; i++) failed += s->waits[i].failed;
    if (failed == s->n_waits) return "failed";
    return failed ? "that were due failed or were not served" : "that were due were not served";
}

/* "p95" is not known, but that it is above `ns`. */
static void put_bound(struct work *w, const char *key, double ns)
{
    const struct spread *s = w->s;
    run_map_int(&s->run->arena, &s->into->at_least, key, (int64_t)whole_ns(ns));
    run_unknown(s->run, &s->c->unknown, path_of(w, key), "more than %s: %zu of %zu runs %s", show_time(ns).s,
                s->n_waits, w->n, what_became(s));
}

/* Of too few samples only the lower end of the interval is known. */
static void put_lower_end(struct work *w, const char *key, double lo, uint64_t needed)
{
    const struct spread *s = w->s;
    if (lo > 0 && isfinite(lo)) run_map_int(&s->run->arena, &s->into->at_least, key, (int64_t)whole_ns(lo));
    run_unknown(s->run, &s->c->unknown, path_of(w, key), "needs %llu samples, here %zu",
                (unsigned long long)needed, w->n);
}

/* Into the document, never narrower than the value itself; an open end stays null with a reason. */
static void put_time(struct work *w, struct run_estimate *out, const char *key, struct interval i)
{
    const struct spread *s = w->s;
    char end[16];
    out->known = true;
    out->value = (double)whole_ns(i.value);
    if (i.lo > -INFINITY) out->lo = known_f64((double)whole_ns(fmin(i.lo, i.value)));
    if (i.hi < INFINITY) out->hi = known_f64((double)whole_ns(fmax(i.hi, i.value)));
    const char *const name[] = {"lo", "hi"};
    const bool known[] = {out->lo.known, out->hi.known};
    for (int k = 0; k < 2; k++) {
        if (known[k]) continue;
        snprintf(end, sizeof end, "%s.%s", key, name[k]);
        run_unknown(s->run, &s->c->unknown, path_of(w, end),
                    "%zu samples, worth %.0f independent ones, do not bound it", w->n, floor(w->n_eff));
    }
}

static const struct percentile {
    const char *key;
    size_t offset;
    double q;
} percentiles[] = {
    {"p90", offsetof(struct run_latency, p90), 0.90},
    {"p95", offsetof(struct run_latency, p95), 0.95},
    {"p99", offsetof(struct run_latency, p99), 0.99},
    {"p999", offsetof(struct run_latency, p999), 0.999},
};

/* What still waited, for less than `value`, may have become a shorter run or a longer one. Are there fewer such than
 * chance moves the rank of a percentile by (1.96 binomial sd), or is the percentile the same, within NEGLIGIBLE, had
 * they ended at once? */
static bool waits_hardly_matter(const struct work *w, double q, double value)
{
    enum { NEGLIGIBLE = 20 }; /* one in so many */
    double least = nearest_rank(w->sorted, w->n, q), unsure = 0;
    if (value - least <= least / NEGLIGIBLE) return true;
    for (size_t i = 0; i < w->s->n_waits; i++)
        unsure += !w->s->waits[i].failed && (double)w->s->waits[i].ns < value;
    return unsure <= 1.96 * sqrt((double)w->n * q * (1 - q));
}

/* i: the interval with waits as long as they were. */
static void put_percentile(struct work *w, const struct percentile *p, struct interval i)
{
    struct interval upper = stats_quantile_interval_sorted(w->upper, w->n, w->n_eff, p->q, BENCH_CONFIDENCE);
    i.value = nearest_rank(w->upper, w->n, p->q);
    i.hi = fmax(i.hi, upper.hi);
    if (isinf(i.value) || !waits_hardly_matter(w, p->q, i.value)) {
        put_bound(w, p->key, fmax(nearest_rank(w->sorted, w->n, p->q), w->stated));
        return;
    }
    w->stated = fmax(w->stated, i.value);
    put_time(w, (struct run_estimate *)((char *)w->s->into + p->offset), p->key, i);
}

/* The median's interval comes from the samples in the order of time, as neighbours depend on each other. A
 * tail percentile is told only with so many samples that its interval is bounded above: a p99 of 50 runs
 * is just the slowest one. */
static tare_status put_percentiles(struct work *w, tare_error *err)
{
    static const struct percentile median = {"p50", offsetof(struct run_latency, p50), 0.5};
    size_t n = w->n;
    struct interval i;
    tare_status s = stats_median_interval(w->time_order, n, BENCH_CONFIDENCE, &i, err);
    if (s < 0) return s;
    put_percentile(w, &median, i);
    for (size_t k = 0; k < sizeof percentiles / sizeof *percentiles; k++) {
        const struct percentile *p = &percentiles[k];
        uint64_t needed = summary_samples_needed(p->q);
        i = stats_quantile_interval_sorted(w->sorted, n, w->n_eff, p->q, BENCH_CONFIDENCE);
        if (n < needed)
            put_lower_end(w, p->key, i.lo, needed);
        else
            put_percentile(w, p, i);
    }
    return TARE_OK;
}

/* Where runs failed, or were due and not served, mean and maximum are bounds only. */
static tare_status put_all(struct work *w, tare_error *err)
{
    struct run_latency *l = w->s->into;
    size_t n = w->n;
    double mean = stats_mean(w->time_order, n), longest = w->sorted[n - 1];
    l->known = true;
    l->min = known_u64(whole_ns(w->upper[0]));
    if (w->s->n_waits) {
        put_bound(w, "mean", mean);
        put_bound(w, "max", longest);
        run_unknown(w->s->run, &w->s->c->unknown, path_of(w, "stddev"), "runs %s", what_became(w->s));
        return put_percentiles(w, err);
    }
    l->mean = known_u64(whole_ns(mean));
    l->max = known_u64(whole_ns(longest));
    if (n > 1)
        l->stddev = known_u64(whole_ns(stats_stddev(w->time_order, n)));
    else
        run_unknown(w->s->run, &w->s->c->unknown, path_of(w, "stddev"), "one sample has no spread");
    return put_percentiles(w, err);
}

static tare_status put_histogram(const struct spread *s, tare_error *err)
{
    struct hist h = HIST_INIT;
    tare_status status = TARE_OK;
    for (size_t i = 0; status == TARE_OK && i < s->n; i++) status = hist_record(&h, s->ns[i], err);
    if (status == TARE_OK) run_set_histogram(s->run, &s->into->histogram, &h);
    hist_release(&h);
    return status;
}

static tare_status fill(struct work *w, tare_error *err)
{
    const struct spread *s = w->s;
    size_t waited = 0;
    uint64_t longest = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->ns[i] > longest) longest = s->ns[i];
    for (size_t i = 0; i < w->n; i++) {
        const struct wait *next = waited < s->n_waits ? &s->waits[waited] : NULL;
        bool waits = next && next->after <= i - waited;
        uint64_t ns = waits ? next->ns : s->ns[i - waited];
        w->sorted[i] = w->time_order[i] = (double)(waits && next->failed && ns < longest ? longest : ns);
        w->upper[i] = waits ? INFINITY : w->sorted[i];
        waited += waits;
    }
    stats_sort(w->sorted, w->n);
    stats_sort(w->upper, w->n);
    tare_status status = stats_n_eff(w->time_order, w->n, &w->n_eff, err);
    if (status < 0 || (status = put_all(w, err)) < 0) return status;
    return put_histogram(s, err);
}

tare_status spread_put(const struct spread *s, tare_error *err)
{
    size_t n = s->n + s->n_waits;
    double *room = mem_new(n, 3 * sizeof *room);
    struct work w = {s, n, room, room + n, room + 2 * n, 0, 0};
    tare_status status = room ? fill(&w, err) : error_nomem(err, "%zu samples", n);
    mem_free(room);
    return status;
}
