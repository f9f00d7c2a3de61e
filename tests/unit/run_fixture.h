/* SPDX-License-Identifier: MIT
 * run_fixture.h - run documents made by hand for the tests of analysis and reports: one case with known
 * samples, and a realistic sweep over batch sizes. Deterministic. */
#ifndef RUN_FIXTURE_H
#define RUN_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/stats.h"
#include "run/run.h"

/* About lognormal: median, and sigma of the logarithm. */
static inline double fixture_noise(struct rng *r, double median, double sigma)
{
    double z = 0;
    for (int i = 0; i < 12; i++) z += rng_unit(r);
    return median * exp(sigma * (z - 6));
}

static inline struct run_estimate fixture_quantile(const double *sorted, size_t n, double q)
{
    struct interval i = stats_quantile_interval_sorted(sorted, n, (double)n, q, 0.95);
    if (!isfinite(i.lo) || !isfinite(i.hi)) return (struct run_estimate){0};
    return run_estimate((uint64_t)i.value, (uint64_t)fmin(i.lo, i.value),
                        (uint64_t)ceil(fmax(i.hi, i.value)));
}

/* Latency, percentiles and throughput from single times, as the harness does it. */
static inline void fixture_samples(struct run *r, struct run_case *c, const double *ns, size_t n)
{
    double *x = malloc(n * sizeof *x);
    uint64_t *u = malloc(n * sizeof *u);
    if (!x || !u) abort();
    memcpy(x, ns, n * sizeof *x);
    stats_sort(x, n);
    for (size_t i = 0; i < n; i++) u[i] = (uint64_t)ns[i];
    c->confidence = known_f64(0.95);
    c->samples = known_u64(n);
    c->latency_ns.known = true;
    c->latency_ns.mean = known_u64((uint64_t)stats_mean(x, n));
    if (n > 1) c->latency_ns.stddev = known_u64((uint64_t)stats_stddev(x, n));
    c->latency_ns.min = known_u64((uint64_t)x[0]);
    c->latency_ns.max = known_u64((uint64_t)ceil(x[n - 1]));
    c->latency_ns.p50 = fixture_quantile(x, n, 0.5);
    c->latency_ns.p90 = fixture_quantile(x, n, 0.9);
    c->latency_ns.p95 = fixture_quantile(x, n, 0.95);
    c->latency_ns.p99 = fixture_quantile(x, n, 0.99);
    if (!c->latency_ns.p99.known) run_unknown(r, &c->unknown, "latency_ns.p99", "%zu samples are too few", n);
    run_set_samples(r, c, u, n, "all");
    double units = c->units_per_run.known ? (double)c->units_per_run.v : 1, mean = stats_mean(x, n);
    double half = n > 1 ? 1.96 * stats_stddev(x, n) / sqrt((double)n) : mean;
    c->throughput.rate =
        run_estimate(units * 1e9 / mean, units * 1e9 / (mean + half), units * 1e9 / (mean - half / 2));
    c->throughput.unit = "texts/s";
    free(x);
    free(u);
}

static inline struct run_case *fixture_case(struct run *r, const char *name, int64_t batch, double median_ns,
                                            size_t n)
{
    struct run_case *c = run_add_case(r, name);
    struct rng rng;
    double *ns = malloc(n * sizeof *ns);
    if (!c || !ns) abort();
    rng_seed(&rng, (uint64_t)batch * 1000 + 7);
    if (batch > 0) run_map_int(&r->arena, &c->params, "batch", batch);
    c->unit = "texts";
    c->units_per_run = known_u64(batch > 0 ? (uint64_t)batch : 1);
    for (size_t i = 0; i < n; i++) ns[i] = fixture_noise(&rng, median_ns, 0.03);
    fixture_samples(r, c, ns, n);
    free(ns);
    return c;
}

static inline void fixture_host(struct run *r)
{
    r->host.hostname = "box";
    r->host.cpu.model = "Some CPU";
    r->host.cpu.cores = known_u64(8);
    r->host.cpu.usable = known_f64(2);
    r->host.memory_bytes = known_u64(UINT64_C(16) << 30);
    r->subject.type = "onnx";
    r->subject.name = "minilm-l6";
    r->subject.size_bytes = known_u64(90888945);
    r->subject.runtime = (struct run_runtime){true, "onnxruntime", "1.30.0"};
}

/* Throughput as in seed 000: steep at first, flat from batch 16 on; memory about 2.8 MB per batch. */
static inline void fixture_sweep(struct run *r)
{
    static const struct {
        int64_t batch;
        double per_s;
    } rows[] = {{1, 14.35}, {4, 36.78}, {8, 50.22}, {16, 64.05}, {32, 67.0}};
    tare_error err = TARE_ERROR_INIT;
    if (run_init(r, "bench", &err) < 0) abort();
    fixture_host(r);
    run_map_real(&r->arena, &r->config, "budget_s", 10);
    run_map_real(&r->arena, &r->config, "precision", 0.02);
    run_map_text(&r->arena, &r->config, "load", "closed");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[40];
        snprintf(name, sizeof name, "batch=%d,seq=128", (int)rows[i].batch);
        struct run_case *c =
            fixture_case(r, name, rows[i].batch, (double)rows[i].batch * 1e9 / rows[i].per_s, 200);
        run_map_int(&r->arena, &c->params, "seq", 128);
        run_map_int(&r->arena, &c->params, "threads", 2);
        run_map_int(&r->arena, &c->params, "batch_size", rows[i].batch);
        c->load_ns = known_u64(412000000 + (uint64_t)i * 1000000);
        c->first_run_ns = known_u64(c->latency_ns.p50.value * 2);
        c->memory.known = true;
        c->memory.rss_before = known_u64(UINT64_C(40) << 20);
        c->memory.delta =
            known_i64((INT64_C(120) << 20) + rows[i].batch * 2800000 + (int64_t)(i % 2) * 40000);
        c->memory.rss_peak = known_u64((UINT64_C(40) << 20) + (uint64_t)c->memory.delta.v);
        c->self.known = true;
        c->self.ns_per_run = known_u64(60);
        c->self.share = known_f64(60 / (double)c->latency_ns.mean.v);
    }
}

/* A finding of this rule, or NULL. */
static inline const struct run_finding *fixture_finding(const struct run *r, const char *id)
{
    for (size_t i = 0; i < r->findings.n; i++)
        if (strcmp(r->findings.at[i]->id, id) == 0) return r->findings.at[i];
    return NULL;
}

#endif
