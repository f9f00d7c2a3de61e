/* SPDX-License-Identifier: MIT
 * queue.c - see queue.h. Arrivals are simulated one by one; the servers' free times are a heap, so that
 * thousands of servers cost little. The figure is that of all arrivals together; its interval comes from how
 * consecutive batches of them differ. */
#include "analyze/judge/queue.h"

#include <math.h>
#include <string.h>

#include "analyze/judge/finding.h"
#include "analyze/judge/rate_search.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"

enum { BATCHES_MIN = 5, BATCHES_MAX = 20 };
#define ARRIVALS_MAX 8e6
#define KEPT_MIN 1e5 /* responses: neighbours are much alike in a long queue, so that not all need be kept */
#define KEPT_MAX 4e5
#define ROUGH 16 /* a first look takes as many times fewer arrivals */

/* ---- the servers ---- */

/* heap[0] is the earliest time at which a server is free. */
static void sift_down(double *heap, uint32_t n)
{
    uint32_t i = 0;
    double v = heap[0];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= v) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = v;
}

struct simulation {
    const struct queue_load *load;
    struct rng arrivals, service; /* apart: a change of rate or servers keeps the same service times */
    double *free_at;
    uint32_t servers;
    double now;
};

/* One arrival after an exponential gap (Poisson arrivals), served by whichever server is free first, for a time drawn
 * from the measured ones: returns its waiting time; *response adds the service. */
static double serve_arrival(struct simulation *s, double *response)
{
    s->now += -log1p(-rng_unit(&s->arrivals)) * 1e9 / s->load->rate;
    double start = fmax(s->now, s->free_at[0]),
           service = s->load->service_ns[rng_below(&s->service, s->load->n)];
    s->free_at[0] = start + service;
    sift_down(s->free_at, s->servers);
    *response = start - s->now + service; /* in this order: no waiting leaves the service time as it is */
    return start - s->now;
}

/* ---- how many arrivals ---- */

struct extent {
    size_t batches, per_batch; /* of kept responses */
    size_t stride;             /* arrivals per kept response */
    double wider; /* interval than t says: batches are few, and skewed; measured to hold 95 in 100 */
};

/* A queue forgets how it stood within some 4 v / (1 - utilisation)^2 arrivals, v = 1 of exponential service and
 * (1 + c^2) / 2 of others with coefficient of variation c. 1,250 such spans leave a percentile uncertain by some 8 %. A
 * batch has 20 of them, or batches are too much alike for their spread to be the error; false: not even BATCHES_MIN
 * batches of 10 fit into what can be simulated. */
static bool extent_of(const struct queue_load *load, double utilization, double effort, struct extent *out)
{
    double c =
        load->n > 1 ? stats_stddev(load->service_ns, load->n) / stats_mean(load->service_ns, load->n) : 0;
    double span = 4 * fmax((1 + c * c) / 2, 1) / pow(1 - utilization, 2);
    double kept = load->quantile > 0 ? 1000 / (1 - load->quantile) : KEPT_MIN;
    kept = fmax(KEPT_MIN, fmin(kept, KEPT_MAX));
    double arrivals = fmin(fmax(1250 * span / effort, kept), ARRIVALS_MAX);
    if (arrivals < BATCHES_MIN * 10 * span) return false;
    *out = (struct extent){.batches = (size_t)fmax(BATCHES_MIN, fmin(arrivals / span / 20, BATCHES_MAX)),
                           .stride = (size_t)(arrivals / kept),
                           .wider = fmax(1.3, 1 + 10 / sqrt(arrivals / span))};
    out->per_batch = (size_t)kept / out->batches;
    return true;
}

static tare_status check_load(const struct queue_load *load, uint32_t servers, tare_error *err)
{
    if (load->n == 0 || servers == 0)
        return error_set(err, TARE_INVALID, "a queue needs service times and servers");
    if (!(load->rate > 0) || !isfinite(load->rate))
        return error_set(err, TARE_INVALID, "the rate of requests must be above 0");
    if (!(load->quantile >= 0 && load->quantile < 1))
        return error_set(err, TARE_INVALID, "the quantile must be within 0 and 1");
    for (size_t i = 0; i < load->n; i++)
        if (!(load->service_ns[i] >= 0) || !isfinite(load->service_ns[i]))
            return error_set(err, TARE_INVALID, "service time %zu is not a time", i);
    return TARE_OK;
}

