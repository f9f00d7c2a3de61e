/* SPDX-License-Identifier: MIT
 * comparison_text.c - a comparison for people: the verdict, a row per metric of each case, what to know about it,
 * how to measure it again. */
#include <string.h>

#include "core/fmt.h"
#include "report/compare/comparison_report.h"
#include "report/table.h"
#include "report/text.h"

struct writer {
    struct stream *s;
    const struct comparison *c;
    const struct report_style *style;
};

static void plain(struct writer *w, const char *text)
{
    text_plain(&w->s->out, text, text_clip(text, 2000));
}

static void line(struct writer *w, const char *name, const char *text)
{
    if (!text) return;
    buf_printf(&w->s->out, "%s%-10s %s", w->style->dim, name, w->style->plain);
    plain(w, text);
    buf_add_char(&w->s->out, '\n');
}

/* ---- head ---- */

static void write_side(struct writer *w, const char *word, const struct comparison_side *side)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, side->name);
    if (side->runtime.known && side->runtime.version)
        buf_printf(&text, ", %s %s", side->runtime.name, side->runtime.version);
    for (size_t i = 0; i < side->options.n; i++)
        if (side->options.at[i].value.kind == RUN_TEXT && strcmp(side->options.at[i].key, "runtime") != 0)
            buf_printf(&text, ", %s %s", side->options.at[i].key, side->options.at[i].value.s);
    if (text.failed)
        w->s->out.failed = 1;
    else
        line(w, word, text.data);
    buf_release(&text);
}

/* ---- a case ---- */

static void fill_why(struct buf *b, const void *row)
{
    const struct comparison_metric *m = ((const struct comparison_row *)row)->metric;
    if (strcmp(m->method ? m->method : "", "derived") != 0) comparison_why_text(b, m);
}

static const struct table_fill columns[] = {
    {"metric", true, comparison_fill_metric},   {"base", false, comparison_fill_base},
    {"new", false, comparison_fill_new},        {"change", false, comparison_fill_change},
    {"95 %", false, comparison_fill_interval}, {"verdict", true, comparison_fill_verdict},
    {"", true, fill_why},
};

/* Where the spread comes from: launches can hide a change that pairs alone would show. */
static void write_spread(struct writer *w, const struct comparison_case *c)
{
    struct buf *b = &w->s->out;
    for (size_t i = 0; i < c->metrics.n; i++) {
        const struct comparison_metric *m = c->metrics.at[i];
        if (!m->sd_sample.known || strcmp(m->metric, "latency.p50") != 0) continue;
        buf_printf(b, ", a pair varies by %s", show_percent(m->sd_sample.v).s);
        if (m->sd_launch.known) buf_printf(b, ", a launch by %s more", show_percent(m->sd_launch.v).s);
    }
}

static void write_case(struct writer *w, const struct comparison_case *c)
{
    struct table t;
    struct buf *b = &w->s->out;
    table_of(&t, columns, sizeof columns / sizeof *columns);
    buf_printf(b, "\n%s", w->style->bold);
    plain(w, c->name);
    buf_printf(b, ": %s%s\n", c->verdict, w->style->plain);
    for (size_t i = 0; i < c->metrics.n; i++) table_row(&t, &(struct comparison_row){c, c->metrics.at[i]});
    table_print(&t, w->s, w->style->dim, w->style->plain);
    table_release(&t);
    if (c->pairs.known && c->launches.known) {
        buf_add_str(b, w->style->dim);
        fmt_counted(b, c->pairs.v, "pair", "pairs");
        buf_add_str(b, " in ");
        fmt_counted(b, c->launches.v, "launch", "launches");
        if (c->repeats.known && c->repeats.v > 1)
            buf_printf(b, " of %llu runs each", (unsigned long long)c->repeats.v);
        if (c->spent_s.known) buf_printf(b, ", %s", show_time(c->spent_s.v * 1e9).s);
        write_spread(w, c);
        buf_printf(b, "%s\n", w->style->plain);
    }
}

/* ---- notes ---- */

static void write_note(struct writer *w, const struct comparison_note *n)
{
    line(w, n->severity, n->text);
}

static void write_differences(struct writer *w)
{
    for (size_t i = 0; i < w->c->differences.n; i++) {
        const struct comparison_difference *d = w->c->differences.at[i];
        struct buf text = BUF_INIT;
        buf_printf(&text, "%s: %s, then %s", d->what, d->base ? d->base : "unknown",
                   d->new_ ? d->new_ : "unknown");
        if (text.failed)
            w->s->out.failed = 1;
        else
            line(w, "differs", text.data);
        buf_release(&text);
    }
    for (size_t i = 0; i < w->c->unmatched.n; i++)
        line(w, strcmp(w->c->unmatched.at[i]->side, "base") == 0 ? "base only" : "new only",
             w->c->unmatched.at[i]->name);
}

tare_status report_comparison_text(struct stream *s, const struct comparison_report *r)
{
    struct writer w = {s, r->comparison, &r->style};
    const struct comparison *c = r->comparison;
    write_side(&w, "base", &c->base);
    write_side(&w, "new", &c->new_);
    line(&w, "method", c->method);
    write_differences(&w);
    for (size_t i = 0; i < c->cases.n && s->status == TARE_OK; i++) {
        write_case(&w, c->cases.at[i]);
        for (size_t k = 0; k < c->cases.at[i]->notes.n; k++) write_note(&w, c->cases.at[i]->notes.at[k]);
        stream_poll(s);
    }
    buf_add_char(&s->out, '\n');
    for (size_t k = 0; k < c->notes.n; k++) write_note(&w, c->notes.at[k]);
    buf_printf(&s->out, "%sverdict: %s%s\n", r->style.bold, c->verdict, r->style.plain);
    line(&w, "again", c->reproduce);
    return stream_poll(s);
}
