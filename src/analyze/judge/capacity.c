/* SPDX-License-Identifier: MIT
 * capacity.c - see capacity.h. */
#include "analyze/judge/capacity.h"

#include <math.h>
#include <string.h>

#include "analyze/judge/finding.h"
#include "core/mem.h"

tare_status capacity_check_limit(const struct target *t, tare_error *err)
{
    const struct measure *m = measure_find(t->metric);
    bool upper = t->op == TARGET_LE || t->op == TARGET_LT;
    bool fits = m && m->kind == MEASURE_TIME && (m->quantile > 0 || strcmp(m->name, "latency.mean") == 0);
    if (fits && upper && t->value > 0) return TARE_OK;
    return error_set(err, TARE_INVALID,
                     "not a limit on response time; write p95<=200ms, latency.p99<=1s or mean<=50ms");
}

/* Requests per second that the case would get; NAN when the rate counts something else. */
static double requests_for(const struct run_case *c, const struct capacity_goal *goal)
{
    static const char *const request[] = {"", "/s", "/sec", "/min", "/h"};
    static const char *const words[] = {"requests", "runs", "req"};
    size_t n = strcspn(goal->rate_unit, "/");
    for (size_t i = 0; i < sizeof request / sizeof *request; i++)
        if (strcmp(goal->rate_unit, request[i]) == 0) return goal->rate;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && strncmp(goal->rate_unit, words[i], n) == 0) return goal->rate;
    if (!c->unit || !c->units_per_run.known || c->units_per_run.v == 0) return NAN;
    if (strlen(c->unit) != n || strncmp(goal->rate_unit, c->unit, n) != 0) return NAN;
    return goal->rate / (double)c->units_per_run.v;
}

static const char *why_unusable(const struct run *run, const struct run_case *c, double requests)
{
    if (run_is_open_loop(run)) return "measured under open-loop load: its times include waiting";
    if (!c->samples_raw.known || c->samples_raw.n == 0) return "the document holds no single times of it";
    if (c->samples_raw.n < 20) return "fewer than 20 measured runs";
    if (isnan(requests)) return "the rate counts something else than this case does";
    return NULL;
}

/* How many machines like the measured one, and what fills them. */
static void count_machines(struct capacity *out)
{
    const struct run_host *h = &out->run->host;
    double n = out->plan.servers, by_cpu = NAN, by_memory = NAN, threads;
    if (param_number(out->c, "threads", &threads) && threads > 0) out->threads = known_f64(threads);
    if (out->c->memory.rss_peak.known) out->memory = known_f64((double)out->c->memory.rss_peak.v);
    if (out->threads.known && h->cpu.usable.known && h->cpu.usable.v > 0)
        by_cpu = ceil(n / fmax(floor(h->cpu.usable.v / threads + 1e-9), 1));
    if (out->memory.known && out->memory.v > 0 && h->memory_bytes.known)
        by_memory = ceil(n / fmax(floor((double)h->memory_bytes.v * 0.9 / out->memory.v), 1));
    double most = fmax(by_cpu, by_memory); /* of one unknown, the other */
    if (isnan(most)) return;
    out->machines = known_f64(most);
    out->machines_by = by_memory > by_cpu || isnan(by_cpu) ? "memory" : "processors";
}

tare_status capacity_plan(struct capacity *out, const struct run *run, const struct run_case *c,
                          const struct capacity_goal *goal, tare_error *err)
{
    *out = (struct capacity){.run = run, .c = c, .requests = requests_for(c, goal)};
    out->unusable = why_unusable(run, c, out->requests);
    if (out->unusable) return TARE_OK;
    const struct run_samples *s = &c->samples_raw;
    double *x = mem_new(s->n, sizeof *x);
    if (!x) return error_set(err, TARE_NOMEM, "out of memory for %zu samples", s->n);
    for (size_t i = 0; i < s->n; i++) x[i] = (double)s->ns[i];
    struct queue_load load = {x, s->n, out->requests, measure_find(goal->limit.metric)->quantile, goal->seed};
    out->few_samples = (double)s->n * (1 - load.quantile) < 5;
    struct queue_goal limit = {.limit_ns = goal->limit.value, .headroom = goal->headroom};
    tare_status st = queue_plan(&load, &limit, &out->plan, err);
    mem_free(x);
    if (st == TARE_OK && out->plan.possible) count_machines(out);
    return st;
}

bool capacity_is_better(const struct capacity *a, const struct capacity *b)
{
    if (a->plan.servers != b->plan.servers) return a->plan.servers < b->plan.servers;
    return a->plan.at_rate.response_ns < b->plan.at_rate.response_ns;
}
