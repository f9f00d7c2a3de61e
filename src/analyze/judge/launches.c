/* SPDX-License-Identifier: MIT
 * launches.c - see launches.h. */
#include "analyze/judge/launches.h"

#include <math.h>
#include <string.h>

#include "analyze/judge/judge.h"
#include "analyze/judge/sweep.h"
#include "core/mem.h"
#include "core/stats.h"

#define LEVEL 0.95

/* ---- one launch ---- */

static struct known_u64 value_of(const struct run_estimate *t)
{
    return t->known ? known_u64((uint64_t)t->value) : (struct known_u64){0};
}

static void add_launch(struct run *into, struct run_case *to, const struct run *from,
                       const struct run_case *c)
{
    struct run_launch *l = run_add_launch(into, to);
    struct run_estimate e;
    if (!l) return; /* the arena remembers */
    l->created = arena_str(&into->arena, from->created);
    l->samples = c->samples;
    l->p50 = c->latency_ns.p50;
    l->mean = c->latency_ns.mean;
    l->p90 = value_of(&c->latency_ns.p90);
    l->p95 = value_of(&c->latency_ns.p95);
    l->p99 = value_of(&c->latency_ns.p99);
    l->load_ns = c->load_ns;
    l->rss_peak = c->memory.known ? c->memory.rss_peak : (struct known_u64){0};
    if (measure_named(c, "throughput", &e)) l->throughput = known_f64(e.value);
    if (measure_named(c, "cpu.time", &e)) l->cpu_ns_per_run = known_f64(e.value);
}

/* ---- all launches of a case ---- */

struct pool {
    struct run *run;
    struct run_case *c;
    const struct run_case **from; /* c's own first; NULL: a launch without this case */
    size_t n;
    double *x; /* n of them */
};

static size_t gather(const struct pool *p, const char *name)
{
    const struct measure *m = measure_find(name);
    size_t n = 0;
    for (size_t i = 0; i < p->c->launches.n; i++) {
        double v;
        if (measure_of_launch(p->c->launches.at[i], m, &v) && v > 0 && isfinite(v)) p->x[n++] = log(v);
    }
    return n;
}

/* The median of the launches, with the t interval of their mean logarithm widened to hold it. */
static bool over_launches(const struct pool *p, const char *name, struct run_estimate *out)
{
    size_t n = gather(p, name);
    if (n == 0) return false;
    double mean = stats_mean(p->x, n), sd = stats_stddev(p->x, n);
    stats_sort(p->x, n);
    double median = stats_median_sorted(p->x, n);
    *out = (struct run_estimate){.known = true, .value = exp(median)};
    if (n < 2) return true;
    double half = stats_t_quantile((1 + LEVEL) / 2, (double)(n - 1)) * sd / sqrt((double)n);
    *out = run_estimate(out->value, exp(fmin(mean - half, median)), exp(fmax(mean + half, median)));
    return true;
}

static uint64_t whole(double v)
{
    return v <= 0 ? 0 : (uint64_t)(v + 0.5);
}

static void set_time(const struct pool *p, const char *name, struct run_estimate *out)
{
    *out = (struct run_estimate){0};
    if (!over_launches(p, name, out)) return;
    out->value = (double)whole(out->value);
    out->lo.v = (double)whole(out->lo.v);
    out->hi.v = (double)whole(out->hi.v);
}

static void set_times(struct pool *p)
{
    struct run_latency *l = &p->c->latency_ns;
    struct run_estimate e;
    set_time(p, "latency.p50", &l->p50);
    set_time(p, "latency.p90", &l->p90);
    set_time(p, "latency.p95", &l->p95);
    set_time(p, "latency.p99", &l->p99);
    if (l->p999.known) run_unknown(p->run, &p->c->unknown, "latency_ns.p999", "not taken over launches");
    l->p999 = (struct run_estimate){0};
    if (over_launches(p, "latency.mean", &e)) l->mean = known_u64(whole(e.value));
    if (over_launches(p, "load", &e)) p->c->load_ns = known_u64(whole(e.value));
    if (over_launches(p, "throughput", &e)) p->c->throughput.rate = e;
}

