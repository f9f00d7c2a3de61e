/* SPDX-License-Identifier: MIT
 * run_md.c - run documents as GitHub-flavoured Markdown, made to be posted as a comment: verdicts first.
 * Names come from outside: none can open a tag, a link or a cell. */
#include <string.h>

#include "core/fmt.h"
#include "report/run/layer_columns.h"
#include "report/markup.h"
#include "report/run/run_report.h"

#define MARKER "<!-- tare report -->\n" /* lets a bot find and replace its own comment */

/* What `fill` writes, escaped. */
static void md_made(struct buf *b, const struct run *run, void (*fill)(struct buf *, const struct run *))
{
    struct buf made = BUF_INIT;
    fill(&made, run);
    if (made.failed) b->failed = 1;
    markup_md_bytes(b, made.data, made.len);
    buf_release(&made);
}

static void write_head(struct buf *b, const struct run *run)
{
    buf_add_str(b, "### tare: ");
    md_made(b, run, run_subject_text);
    buf_add_str(b, "\n\n");
}

/* ---- targets ---- */

/* The verdict first, which is what a comment is read for. */
static void write_targets(struct stream *s, const struct run *run)
{
    static const int order[RUN_TARGET_COLUMNS] = {4, 0, 1, 2, 3, 5};
    struct table_fill columns[RUN_TARGET_COLUMNS];
    struct table t;
    if (run->targets.n == 0) return;
    for (int i = 0; i < RUN_TARGET_COLUMNS; i++) columns[i] = run_target_columns[order[i]];
    columns[RUN_TARGET_COLUMNS - 1].left = false;
    table_of(&t, columns, RUN_TARGET_COLUMNS);
    for (size_t i = 0; i < run->targets.n; i++) {
        const struct run_target *target = run->targets.at[i];
        size_t first = t.n_cells;
        table_row(&t, target);
        if (strcmp(target->verdict, "fail") == 0 && first < t.n_cells) t.cells[first].bold = strlen("fail");
    }
    table_end_md(&t, s);
    buf_add_char(&s->out, '\n');
}

static void write_cases(struct stream *s, const struct run *run)
{
    struct run_column columns[RUN_COLUMNS_MAX];
    struct table t;
    run_cases_table(run, columns, &t);
    if (!table_end_md(&t, s)) buf_add_str(&s->out, "No case was measured.\n");
    buf_add_char(&s->out, '\n');
}

/* ---- layers ---- */

enum { LAYERS_SHOWN = 10 };

static void write_case_layers(struct stream *s, const struct run_case *c)
{
    struct layer_order order;
    struct table t;
    struct buf *b = &s->out;
    tare_status st = layer_order_make(&order, c, layer_default_order(c), LAYERS_SHOWN, s->err);
    if (st < 0) s->status = st;
    buf_add_str(b, "<details><summary>layers");
    if (*c->name) buf_add_str(b, " of ");
    markup_md(b, c->name);
    buf_add_str(b, "</summary>\n\n");
    layer_table(&t, c, &order);
    table_end_md(&t, s);
    if (order.left_out) buf_printf(b, "\n%zu more\n", order.left_out);
    buf_add_str(b, "\n</details>\n\n");
    layer_order_release(&order);
}

static void write_layers(struct stream *s, const struct run *run)
{
    for (size_t i = 0; i < run->cases.n && s->status == TARE_OK; i++) {
        if (run->cases.at[i]->layers.n) write_case_layers(s, run->cases.at[i]);
        stream_poll(s);
    }
}

/* ---- the rest ---- */

static void write_findings(struct stream *s, const struct run *run)
{
    struct buf *b = &s->out;
    for (size_t i = 0; i < run->findings.n && s->status == TARE_OK; i++) {
        const struct run_finding *f = run->findings.at[i];
        bool loud = strcmp(f->severity, "info") != 0;
        buf_printf(b, "- %s%s%s: ", loud ? "**" : "", f->severity, loud ? "**" : "");
        markup_md(b, f->title);
        if (f->case_name && *f->case_name && run->cases.n > 1) {
            buf_add_str(b, " (");
            markup_md(b, f->case_name);
            buf_add_char(b, ')');
        }
        if (f->action) {
            buf_add_str(b, ". ");
            markup_md(b, f->action);
        }
        buf_add_char(b, '\n');
        stream_poll(s);
    }
    if (run->findings.n) buf_add_char(b, '\n');
}

static void write_foot(struct buf *b, const struct run *run)
{
    if (run->recommendation.known) {
        buf_add_str(b, "Recommended for ");
        markup_md(b, run->recommendation.objective);
        buf_add_str(b, ": **");
        markup_md(b, run->recommendation.case_name);
        buf_add_str(b, "**");
        if (run->recommendation.why) {
            buf_add_str(b, ", ");
            markup_md(b, run->recommendation.why);
        }
        buf_add_str(b, "\n\n");
    }
    buf_add_str(b, "<sub>");
    md_made(b, run, run_host_text);
    buf_add_str(b, "; ");
    md_made(b, run, run_created_text);
    buf_printf(b, "; %s; tare ", run_interval_note(run));
    markup_md(b, run->tool.version);
    buf_add_str(b, "</sub>\n");
}

tare_status report_run_md(struct stream *s, const struct run_report *r)
{
    buf_add_str(&s->out, MARKER);
    for (size_t i = 0; i < r->n && s->status == TARE_OK; i++) {
        if (i) buf_add_char(&s->out, '\n');
        write_head(&s->out, r->runs[i]);
        write_targets(s, r->runs[i]);
        write_cases(s, r->runs[i]);
        write_layers(s, r->runs[i]);
        write_findings(s, r->runs[i]);
        write_foot(&s->out, r->runs[i]);
        stream_poll(s);
    }
    return s->status;
}
