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

static void target_row(struct buf *b, const struct run_target *t)
{
    struct buf cell = BUF_INIT;
    buf_printf(b, "| %s | ", strcmp(t->verdict, "fail") == 0 ? "**fail**" : t->verdict);
    run_target_text(&cell, t);
    markup_md_bytes(b, cell.data, cell.len);
    buf_clear(&cell);
    buf_add_str(b, " | ");
    markup_md(b, t->case_name && *t->case_name ? t->case_name : "-");
    buf_add_str(b, " | ");
    run_achieved_text(&cell, t);
    markup_md_bytes(b, cell.data, cell.len);
    if (cell.failed) b->failed = 1;
    buf_add_str(b, " | ");
    if (t->ratio.known)
        fmt_number(b, t->ratio.v, t->ratio.v / 100);
    else
        buf_add_char(b, '-');
    buf_add_str(b, " | ");
    buf_clear(&cell);
    run_confidence_text(&cell, t);
    markup_md_bytes(b, cell.data, cell.len);
    if (cell.failed) b->failed = 1;
    buf_release(&cell);
    buf_add_str(b, " |\n");
}

static void write_targets(struct buf *b, const struct run *run)
{
    if (run->targets.n == 0) return;
    buf_add_str(
        b,
        "| verdict | target | case | achieved | times better | confidence |\n|---|---|---|---:|---:|---:|\n");
    for (size_t i = 0; i < run->targets.n; i++) target_row(b, run->targets.at[i]);
    buf_add_char(b, '\n');
}

/* ---- cases ---- */

static void write_cases(struct stream *s, const struct run *run)
{
    struct run_column columns[RUN_COLUMNS_MAX];
    struct buf *b = &s->out, cell = BUF_INIT;
    size_t n = run_columns(run, columns);
    if (n == 0) {
        buf_add_str(b, "No case was measured.\n\n");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buf_add_str(b, "| ");
        markup_md(b, columns[i].title);
        buf_add_char(b, ' ');
    }
    buf_add_str(b, "|\n");
    for (size_t i = 0; i < n; i++) buf_add_str(b, columns[i].metric || columns[i].param ? "|---:" : "|---");
    buf_add_str(b, "|\n");
    for (size_t c = 0; c < run->cases.n && s->status == TARE_OK; c++) {
        for (size_t i = 0; i < n; i++) {
            buf_clear(&cell);
            run_cell(&cell, run->cases.at[c], &columns[i]);
            if (cell.failed) b->failed = 1;
            buf_add_str(b, "| ");
            markup_md_bytes(b, cell.data, cell.len);
            buf_add_char(b, ' ');
        }
        buf_add_str(b, "|\n");
        stream_poll(s);
    }
    buf_release(&cell);
    buf_add_char(b, '\n');
}

/* ---- layers ---- */

enum { LAYERS_SHOWN = 10 };

static void layer_row(struct buf *b, const struct run_case *c, const struct run_layer *l,
                      const struct layer_column **columns, size_t n)
{
    struct buf cell = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        buf_clear(&cell);
        layer_cell(&cell, columns[i], c, l);
        if (cell.failed) b->failed = 1;
        buf_add_str(b, "| ");
        markup_md_bytes(b, cell.data, cell.len);
        buf_add_char(b, ' ');
    }
    buf_add_str(b, "|\n");
    buf_release(&cell);
}

static void write_case_layers(struct stream *s, const struct run_case *c)
{
    const struct layer_column *columns[LAYER_COLUMNS_MAX];
    struct layer_order order;
    struct buf *b = &s->out;
    size_t n = layer_columns_shown(c, columns);
    tare_status st = layer_order_make(&order, c, layer_default_order(c), LAYERS_SHOWN, s->err);
    if (st < 0) s->status = st;
    buf_add_str(b, "<details><summary>layers");
    if (*c->name) buf_add_str(b, " of ");
    markup_md(b, c->name);
    buf_add_str(b, "</summary>\n\n");
    for (size_t i = 0; i < n; i++) buf_printf(b, "| %s ", columns[i]->title);
    buf_add_str(b, "|\n");
    for (size_t i = 0; i < n; i++) buf_add_str(b, layer_is_text(columns[i]) ? "|---" : "|---:");
    buf_add_str(b, "|\n");
    for (size_t i = 0; i < order.items.n; i++) layer_row(b, c, order.items.items[i], columns, n);
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
    buf_printf(b, "; %s; tare ", run_interval_note());
    markup_md(b, run->tool.version);
    buf_add_str(b, "</sub>\n");
}

tare_status report_run_md(struct stream *s, const struct run_report *r)
{
    buf_add_str(&s->out, MARKER);
    for (size_t i = 0; i < r->n && s->status == TARE_OK; i++) {
        if (i) buf_add_char(&s->out, '\n');
        write_head(&s->out, r->runs[i]);
        write_targets(&s->out, r->runs[i]);
        write_cases(s, r->runs[i]);
        write_layers(s, r->runs[i]);
        write_findings(s, r->runs[i]);
        write_foot(&s->out, r->runs[i]);
        stream_poll(s);
    }
    return s->status;
}
