/* SPDX-License-Identifier: MIT
 * sla_report.c - see sla_report.h. */
#include "report/sla/sla_report.h"

#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/markup.h"
#include "report/table.h"

static const struct sla_format formats[] = {{"md", "text/markdown"}, {"html", "text/html"}};

const struct sla_format *sla_format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

struct page {
    struct stream *s;
    bool html;
};

/* ---- the few things that a report is made of ---- */

static void put_text(struct page *p, const char *text)
{
    if (p->html)
        markup_xml(&p->s->out, text);
    else
        markup_md(&p->s->out, text);
}

static void heading(struct page *p, int level, const char *text)
{
    struct buf *b = &p->s->out;
    if (p->html)
        buf_printf(b, "<h%d>", level);
    else
        buf_printf(b, "%s ", level == 1 ? "#" : "##");
    put_text(p, text);
    if (p->html)
        buf_printf(b, "</h%d>\n", level);
    else
        buf_add_str(b, "\n\n");
}

/* What is in `text`, which is released. */
static void paragraph(struct page *p, struct buf *text)
{
    struct buf *b = &p->s->out;
    if (text->failed) b->failed = 1;
    if (p->html) buf_add_str(b, "<p>");
    put_text(p, text->data ? text->data : "");
    buf_add_str(b, p->html ? "</p>\n" : "\n\n");
    buf_release(text);
}

static void end_table(struct page *p, struct table *t)
{
    bool any = p->html ? table_end_html(t, p->s) : table_end_md(t, p->s);
    if (any && !p->html) buf_add_char(&p->s->out, '\n');
}

static void add_share(struct buf *b, struct known_f64 share)
{
    if (share.known)
        buf_printf(b, "%.4g %%", share.v * 100);
    else
        buf_add_char(b, '-');
}

static void add_time(struct buf *b, const struct run_estimate *e)
{
    fmt_duration(b, e->known ? e->value : NAN);
}

static void add_ns(struct buf *b, struct known_u64 ns)
{
    fmt_duration(b, ns.known ? (double)ns.v : NAN);
}

/* ---- parts ---- */

static void put_head(struct page *p, const struct sla *doc)
{
    struct buf title = BUF_INIT, about = BUF_INIT;
    buf_printf(&title, "%s: ", doc->service);
    fmt_date(&title, doc->total.from_ms * 1000000, false);
    buf_add_str(&title, strcmp(doc->kind, "day") == 0 ? ", a day" : ", an hour");
    heading(p, 1, title.data ? title.data : "");
    buf_release(&title);
    buf_printf(&about, "Revision %llu of %llu, sealed ", (unsigned long long)doc->revision.v,
               (unsigned long long)doc->revisions.v);
    fmt_date(&about, doc->sealed_ms.v * 1000000, false);
    if (doc->project) buf_printf(&about, ". Project %s", doc->project);
    buf_printf(&about, ". Percentiles are within %.2g %% of the exact ones; counts are exact.",
               doc->error.v * 100);
    paragraph(p, &about);
}

static void put_completeness(struct page *p, const struct sla *doc)
{
    const struct sla_completeness *c = &doc->completeness;
    struct buf text = BUF_INIT;
    if (!c->known) return;
    buf_printf(&text, "%llu of %llu expected hosts were heard; ", (unsigned long long)c->hosts_heard,
               (unsigned long long)c->hosts_expected);
    fmt_counted(&text, c->minutes_missing, "minute", "minutes");
    buf_add_str(&text, " of a host missing; ");
    fmt_counted(&text, doc->total.lost, "request", "requests");
    buf_add_str(&text, " lost before they could be sent.");
    heading(p, 2, "Completeness");
    paragraph(p, &text);
    static const struct table_column columns[] = {{"host", true}, {"minutes missing", false}};
    struct table t;
    table_init(&t, columns, 2);
    for (size_t i = 0; i < c->missing.n; i++) {
        buf_add_str(table_cell(&t), c->missing.at[i]->host);
        fmt_count(table_cell(&t), c->missing.at[i]->minutes);
    }
    end_table(p, &t);
}

