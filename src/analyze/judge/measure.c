/* SPDX-License-Identifier: MIT
 * measure.c - see measure.h. Adds no number that the document does not hold. */
#include "analyze/judge/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/stats.h"

/* ---- measures that are not a field as it stands ---- */

#define MEAN_BATCHES 10

/* The mean's interval comes from the means of consecutive batches of the raw samples, which drift and
 * autocorrelation widen as they should. */
static bool derive_mean(const struct run_case *c, struct run_estimate *out)
{
    const struct run_samples *s = &c->samples_raw;
    if (!run_case_value(c, "latency_ns.mean", out)) return false;
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

static bool derive_per_unit(const struct run_case *c, struct run_estimate *out)
{
    if (!c->units_per_run.known || c->units_per_run.v == 0) return false;
    if (!run_case_value(c, "latency_ns.p50", out)) return false;
    double n = (double)c->units_per_run.v;
    out->value /= n;
    out->lo.v /= n;
    out->hi.v /= n;
    return true;
}

static bool derive_cpu_time(const struct run_case *c, struct run_estimate *out)
{
    double runs = run_case_runs(c);
    if (!c->cpu.user_ns.known || !c->cpu.system_ns.known || !(runs > 0)) return false;
    double sum = (double)(c->cpu.user_ns.v + c->cpu.system_ns.v);
    *out = (struct run_estimate){.known = true, .value = sum / runs};
    return true;
}

/* ---- the table ---- */

#define LESS false
#define MORE true
#define BOUNDED true /* may come with bounds */
#define SINGLE false

/* clang-format off */
const struct measure measure_table[] = {
    {"throughput", "throughput", "throughput", MEASURE_RATE, MORE, BOUNDED, 0, NULL, "units per second"},
    {"latency.mean", "latency_ns.mean", "mean", MEASURE_TIME, LESS, BOUNDED, 0, derive_mean, "mean time of a run"},
    {"latency.p50", "latency_ns.p50", "p50", MEASURE_TIME, LESS, BOUNDED, 0.5, NULL, "median time of a run"},
    {"latency.p90", "latency_ns.p90", "p90", MEASURE_TIME, LESS, BOUNDED, 0.9, NULL, "90th percentile"},
    {"latency.p95", "latency_ns.p95", "p95", MEASURE_TIME, LESS, BOUNDED, 0.95, NULL, "95th percentile"},
    {"latency.p99", "latency_ns.p99", "p99", MEASURE_TIME, LESS, BOUNDED, 0.99, NULL, "99th percentile"},
    {"latency.p999", "latency_ns.p999", NULL, MEASURE_TIME, LESS, BOUNDED, 0.999, NULL, "99.9th percentile"},
    {"latency.min", "latency_ns.min", NULL, MEASURE_TIME, LESS, SINGLE, 0, NULL, "shortest run"},
    {"latency.max", "latency_ns.max", NULL, MEASURE_TIME, LESS, SINGLE, 0, NULL, "longest run"},
    {"latency.per_unit", "latency_ns.p50", NULL, MEASURE_TIME, LESS, BOUNDED, 0, derive_per_unit,
     "median time of a run over its units"},
    {"memory.peak", "memory.rss_peak", "rss_peak", MEASURE_BYTES, LESS, SINGLE, 0, NULL, "peak resident memory"},
    {"memory.delta", "memory.delta", NULL, MEASURE_BYTES, LESS, SINGLE, 0, NULL, "peak less before loading"},
    {"memory.per_unit", "memory.per_unit", NULL, MEASURE_BYTES, LESS, SINGLE, 0, NULL, "memory per unit of a run"},
    {"memory.gpu", "memory.gpu_peak", NULL, MEASURE_BYTES, LESS, SINGLE, 0, NULL, "most in use on the GPU"},
    {"load", "load_ns", "load_ns", MEASURE_TIME, LESS, SINGLE, 0, NULL, "loading time"},
    {"first_run", "first_run_ns", NULL, MEASURE_TIME, LESS, SINGLE, 0, NULL, "time of the very first run"},
    {"cpu.utilization", "cpu.utilization", NULL, MEASURE_PLAIN, LESS, SINGLE, 0, NULL, "processors busy; 1 is one"},
    {"cpu.time", "cpu.user_ns", "cpu_ns_per_run", MEASURE_TIME, LESS, SINGLE, 0, derive_cpu_time,
     "processor time of a run"},
    {"accuracy", "accuracy", NULL, MEASURE_PLAIN, MORE, BOUNDED, 0, NULL, "score against what was expected"},
    {"ttft.p50", "stream.ttft_ns.p50", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "median of the time to the first token"},
    {"ttft.p95", "stream.ttft_ns.p95", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "95th percentile of the time to the first token"},
    {"ttft.p99", "stream.ttft_ns.p99", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "99th percentile of the time to the first token"},
    {"gap.p50", "stream.gap_ns.p50", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "median of the time between events of a stream"},
    {"gap.p95", "stream.gap_ns.p95", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "95th percentile of the time between events of a stream"},
    {"gap.p99", "stream.gap_ns.p99", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "99th percentile of the time between events of a stream"},
    {"gap_max.p95", "stream.gap_max_ns.p95", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "95th percentile of the longest gap of an answer"},
    {"gap_max.p99", "stream.gap_max_ns.p99", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "99th percentile of the longest gap of an answer"},
    {"tpot.p50", "stream.tpot_ns.p50", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "median of the time per output token"},
    {"tpot.p95", "stream.tpot_ns.p95", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "95th percentile of the time per output token"},
    {"tpot.p99", "stream.tpot_ns.p99", NULL, MEASURE_TIME, LESS, BOUNDED, 0, NULL,
     "99th percentile of the time per output token"},
    {"tokens", "stream.tokens_per_s", NULL, MEASURE_RATE, MORE, BOUNDED, 0, NULL, "output tokens per second"},
    {"goodput", "stream.goodput", NULL, MEASURE_PLAIN, MORE, BOUNDED, 0, NULL,
     "requests that kept the limits of --slo"},
    {"self.share", "self.share", NULL, MEASURE_PLAIN, LESS, SINGLE, 0, NULL, "part of a run that is tare itself"},
    {NULL, NULL, NULL, MEASURE_PLAIN, LESS, SINGLE, 0, NULL, NULL},
};
/* clang-format on */

static const struct {
    const char *name, *means;
} short_names[] = {
    {"latency", "latency.p95"}, {"memory", "memory.peak"}, {"mean", "latency.mean"},
    {"p50", "latency.p50"},     {"p90", "latency.p90"},    {"p95", "latency.p95"},
    {"p99", "latency.p99"},     {"p999", "latency.p999"},  {"cpu_time", "cpu.time"},
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

void measure_column(const struct measure *m, char out[MEASURE_NAME_SIZE])
{
    static const char *const endings[] = {"_ns", "_per_s", "_bytes", ""};
    snprintf(out, MEASURE_NAME_SIZE, "%s%s", m->name, endings[m->kind]);
    for (char *at = out; *at; at++)
        if (*at == '.') *at = '_';
}

bool measure_of(const struct run_case *c, const struct measure *m, struct run_estimate *out)
{
    struct run_estimate got = {0};
    bool known = m->derive ? m->derive(c, &got) : run_case_value(c, m->path, &got);
    if (!known || !isfinite(got.value)) return false;
    *out = got;
    return true;
}

bool measure_named(const struct run_case *c, const char *name, struct run_estimate *out)
{
    const struct measure *m = measure_find(name);
    return m && measure_of(c, m, out);
}

bool measure_exceeds(const struct run_case *c, const struct measure *m, double *ns)
{
    const struct {
        const char *within;
        const struct run_latency *times;
    } all[] = {
        {"latency_ns.", &c->latency_ns},
        {"stream.ttft_ns.", &c->stream.ttft_ns},
        {"stream.tpot_ns.", &c->stream.tpot_ns},
        {"stream.gap_max_ns.", &c->stream.gap_max_ns},
    };
    const struct run_value *v = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all && m->derive != derive_per_unit; i++) {
        size_t n = strlen(all[i].within);
        if (strncmp(m->path, all[i].within, n) == 0) v = run_map_get(&all[i].times->at_least, m->path + n);
    }
    if (!v || v->kind != RUN_INT) return false;
    *ns = (double)v->i;
    return true;
}

bool measure_of_launch(const struct run_launch *l, const struct measure *m, double *out)
{
    struct run_estimate e;
    if (!m->launch || !run_launch_value(l, m->launch, &e)) return false;
    *out = e.value;
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
