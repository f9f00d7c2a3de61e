/* SPDX-License-Identifier: MIT
 * top_once.c - `tare top --once`: one answer about one moment, for people, scripts and Prometheus. */
#include <errno.h>
#include <math.h>
#include <time.h>

#include "core/fmt.h"
#include "core/json.h"
#include "report/prom.h"
#include "top/top.h"

/* ---- JSON ---- */

static void json_metric(struct json *j, const struct top_data *d, enum metric_id m)
{
    const struct metric *row = &metric_table[m];
    json_key(j, row->name);
    json_object_begin(j);
    json_kv_string(j, "unit", row->unit);
    json_kv_string(j, "kind", row->kind == METRIC_COUNTER ? "counter" : "gauge");
    for (int rates = 0; rates <= (row->kind == METRIC_COUNTER); rates++) {
        json_key(j, rates ? "rates" : "values");
        json_object_begin_flat(j);
        for (size_t i = 0; i < d->set->items.n; i++) {
            const struct series *one = &d->set->items.items[i];
            double v, now;
            if (one->metric != m || !sample_get(d->now, i, &now)) continue;
            if (!rates)
                json_kv_double(j, one->label, now);
            else
                json_kv_double(j, one->label, derived_series(d->derived, i, &v) ? v : NAN);
        }
        json_object_end(j);
    }
    json_object_end(j);
}

/* Which metrics have a value now. */
static void known_metrics(const struct top_data *d, bool known[METRIC_COUNT])
{
    double v;
    for (size_t m = 0; m < METRIC_COUNT; m++) known[m] = false;
    for (size_t i = 0; i < d->set->items.n; i++)
        if (sample_get(d->now, i, &v)) known[d->set->items.items[i].metric] = true;
}

static void json_metrics(struct json *j, const struct top_data *d, const bool known[METRIC_COUNT])
{
    json_key(j, "metrics");
    json_object_begin(j);
    for (size_t m = 0; m < METRIC_COUNT; m++)
        if (known[m]) json_metric(j, d, (enum metric_id)m);
    json_object_end(j);
    json_key(j, "derived");
    json_object_begin(j);
    for (const struct derived *q = derived_table; q->name; q++) {
        json_key(j, q->name);
        json_object_begin_flat(j);
        json_kv_string(j, "unit", q->unit);
        json_kv_double(j, "value", top_value(d, q->name, ""));
        json_object_end(j);
    }
    json_object_end(j);
}

static void json_process(struct json *j, struct top_view *v, const struct proc_row *r)
{
    struct top_fields fields;
    top_fields_of(&fields, v, r);
    json_object_begin_flat(j);
    for (size_t i = 0; i < TOP_FIELDS; i++) {
        const struct top_field *f = &fields.at[i];
        if (f->kind == TOP_WORD)
            json_kv_string(j, f->key, f->text);
        else if (f->kind == TOP_COUNT || f->kind == TOP_SIZE)
            json_kv_int(j, f->key, (int64_t)f->number);
        else
            json_kv_double(j, f->key, f->number);
    }
    json_object_end(j);
}

static void json_alerts(struct json *j, const struct top_data *d)
{
    json_key(j, "alerts");
    json_array_begin(j);
    for (size_t i = 0; i < d->rules.n; i++) {
        const struct alert_rule *r = &d->rules.items[i];
        json_object_begin_flat(j);
        json_kv_string(j, "rule", r->text);
        json_kv_bool(j, "active", d->alert.items[i].active);
        json_kv_double(j, "value", top_value(d, r->when.name, r->when.label));
        json_kv_string(j, "unit", r->unit);
        json_object_end(j);
    }
    json_array_end(j);
}

/* What cannot be seen and why, in the probes' words; and every metric without a value. */
static void json_unknown(struct json *j, const struct top_data *d, const bool known[METRIC_COUNT])
{
    json_key(j, "unknown");
    json_array_begin(j);
    struct top_blind_line line = {.next = d->blind};
    while (top_blind_next(&line)) {
        json_object_begin_flat(j);
        json_key(j, "probe");
        json_put_string_n(j, line.probe, line.n_probe);
        json_key(j, "why");
        json_put_string_n(j, line.why, line.n_why);
        json_object_end(j);
    }
    json_array_end(j);
    json_key(j, "absent");
    json_array_begin(j);
    for (size_t m = 0; m < METRIC_COUNT; m++)
        if (!known[m]) json_put_string(j, metric_table[m].name);
    json_array_end(j);
}

static void write_json(struct buf *out, struct top_view *v, const struct top_data *d)
{
    bool known[METRIC_COUNT];
    struct buf at = BUF_INIT;
    struct json j;
    known_metrics(d, known);
    fmt_date(&at, d->unix_ns, true);
    json_init(&j, out, JSON_STYLE_PRETTY);
    json_object_begin(&j);
    json_kv_string(&j, "schema", "tare.top/1");
    json_kv_string(&j, "version", TARE_VERSION);
    json_kv_string(&j, "host", d->replaying ? NULL : v->host);
    json_kv_string(&j, "at", at.data);
    json_kv_double(&j, "interval_s", (double)derived_step_ns(d->derived) / 1e9);
    json_metrics(&j, d, known);
    json_key(&j, "processes");
    json_array_begin(&j);
    for (size_t i = 0; i < v->lines.at.n; i++) json_process(&j, v, &d->rows[v->lines.at.items[i].row]);
    json_array_end(&j);
    json_kv_uint(&j, "processes_hidden", d->denied);
    json_alerts(&j, d);
    json_unknown(&j, d, known);
    json_object_end(&j);
    json_finish(&j, NULL);
    buf_release(&at);
}

/* ---- text ---- */

/* All panes, as on a terminal that is high enough. */
static tare_status write_text(struct buf *out, struct top_view *v, const struct top_data *d, tare_error *err)
{
    enum { PROCESSES = 20 };
    struct screen s = SCREEN_INIT;
    s.utf8 = v->utf8;
    tare_status status = screen_resize(&s, v->width, top_height(v, d, v->width, PROCESSES), err);
    if (status < 0) return status;
    top_draw(v, d, &s);
    screen_print(&s, out);
    screen_release(&s);
    return TARE_OK;
}

/* ---- the answer ---- */

static void sleep_s(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

/* Rates need two looks; the last moment of a recording has those before it. */
static tare_status observe(struct top_view *v, struct top_data *d, tare_error *err)
{
    if (d->replaying) return top_data_seek(d, d->tape.at_ns.n - 1, err);
    tare_status s = top_data_next(d, err);
    if (s < 0) return s;
    sleep_s(v->interval_s);
    return top_data_next(d, err);
}

tare_status top_once(struct top_view *v, struct top_data *d, enum top_form form, struct buf *out,
                     tare_error *err)
{
    v->once = true;
    tare_status s = observe(v, d, err);
    if (s == TARE_OK) s = top_arrange(v, d, err);
    if (s < 0) return s;
    if (form == TOP_TEXT) return write_text(out, v, d, err);
    if (form == TOP_JSON)
        write_json(out, v, d);
    else
        prom_write(out, d->set, d->now);
    return TARE_OK;
}
