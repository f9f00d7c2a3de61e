/* SPDX-License-Identifier: MIT
 * top_once.c - `tare top --once`: one answer about one moment, for people and for programs. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "core/fmt.h"
#include "top/top.h"

/* ---- for people: all panes, as on a terminal that is high enough ---- */

static tare_status draw_panes(struct buf *out, struct top_view *v, const struct top_data *d, tare_error *err)
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

/* ---- for programs: a member each ---- */

/* The values of a metric by label; of a counter also its rates. */
static void say_metric(struct answer *a, const struct top_data *d, enum metric_id m)
{
    const struct metric *row = &metric_table[m];
    bool counter = row->kind == METRIC_COUNTER;
    answer_object(a, row->name);
    answer_str(a, "unit", row->unit, NULL);
    answer_str(a, "kind", counter ? "counter" : "gauge", NULL);
    for (int rates = 0; rates <= counter; rates++) {
        answer_object_flat(a, rates ? "rates" : "values");
        for (size_t i = 0; i < d->set->items.n; i++) {
            const struct series *one = &d->set->items.items[i];
            double rate, now;
            if (one->metric != m || !sample_get(d->now, i, &now)) continue;
            if (rates) now = derived_series(d->derived, i, &rate) ? rate : NAN;
            answer_f64(a, one->label, now, NULL);
        }
        answer_object_end(a);
    }
    answer_object_end(a);
}

/* Which metrics have a value now. */
static void known_metrics(const struct top_data *d, bool known[METRIC_COUNT])
{
    double v;
    for (size_t m = 0; m < METRIC_COUNT; m++) known[m] = false;
    for (size_t i = 0; i < d->set->items.n; i++)
        if (sample_get(d->now, i, &v)) known[d->set->items.items[i].metric] = true;
}

static void say_metrics(struct answer *a, const struct top_data *d, const bool known[METRIC_COUNT])
{
    answer_object(a, "metrics");
    for (size_t m = 0; m < METRIC_COUNT; m++)
        if (known[m]) say_metric(a, d, (enum metric_id)m);
    answer_object_end(a);
    answer_object(a, "derived");
    for (const struct derived *q = derived_table; q->name; q++) {
        answer_object_flat(a, q->name);
        answer_str(a, "unit", q->unit, NULL);
        answer_f64(a, "value", top_value(d, q->name, ""), NULL);
        answer_object_end(a);
    }
    answer_object_end(a);
}

static void say_process(struct answer *a, struct top_view *v, const struct proc_row *r)
{
    struct top_fields fields;
    top_fields_of(&fields, v, r);
    answer_object_flat(a, NULL);
    for (size_t i = 0; i < TOP_FIELDS; i++) {
        const struct top_field *f = &fields.at[i];
        if (f->kind == TOP_WORD)
            answer_str(a, f->key, f->text, NULL);
        else if (f->kind == TOP_COUNT || f->kind == TOP_SIZE)
            answer_int(a, f->key, (int64_t)f->number, NULL);
        else
            answer_f64(a, f->key, f->number, NULL);
    }
    answer_object_end(a);
}

static void say_alerts(struct answer *a, const struct top_data *d)
{
    answer_list(a, "alerts");
    for (size_t i = 0; i < d->rules.items.n; i++) {
        const struct alert_rule *r = &d->rules.items.items[i];
        answer_object_flat(a, NULL);
        answer_str(a, "rule", r->text, NULL);
        answer_bool(a, "active", d->alert.items[i].active, NULL);
        answer_f64(a, "value", top_value(d, r->when.name, r->when.label), NULL);
        answer_str(a, "unit", r->unit, NULL);
        answer_object_end(a);
    }
    answer_list_end(a);
}

/* What cannot be seen and why, in the probes' words; and every metric without a value. */
static void say_unknown(struct answer *a, const struct top_data *d, const bool known[METRIC_COUNT])
{
    struct top_blind_line line = {.next = d->blind};
    answer_list(a, "unknown");
    while (top_blind_next(&line)) {
        answer_object_flat(a, NULL);
        answer_str(a, "probe", strndupa(line.probe, line.n_probe), NULL);
        answer_str(a, "why", strndupa(line.why, line.n_why), NULL);
        answer_object_end(a);
    }
    answer_list_end(a);
    answer_list(a, "absent");
    for (size_t m = 0; m < METRIC_COUNT; m++)
        if (!known[m]) answer_str(a, NULL, metric_table[m].name, NULL);
    answer_list_end(a);
}

/* The text is drawn in panes of its own, so everything after it is JSON only. A recording does not say on which host it
 * was made. */
void top_say(struct answer *a, struct top_view *v, const struct top_data *d)
{
    bool known[METRIC_COUNT];
    struct buf at = BUF_INIT;
    tare_status s = a->as_json ? TARE_OK : draw_panes(answer_text(a), v, d, a->stream.err);
    if (s != TARE_OK) a->stream.status = s;
    known_metrics(d, known);
    fmt_date(&at, d->unix_ns, true);
    answer_str(a, "schema", "tare.top/1", NULL);
    answer_str(a, "version", TARE_VERSION, NULL);
    answer_str(a, "host", d->replaying ? NULL : v->host, NULL);
    answer_str(a, "server", d->remote ? top_remote_where(d->remote) : NULL, NULL);
    answer_str(a, "at", at.data, NULL);
    answer_f64(a, "age_s", d->remote ? top_remote_age_s(d->remote) : 0, NULL);
    answer_f64(a, "interval_s", (double)derived_step_ns(d->derived) / 1e9, NULL);
    say_metrics(a, d, known);
    answer_list(a, "processes");
    for (size_t i = 0; i < v->lines.at.n; i++) say_process(a, v, &d->rows[v->lines.at.items[i].row]);
    answer_list_end(a);
    answer_uint(a, "processes_hidden", d->denied, NULL);
    say_alerts(a, d);
    say_unknown(a, d, known);
    buf_release(&at);
}

/* ---- the moment ---- */

static void sleep_s(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

/* Rates need two looks; the last moment of a recording has those before it. */
static tare_status take_moment(struct top_data *d, double interval_s, tare_error *err)
{
    if (d->replaying) return top_data_seek(d, d->tape.at_ns.n - 1, err);
    tare_status s = top_data_next(d, err);
    if (s < 0 || d->remote) return s; /* the server had both */
    sleep_s(interval_s);
    return top_data_next(d, err);
}

tare_status top_observe(struct top_view *v, struct top_data *d, tare_error *err)
{
    v->once = true;
    tare_status s = take_moment(d, v->interval_s, err);
    return s == TARE_OK ? top_arrange(v, d, err) : s;
}
