/* SPDX-License-Identifier: MIT
 * summary.c - see summary.h. */
#include "bench/summary.h"

#include <math.h>
#include <stdio.h>

#include "bench/engine.h"

enum { BATCHES = 10 };

uint64_t summary_samples_needed(double q)
{
    double side =
        (1 - BENCH_CONFIDENCE) / 2; /* all n are below the quantile with chance q^n: that must be <= side */
    return (uint64_t)ceil(log(side) / log(q) - 1e-9);
}

struct work {
    struct run *run;
    struct run_case *c;
    const struct sampled *s;
    double *time_order, *sorted;
    double n_eff;
};

/* ---- latency ---- */

static uint64_t whole_ns(double ns)
{
    return ns <= 0 ? 0 : (uint64_t)(ns + 0.5);
}

static double nearest_rank(const struct work *w, double q)
{
    double rank = ceil((double)w->s->n * q - 1e-9);
    size_t at = rank < 1 ? 1 : (size_t)rank;
    return w->sorted[(at > w->s->n ? w->s->n : at) - 1];
}

/* Into the document, never narrower than the value itself; an open end stays null with a reason. */
static void put_time(struct work *w, struct run_estimate *out, const char *path, struct interval i)
{
    char end[64];
    out->known = true;
    out->value = (double)whole_ns(i.value);
    if (i.lo > -INFINITY) out->lo = known_f64((double)whole_ns(fmin(i.lo, i.value)));
    if (i.hi < INFINITY) out->hi = known_f64((double)whole_ns(fmax(i.hi, i.value)));
    const char *const name[] = {"lo", "hi"};
    const bool known[] = {out->lo.known, out->hi.known};
    for (int k = 0; k < 2; k++) {
        if (known[k]) continue;
        snprintf(end, sizeof end, "%s.%s", path, name[k]);
        run_unknown(w->run, &w->c->unknown, end, "%zu samples, worth %.0f independent ones, do not bound it",
                    w->s->n, floor(w->n_eff));
    }
}

static const struct percentile {
    const char *path;
    size_t offset;
    double q;
} percentiles[] = {
    {"latency_ns.p90", offsetof(struct run_latency, p90), 0.90},
    {"latency_ns.p95", offsetof(struct run_latency, p95), 0.95},
    {"latency_ns.p99", offsetof(struct run_latency, p99), 0.99},
    {"latency_ns.p999", offsetof(struct run_latency, p999), 0.999},
};

static tare_status put_percentiles(struct work *w, tare_error *err)
{
    struct run_latency *l = &w->c->latency_ns;
    size_t n = w->s->n;
    struct interval i;
    tare_status s = stats_median_interval(w->time_order, n, BENCH_CONFIDENCE, &i, err);
    if (s < 0) return s;
    i.value = nearest_rank(w, 0.5);
    put_time(w, &l->p50, "latency_ns.p50", i);
    for (size_t k = 0; k < sizeof percentiles / sizeof *percentiles; k++) {
        const struct percentile *p = &percentiles[k];
        uint64_t needed = summary_samples_needed(p->q);
        if (n < needed) {
            run_unknown(w->run, &w->c->unknown, p->path, "%zu samples are too few: %llu are needed", n,
                        (unsigned long long)needed);
            continue;
        }
        i = stats_quantile_interval_sorted(w->sorted, n, w->n_eff, p->q, BENCH_CONFIDENCE);
        i.value = nearest_rank(w, p->q);
        put_time(w, (struct run_estimate *)((char *)l + p->offset), p->path, i);
    }
    return TARE_OK;
}

static tare_status put_latency(struct work *w, tare_error *err)
{
    struct run_latency *l = &w->c->latency_ns;
    size_t n = w->s->n;
    l->known = true;
    l->mean = known_u64(whole_ns(stats_mean(w->time_order, n)));
    l->min = known_u64(whole_ns(w->sorted[0]));
    l->max = known_u64(whole_ns(w->sorted[n - 1]));
    if (n > 1)
        l->stddev = known_u64(whole_ns(stats_stddev(w->time_order, n)));
    else
        run_unknown(w->run, &w->c->unknown, "latency_ns.stddev", "one sample has no spread");
    return put_percentiles(w, err);
}