static void put_promises(struct page *p, const struct sla *doc)
{
    static const struct table_column columns[] = {
        {"within", false},   {"objective", false}, {"attained", false}, {"in time", false},
        {"too late", false}, {"errors", false},    {"burn 1 h", false}, {"burn 6 h", false}};
    struct table t;
    heading(p, 2, "Promises");
    if (doc->total.slo.n == 0) {
        struct buf none = BUF_INIT;
        buf_add_str(&none, "None was made.");
        paragraph(p, &none);
        return;
    }
    table_init(&t, columns, 8);
    for (size_t i = 0; i < doc->total.slo.n; i++) {
        const struct sla_slo *o = doc->total.slo.at[i];
        fmt_duration(table_cell(&t), (double)o->threshold_ns);
        add_share(table_cell(&t), known_f64(o->objective));
        add_share(table_cell(&t), o->attainment);
        fmt_count(table_cell(&t), o->within);
        fmt_count(table_cell(&t), o->breached);
        fmt_count(table_cell(&t), o->errors);
        fmt_number(table_cell(&t), o->burn_1h.known ? o->burn_1h.v : NAN);
        fmt_number(table_cell(&t), o->burn_6h.known ? o->burn_6h.v : NAN);
    }
    end_table(p, &t);
}

static const struct table_column span_columns[] = {
    {"", true},     {"requests", false}, {"errors", false}, {"given up", false}, {"p50", false}, {"p90", false},
    {"p95", false}, {"p99", false},      {"p99.9", false},  {"max", false}};
enum { SPAN_COLUMNS = sizeof span_columns / sizeof *span_columns };

static void span_row(struct table *t, const char *name, const struct sla_span *span)
{
    const struct sla_latency *l = &span->latency_ns;
    buf_add_str(table_cell(t), name);
    fmt_count(table_cell(t), span->requests);
    fmt_count(table_cell(t), span->errors);
    fmt_count(table_cell(t), span->cancelled);
    add_time(table_cell(t), &l->p50);
    add_time(table_cell(t), &l->p90);
    add_time(table_cell(t), &l->p95);
    add_time(table_cell(t), &l->p99);
    add_time(table_cell(t), &l->p999);
    add_ns(table_cell(t), l->max);
}

static void put_requests(struct page *p, const struct sla *doc)
{
    struct table t;
    heading(p, 2, "Requests");
    table_init(&t, span_columns, SPAN_COLUMNS);
    span_row(&t, "all", &doc->total);
    for (size_t i = 0; i < doc->routes.n; i++) span_row(&t, doc->routes.at[i]->name, &doc->routes.at[i]->total);
    end_table(p, &t);
    if (doc->p99_ratio.known) {
        struct buf text = BUF_INIT;
        buf_add_str(&text, "p99 against the same time a week before: ");
        fmt_changes(&text, doc->p99_ratio.lo.v, doc->p99_ratio.hi.v, " to ");
        buf_add_char(&text, '.');
        paragraph(p, &text);
    }
    if (doc->hosts.n < 2) return;
    heading(p, 2, "The slowest hosts");
    table_init(&t, span_columns, SPAN_COLUMNS);
    for (size_t i = 0; i < doc->hosts.n; i++) span_row(&t, doc->hosts.at[i]->name, &doc->hosts.at[i]->total);
    end_table(p, &t);
}

static void put_worst(struct page *p, const struct sla *doc)
{
    static const struct table_column columns[] = {
        {"request", true}, {"took", false}, {"ended", true}, {"failed", true}};
    struct table t;
    if (doc->worst.n == 0) return;
    heading(p, 2, "The slowest requests");
    table_init(&t, columns, 4);
    for (size_t i = 0; i < doc->worst.n; i++) {
        const struct requests_worst *w = doc->worst.at[i];
        buf_add_str(table_cell(&t), w->id);
        fmt_duration(table_cell(&t), (double)w->latency_ns);
        fmt_date(table_cell(&t), w->at_ms * 1000000, false);
        buf_add_str(table_cell(&t), w->failed ? w->failed : "");
    }
    end_table(p, &t);
}

static const char html_head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>tare</title><style>\n"
    "body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{padding:.2em .7em;border-bottom:1px solid #ccc;text-align:left}"
    ".n{text-align:right;font-variant-numeric:tabular-nums}\n</style></head><body>\n";

tare_status sla_report_write(const struct sla_format *format, const struct sla *doc, struct buf *out, tare_error *err)
{
    struct stream s;
    struct page p = {&s, format == &formats[1]};
    stream_init(&s, sink_to_buf(out), err);
    if (p.html) buf_add_str(&s.out, html_head);
    put_head(&p, doc);
    put_promises(&p, doc);
    put_requests(&p, doc);
    put_completeness(&p, doc);
    put_worst(&p, doc);
    if (p.html) buf_add_str(&s.out, "</body></html>\n");
    return stream_finish(&s);
}
