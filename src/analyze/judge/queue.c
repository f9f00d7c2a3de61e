/* SPDX-License-Identifier: MIT
 * queue.c - see queue.h. Arrivals are simulated one by one; the servers' free times are a heap, so that
 * thousands of servers cost little. The interval comes from the spread over consecutive batches of
 * arrivals. */
#include "analyze/judge/queue.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"

enum { BATCHES = 20 };
#define ARRIVALS_MIN 40000.0
#define ARRIVALS_MAX 1500000.0

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

/* Three demands on the arrivals of a batch. Enough of them beyond the quantile (100 / (1 - q)) that its estimate is no
 * accident; many against those after which the queue has forgotten how it stood, which grow with the square of
 * 1 / (1 - utilisation), so that batches are nearly independent and their spread is the error; and a least number. */
static uint64_t batch_size(const struct queue_load *load, double utilization)
{
    double tail = load->quantile > 0 ? 100 / (1 - load->quantile) : 1000;
    double memory = 20 / ((1 - utilization) * (1 - utilization));
    double n = fmax(fmax(tail, memory), ARRIVALS_MIN / BATCHES);
    return (uint64_t)fmin(n, ARRIVALS_MAX / BATCHES);
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

/* The figure of one batch: the quantile or the mean of its response times. Sorts x. */
static double figure(double *x, size_t n, double quantile)
{
    if (quantile == 0) return stats_mean(x, n);
    stats_sort(x, n);
    return stats_quantile_sorted(x, n, quantile);
}

static void run_batches(struct simulation *s, double *x, size_t per_batch, struct queue_result *out)
{
    double figures[BATCHES], wait = 0;
    for (size_t i = 0; i < 2 * per_batch; i++) serve_arrival(s, &x[0]); /* from empty to usual: not counted */
    for (int b = 0; b < BATCHES; b++) {
        for (size_t i = 0; i < per_batch; i++) wait += serve_arrival(s, &x[i]);
        figures[b] = figure(x, per_batch, s->load->quantile);
    }
    double mean = stats_mean(figures, BATCHES);
    double half = stats_t_quantile(0.975, BATCHES - 1) * stats_stddev(figures, BATCHES) / sqrt(BATCHES);
    out->response_ns = mean;
    out->lo = fmax(mean - half, 0);
    out->hi = mean + half;
    out->arrivals = per_batch * BATCHES;
    out->wait_mean_ns = wait / (double)out->arrivals;
}

tare_status queue_simulate(const struct queue_load *load, uint32_t servers, struct queue_result *out,
                           tare_error *err)
{
    tare_status st = check_load(load, servers, err);
    if (st < 0) return st;
    double rho = load->rate * stats_mean(load->service_ns, load->n) / 1e9 / servers;
    *out = (struct queue_result){INFINITY, INFINITY, INFINITY, INFINITY, rho, 0};
    if (rho >= 1) return TARE_OK;
    size_t per_batch = batch_size(load, rho);
    struct simulation s = {.load = load, .servers = servers};
    s.free_at = mem_new(servers, sizeof *s.free_at);
    double *x = mem_new(per_batch, sizeof *x);
    if (s.free_at && x) {
        rng_seed(&s.arrivals, load->seed);
        rng_seed(&s.service, load->seed ^ UINT64_C(0x5EED5EED));
        run_batches(&s, x, per_batch, out);
    } else {
        st = error_set(err, TARE_NOMEM, "out of memory for %u servers", servers);
    }
    mem_free(s.free_at);
    mem_free(x);
    return st;
}

/* ---- planning ---- */

struct planning {
    struct queue_load load;
    const struct queue_goal *goal;
    double base_rate;
    tare_error *err;
    tare_status status;
};

/* Do `servers` keep the limit at this many times the rate? The upper end of the interval must. */
static bool keeps_limit(struct planning *p, uint32_t servers, double times)
{
    struct queue_result r;
    if (p->status < 0) return false;
    p->load.rate = p->base_rate * times;
    p->status = queue_simulate(&p->load, servers, &r, p->err);
    return p->status == TARE_OK && r.hi <= p->goal->limit_ns;
}

/* The least number of servers from `from` on; 0: none up to `most`. */
static uint32_t fewest(struct planning *p, uint32_t from, uint32_t most, double times)
{
    uint32_t bad = from - 1, good = from;
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
    if (!x) return error_set(err, TARE_NOMEM, "out of memory for %zu samples", load->n);
    memcpy(x, load->service_ns, load->n * sizeof *x);
    out->service_ns = figure(x, load->n, load->quantile);
    out->mean_ns = stats_mean(x, load->n);
    mem_free(x);
    return TARE_OK;
}

tare_status queue_plan(const struct queue_load *load, const struct queue_goal *goal, struct queue_plan *out,
                       tare_error *err)
{
    struct queue_plan plan = {.breaks_at = NAN, .saturates_at = NAN};
    tare_status st = check_load(load, 1, err);
    if (st == TARE_OK) st = service_alone(load, &plan, err);
    if (st == TARE_OK && !(plan.mean_ns > 0)) st = error_set(err, TARE_INVALID, "all service times are 0");
    if (st < 0) return st;
    struct planning p = {.load = *load, .goal = goal, .base_rate = load->rate, .err = err};
    uint32_t most = goal->most ? goal->most : QUEUE_SERVERS_MAX;
    double times = 1 + goal->headroom, needed = floor(load->rate * times * plan.mean_ns / 1e9) + 1;
    if (plan.service_ns > goal->limit_ns)
        plan.why_not = "a single run without any waiting is slower than the limit";
    else if (needed > most)
        plan.why_not = "more replicas than can be planned for";
    if (!plan.why_not) {
        plan.servers = fewest(&p, (uint32_t)needed, most, times);
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