static void add_u64(struct known_u64 *to, const struct known_u64 *more)
{
    to->known = to->known && more->known;
    to->v = to->known ? to->v + more->v : 0;
}

static void most_u64(struct known_u64 *to, const struct known_u64 *more)
{
    if (more->known && (!to->known || more->v > to->v)) *to = *more;
}

/* Counts add up, peaks are the greatest, shares the worst. */
static void add_counts(struct run_case *to, const struct run_case *more)
{
    add_u64(&to->samples, &more->samples);
    add_u64(&to->warmup_runs, &more->warmup_runs);
    add_u64(&to->failed_runs, &more->failed_runs);
    if (more->latency_ns.min.known &&
        (!to->latency_ns.min.known || more->latency_ns.min.v < to->latency_ns.min.v))
        to->latency_ns.min = more->latency_ns.min;
    most_u64(&to->latency_ns.max, &more->latency_ns.max);
    most_u64(&to->memory.rss_peak, &more->memory.rss_peak);
    add_u64(&to->cpu.user_ns, &more->cpu.user_ns);
    add_u64(&to->cpu.system_ns, &more->cpu.system_ns);
    add_u64(&to->cpu.voluntary_switches, &more->cpu.voluntary_switches);
    add_u64(&to->cpu.involuntary_switches, &more->cpu.involuntary_switches);
    add_u64(&to->cpu.throttled_ns, &more->cpu.throttled_ns);
    if (more->cpu.steal.known && more->cpu.steal.v > to->cpu.steal.v) to->cpu.steal = more->cpu.steal;
    add_u64(&to->outliers.count, &more->outliers.count);
    add_u64(&to->outliers.explained, &more->outliers.explained);
    most_u64(&to->outliers.limit_ns, &more->outliers.limit_ns);
    struct run_io *io = &to->io;
    const struct run_io *m = &more->io;
    add_u64(&io->read_bytes, &m->read_bytes);
    add_u64(&io->write_bytes, &m->write_bytes);
    add_u64(&io->read_ops, &m->read_ops);
    add_u64(&io->write_ops, &m->write_ops);
    add_u64(&io->net_rx_bytes, &m->net_rx_bytes);
    add_u64(&io->net_tx_bytes, &m->net_tx_bytes);
}

/* What launches do not change is the first one's; a quotient of things that were summed is summed no more. */
static void drop_quotients(struct pool *p)
{
    struct run_memory *m = &p->c->memory;
    if (m->growth.known)
        run_unknown(p->run, &p->c->unknown, "memory.growth", "each launch begins anew; see one launch");
    m->growth = (struct run_estimate){0};
    if (m->rss_peak.known && m->rss_before.known)
        m->delta = known_i64((int64_t)m->rss_peak.v - (int64_t)m->rss_before.v);
}

/* ---- single times ---- */

/* All single times one after another, up to what a document holds; of a launch without them nothing is made up. */
static tare_status pool_samples(struct pool *p, tare_error *err)
{
    struct run_case *c = p->c;
    size_t total = 0, n = 0;
    bool all = true;
    for (size_t i = 0; i < p->n; i++) {
        const struct run_samples *s = p->from[i] ? &p->from[i]->samples_raw : NULL;
        if (s && s->known) total += s->n;
        all = all && (!p->from[i] || (s->known && strcmp(s->kept, "all") == 0));
    }
    if (total > RUN_SAMPLES_MAX) all = false, total = RUN_SAMPLES_MAX;
    uint64_t *ns = mem_new(total ? total : 1, sizeof *ns);
    if (!ns) return error_nomem(err, "%zu samples", total);
    for (size_t i = 0; i < p->n; i++) {
        const struct run_samples *s = p->from[i] ? &p->from[i]->samples_raw : NULL;
        size_t take = s && s->known ? s->n : 0;
        if (take > total - n) take = total - n;
        if (take) memcpy(ns + n, s->ns, take * sizeof *ns);
        n += take;
    }
    struct hist h = HIST_INIT;
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < n; i++) st = hist_record(&h, ns[i], err);
    if (st == TARE_OK && n) {
        c->samples_raw.cap = RUN_SAMPLES_MAX;
        run_set_samples(p->run, c, ns, n, all ? "all" : "first");
        run_set_histogram(p->run, &c->latency_ns.histogram, &h);
        double *x = mem_new(n, sizeof *x);
        for (size_t i = 0; x && i < n; i++) x[i] = (double)ns[i];
        if (x && n > 1) c->latency_ns.stddev = known_u64(whole(stats_stddev(x, n)));
        mem_free(x);
    }
    hist_release(&h);
    mem_free(ns);
    return st;
}