/* ---- simulating ---- */

/* The quantile or the mean. Sorts x. */
static double figure(double *x, size_t n, double quantile)
{
    if (quantile == 0) return stats_mean(x, n);
    stats_sort(x, n);
    return stats_quantile_sorted(x, n, quantile);
}

/* 95 %, from one number per batch, on their logarithmic scale: few long queues make it skewed. */
static double batch_spread(const double *each, size_t n)
{
    double error = stats_stddev(each, n) / stats_mean(each, n) / sqrt((double)n);
    return stats_t_quantile(0.975, (double)(n - 1)) * error;
}

/* Of the mean: how the batches' means differ. Of a quantile: how the share of arrivals beyond it differs from batch to
 * batch, which says which other quantiles it may as well be. A batch's own quantile is no use, being too low where
 * queues are rare and long. `x` is sorted afterwards. */
static void fill_figure(double *x, struct extent e, double quantile, double *sorted, struct queue_result *out)
{
    double each[BATCHES_MAX], half;
    size_t n = e.batches * e.per_batch;
    memcpy(sorted, x, n * sizeof *x);
    out->response_ns = out->lo = out->hi = figure(sorted, n, quantile);
    for (size_t b = 0; b < e.batches; b++) {
        const double *batch = x + b * e.per_batch;
        double beyond = 0;
        for (size_t i = 0; i < e.per_batch; i++) beyond += batch[i] > out->response_ns;
        each[b] = quantile > 0 ? beyond : stats_mean(batch, e.per_batch);
    }
    half = e.wider * batch_spread(each, e.batches);
    if (!(half > 0)) return; /* all alike */
    double factor = exp(half);
    out->lo = quantile > 0 ? stats_quantile_sorted(sorted, n, fmax(0, 1 - (1 - quantile) * factor))
                           : out->response_ns / factor;
    out->hi = quantile > 0 ? stats_quantile_sorted(sorted, n, 1 - (1 - quantile) / factor)
                           : out->response_ns * factor;
}

static void run_batches(struct simulation *s, struct extent e, double *x, struct queue_result *out)
{
    size_t n = e.batches * e.per_batch;
    double wait = 0;
    out->arrivals = n * e.stride;
    for (size_t i = 0; i < out->arrivals / 10; i++)
        serve_arrival(s, x); /* from empty to usual: not counted */
    for (size_t i = 0; i < out->arrivals; i++) wait += serve_arrival(s, &x[i / e.stride]);
    out->wait_mean_ns = wait / (double)out->arrivals;
    fill_figure(x, e, s->load->quantile, x + n, out);
}

/* `effort`: times fewer arrivals, for a first look. Overloaded, or too near to it to simulate: infinite. */
static tare_status simulate(const struct queue_load *load, uint32_t servers, double effort,
                            struct queue_result *out, tare_error *err)
{
    tare_status st = check_load(load, servers, err);
    struct extent e;
    if (st < 0) return st;
    double rho = load->rate * stats_mean(load->service_ns, load->n) / 1e9 / servers;
    *out = (struct queue_result){INFINITY, INFINITY, INFINITY, INFINITY, rho, 0};
    if (rho >= 1 || !extent_of(load, rho, effort, &e)) return TARE_OK;
    struct simulation s = {.load = load, .servers = servers};
    s.free_at = mem_new(servers, sizeof *s.free_at);
    double *x = mem_new(2 * e.batches * e.per_batch, sizeof *x);
    if (s.free_at && x) {
        rng_seed(&s.arrivals, load->seed);
        rng_seed(&s.service, load->seed ^ UINT64_C(0x5EED5EED));
        run_batches(&s, e, x, out);
    } else {
        st = error_nomem(err, "%u servers", servers);
    }
    mem_free(s.free_at);
    mem_free(x);
    return st;
}

tare_status queue_simulate(const struct queue_load *load, uint32_t servers, struct queue_result *out,
                           tare_error *err)
{
    return simulate(load, servers, 1, out, err);
}

/* ---- planning ---- */

struct planning {
    struct queue_load load;
    const struct queue_goal *goal;
    double base_rate;
    tare_error *err;
    tare_status status;
};

