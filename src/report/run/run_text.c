/* SPDX-License-Identifier: MIT
 * run_text.c - a run document for people: the answer, a row per case, findings by weight, what to use, targets; then
 * where and how it was measured. Reads the document only. */
#include <string.h>

#include "analyze/judge/sweep.h"
#include "core/fmt.h"
#include "report/run/inspect_report.h"
#include "report/run/run_report.h"
#include "report/table.h"
#include "report/finding_text.h"
#include "report/text.h"

enum { TEXT_MOST = 1000 }; /* bytes of a name or a sentence of the document */

/* ---- head ---- */

static void line(struct stream *s, const char *name, void (*text)(struct buf *, const struct run *),
                 const struct run *run)
{
    struct buf value = BUF_INIT;
    text(&value, run);
    text_line(s, name, &value);
}

/* Whoever reads the answer knows where it was measured; whoever gets it from others finds it at the end. */
static void write_foot(struct stream *s, const struct run *run)
{
    buf_add_char(&s->out, '\n');
    line(s, "host", run_host_text, run);
    line(s, "measured", run_created_text, run);
}

/* ---- the cases ---- */

/* The same but for the numbers in it: "needs 72 samples, here 47", "needs 72 samples, here 30". */
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

static bool is_failed(const struct run_case *c)
{
    return c->failure && !c->samples.known;
}

static const char *reason_of(const struct run_case *c, const struct run_column *column)
{
    struct run_estimate e;
    if (is_failed(c)) return NULL; /* told once, for all columns */
    return measure_named(c, column->metric, &e) ? NULL
                                                : run_reason(&c->unknown, measure_find(column->metric)->path);
}

#define REASONS_SHOWN 4 /* of one column */

/* Each reason for a "-" once per column, with how many other cases it holds for. */
static void write_reasons(struct stream *s, const struct run *run, const struct run_column *column)
{
    for (size_t c = 0, shown = 0; c < run->cases.n && shown < REASONS_SHOWN; c++) {
        const char *why = reason_of(run->cases.at[c], column);
        size_t more = 0, before = 0;
        for (size_t k = 0; why && k < run->cases.n; k++) {
            const char *other = reason_of(run->cases.at[k], column);
            bool same = k != c && other && is_same_reason(other, why);
            before += same && k < c;
            more += same;
        }
        if (!why || before) continue;
        shown++;
        buf_printf(&s->out, "- %s: ", column->title);
        text_name(&s->out, why, TEXT_MOST);
        if (more)
            buf_printf(&s->out, "; %zu more %s too", more,
                       more == 1 ? "case lacks them," : "cases lack them,");
        buf_add_char(&s->out, '\n');
    }
}

static void write_cases(struct stream *s, const struct run *run)
{
    struct run_column columns[RUN_COLUMNS_MAX];
    struct table t;
    bool any_half = false;
    size_t n = run_cases_table(run, columns, &t);
    buf_add_char(&s->out, '\n');
    table_drop_empty(&t);
    if (!table_end(&t, s, s->style.bold)) buf_add_str(&s->out, "no case was measured\n");
    for (size_t i = 0; i < n; i++) any_half = any_half || columns[i].half;
    if (any_half) {
        struct buf note = BUF_INIT;
        buf_add_str(&note, run_interval_note(run));
        text_note(s, &note);
    }
    for (size_t c = 0; c < run->cases.n; c++) {
        if (!is_failed(run->cases.at[c])) continue;
        buf_add_str(&s->out, "- ");
        text_name(&s->out, run->cases.at[c]->name, TEXT_MOST);
        buf_add_str(&s->out, ": the case failed\n");
    }
    for (size_t i = 0; i < n; i++)
        if (columns[i].metric && !columns[i].half) write_reasons(s, run, &columns[i]);
}

/* ---- findings ---- */

/* What matters most comes first; among equals the order is that of the rules. */
void run_findings_text(struct stream *s, const struct run *run)
{
    static const char *const severities[] = {"critical", "warn", "info"};
    enum { N = sizeof severities / sizeof *severities };
    if (run->findings.n) text_heading(s, "findings");
    for (size_t k = 0; k <= N; k++) {
        for (size_t i = 0; i < run->findings.n && stream_poll(s) == TARE_OK; i++) {
            const struct run_finding *f = run->findings.at[i];
            size_t weight = 0;
            while (weight < N && strcmp(f->severity, severities[weight]) != 0) weight++;
            if (weight == k) text_finding(s, f, run->cases.n > 1);
        }
    }
}

/* ---- layers ---- */

static void write_layers(struct stream *s, const struct run *run)
{
    static const struct inspect_view view = INSPECT_VIEW_INIT;
    if (run->subject.as_file.known) text_heading(s, "without running");
    report_static_text(s, run, &view);
    layer_text_write(s, run, &view.layers);
}

/* ---- what to use ---- */

