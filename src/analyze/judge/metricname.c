/* SPDX-License-Identifier: MIT
 * metricname.c - the numbers of a case by name: one row each, for targets, columns, recommendations and
 * plans. Adds no number that the document does not hold. */
#include <math.h>
#include <string.h>

#include "analyze/judge/judge.h"
#include "core/stats.h"

/* ---- from the document's own types ---- */

static bool from_estimate(const struct run_estimate *e, struct run_estimate *out)
{
    if (e->known) *out = *e;
    return e->known;
}

static bool from_single(bool known, double v, struct run_estimate *out)
{
    if (known) *out = (struct run_estimate){.known = true, .value = v};
    return known;
}

#define MEAN_BATCHES 10

/* The mean's interval comes from the means of consecutive batches of the raw samples, which drift and
 * autocorrelation widen as they should. */
static bool get_mean(const struct run_case *c, struct run_estimate *out)
{
    const struct run_samples *s = &c->samples_raw;
    if (!from_single(c->latency_ns.mean.known, (double)c->latency_ns.mean.v, out)) return false;
    if (!s->known || s->n < 2 * MEAN_BATCHES) return true;
    double means[MEAN_BATCHES];
    for (size_t b = 0; b < MEAN_BATCHES; b++) {
        size_t from = s->n * b / MEAN_BATCHES, to = s->n * (b + 1) / MEAN_BATCHES;
        double sum = 0;
        for (size_t i = from; i < to; i++) sum += (double)s->ns[i];
        means[b] = sum / (double)(to - from);
    }
    double level = c->confidence.known ? c->confidence.v : 0.95;
    double half = stats_t_quantile((1 + level) / 2, MEAN_BATCHES - 1) * stats_stddev(means, MEAN_BATCHES) /
                  sqrt(MEAN_BATCHES);
    if (!isfinite(half)) return true;
    *out = run_estimate(out->value, fmax(out->value - half, 0), out->value + half);
    return true;
}

#define GET_TIME(p)                                                                                 \
    static bool get_##p(const struct run_case *c, struct run_estimate *out)                         \
    {                                                                                               \
        return from_estimate(&c->latency_ns.p, out);                                                    \
    }
GET_TIME(p50)
GET_TIME(p90)
GET_TIME(p95)
GET_TIME(p99)
GET_TIME(p999)

#define GET_SINGLE(name, member)                                                                    \
    static bool get_##name(const struct run_case *c, struct run_estimate *out)                      \
    {                                                                                               \
        return from_single(c->member.known, (double)c->member.v, out);                              \
    }
GET_SINGLE(min, latency_ns.min)
GET_SINGLE(max, latency_ns.max)
GET_SINGLE(peak, memory.rss_peak)
GET_SINGLE(delta, memory.delta)
GET_SINGLE(memory_per_unit, memory.per_unit)
GET_SINGLE(load, load_ns)
GET_SINGLE(first_run, first_run_ns)
GET_SINGLE(utilization, cpu.utilization)
GET_SINGLE(self, self.share)

static bool get_per_unit(const struct run_case *c, struct run_estimate *out)
{
    if (!c->units_per_run.known || c->units_per_run.v == 0 || !get_p50(c, out)) return false;
    double n = (double)c->units_per_run.v;
    out->value /= n;
    out->lo.v /= n;
    out->hi.v /= n;
    return true;
}

static bool get_cpu_time(const struct run_case *c, struct run_estimate *out)
{
    bool known = c->cpu.user_ns.known && c->cpu.system_ns.known && c->samples.known && c->samples.v > 0;
    if (!known) return false;
    return from_single(true, (double)(c->cpu.user_ns.v + c->cpu.system_ns.v) / (double)c->samples.v, out);
}

static bool get_throughput(const struct run_case *c, struct run_estimate *out)
{
    return from_estimate(&c->throughput.rate, out);
}

static bool get_accuracy(const struct run_case *c, struct run_estimate *out)
{
    return from_estimate(&c->accuracy.score, out);
}

/* ---- the table ---- */