/* Do `servers` keep the limit at this many times the rate? The upper end of the interval must. Where a short simulation
 * is clear, by three times its interval, a long one is not needed. */
static bool keeps_limit(struct planning *p, uint32_t servers, double times)
{
    static const double efforts[] = {ROUGH, 1};
    struct queue_result r;
    for (size_t i = 0; i < 2 && p->status == TARE_OK; i++) {
        p->load.rate = p->base_rate * times;
        p->status = simulate(&p->load, servers, efforts[i], &r, p->err);
        if (p->status != TARE_OK || isinf(r.hi)) continue;
        if (r.response_ns + 3 * (r.hi - r.response_ns) < p->goal->limit_ns) return true;
        if (r.response_ns - 3 * (r.response_ns - r.lo) > p->goal->limit_ns) return false;
    }
    return p->status == TARE_OK && r.hi <= p->goal->limit_ns;
}

/* The least number of servers from `from` on; 0: none up to QUEUE_SERVERS_MAX. */
static uint32_t fewest(struct planning *p, uint32_t from, double times)
{
    uint32_t bad = from - 1, good = from, most = QUEUE_SERVERS_MAX;
    while (!keeps_limit(p, good, times)) {
        if (p->status < 0 || good >= most) return 0;
        bad = good;
        good = good > most / 2 ? most : good * 2;
    }
    while (good - bad > 1) {
        uint32_t mid = bad + (good - bad) / 2;
        if (keeps_limit(p, mid, times))
            good = mid;
        else
            bad = mid;
    }
    return good;
}

/* The largest multiple of the rate that `servers` still hold, to a hundredth. */
static double breaking_point(struct planning *p, uint32_t servers, double mean_ns)
{
    double good = 1, bad = servers / (p->base_rate * mean_ns / 1e9);
    while (bad / good > 1.01 && p->status == TARE_OK) {
        double mid = sqrt(good * bad);
        if (keeps_limit(p, servers, mid))
            good = mid;
        else
            bad = mid;
    }
    return good * p->base_rate;
}

/* Service without any waiting: no number of servers beats it. */
static tare_status service_alone(const struct queue_load *load, struct queue_plan *out, tare_error *err)
{
    double *x = mem_new(load->n, sizeof *x);
    if (!x) return error_nomem(err, "%zu samples", load->n);
    memcpy(x, load->service_ns, load->n * sizeof *x);
    out->service_ns = figure(x, load->n, load->quantile);
    out->mean_ns = stats_mean(x, load->n);
    mem_free(x);
    return TARE_OK;
}

/* Why it cannot be is told apart from failing: the limit is below a single run, or waiting always breaks it. */
tare_status queue_plan(const struct queue_load *load, const struct queue_goal *goal, struct queue_plan *out,
                       tare_error *err)
{
    struct queue_plan plan = {.breaks_at = NAN, .saturates_at = NAN};
    tare_status st = check_load(load, 1, err);
    if (st == TARE_OK) st = service_alone(load, &plan, err);
    if (st == TARE_OK && !(plan.mean_ns > 0)) st = error_set(err, TARE_INVALID, "all service times are 0");
    if (st < 0) return st;
    struct planning p = {.load = *load, .goal = goal, .base_rate = load->rate, .err = err};
    double times = 1 + goal->headroom, needed = floor(load->rate * times * plan.mean_ns / 1e9) + 1;
    if (plan.service_ns > goal->limit_ns)
        plan.why_not = "a single run without any waiting is slower than the limit";
    else if (needed > QUEUE_SERVERS_MAX)
        plan.why_not = "more replicas than can be planned for";
    if (!plan.why_not) {
        plan.servers = fewest(&p, (uint32_t)needed, times);
        if (p.status < 0) return p.status;
        if (plan.servers == 0)
            plan.why_not = "the tail of single runs is so near the limit that waiting always breaks it";
    }
    if (!plan.why_not) {
        plan.possible = true;
        plan.saturates_at = plan.servers * 1e9 / plan.mean_ns;
        plan.breaks_at = breaking_point(&p, plan.servers, plan.mean_ns);
        if (p.status == TARE_OK) p.status = queue_simulate(load, plan.servers, &plan.at_rate, err);
    }
    if (p.status == TARE_OK) *out = plan;
    return p.status;
}

