/* SPDX-License-Identifier: MIT
 * timeline_json.c - what probes sampled into a trace as one JSON value, `tare.timeline/1`: times and columns for the
 * report page (docs/timeline-format.md). Bounded whatever the length of the recording: past TIMELINE_POINTS_MAX moments
 * neighbours are joined, and each column then also has its peaks. Never writes 0 for what was unknown. Moments are
 * replayed through the deriver, so that the page shows the same quantities as `tare top` and the run document; a column
 * is one of those, or one series of the trace. */
#include "report/trace/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/watch/watched.h"
#include "core/fmt.h"
#include "core/json.h"
#include "core/mem.h"

/* ---- joined moments ---- */

struct cell {
    double sum, peak;
    size_t known;
};

struct timeline {
    const struct samples *s;
    size_t derived, columns; /* the first `derived` columns are of derived_table */
    size_t step, points;     /* moments joined into one point */
    struct cell *cells;      /* [column][point] */
};

static size_t count_derived(void)
{
    size_t n = 0;
    while (derived_table[n].name) n++;
    return n;
}

static tare_status timeline_init(struct timeline *t, const struct samples *s, tare_error *err)
{
    size_t moments = s->at_ns.n;
    *t = (struct timeline){.s = s, .derived = count_derived(), .step = 1};
    if (moments > TIMELINE_POINTS_MAX) t->step = (moments + TIMELINE_POINTS_MAX - 1) / TIMELINE_POINTS_MAX;
    t->points = (moments + t->step - 1) / t->step;
    t->columns = t->derived + s->set.items.n;
    t->cells = mem_new(t->columns * t->points, sizeof *t->cells);
    return t->cells ? TARE_OK : error_nomem(err, "a timeline");
}

static struct cell *cell_at(const struct timeline *t, size_t column, size_t point)
{
    return &t->cells[column * t->points + point];
}

static void cell_add(struct cell *c, double v)
{
    if (!isfinite(v)) return;
    if (c->known == 0 || v > c->peak) c->peak = v;
    c->sum += v;
    c->known++;
}

static double cell_mean(const struct cell *c)
{
    return c->known ? c->sum / (double)c->known : NAN;
}

static void add_moment(struct timeline *t, const struct deriver *d, size_t moment)
{
    size_t point = moment / t->step;
    double v;
    for (size_t i = 0; i < t->derived; i++)
        if (derived_value(d, derived_table[i].name, "", &v)) cell_add(cell_at(t, i, point), v);
    for (size_t i = 0; i < t->s->set.items.n; i++)
        if (derived_series(d, i, &v)) cell_add(cell_at(t, t->derived + i, point), v);
}

static tare_status replay(struct timeline *t, tare_error *err)
{
    struct deriver *d = NULL;
    struct sample now = SAMPLE_INIT;
    tare_status st = deriver_new(&d, err);
    for (size_t i = 0; st == TARE_OK && i < t->s->at_ns.n; i++) {
        st = course_moment(t->s, i, &now, err);
        if (st == TARE_OK) st = deriver_feed(d, &t->s->set, &now, err);
        if (st == TARE_OK && !derived_brief(d)) add_moment(t, d, i);
    }
    sample_release(&now);
    deriver_free(d);
    return st;
}

/* ---- writing ---- */

/* Six digits: more than a plot shows, and a third of the bytes. */
static void put_short(struct json *j, double v)
{
    char text[32];
    if (!isfinite(v)) {
        json_put_null(j);
        return;
    }
    snprintf(text, sizeof text, "%.6g", v);
    json_put_double(j, strtod(text, NULL));
}

/* From the first moment, as phases and alerts are told. */
static double seconds_from_start(const struct samples *s, uint64_t at_ns)
{
    uint64_t start = s->at_ns.n ? s->at_ns.items[0] : 0;
    return at_ns > start ? (double)(at_ns - start) / 1e9 : 0;
}

static void put_times(struct json *j, const struct timeline *t)
{
    json_key(j, "at_s");
    json_array_begin_flat(j);
    for (size_t p = 0; p < t->points; p++)
        json_put_double(j, round(seconds_from_start(t->s, t->s->at_ns.items[p * t->step]) * 1e4) / 1e4);
    json_array_end(j);
}

/* A rate is of all the time since its counter was read before, a gauge of the moment only. */
static bool is_rate(const struct timeline *t, size_t column)
{
    if (column < t->derived) return derived_is_rate(column);
    return metric_table[t->s->set.items.items[column - t->derived].metric].kind == METRIC_COUNTER;
}

/* Most of a machine's counters never move: one number says all of such a column. */
static bool is_constant(const struct timeline *t, size_t column, double *out)
{
    bool any = false;
    for (size_t p = 0; p < t->points; p++) {
        const struct cell *c = cell_at(t, column, p);
        double mean = cell_mean(c);
        if (!c->known && any && !is_rate(t, column)) return false; /* a gap stays one */
        if (!c->known) continue;
        if (any && !(mean == *out && c->peak == *out)) return false;
        *out = mean;
        any = true;
    }
    return any;
}

static bool is_unknown(const struct timeline *t, size_t column)
{
    for (size_t p = 0; p < t->points; p++)
        if (cell_at(t, column, p)->known) return false;
    return true;
}

