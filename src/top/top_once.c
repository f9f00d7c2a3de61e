/* SPDX-License-Identifier: MIT
 * top_once.c - `tare top --once`: one answer about one moment, for people, scripts and Prometheus. */
#include <errno.h>
#include <math.h>
#include <time.h>

#include "top/top_run.h"
#include "core/json.h"
#include "report/prom.h"
#include "report/text.h"

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
    json_object_begin_flat(j);
    json_kv_int(j, "pid", r->pid);
    json_kv_int(j, "parent", r->parent);
    json_kv_string(j, "user", top_user(v, r->uid));
    json_kv_string(j, "state", (char[]){r->state, 0});
    json_kv_double(j, "cpu", r->cpu);
    json_kv_double(j, "cpu_s", r->user_s + r->system_s);
    json_kv_uint(j, "rss_bytes", r->rss_bytes);
    json_kv_uint(j, "threads", r->threads);
    json_kv_double(j, "read_bytes_per_s", r->read_rate);
    json_kv_double(j, "write_bytes_per_s", r->write_rate);
    json_kv_string(j, "name", r->name);
    json_kv_string(j, "command", r->command);
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
    for (const char *line = d->blind; *line;) {
        size_t n = 0, probe = 0;
        while (line[n] && line[n] != '\n') n++;
        while (probe < n && line[probe] != ':') probe++;
        size_t why = probe + 1 < n && line[probe + 1] == ' ' ? probe + 2 : probe;
        json_object_begin_flat(j);
        json_key(j, "probe");
        json_put_string_n(j, line, probe);
        json_key(j, "why");
        json_put_string_n(j, line + why, n - why);
        json_object_end(j);
        line += n + (line[n] == '\n');
    }
    json_array_end(j);
    json_key(j, "absent");
    json_array_begin(j);
    for (size_t m = 0; m < METRIC_COUNT; m++)
        if (!known[m]) json_put_string(j, metric_table[m].name);
    json_array_end(j);
}

void top_json(struct buf *out, struct top_view *v, const struct top_data *d)
{
    bool known[METRIC_COUNT];
    struct buf at = BUF_INIT;
    struct json j;
    known_metrics(d, known);
    text_date(&at, d->unix_ns, true);
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

static tare_status write_text(struct cli *cli, struct top_view *v, const struct top_data *d, struct buf *out)
{
    enum { FILE_WIDTH = 110, PROCESSES = 20 };
    struct screen s = SCREEN_INIT;
    unsigned width = cli->out_term.tty ? cli->out_term.width : FILE_WIDTH;
    s.utf8 = cli->out_term.utf8;
    tare_status status = screen_resize(&s, width, top_height(v, d, width, PROCESSES), &cli->error);
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

static tare_status observe(struct top_view *v, struct top_data *d, tare_error *err)
{
    if (d->replaying) return top_data_seek(d, d->tape.at_ns.n - 1, err);
    tare_status s = top_data_next(d, err);
    if (s < 0) return s;
    sleep_s(v->interval_s);
    return top_data_next(d, err);
}

int top_once(struct cli *cli, struct top_view *v, struct top_data *d, enum top_form form)
{
    struct buf out = BUF_INIT;
    v->once = true;
    tare_status s = observe(v, d, &cli->error);
    if (s == TARE_OK) s = top_arrange(v, d, &cli->error);
    if (s < 0) return cli_fail(cli);
    if (form == TOP_JSON)
        top_json(&out, v, d);
    else if (form == TOP_PROM)
        prom_write(&out, d->set, d->now);
    else
        s = write_text(cli, v, d, &out);
    int rc = s < 0 ? cli_fail(cli) : cli_put(cli, &out);
    buf_release(&out);
    return rc;
}
