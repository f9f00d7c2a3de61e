/* SPDX-License-Identifier: MIT
 * system_report.c - see system_report.h. */
#include "analyze/watch/system_report.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "core/stats.h"

enum { KEPT_MAX = 4096 };

struct tally {
    uint64_t n, stride; /* every stride-th value is kept */
    double sum, weight, min, max;
    uint64_t at_max_ns;
    VEC(double) kept;
};

struct system_report {
    VEC(struct tally) derived; /* as derived_table */
    VEC(struct tally) series;  /* as the set */
};

tare_status system_report_new(struct system_report **out, tare_error *err)
{
    *out = mem_new(1, sizeof **out);
    return *out ? TARE_OK : error_nomem(err, "the system report");
}

void system_report_free(struct system_report *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->derived.n; i++) vec_release(&r->derived.items[i].kept);
    for (size_t i = 0; i < r->series.n; i++) vec_release(&r->series.items[i].kept);
    vec_release(&r->derived);
    vec_release(&r->series);
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
    struct moment m = {(double)derived_step_ns(d), at_ns, derived_brief(d)};
    tare_status s = TARE_OK;
    double v;
    if (m.weight <= 0) m.weight = 1; /* the first sample: gauges only */
    for (size_t i = 0; derived_table[i].name && s == TARE_OK; i++) {
        if (i == r->derived.n) s = vec_push(&r->derived, none, err);
        if (s == TARE_OK && derived_at(d, i, "", &v)) s = count(&r->derived.items[i], v, m, err);
    }
    for (size_t i = 0; i < set->items.n && s == TARE_OK; i++) {
        if (i == r->series.n) s = vec_push(&r->series, none, err);
        if (s != TARE_OK || !is_reported(&set->items.items[i]) || !derived_series(d, i, &v)) continue;
        m.weight = fmax((double)derived_series_ns(d, i), 1);
        s = count(&r->series.items[i], v, m, err);
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
    to->p95 = known_f64(stats_quantile_sorted(sorted, t->kept.n, 0.95));
    to->p99 = known_f64(stats_quantile_sorted(sorted, t->kept.n, 0.99));
}

static size_t rows_needed(const struct system_report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->derived.n; i++) n += r->derived.items[i].n > 0;
    for (size_t i = 0; i < r->series.n; i++) n += r->series.items[i].n > 0;
    return n < RUN_LIST_MAX ? n : RUN_LIST_MAX;
}

struct filling {
    const struct system_source *from;
    struct run_metric **at; /* the next row */
    size_t left;
    double *room;
};

static void add_row(struct filling *f, const struct tally *t, const struct run_metric *head)
{
    if (t->n == 0 || f->left == 0) return;
    struct run_metric *to = *f->at++;
    *to = *head;
    f->left--;
    describe(to, t, f->room, f->from->start_ns);
}

static void add_series(struct filling *f, const struct tally *t, size_t series, struct arena *arena)
{
    const struct series *s = &f->from->set->items.items[series];
    struct run_metric head = {.metric = metric_table[s->metric].name, .unit = derived_metric_unit(s->metric)};
    double grown;
    if (t->n == 0) return;
    head.label = arena_str(arena, s->label);
    if (metric_table[s->metric].kind == METRIC_COUNTER && derived_growth(f->from->deriver, series, &grown))
        head.total = known_f64(grown);
    add_row(f, t, &head);
}

tare_status system_report_fill(const struct system_report *r, const struct system_source *from,
                               struct run *run, struct run_watch *watch, tare_error *err)
{
    size_t n = rows_needed(r);
    struct filling f = {.from = from, .left = n};
    f.at = run_list_new(&run->arena, n, sizeof **f.at);
    f.room = mem_new(KEPT_MAX, sizeof *f.room);
    watch->metrics.at = f.at;
    watch->metrics.n = f.at && f.room ? n : 0;
    for (size_t i = 0; watch->metrics.n && i < r->derived.n; i++) {
        struct run_metric head = {
            .metric = derived_table[i].name, .label = "", .unit = derived_table[i].unit};
        add_row(&f, &r->derived.items[i], &head);
    }
    for (size_t i = 0; watch->metrics.n && i < r->series.n; i++)
        add_series(&f, &r->series.items[i], i, &run->arena);
    mem_free(f.room);
    return watch->metrics.n == n && !run->arena.failed
               ? TARE_OK
               : error_nomem(err, "the system report");
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
