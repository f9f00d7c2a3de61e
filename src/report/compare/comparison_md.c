/* SPDX-License-Identifier: MIT
 * comparison_md.c - a comparison as GitHub-flavoured Markdown, for a job summary or a comment on a pull request: the
 * verdict first, what may fail it next, the rest folded away. The first line lets a bot find and replace its own
 * comment. */
#include <string.h>

#include "report/compare/comparison_report.h"
#include "report/markup.h"

#define MARKER "<!-- tare compare -->\n"

static void fill_metric(struct buf *b, const struct comparison_metric *m)
{
    buf_add_str(b, m->metric);
}

static void fill_base(struct buf *b, const struct comparison_metric *m)
{
    comparison_value_text(b, m, &m->base);
}

static void fill_new(struct buf *b, const struct comparison_metric *m)
{
    comparison_value_text(b, m, &m->new_);
}

static void fill_change(struct buf *b, const struct comparison_metric *m)
{
    comparison_change_text(b, &m->ratio);
}

static void fill_interval(struct buf *b, const struct comparison_metric *m)
{
    comparison_interval_text(b, &m->ratio);
}

static void fill_mde(struct buf *b, const struct comparison_metric *m)
{
    if (m->mde.known)
        comparison_mde_text(b, m, "", "");
    else
        buf_add_char(b, '-');
}

static void fill_why(struct buf *b, const struct comparison_metric *m)
{
    if (m->why) buf_add_str(b, m->why);
}

static const struct {
    const char *title;
    bool text;
    void (*fill)(struct buf *b, const struct comparison_metric *m);
} columns[] = {
    {"metric", true, fill_metric},  {"base", false, fill_base},         {"new", false, fill_new},
    {"change", false, fill_change}, {"interval", false, fill_interval}, {"sees from", false, fill_mde},
    {"", true, fill_why},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void write_head(struct buf *b)
{
    buf_add_str(b, "| verdict | case ");
    for (int i = 0; i < COLUMNS; i++) buf_printf(b, "| %s ", columns[i].title);
    buf_add_str(b, "|\n|---|---");
    for (int i = 0; i < COLUMNS; i++) buf_add_str(b, columns[i].text ? "|---" : "|---:");
    buf_add_str(b, "|\n");
}

static void write_row(struct buf *b, const struct comparison_case *c, const struct comparison_metric *m)
{
    struct buf cell = BUF_INIT;
    bool bad = strcmp(m->verdict, "regressed") == 0;
    bool busy = c->interference.known && c->interference.contended.known && c->interference.contended.v;
    buf_printf(b, "| %s%s%s%s | ", bad ? "**" : "", m->verdict, bad ? "**" : "",
               busy ? " (busy machine)" : "");
    markup_md(b, *c->name ? c->name : "-");
    for (int i = 0; i < COLUMNS; i++) {
        buf_clear(&cell);
        columns[i].fill(&cell, m);
        buf_add_str(b, " | ");
        if (cell.failed) b->failed = 1;
        if (cell.len) markup_md(b, cell.data);
    }
    buf_add_str(b, " |\n");
    buf_release(&cell);
}

static size_t write_rows(struct stream *s, const struct comparison *c, bool gate)
{
    size_t n = 0;
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n && s->status == TARE_OK; k++) {
            const struct comparison_metric *m = c->cases.at[i]->metrics.at[k];
            if (comparison_gates(m) != gate) continue;
            if (n++ == 0) {
                if (!gate)
                    buf_add_str(&s->out, "<details><summary>metrics that do not fail it</summary>\n\n");
                write_head(&s->out);
            }
            write_row(&s->out, c->cases.at[i], m);
            stream_poll(s);
        }
    if (n) buf_add_str(&s->out, gate ? "\n" : "\n</details>\n\n");
    return n;
}

static void write_note(struct buf *b, const struct comparison_note *n, const char *of)
{
    bool loud = strcmp(n->severity, "info") != 0;
    buf_printf(b, "- %s%s%s: ", loud ? "**" : "", n->severity, loud ? "**" : "");
    if (of && *of) {
        markup_md(b, of);
        buf_add_str(b, ": ");
    }
    markup_md(b, n->text);
    buf_add_char(b, '\n');
}

static void write_differences(struct buf *b, const struct comparison *c)
{
    for (size_t i = 0; i < c->differences.n; i++) {
        const struct comparison_difference *d = c->differences.at[i];
        buf_printf(b, "- %s differs: ", d->severity);
        markup_md(b, d->what);
        buf_add_str(b, ": ");
        markup_md(b, d->base ? d->base : "unknown");
        buf_add_str(b, ", then ");
        markup_md(b, d->new_ ? d->new_ : "unknown");
        buf_add_char(b, '\n');
    }
    for (size_t i = 0; i < c->unmatched.n; i++) {
        buf_printf(b, "- only %s has: ", c->unmatched.at[i]->side);
        markup_md(b, c->unmatched.at[i]->name);
        buf_add_char(b, '\n');
    }
}

static void write_foot(struct buf *b, const struct comparison *c)
{
    if (c->reproduce) {
        buf_add_str(b, "\nAgain: ");
        markup_md(b, c->reproduce);
        buf_add_char(b, '\n');
    }
    buf_add_str(b, "\n<sub>");
    markup_md(b, c->method);
    buf_add_str(b, "; ");
    markup_md(b, c->created);
    if (c->host.cpu.model) {
        buf_add_str(b, "; ");
        markup_md(b, c->host.cpu.model);
    }
    buf_add_str(b, "; intervals at 95 %; tare ");
    markup_md(b, c->tool.version);
    buf_add_str(b, "</sub>\n");
}

tare_status report_comparison_md(struct stream *s, const struct comparison_report *r)
{
    const struct comparison *c = r->comparison;
    struct buf *b = &s->out;
    buf_printf(b, "%s### tare: %s\n\n", MARKER, c->verdict);
    markup_md(b, c->base.name);
    buf_add_str(b, " against ");
    markup_md(b, c->new_.name);
    buf_add_str(b, "\n\n");
    if (write_rows(s, c, true) == 0) buf_add_str(b, "Nothing was compared that may fail.\n\n");
    write_rows(s, c, false);
    for (size_t i = 0; i < c->cases.n && s->status == TARE_OK; i++) {
        for (size_t k = 0; k < c->cases.at[i]->notes.n; k++)
            write_note(b, c->cases.at[i]->notes.at[k], c->cases.n > 1 ? c->cases.at[i]->name : NULL);
        stream_poll(s);
    }
    for (size_t k = 0; k < c->notes.n; k++) write_note(b, c->notes.at[k], NULL);
    write_differences(b, c);
    write_foot(b, c);
    return stream_poll(s);
}
