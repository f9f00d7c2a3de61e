/* SPDX-License-Identifier: MIT
 * comparison_md.c - a comparison as GitHub-flavoured Markdown, for a job summary or a comment on a pull request: the
 * verdict first, what may fail it next, the rest folded away. The first line lets a bot find and replace its own
 * comment. */
#include <string.h>

#include "report/compare/comparison_report.h"
#include "report/markup.h"
#include "report/table.h"
#include "report/text.h"

#define MARKER "<!-- tare compare -->\n"

static void fill_verdict(struct buf *b, const void *row)
{
    const struct comparison_evidence *i = &((const struct comparison_row *)row)->of->interference;
    comparison_fill_verdict(b, row);
    if (i->known && i->contended.known && i->contended.v) buf_add_str(b, " (busy machine)");
}

static void fill_case(struct buf *b, const void *row)
{
    const char *name = ((const struct comparison_row *)row)->of->name;
    text_plain(b, *name ? name : "-", text_clip(*name ? name : "-", 1000));
}

static void fill_mde(struct buf *b, const void *row)
{
    const struct comparison_metric *m = ((const struct comparison_row *)row)->metric;
    if (m->mde.known)
        comparison_mde_text(b, m, "", "");
    else
        buf_add_char(b, '-');
}

static void fill_why(struct buf *b, const void *row)
{
    const char *why = ((const struct comparison_row *)row)->metric->why;
    if (why) text_plain(b, why, text_clip(why, 1000));
}

/* Earlier runs and this one, where the history was asked. */
static const char *history_of(const struct comparison_metric *m)
{
    const struct run_value *line = run_map_get(&m->evidence, "history");
    return line && line->kind == RUN_TEXT ? line->s : NULL;
}

static void fill_history(struct buf *b, const void *row)
{
    const char *line = history_of(((const struct comparison_row *)row)->metric);
    if (line) text_plain(b, line, text_clip(line, 200));
}

static bool any_history(const struct comparison *c)
{
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n; k++)
            if (history_of(c->cases.at[i]->metrics.at[k])) return true;
    return false;
}

static const struct table_fill columns[] = {
    {"verdict", true, fill_verdict},
    {"case", true, fill_case},
    {"metric", true, comparison_fill_metric},
    {"base", false, comparison_fill_base},
    {"new", false, comparison_fill_new},
    {"change", false, comparison_fill_change},
    {"interval", false, comparison_fill_interval},
    {"sees from", false, fill_mde},
    {"", true, fill_why},
    {"history", true, fill_history}, /* the last one: left out where there is none */
};

/* Called once for the metrics that may fail the comparison and once for the others, which are folded away. The opening
 * tag is written before the table, so it depends on whether there are cells. */
static bool write_rows(struct stream *s, const struct comparison *c, bool gate)
{
    struct table t;
    table_of(&t, columns, sizeof columns / sizeof *columns - !(gate && any_history(c)));
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n; k++) {
            struct comparison_row row = {c->cases.at[i], c->cases.at[i]->metrics.at[k]};
            size_t first = t.n_cells;
            if (comparison_gates(row.metric) != gate) continue;
            table_row(&t, &row);
            if (strcmp(row.metric->verdict, "regressed") == 0 && first < t.n_cells)
                t.cells[first].bold = strlen("regressed");
        }
    if (t.n_cells && !gate)
        buf_add_str(&s->out, "<details><summary>metrics that do not fail it</summary>\n\n");
    bool any = table_end_md(&t, s);
    if (any) buf_add_str(&s->out, gate ? "\n" : "\n</details>\n\n");
    return any;
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

tare_status report_comparison_md(struct stream *s, const struct comparison *c)
{
    struct buf *b = &s->out;
    buf_printf(b, "%s### tare: %s\n\n", MARKER, c->verdict);
    markup_md(b, c->base.name);
    buf_add_str(b, " against ");
    markup_md(b, c->new_.name);
    buf_add_str(b, "\n\n");
    if (!write_rows(s, c, true)) buf_add_str(b, "Nothing was compared that may fail.\n\n");
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
