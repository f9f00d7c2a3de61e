/* SPDX-License-Identifier: MIT
 * comparison_report.c - what the formats of a comparison share; see comparison_report.h. */
#include "report/compare/comparison_report.h"

#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/run/run_report.h"
#include "report/text.h"

static tare_status report_comparison_json(struct stream *s, const struct comparison *c)
{
    return stream_end(s, comparison_write(c, &s->out, s->err));
}

const struct comparison_format comparison_formats[] = {
    {"text", "a table for people", report_comparison_text},
    {"json", "the document, tare.comparison/1", report_comparison_json},
    {"md", "Markdown, verdicts first", report_comparison_md},
    {"junit", "JUnit XML: a metric is a test case", report_comparison_junit},
    {"github", "annotations of a GitHub workflow", report_comparison_github},
    {NULL, NULL, NULL},
};

const struct comparison_format *comparison_format_find(const char *name)
{
    for (const struct comparison_format *f = comparison_formats; f->name; f++)
        if (strcmp(f->name, name) == 0) return f;
    return NULL;
}

/* "1.23 ms", "12 MiB", "81.2 runs/s"; "-" when unknown. */
static void comparison_value_text(struct buf *b, const struct comparison_metric *m,
                                  const struct run_estimate *e)
{
    const char *unit = m->unit ? m->unit : "";
    if (!e->known) {
        buf_add_char(b, '-');
    } else if (strcmp(unit, "ns") == 0) {
        fmt_duration(b, e->value);
    } else if (strcmp(unit, "bytes") == 0 && e->value >= 0) {
        fmt_bytes(b, round(e->value));
    } else {
        fmt_number(b, e->value);
        if (*unit) {
            buf_add_char(b, ' ');
            text_plain(b, unit, text_clip(unit, 40));
        }
    }
}

/* "+5.2 %", "935x", "-" */
static void comparison_change_text(struct buf *b, const struct run_estimate *ratio)
{
    fmt_change(b, ratio->known ? ratio->value : NAN);
}

/* "+4.1 .. +6.3 %", "2.93x .. 247x"; "unbounded" */
static void comparison_interval_text(struct buf *b, const struct run_estimate *ratio)
{
    if (!ratio->known || !ratio->lo.known || !ratio->hi.known) {
        buf_add_str(b, ratio->known ? "unbounded" : "-");
        return;
    }
    fmt_changes(b, ratio->lo.v, ratio->hi.v, " .. ");
}

void comparison_mde_text(struct buf *b, const struct comparison_metric *m, const char *before,
                         const char *after)
{
    double p = 100 * m->mde.v;
    int decimals = p < 0.995 ? 2 : 1;
    if (p >= 9.95) decimals = 0;
    buf_printf(b, "%s%.*f %%%s", before, decimals, p, after);
}

void comparison_why_text(struct buf *b, const struct comparison_metric *m)
{
    if (m->why)
        text_plain(b, m->why, text_clip(m->why, 400));
    else if (m->mde.known)
        comparison_mde_text(b, m, "detects ", " or more");
    else
        buf_add_char(b, '-');
}

bool comparison_gates(const struct comparison_metric *m)
{
    return strcmp(m->role, "gate") == 0;
}

void comparison_sentence(struct buf *b, const struct comparison_metric *m)
{
    comparison_change_text(b, &m->ratio);
    if (m->ratio.lo.known && m->ratio.hi.known) {
        buf_add_str(b, " (");
        comparison_interval_text(b, &m->ratio);
        buf_add_str(b, ")");
    }
    buf_add_str(b, ": ");
    comparison_value_text(b, m, &m->base);
    buf_add_str(b, ", then ");
    comparison_value_text(b, m, &m->new_);
    buf_add_str(b, "; ");
    comparison_why_text(b, m);
}

/* ---- columns: a row is a struct comparison_row ---- */

static const struct comparison_metric *metric_of_row(const void *row)
{
    return ((const struct comparison_row *)row)->metric;
}

void comparison_fill_verdict(struct buf *b, const void *row)
{
    buf_add_str(b, metric_of_row(row)->verdict);
}

void comparison_fill_metric(struct buf *b, const void *row)
{
    enum { NAME_SHOWN = 90 }; /* of kernels: the document has all of it */
    text_name(b, metric_of_row(row)->metric, NAME_SHOWN);
}

void comparison_fill_base(struct buf *b, const void *row)
{
    comparison_value_text(b, metric_of_row(row), &metric_of_row(row)->base);
}

void comparison_fill_new(struct buf *b, const void *row)
{
    comparison_value_text(b, metric_of_row(row), &metric_of_row(row)->new_);
}

void comparison_fill_change(struct buf *b, const void *row)
{
    comparison_change_text(b, &metric_of_row(row)->ratio);
}

void comparison_fill_interval(struct buf *b, const void *row)
{
    comparison_interval_text(b, &metric_of_row(row)->ratio);
}