static void write_choice(struct stream *s, const char *objective, const char *name, const char *why)
{
    struct buf *b = &s->out;
    buf_printf(b, "  %-11s%s", objective, s->style.bold);
    text_name(b, name, TEXT_MOST);
    buf_add_str(b, s->style.plain);
    if (why && *why) {
        buf_add_str(b, ": ");
        text_name(b, why, TEXT_MOST);
    }
    buf_add_char(b, '\n');
}

/* One objective: a line for each kind of work among the cases. */
static void write_objective(struct stream *s, const struct run *run, const struct objective *o, bool *any)
{
    for (size_t i = 0; i < run->cases.n && s->status == TARE_OK; i++) {
        struct recommended r;
        if (!is_first_of_work(run, i)) continue;
        tare_status st = recommend_for(run, o, run->cases.at[i], &r, s->err);
        if (st < 0) {
            s->status = st;
            return;
        }
        if (r.c && !*any) text_heading(s, "recommended for");
        *any = *any || r.c;
        if (r.c) write_choice(s, o->name, r.c->name, r.why.data);
        recommended_release(&r);
    }
}

static bool has_several_works(const struct run *run)
{
    for (size_t i = 1; i < run->cases.n; i++)
        if (is_first_of_work(run, i)) return true;
    return false;
}

/* Within a limit on latency both ask for the most work. */
static bool is_same_question(const char *a, const char *b, bool limited)
{
    const char *memory = objective_names[OBJECTIVE_MEMORY];
    return strcmp(a, b) == 0 || (limited && strcmp(a, memory) != 0 && strcmp(b, memory) != 0);
}

/* What the document recommends comes first, in its own words unless it speaks of one kind of work among several. The
 * limit on latency holds for all that is recommended. */
static void write_recommended(struct stream *s, const struct run *run)
{
    const struct run_recommendation *saved = &run->recommendation;
    const struct run_value *limit = run_map_get(&run->config, "latency_limit_s");
    uint64_t limit_ns = limit && limit->kind == RUN_REAL ? (uint64_t)(limit->d * 1e9 + 0.5) : 0;
    bool any = saved->known;
    if (saved->known) text_heading(s, "recommended for");
    if (saved->known && has_several_works(run) && !saved->proof.known) {
        write_objective(s, run, &(struct objective){saved->objective, limit_ns}, &any);
    } else if (saved->known) {
        write_choice(s, saved->objective, saved->case_name, saved->why);
    }
    bool tuned = strcmp(run->kind, "tune") == 0; /* what was not confirmed is not recommended */
    for (size_t i = 0; objective_names[i] && s->status == TARE_OK && !tuned; i++) {
        struct objective o = {objective_names[i], limit_ns};
        const char *before = saved->known ? saved->objective : objective_names[0];
        if ((!saved->known && i == 0) || !is_same_question(before, o.name, limit_ns > 0))
            write_objective(s, run, &o, &any);
    }
}

/* ---- all of it ---- */

static void write_targets(struct stream *s, const struct run *run)
{
    struct table t;
    if (run->targets.n) text_heading(s, "targets");
    table_of(&t, run_target_columns, RUN_TARGET_COLUMNS);
    for (size_t i = 0; i < run->targets.n; i++) table_row(&t, run->targets.at[i]);
    table_end(&t, s, s->style.bold);
    for (size_t i = 0; i < run->targets.n; i++) {
        const struct run_target *row = run->targets.at[i];
        if (!row->why || !*row->why) continue;
        buf_add_str(&s->out, "- ");
        run_target_text(&s->out, row);
        if (row->case_name && *row->case_name) buf_add_str(&s->out, ", ");
        if (row->case_name) text_name(&s->out, row->case_name, TEXT_MOST);
        buf_add_str(&s->out, ": ");
        text_name(&s->out, row->why, TEXT_MOST);
        buf_add_char(&s->out, '\n');
    }
}

static void write_watched(struct stream *s, const struct run *run)
{
    line(s, "subject", run_subject_text, run);
    run_watched_text(s, run);
    run_findings_text(s, run);
    write_foot(s, run);
}

static void write_measured(struct stream *s, const struct run *run)
{
    line(s, "subject", run_subject_text, run);
    run_answer_text(s, run);
    write_cases(s, run);
    run_http_text(s, run);
    write_layers(s, run);
    run_alloc_text(s, run);
    run_findings_text(s, run);
    if (!run->rate_search.known) write_recommended(s, run); /* it is of rates, not of configurations */
    write_targets(s, run);
    write_foot(s, run);
    line(s, "fixed", run_fixed_text, run);
    line(s, "settings", run_config_text, run);
}

tare_status report_run_text(struct stream *s, const struct run_report *r)
{
    static const struct inspect_view view = INSPECT_VIEW_INIT;
    for (size_t i = 0; i < r->n && s->status == TARE_OK; i++) {
        const struct run *run = r->runs[i];
        if (i) buf_add_char(&s->out, '\n');
        if (strcmp(run->kind, "inspect") == 0)
            report_inspect_text(s, run, &view);
        else if (run->cases.n && run->cases.at[0]->watch.known)
            write_watched(s, run);
        else
            write_measured(s, run);
        stream_poll(s);
    }
    return s->status;
}
