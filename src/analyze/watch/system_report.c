/* SPDX-License-Identifier: MIT
 * system_report.c - see system_report.h. */
#include "analyze/watch/system_report.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "core/stats.h"

enum { KEPT_MAX = 4096 };
/* A percentile is told where one reading or more is expected beyond it: the greatest of three is no 95th. */
enum { P95_READINGS = 20, P99_READINGS = 100 };

struct tally {
    uint64_t n, stride; /* every stride-th value is kept */
    double sum, weight, min, max;
    uint64_t at_max_ns;
    VEC(double) kept;
};

struct system_report {
    size_t derived;        /* quantities of derived_table; the series of the set follow */
    VEC(struct tally) all; /* one per quantity and series */
};

tare_status system_report_new(struct system_report **out, tare_error *err)
{
    *out = mem_new(1, sizeof **out);
    if (!*out) return error_nomem(err, "the system report");
    while (derived_table[(*out)->derived].name) (*out)->derived++;
    return TARE_OK;
}

void system_report_free(struct system_report *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->all.n; i++) vec_release(&r->all.items[i].kept);
    vec_release(&r->all);
    mem_free(r);
}

/* ---- feeding ---- */

struct moment {
    double weight; /* ns that the value is of */
    uint64_t at_ns;
    bool brief; /* see derived_brief() */
};

static void thin_out(struct tally *t)
{
    for (size_t i = 0; i < t->kept.n / 2; i++) t->kept.items[i] = t->kept.items[2 * i];
    t->kept.n /= 2;
    t->stride *= 2;
}

static tare_status count(struct tally *t, double v, struct moment m, tare_error *err)
{
    t->sum += v * m.weight;
    t->weight += m.weight;
    if (m.brief && t->n)
        return TARE_OK; /* right in the mean, which is over time; no extreme, no percentile */
    if (t->n == 0 || v < t->min) t->min = v;
    if (t->n == 0 || v > t->max) {
        t->max = v;
        t->at_max_ns = m.at_ns;
    }
    if (t->kept.n == KEPT_MAX) thin_out(t);
    tare_status s = t->n % t->stride == 0 ? vec_push(&t->kept, v, err) : TARE_OK;
    t->n++;
    return s;
}

/* Processes come and go by the thousand: the trace has them, the report only their sums. */
static bool is_reported(const struct series *s)
{
    return strncmp(s->label, "pid ", 4) != 0;
}

tare_status system_report_feed(struct system_report *r, const struct deriver *d, const struct series_set *set,
                               uint64_t at_ns, tare_error *err)
{
    static const struct tally none = {.stride = 1};
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < r->derived + set->items.n; i++) {
        bool is_derived = i < r->derived;
        size_t series = i - r->derived; /* of the others */
        double v;
        if (i == r->all.n) s = vec_push(&r->all, none, err);
        if (s < 0 || (!is_derived && !is_reported(&set->items.items[series]))) continue;
        if (is_derived ? !derived_is_new(d, i) : !derived_series_is_new(d, series)) continue;
        if (is_derived ? !derived_at(d, i, "", &v) : !derived_series(d, series, &v)) continue;
        uint64_t span = is_derived ? derived_span_ns(d, i) : derived_series_ns(d, series);
        double weight = span ? (double)span : 1; /* 0: the first sample, gauges only */
        s = count(&r->all.items[i], v, (struct moment){weight, at_ns, derived_brief(d)}, err);
    }
    return s;
}

/* ---- the rows ---- */

static void describe(struct run_metric *to, const struct tally *t, double *sorted, uint64_t start_ns)
{
    to->samples = known_u64(t->n);
    to->mean = known_f64(t->sum / t->weight);
    to->min = known_f64(t->min);
    to->max = known_f64(t->max);
    to->at_max_s = known_f64(t->at_max_ns > start_ns ? (double)(t->at_max_ns - start_ns) / 1e9 : 0);
    memcpy(sorted, t->kept.items, t->kept.n * sizeof *sorted);
    stats_sort(sorted, t->kept.n);
    to->p50 = known_f64(stats_quantile_sorted(sorted, t->kept.n, 0.5));
    if (t->n >= P95_READINGS) to->p95 = known_f64(stats_quantile_sorted(sorted, t->kept.n, 0.95));
    if (t->n >= P99_READINGS) to->p99 = known_f64(stats_quantile_sorted(sorted, t->kept.n, 0.99));
}

/* What a row is of, without its numbers. */
static struct run_metric row_head(const struct system_report *r, const struct system_source *from, size_t i,
                                  struct arena *arena)
{
    if (i < r->derived)
        return (struct run_metric){
            .metric = derived_table[i].name, .label = "", .unit = derived_table[i].unit};
    const struct series *s = &from->set->items.items[i - r->derived];
    struct run_metric head = {.metric = metric_table[s->metric].name, .unit = derived_metric_unit(s->metric)};
    double grown;
    head.label = arena_str(arena, s->label);
    if (metric_table[s->metric].kind == METRIC_COUNTER &&
        derived_growth(from->deriver, i - r->derived, &grown))
        head.total = known_f64(grown);
    return head;
}

tare_status system_report_fill(const struct system_report *r, const struct system_source *from,
                               struct run *run, struct run_watch *watch, tare_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < r->all.n && n < RUN_LIST_MAX; i++) n += r->all.items[i].n > 0;
    watch->metrics.at = run_list_new(&run->arena, n, sizeof **watch->metrics.at);
    watch->metrics.n = 0;
    double *room = mem_new(KEPT_MAX, sizeof *room);
    for (size_t i = 0; watch->metrics.at && room && watch->metrics.n < n; i++) {
        if (r->all.items[i].n == 0) continue;
        struct run_metric *to = watch->metrics.at[watch->metrics.n++];
        *to = row_head(r, from, i, &run->arena);
        describe(to, &r->all.items[i], room, from->start_ns);
    }
    mem_free(room);
    return watch->metrics.n == n && !run->arena.failed ? TARE_OK : error_nomem(err, "the system report");
}

const struct run_metric *system_report_find(const struct run_watch *watch, const char *metric,
                                            const char *label)
{
    for (size_t i = 0; i < watch->metrics.n; i++) {
        const struct run_metric *m = watch->metrics.at[i];
        if (strcmp(m->metric, metric) == 0 && strcmp(m->label ? m->label : "", label) == 0) return m;
    }
    return NULL;
}