/* ---- the queue meets the document ---- */

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
    if (strcmp(run->subject.type, "http") == 0)
        return "a service is planned with by rates: tare bench --rate or --find-rate";
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

/* ---- services: what one replica took under load ---- */

static bool is_rate_of_service(const struct run *run, const struct run_case *c, double *rate)
{
    return c->open_loop.known && strcmp(run->subject.type, "http") == 0 && param_number(c, "rate", rate);
}

/* Lowers *out to the lowest rate above this one at which the limit was surely missed, of the same run. */
static tare_status lowest_missed(const struct run *run, const struct rate_limits *l, double above,
                                 double *out, tare_error *err)
{
    for (size_t i = 0; i < run->cases.n; i++) {
        struct rate_told t;
        double rate;
        if (!is_rate_of_service(run, run->cases.at[i], &rate) || rate <= above || rate >= *out) continue;
        tare_status s = rate_judge(l, run->cases.at[i], &t, err);
        if (s < 0) return s;
        if (t.surely && !t.kept) *out = rate;
    }
    return TARE_OK;
}

/* What was measured at this rate: the percentile with its interval. */
static struct queue_result measured_at(const struct run_case *c, const struct target *limit)
{
    struct run_estimate e = {0};
    struct queue_result r = {
        .response_ns = NAN, .lo = NAN, .hi = NAN, .wait_mean_ns = NAN, .utilization = NAN};
    if (!measure_of(c, measure_find(limit->metric), &e)) return r;
    r.response_ns = e.value;
    if (e.lo.known) r.lo = e.lo.v;
    if (e.hi.known) r.hi = e.hi.v;
    return r;
}

/* Kept at a rate of one replica, it is kept by as many as share the whole: halves of independent arrivals are
 * independent again. */
static tare_status plan_service(struct capacity *out, double rate, const struct capacity_goal *goal,
                                tare_error *err)
{
    struct rate_limits l = {.n = 1, .of = {goal->limit}};
    struct rate_told t;
    double missed = INFINITY, wanted = out->requests * (1 + goal->headroom);
    tare_status s = rate_judge(&l, out->c, &t, err);
    if (s == TARE_OK) s = lowest_missed(out->run, &l, rate, &missed, err);
    if (s < 0) return s;
    out->measured = true;
    out->plan = (struct queue_plan){.service_ns = NAN, .mean_ns = NAN, .breaks_at = NAN, .saturates_at = NAN};
    if (out->c->http.limited.known && out->c->http.limited.v)
        out->unusable = "the client was at its limit";
    else if (!t.surely)
        out->unusable = "too short to be sure that the limit was kept";
    else if (!t.kept)
        out->plan.why_not = "the limit was missed at this rate";
    else if (ceil(wanted / rate) > QUEUE_SERVERS_MAX)
        out->plan.why_not = "more replicas than can be planned for";
    if (out->unusable || out->plan.why_not) return TARE_OK;
    out->plan.possible = true;
    out->plan.servers = (uint32_t)ceil(wanted / rate - 1e-9);
    out->plan.at_rate = measured_at(out->c, &goal->limit);
    if (isfinite(missed)) out->plan.breaks_at = missed * out->plan.servers;
    return TARE_OK;
}

tare_status capacity_plan(struct capacity *out, const struct run *run, const struct run_case *c,
                          const struct capacity_goal *goal, tare_error *err)
{
    double rate;
    *out = (struct capacity){.run = run, .c = c, .requests = requests_for(c, goal)};
    if (is_rate_of_service(run, c, &rate) && !isnan(out->requests)) return plan_service(out, rate, goal, err);
    out->unusable = why_unusable(run, c, out->requests);
    if (out->unusable) return TARE_OK;
    const struct run_samples *s = &c->samples_raw;
    double *x = stats_doubles(s->ns, s->n, err);
    if (!x) return TARE_NOMEM;
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
    if (isnan(a->plan.at_rate.response_ns) || isnan(b->plan.at_rate.response_ns))
        return !isnan(a->plan.at_rate.response_ns);
    return a->plan.at_rate.response_ns < b->plan.at_rate.response_ns;
}