static void put_cells(struct json *j, const struct timeline *t, size_t column, bool peaks)
{
    json_key(j, peaks ? "peaks" : "values");
    json_array_begin_flat(j);
    for (size_t p = 0; p < t->points; p++) {
        const struct cell *c = cell_at(t, column, p);
        put_short(j, peaks && c->known ? c->peak : cell_mean(c));
    }
    json_array_end(j);
}

/* A column without a value is left out and a constant one is a single number: most of a machine's series never change.
 * Where several samples share a cell, a second list has their peaks, which a mean would hide. */
static void put_column(struct json *j, const struct timeline *t, size_t column)
{
    bool whole = column < t->derived;
    const struct series *series = whole ? NULL : &t->s->set.items.items[column - t->derived];
    double constant = NAN;
    if (is_unknown(t, column)) return;
    json_object_begin(j);
    json_kv_string(j, "metric", whole ? derived_table[column].name : metric_table[series->metric].name);
    json_kv_string(j, "label", whole ? "" : series->label);
    json_kv_string(j, "unit", whole ? derived_table[column].unit : derived_metric_unit(series->metric));
    if (is_constant(t, column, &constant)) {
        json_kv_double(j, "constant", constant);
    } else {
        put_cells(j, t, column, false);
        if (t->step > 1) put_cells(j, t, column, true);
    }
    json_object_end(j);
}

static void put_known(struct json *j, const char *key, struct known_f64 v)
{
    json_kv_double(j, key, v.known ? v.v : NAN);
}

static void put_phases(struct json *j, const struct run_watch *w)
{
    json_key(j, "phases");
    json_array_begin(j);
    for (size_t i = 0; i < w->phases.n; i++) {
        const struct run_phase *p = w->phases.at[i];
        json_object_begin_flat(j);
        json_kv_string(j, "name", p->name);
        put_known(j, "start_s", p->start_s);
        put_known(j, "end_s", p->end_s);
        put_known(j, "cpu", p->cpu);
        put_known(j, "gpu", p->gpu);
        json_kv_double(j, "rss", p->rss.known ? (double)p->rss.v : NAN);
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_alerts(struct json *j, const struct run_watch *w)
{
    json_key(j, "alerts");
    json_array_begin(j);
    for (size_t i = 0; i < w->alerts.n; i++) {
        const struct run_alert *a = w->alerts.at[i];
        json_object_begin_flat(j);
        json_kv_string(j, "rule", a->rule);
        json_kv_string(j, "metric", a->metric);
        put_known(j, "start_s", a->start_s);
        put_known(j, "end_s", a->end_s);
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_notes(struct json *j, const struct samples *s)
{
    json_key(j, "notes");
    json_array_begin(j);
    for (size_t i = 0; i < s->marks.n; i++) {
        if (s->marks.items[i].kind != SAMPLE_NOTE) continue;
        json_object_begin_flat(j);
        json_kv_double(j, "at_s", seconds_from_start(s, s->marks.items[i].at_ns));
        json_kv_string(j, "text", s->marks.items[i].text);
        json_object_end(j);
    }
    json_array_end(j);
}

static tare_status put_watched(struct json *j, const struct samples *s, tare_error *err)
{
    struct run run;
    tare_status st = run_init(&run, "run", err);
    if (st != TARE_OK) return st;
    st = watched_from_samples(&run, s, err);
    if (st == TARE_OK) {
        put_phases(j, &run.cases.at[0]->watch);
        put_alerts(j, &run.cases.at[0]->watch);
    }
    run_release(&run);
    return st;
}

static void put_head(struct json *j, const struct timeline *t)
{
    const struct samples *s = t->s;
    uint64_t late = s->at_ns.n && s->at_ns.items[0] > s->start_ns ? s->at_ns.items[0] - s->start_ns : 0;
    struct buf when = BUF_INIT;
    fmt_date(&when, s->start_unix_ns + late, true);
    json_kv_string(j, "schema", "tare.timeline/1");
    json_kv_string(j, "run", s->run_id);
    json_kv_string(j, "start", s->start_unix_ns && !when.failed ? when.data : NULL);
    json_kv_bool(j, "closed", s->closed);
    json_kv_uint(j, "damaged", s->damaged);
    json_kv_uint(j, "moments", s->at_ns.n);
    json_kv_uint(j, "joined", t->step);
    buf_release(&when);
}

static tare_status put_all(struct stream *out, const struct timeline *t)
{
    struct json j;
    json_init(&j, &out->out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    put_head(&j, t);
    put_times(&j, t);
    json_key(&j, "series");
    json_array_begin(&j);
    for (size_t i = 0; i < t->columns && stream_poll(out) == TARE_OK; i++) put_column(&j, t, i);
    json_array_end(&j);
    tare_status st = put_watched(&j, t->s, out->err);
    if (st != TARE_OK) return st;
    put_notes(&j, t->s);
    json_object_end(&j);
    return json_finish(&j, out->err);
}

tare_status timeline_json_write(struct stream *out, const struct samples *s)
{
    struct timeline t;
    tare_status st = timeline_init(&t, s, out->err);
    if (st == TARE_OK) st = replay(&t, out->err);
    if (st == TARE_OK) st = put_all(out, &t);
    if (st != TARE_OK && out->status == TARE_OK) out->status = st;
    mem_free(t.cells);
    return out->status;
}