static tare_status put_histogram(struct work *w, tare_error *err)
{
    struct hist h = HIST_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < w->s->n; i++) s = hist_record(&h, w->s->ns[i], err);
    if (s == TARE_OK) run_set_histogram(w->run, w->c, &h);
    hist_release(&h);
    return s;
}

/* ---- throughput ---- */

/* Rates of at most ten batches of neighbouring slices. Neighbours are alike, so single slices would claim too narrow an
 * interval; ten batches are long enough to be nearly independent, and their mean has Student's t with n - 1. */
static size_t batch_rates(const struct sampled *s, double *rates)
{
    size_t batches = s->n_slices < BATCHES ? s->n_slices : BATCHES, n = 0;
    for (size_t k = 0; k < batches; k++) {
        double runs = 0, wall = 0;
        for (size_t i = k * s->n_slices / batches; i < (k + 1) * s->n_slices / batches; i++) {
            runs += (double)s->slices[i].n;
            wall += (double)s->slices[i].wall_ns;
        }
        if (wall > 0) rates[n++] = runs * s->units / wall * 1e9;
    }
    return n;
}

static void put_throughput(struct work *w)
{
    const struct sampled *s = w->s;
    double wall = (double)s->wall_ns, rates[BATCHES];
    for (size_t i = 0; s->wall_ns == 0 && i < s->n_slices; i++) wall += (double)s->slices[i].wall_ns;
    w->c->throughput.unit = arena_printf(&w->run->arena, "%s/s", s->unit);
    if (!(wall > 0)) {
        run_unknown(w->run, &w->c->unknown, "throughput", "the runs took no time that the clock can tell");
        return;
    }
    struct run_estimate *rate = &w->c->throughput.rate;
    *rate = (struct run_estimate){.known = true, .value = (double)s->n * s->units / wall * 1e9};
    size_t n = batch_rates(s, rates);
    if (n < 2) {
        run_unknown(w->run, &w->c->unknown, "throughput.lo", "measured in one piece: no spread to go by");
        run_unknown(w->run, &w->c->unknown, "throughput.hi", "measured in one piece: no spread to go by");
        return;
    }
    double half = stats_t_quantile((1 + BENCH_CONFIDENCE) / 2, (double)(n - 1)) * stats_stddev(rates, n) /
                  sqrt((double)n);
    rate->lo = known_f64(fmax(rate->value - half, 0));
    rate->hi = known_f64(rate->value + half);
}

/* ---- all of it ---- */

static tare_status fill(struct work *w, tare_error *err)
{
    size_t n = w->s->n;
    for (size_t i = 0; i < n; i++) w->sorted[i] = w->time_order[i] = (double)w->s->ns[i];
    stats_sort(w->sorted, n);
    tare_status s = stats_n_eff(w->time_order, n, &w->n_eff, err);
    if (s < 0 || (s = put_latency(w, err)) < 0 || (s = put_histogram(w, err)) < 0) return s;
    run_set_samples(w->run, w->c, w->s->ns, n, n > RUN_SAMPLES_MAX ? "first" : "all");
    put_throughput(w);
    return TARE_OK;
}

tare_status summarise(struct run *run, struct run_case *c, const struct sampled *s, tare_error *err)
{
    c->samples = known_u64(s->n);
    c->confidence = known_f64(BENCH_CONFIDENCE);
    c->unit = arena_str(&run->arena, s->unit);
    if (s->units >= 0) c->units_per_run = known_u64((uint64_t)s->units);
    if (s->n == 0) return error_set(err, TARE_INVALID, "case %s: no samples", c->name);
    struct work w = {run, c, s, mem_new(s->n, sizeof(double)), mem_new(s->n, sizeof(double)), 0};
    tare_status status = w.time_order && w.sorted
                             ? fill(&w, err)
                             : error_set(err, TARE_NOMEM, "out of memory for %zu samples", s->n);
    mem_free(w.time_order);
    mem_free(w.sorted);
    return status;
}