/* ---- all cases ---- */

/* The case that all are pooled into is the first launch itself. So it is noted as a launch before anything else: what
 * follows replaces its own numbers by those of all. */
static tare_status pool_case(struct pool *p, const struct launches_more *more, tare_error *err)
{
    struct run_case *c = p->c;
    p->from[0] = c;
    add_launch(p->run, c, p->run, c);
    for (size_t i = 0; i < more->n; i++) {
        p->from[i + 1] = case_named(more->at[i], c->name);
        if (p->from[i + 1]) add_launch(p->run, c, more->at[i], p->from[i + 1]);
    }
    for (size_t i = 0; more->env_pad && i < p->n && i < c->launches.n; i++)
        c->launches.at[i]->env_pad = known_u64(more->env_pad[i]);
    tare_status s = pool_samples(p, err);
    if (s < 0) return s;
    for (size_t i = 1; i < p->n; i++)
        if (p->from[i]) add_counts(c, p->from[i]);
    set_times(p);
    drop_quotients(p);
    c->confidence = known_f64(LEVEL);
    return TARE_OK;
}

tare_status launches_pool(struct run *into, const struct launches_more *more, tare_error *err)
{
    size_t n = more->n + 1;
    struct pool p = {.run = into, .n = n, .from = mem_new(n, sizeof *p.from), .x = mem_new(n, sizeof *p.x)};
    tare_status s = p.from && p.x ? TARE_OK : error_nomem(err, "%zu launches", n);
    for (size_t i = 0; s == TARE_OK && i < into->cases.n; i++) {
        p.c = into->cases.at[i];
        s = pool_case(&p, more, err);
    }
    mem_free(p.from);
    mem_free(p.x);
    run_map_int(&into->arena, &into->config, "repeat", (int64_t)n);
    if (s == TARE_OK && into->arena.failed) s = error_nomem(err, "a document");
    return s;
}

/* ---- how far apart ---- */

/* In logarithms, which makes a spread relative. The half width of a launch's interval over the normal quantile is the
 * deviation of its median; `within` is the root of the mean square of these. */
struct launches_spread launches_spread(const struct run_case *c)
{
    struct launches_spread out = {NAN, NAN, -1};
    double sum = 0, square = 0, within = 0;
    size_t n = 0, bounded = 0;
    for (size_t i = 0; i < c->launches.n; i++) {
        const struct run_launch *l = c->launches.at[i];
        int64_t gap = i ? run_unix_ms(l->created) - run_unix_ms(c->launches.at[i - 1]->created) : -1;
        if (i && (out.apart_ms < 0 || gap < out.apart_ms)) out.apart_ms = gap > 0 ? gap : 0;
        if (!l->p50.known || l->p50.value == 0) continue;
        double y = log(l->p50.value);
        sum += y;
        square += y * y;
        n++;
        if (!l->p50.lo.known || !l->p50.hi.known || l->p50.lo.v == 0) continue;
        double half = log(l->p50.hi.v / l->p50.lo.v) / 2 / stats_normal_quantile((1 + LEVEL) / 2);
        within += half * half;
        bounded++;
    }
    if (n > 1) out.between = sqrt(fmax(0, (square - sum * sum / (double)n) / (double)(n - 1)));
    if (bounded) out.within = sqrt(within / (double)bounded);
    return out;
}
