/* SPDX-License-Identifier: MIT
 * export_form.c - see export_form.h. Names of tare's own metrics are those of /metrics; in others what Prometheus has
 * no room for becomes _. */
#include "server/exports/export_form.h"

#include <stdio.h>
#include <string.h>

#include "core/wire.h"
#include "report/prom.h"
#include "trace/metric.h"

enum { CUMULATIVE = 2 };

void export_form_init(struct export_form *f, bool prometheus)
{
    *f = (struct export_form){.prometheus = prometheus,
                              .out = BUF_INIT,
                              .points = BUF_INIT,
                              .part = BUF_INIT,
                              .metrics = BUF_INIT,
                              .resource = BUF_INIT};
}

void export_form_release(struct export_form *f)
{
    buf_release(&f->out);
    buf_release(&f->points);
    buf_release(&f->part);
    buf_release(&f->metrics);
    buf_release(&f->resource);
}

static void add_real(struct buf *b, uint32_t field, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    wire_add_key(b, field, WIRE_FIXED64);
    wire_add_fixed(b, bits, 8);
}

/* ---- Prometheus ---- */

static void add_label(struct export_form *f, const char *name, const char *value)
{
    struct buf label = BUF_INIT;
    wire_add_str(&label, 1, name);
    wire_add_str(&label, 2, value);
    wire_add_message(&f->part, 1, &label);
    if (label.failed) f->out.failed = true;
    buf_release(&label);
}

static void prometheus_name(const struct export_series *s, char out[STORE_NAME_MAX + PROM_NAME_MAX])
{
    enum metric_id known = metric_find(s->name);
    if (known != METRIC_COUNT) {
        prom_name(known, out);
        return;
    }
    snprintf(out, STORE_NAME_MAX + PROM_NAME_MAX, "%s%s", s->name[0] >= '0' && s->name[0] <= '9' ? "_" : "",
             s->name);
    for (char *p = out; *p; p++)
        if (strchr("./-", *p)) *p = '_';
}

/* Labels in order of their names, as the protocol has it. */
static void end_time_series(struct export_form *f)
{
    char name[STORE_NAME_MAX + PROM_NAME_MAX];
    prometheus_name(&f->of, name);
    add_label(f, "__name__", name);
    add_label(f, "host", f->of.host);
    if (f->of.label[0]) add_label(f, "label", f->of.label);
    if (f->of.project[0]) add_label(f, "project", f->of.project);
    buf_add(&f->part, f->points.data, f->points.len);
    wire_add_message(&f->out, 1, &f->part);
}

/* ---- OTLP ---- */

static void add_attribute(struct buf *to, uint32_t field, const char *key, const char *text)
{
    struct buf value = BUF_INIT, pair = BUF_INIT;
    wire_add_str(&value, 1, text);
    wire_add_str(&pair, 1, key);
    wire_add_message(&pair, 2, &value);
    wire_add_message(to, field, &pair);
    if (value.failed || pair.failed) to->failed = true;
    buf_release(&value);
    buf_release(&pair);
}

static void end_metric(struct export_form *f)
{
    struct buf data = BUF_INIT;
    wire_add_str(&f->part, 1, f->of.name);
    if (f->of.unit) wire_add_str(&f->part, 3, f->of.unit);
    buf_add(&data, f->points.data, f->points.len);
    if (f->of.counter) {
        wire_add_uint(&data, 2, CUMULATIVE);
        wire_add_uint(&data, 3, 1);
    }
    wire_add_message(&f->part, f->of.counter ? 7 : 5, &data);
    wire_add_message(&f->metrics, 2, &f->part);
    if (data.failed) f->out.failed = true;
    buf_release(&data);
}

static void end_resource(struct export_form *f)
{
    struct buf scope = BUF_INIT;
    wire_add_str(&scope, 1, "tare");
    wire_add_message(&f->part, 1, &scope);
    buf_add(&f->part, f->metrics.data, f->metrics.len);
    add_attribute(&f->resource, 1, "host.name", f->of.host);
    if (f->of.project[0]) add_attribute(&f->resource, 1, "tare.project", f->of.project);
    wire_add_message(&scope, 1, &f->resource);
    wire_add_message(&scope, 2, &f->part);
    wire_add_message(&f->out, 1, &scope);
    if (scope.failed) f->out.failed = true;
    buf_release(&scope);
}

/* ---- both ---- */

static void end_series(struct export_form *f)
{
    if (!f->points.len || !f->of.name) return;
    (f->prometheus ? end_time_series : end_metric)(f);
    buf_clear(&f->points);
}

void export_end_host(struct export_form *f)
{
    end_series(f);
    if (!f->prometheus && f->metrics.len) end_resource(f);
    buf_clear(&f->metrics);
    f->of.name = NULL;
    if (f->points.failed || f->part.failed || f->metrics.failed || f->resource.failed) f->out.failed = true;
}

static void add_point(struct export_form *f, int64_t at_ms, double value)
{
    if (f->prometheus) {
        add_real(&f->part, 1, value);
        wire_add_uint(&f->part, 2, (uint64_t)at_ms);
        wire_add_message(&f->points, 2, &f->part);
        return;
    }
    wire_add_key(&f->part, 3, WIRE_FIXED64);
    wire_add_fixed(&f->part, (uint64_t)at_ms * 1000000, 8);
    add_real(&f->part, 4, value);
    if (f->of.label[0]) add_attribute(&f->part, 7, "label", f->of.label);
    wire_add_message(&f->points, 1, &f->part);
}

void export_add(struct export_form *f, const struct export_series *of, int64_t at_ms, double value)
{
    if (!f->of.name || f->of.name != of->name || f->of.label != of->label) end_series(f);
    f->of = *of;
    add_point(f, at_ms, value);
    f->samples++;
}
