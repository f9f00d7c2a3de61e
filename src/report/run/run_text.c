/* SPDX-License-Identifier: MIT
 * run_text.c - a run document for people: what was weighed and where, a row per case, findings, what to
 * use, targets. Reads the document only. */
#include <string.h>

#include "analyze/judge/sweep.h"
#include "core/fmt.h"
#include "report/run/inspect_report.h"
#include "report/run/run_report.h"
#include "report/run/system_text.h"
#include "report/table.h"
#include "report/text.h"

struct writer {
    struct stream *s;
    const struct run *run;
    const struct report_style *style;
};

static void add_plain(struct buf *b, const char *text)
{
    text_plain(b, text, text_clip(text, 1000));
}

static void heading(struct writer *w, const char *title)
{
    buf_printf(&w->s->out, "\n%s%s%s\n", w->style->bold, title, w->style->plain);
}

/* ---- head ---- */

void run_line_text(struct stream *s, const struct report_style *style, const char *name,
                   const struct buf *value)
{
    if (value->failed) s->out.failed = 1;
    if (!value->len) return;
    buf_printf(&s->out, "%s%-10s %s", style->dim, name, style->plain);
    buf_add(&s->out, value->data, value->len);
    buf_add_char(&s->out, '\n');
}

static void line(struct writer *w, const char *name, void (*text)(struct buf *, const struct run *))
{
    struct buf value = BUF_INIT;
    text(&value, w->run);
    run_line_text(w->s, w->style, name, &value);
    buf_release(&value);
}

static void write_head(struct writer *w)
{
    line(w, "subject", run_subject_text);
    line(w, "host", run_host_text);
    line(w, "measured", run_created_text);
    line(w, "settings", run_config_text);
    line(w, "fixed", run_fixed_text);
}

/* ---- the cases ---- */

/* The same but for the numbers in it: "47 samples are too few", "30 samples are too few". */
static bool is_same_reason(const char *a, const char *b)
{
    static const char digits[] = "0123456789.,";
    for (;;) {
        a += strspn(a, digits);
        b += strspn(b, digits);
        if (*a != *b) return false;
        if (*a == 0) return true;
        a++;
        b++;
    }
}

static const char *reason_of(const struct run_case *c, const struct run_column *column)
{
    struct run_estimate e;
    return measure_named(c, column->metric, &e) ? NULL
                                                : run_reason(&c->unknown, measure_find(column->metric)->path);
}

#define REASONS_SHOWN 4 /* of one column */

/* Each reason for a "-" once per column, with how many other cases it holds for. */
static void write_reasons(struct writer *w, const struct run_column *column)
{
    const struct run *run = w->run;
    const char *last = NULL;
    for (size_t c = 0, shown = 0; c < run->cases.n && shown < REASONS_SHOWN; c++) {
        const char *why = reason_of(run->cases.at[c], column);
        size_t more = 0;
        if (!why || (last && is_same_reason(why, last))) continue;
        last = why;
        shown++;
        for (size_t k = c + 1; k < run->cases.n; k++) {
            const char *other = reason_of(run->cases.at[k], column);
            more += other && is_same_reason(other, why);
        }
        buf_printf(&w->s->out, "- %s: ", column->title);
        add_plain(&w->s->out, why);
        if (more) buf_printf(&w->s->out, "; likewise in %zu more %s", more, more == 1 ? "case" : "cases");
        buf_add_char(&w->s->out, '\n');
    }
}

static void write_cases(struct writer *w)
{
    struct run_column columns[RUN_COLUMNS_MAX];
    struct table t;
    size_t n = run_cases_table(w->run, columns, &t);
    buf_add_char(&w->s->out, '\n');
    if (n == 0) {
        buf_add_str(&w->s->out, "no case was measured\n");
        return;
    }
    table_print(&t, w->s, w->style->bold, w->style->plain);
    table_release(&t);
    bool any_half = false;
    for (size_t i = 0; i < n; i++) any_half = any_half || columns[i].half;
    if (any_half) buf_printf(&w->s->out, "%s%s%s\n", w->style->dim, run_interval_note(), w->style->plain);
    for (size_t i = 0; i < n; i++)
        if (columns[i].metric && !columns[i].half) write_reasons(w, &columns[i]);
}

/* ---- findings ---- */

static void write_finding(struct writer *w, const struct run_finding *f)
{
    struct buf *b = &w->s->out;
    buf_printf(b, "  %-8s  ", f->severity);
    add_plain(b, f->title);
    if (f->case_name && *f->case_name && w->run->cases.n > 1) {
        buf_printf(b, "  %s[", w->style->dim);
        add_plain(b, f->case_name);
        buf_printf(b, "]%s", w->style->plain);
    }
    buf_add_char(b, '\n');
    if (f->action) {
        buf_add_str(b, "            -> ");
        add_plain(b, f->action);
        buf_add_char(b, '\n');
    }
}