const struct measure measure_table[] = {
    {"throughput", "throughput_per_s", MEASURE_RATE, true, true, 0, get_throughput, "units per second"},
    {"latency.mean", "latency_mean_ns", MEASURE_TIME, false, true, 0, get_mean, "mean time of a run"},
    {"latency.p50", "latency_p50_ns", MEASURE_TIME, false, true, 0.5, get_p50, "median time of a run"},
    {"latency.p90", "latency_p90_ns", MEASURE_TIME, false, true, 0.9, get_p90, "90th percentile"},
    {"latency.p95", "latency_p95_ns", MEASURE_TIME, false, true, 0.95, get_p95, "95th percentile"},
    {"latency.p99", "latency_p99_ns", MEASURE_TIME, false, true, 0.99, get_p99, "99th percentile"},
    {"latency.p999", "latency_p999_ns", MEASURE_TIME, false, true, 0.999, get_p999, "99.9th percentile"},
    {"latency.min", "latency_min_ns", MEASURE_TIME, false, false, 0, get_min, "shortest run"},
    {"latency.max", "latency_max_ns", MEASURE_TIME, false, false, 0, get_max, "longest run"},
    {"latency.per_unit", "latency_per_unit_ns", MEASURE_TIME, false, true, 0, get_per_unit,
     "median time of a run over its units"},
    {"memory.peak", "memory_peak_bytes", MEASURE_BYTES, false, false, 0, get_peak, "peak resident memory"},
    {"memory.delta", "memory_delta_bytes", MEASURE_BYTES, false, false, 0, get_delta, "peak less before loading"},
    {"memory.per_unit", "memory_per_unit_bytes", MEASURE_BYTES, false, false, 0, get_memory_per_unit,
     "memory per unit of a run"},
    {"load", "load_ns", MEASURE_TIME, false, false, 0, get_load, "loading time"},
    {"first_run", "first_run_ns", MEASURE_TIME, false, false, 0, get_first_run, "time of the very first run"},
    {"cpu.utilization", "cpu_utilization", MEASURE_PLAIN, false, false, 0, get_utilization,
     "processors busy; 1 is one"},
    {"cpu.time", "cpu_time_ns", MEASURE_TIME, false, false, 0, get_cpu_time, "processor time of a run"},
    {"accuracy", "accuracy", MEASURE_PLAIN, true, true, 0, get_accuracy, "score against what was expected"},
    {"self.share", "self_share", MEASURE_PLAIN, false, false, 0, get_self, "part of a run that is tare itself"},
    {NULL, NULL, MEASURE_PLAIN, false, false, 0, NULL, NULL},
};

static const struct {
    const char *name, *means;
} short_names[] = {
    {"latency", "latency.p95"}, {"memory", "memory.peak"}, {"mean", "latency.mean"}, {"p50", "latency.p50"},
    {"p90", "latency.p90"},     {"p95", "latency.p95"},    {"p99", "latency.p99"},   {"p999", "latency.p999"},
};

const struct measure *measure_find(const char *name)
{
    for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++)
        if (strcmp(name, short_names[i].name) == 0) name = short_names[i].means;
    for (const struct measure *m = measure_table; m->name; m++)
        if (strcmp(name, m->name) == 0) return m;
    return NULL;
}

const char *measure_unit(const struct measure *m)
{
    static const char *const units[] = {"ns", "/s", "B", ""};
    return units[m->kind];
}

bool metric_of(const struct run_case *c, const char *name, struct run_estimate *out)
{
    const struct measure *m = measure_find(name);
    struct run_estimate got = {0};
    if (!m || !m->get(c, &got) || !isfinite(got.value)) return false;
    *out = got;
    return true;
}

/* ---- ratios ---- */

struct run_estimate estimate_ratio(struct run_estimate b, struct run_estimate a)
{
    struct run_estimate none = {0};
    bool bounded = b.known && a.known && b.lo.known && b.hi.known && a.lo.known && a.hi.known;
    if (!bounded || !(b.lo.v > 0 && a.lo.v > 0)) return none;
    double r = b.value / a.value;
    double down = hypot(log(b.value / b.lo.v), log(a.hi.v / a.value));
    double up = hypot(log(b.hi.v / b.value), log(a.value / a.lo.v));
    return isfinite(r) ? run_estimate(r, r * exp(-down), r * exp(up)) : none;
}