void run_findings_text(struct stream *s, const struct report_style *style, const struct run *run)
{
    struct writer w = {s, run, style};
    if (run->findings.n) heading(&w, "findings");
    for (size_t i = 0; i < run->findings.n && s->status == TARE_OK; i++) {
        write_finding(&w, run->findings.at[i]);
        stream_poll(s);
    }
}

/* ---- layers ---- */

static void write_layers(struct writer *w)
{
    static const struct inspect_view view = INSPECT_VIEW_INIT;
    if (w->run->subject.as_file.known) heading(w, "without running");
    report_static_text(w->s, w->style, w->run, &view);
    for (size_t i = 0; i < w->run->cases.n; i++)
        layer_text_write(w->s, w->style, w->run, w->run->cases.at[i], &view.layers);
}

/* ---- what to use ---- */

static void write_choice(struct writer *w, const char *objective, const char *name, const char *why)
{
    struct buf *b = &w->s->out;
    buf_printf(b, "  %-11s", objective);
    buf_add_str(b, w->style->bold);
    add_plain(b, name);
    buf_add_str(b, w->style->plain);
    if (why && *why) {
        buf_add_str(b, ": ");
        add_plain(b, why);
    }
    buf_add_char(b, '\n');
}

/* One objective: a line for each kind of work among the cases. */
static void write_objective(struct writer *w, const struct objective *o, bool *any)
{
    const struct run *run = w->run;
    for (size_t i = 0; i < run->cases.n && w->s->status == TARE_OK; i++) {
        struct recommended r;
        if (!is_first_of_work(run, i)) continue;
        tare_status s = recommend_for(run, o, run->cases.at[i], &r, w->s->err);
        if (s < 0) {
            w->s->status = s;
            return;
        }
        if (r.c && !*any) heading(w, "recommended for");
        *any = *any || r.c;
        if (r.c) write_choice(w, o->name, r.c->name, r.why.data);
        recommended_release(&r);
    }
}

static bool has_several_works(const struct run *run)
{
    for (size_t i = 1; i < run->cases.n; i++)
        if (is_first_of_work(run, i)) return true;
    return false;
}

/* What the document recommends comes first, in its own words unless it speaks of one kind of work among several. */
static void write_recommended(struct writer *w)
{
    const struct run_recommendation *saved = &w->run->recommendation;
    const struct run_value *limit = run_map_get(&w->run->config, "latency_limit_s");
    bool any = saved->known;
    if (saved->known) heading(w, "recommended for");
    if (saved->known && has_several_works(w->run)) {
        struct objective o = {.name = saved->objective};
        if (limit && limit->kind == RUN_REAL) o.latency_limit_ns = (uint64_t)(limit->d * 1e9 + 0.5);
        write_objective(w, &o, &any);
    } else if (saved->known) {
        write_choice(w, saved->objective, saved->case_name, saved->why);
    }
    for (size_t i = 0; objective_names[i] && w->s->status == TARE_OK; i++) {
        struct objective o = {.name = objective_names[i]};
        if (!saved->known || strcmp(saved->objective, o.name) != 0) write_objective(w, &o, &any);
    }
}

/* ---- targets ---- */

static void write_targets(struct writer *w)
{
    struct table t;
    if (w->run->targets.n == 0) return;
    heading(w, "targets");
    table_of(&t, run_target_columns, RUN_TARGET_COLUMNS);
    for (size_t i = 0; i < w->run->targets.n; i++) table_row(&t, w->run->targets.at[i]);
    table_print(&t, w->s, w->style->bold, w->style->plain);
    table_release(&t);
}

static bool is_watched(const struct run *run)
{
    return run->cases.n && run->cases.at[0]->watch.known;
}

static void write_watched(struct writer *w)
{
    line(w, "subject", run_subject_text);
    line(w, "host", run_host_text);
    line(w, "measured", run_created_text);
    system_text_write(w->s, w->style, w->run);
    run_findings_text(w->s, w->style, w->run);
}

static void write_measured(struct writer *w)
{
    write_head(w);
    write_cases(w);
    write_layers(w);
    run_findings_text(w->s, w->style, w->run);
    write_recommended(w);
    write_targets(w);
}

tare_status report_run_text(struct stream *s, const struct run_report *r)
{
    static const struct inspect_view view = INSPECT_VIEW_INIT;
    for (size_t i = 0; i < r->n && s->status == TARE_OK; i++) {
        struct writer w = {s, r->runs[i], &r->style};
        if (i) buf_add_char(&s->out, '\n');
        if (strcmp(r->runs[i]->kind, "inspect") == 0)
            report_inspect_text(s, &r->style, r->runs[i], &view);
        else if (is_watched(r->runs[i]))
            write_watched(&w);
        else
            write_measured(&w);
        stream_poll(s);
    }
    return s->status;
}
