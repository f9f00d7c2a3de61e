/* SPDX-License-Identifier: MIT
 * comparison_text.c - a comparison for people: the verdict, a row per metric of each case, what to know about it,
 * how to measure it again. */
#include <stdio.h>
#include <string.h>

#include "core/fmt.h"
#include "report/compare/comparison_report.h"
#include "report/table.h"
#include "report/text.h"

enum { LINE_MOST = 2000 };

static void line(struct stream *s, const char *name, const char *text)
{
    struct buf value = BUF_INIT;
    if (text) text_name(&value, text, LINE_MOST);
    text_line(s, name, &value);
}

/* The same of a text that was made up for it, which is released. */
static void line_of(struct stream *s, const char *name, struct buf *text)
{
    if (text->failed) s->out.failed = 1;
    line(s, name, text->data);
    buf_release(text);
}

/* ---- head ---- */

static void write_side(struct stream *s, const char *word, const struct comparison_side *side)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, side->name);
    if (side->runtime.known && side->runtime.version)
        buf_printf(&text, ", %s %s", side->runtime.name, side->runtime.version);
    for (size_t i = 0; i < side->options.n; i++)
        if (side->options.at[i].value.kind == RUN_TEXT && strcmp(side->options.at[i].key, "runtime") != 0)
            buf_printf(&text, ", %s %s", side->options.at[i].key, side->options.at[i].value.s);
    line_of(s, word, &text);
}

/* ---- the answer ---- */

/* The time that is judged: of services the mean of a pair's requests. */
static bool is_time(const struct comparison_metric *m)
{
    bool mean = strcmp(m->metric, "latency.mean") == 0 && strcmp(m->role, "gate") == 0;
    return mean || strcmp(m->metric, "latency.p50") == 0;
}

static const struct comparison_metric *time_of(const struct comparison_case *c)
{
    for (size_t i = 0; i < c->metrics.n; i++)
        if (is_time(c->metrics.at[i])) return c->metrics.at[i];
    return NULL;
}

/* As people say it: "new is 1.62x as fast as base (1.58 to 1.70)". Of what was not judged: nothing. */
static bool add_answer(struct buf *b, const struct comparison_metric *m)
{
    const struct run_estimate *r = &m->ratio;
    bool faster = strcmp(m->verdict, "improved") == 0, same = strcmp(m->verdict, "same") == 0;
    bool open = strcmp(m->verdict, "inconclusive") == 0;
    if (!faster && !same && !open && strcmp(m->verdict, "regressed") != 0) return false;
    bool bounded = r->known && r->lo.known && r->hi.known && r->lo.v > 0;
    if (!bounded && !open) return false;
    if (!bounded)
        buf_add_str(b, "undecided: too few pairs; measure longer");
    else if (same)
        buf_printf(b, "new takes as long as base (%s to %s times)", show_number(r->lo.v).s,
                   show_number(r->hi.v).s);
    else if (open)
        buf_printf(b, "undecided: new takes %s to %s times as long as base; measure longer",
                   show_number(r->lo.v).s, show_number(r->hi.v).s);
    else if (faster)
        buf_printf(b, "new is %sx as fast as base (%s to %s)", show_number(1 / r->value).s,
                   show_number(1 / r->hi.v).s, show_number(1 / r->lo.v).s);
    else
        buf_printf(b, "new takes %sx as long as base (%s to %s)", show_number(r->value).s,
                   show_number(r->lo.v).s, show_number(r->hi.v).s);
    return true;
}

static void write_answers(struct stream *s, const struct comparison *c)
{
    enum { ANSWERS_MOST = 4 };
    for (size_t i = 0, n = 0; i < c->cases.n && n < ANSWERS_MOST; i++) {
        const struct comparison_metric *m = time_of(c->cases.at[i]);
        struct buf text = BUF_INIT;
        if (m && add_answer(&text, m)) {
            if (c->cases.n > 1) buf_printf(&text, "  [%s]", c->cases.at[i]->name);
            line_of(s, n++ ? "" : "answer", &text);
        }
        buf_release(&text);
    }
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
static void add_spread(struct buf *b, const struct comparison_case *c, const char *launches)
{
    for (size_t i = 0; i < c->metrics.n; i++) {
        const struct comparison_metric *m = c->metrics.at[i];
        if (!m->sd_sample.known || !is_time(m)) continue;
        buf_printf(b, "; spread: %s between pairs", show_percent(m->sd_sample.v).s);
        if (m->sd_launch.known)
            buf_printf(b, ", %s more between %s", show_percent(m->sd_launch.v).s, launches);
    }
}

/* The verdict and the metrics of one case; below them how much was measured, and how it scattered. A service is not
 * launched: its pairs are judged by stretches of some in a row. */
static void write_case(struct stream *s, const struct comparison_case *c, bool is_service)
{
    const char *const words[2] = {is_service ? "stretch" : "launch", is_service ? "stretches" : "launches"};
    struct table t;
    struct buf note = BUF_INIT;
    table_of(&t, columns, sizeof columns / sizeof *columns);
    t.words = true;
    buf_printf(&s->out, "\n%s", s->style.bold);
    text_name(&s->out, c->name, LINE_MOST);
    buf_printf(&s->out, ": %s%s\n", c->verdict, s->style.plain);
    for (size_t i = 0; i < c->metrics.n; i++) table_row(&t, &(struct comparison_row){c, c->metrics.at[i]});
    table_end(&t, s, s->style.dim);
    if (!c->pairs.known || !c->launches.known) return;
    fmt_counted(&note, c->pairs.v, "pair", "pairs");
    buf_add_str(&note, " in ");
    fmt_counted(&note, c->launches.v, words[0], words[1]);
    if (c->repeats.known && c->repeats.v > 1)
        buf_printf(&note, " of %llu runs each", (unsigned long long)c->repeats.v);
    if (c->spent_s.known) buf_printf(&note, ", %s", show_time(c->spent_s.v * 1e9).s);
    add_spread(&note, c, words[1]);
    text_note(s, &note);
}

/* ---- notes ---- */

enum {
    UNMATCHED_MOST = 8
}; /* of a side: a search has measured dozens of cases that a bench of one has not */

static void write_unmatched(struct stream *s, const struct comparison *c, const char *side)
{
    char word[16];
    size_t n = 0;
    snprintf(word, sizeof word, "%s only", side);
    for (size_t i = 0; i < c->unmatched.n; i++) {
        if (strcmp(c->unmatched.at[i]->side, side) != 0) continue;
        if (n++ < UNMATCHED_MOST) line(s, word, c->unmatched.at[i]->name);
    }
    if (n <= UNMATCHED_MOST) return;
    struct buf text = BUF_INIT;
    buf_printf(&text, "and %zu more", n - UNMATCHED_MOST);
    line_of(s, word, &text);
}

static void write_differences(struct stream *s, const struct comparison *c)
{
    for (size_t i = 0; i < c->differences.n; i++) {
        const struct comparison_difference *d = c->differences.at[i];
        struct buf text = BUF_INIT;
        buf_printf(&text, "%s: %s, then %s", d->what, d->base ? d->base : "unknown",
                   d->new_ ? d->new_ : "unknown");
        line_of(s, "differs", &text);
    }
    write_unmatched(s, c, "base");
    write_unmatched(s, c, "new");
}

tare_status report_comparison_text(struct stream *s, const struct comparison *c)
{
    write_side(s, "base", &c->base);
    write_side(s, "new", &c->new_);
    line(s, "method", c->method);
    write_answers(s, c);
    write_differences(s, c);
    for (size_t i = 0; i < c->cases.n && s->status == TARE_OK; i++) {
        const struct comparison_case *of = c->cases.at[i];
        write_case(s, of, c->base.type && strcmp(c->base.type, "http") == 0);
        for (size_t k = 0; k < of->notes.n; k++) line(s, of->notes.at[k]->severity, of->notes.at[k]->text);
        stream_poll(s);
    }
    buf_add_char(&s->out, '\n');
    for (size_t k = 0; k < c->notes.n; k++) line(s, c->notes.at[k]->severity, c->notes.at[k]->text);
    buf_printf(&s->out, "%sverdict: %s%s\n", s->style.bold, c->verdict, s->style.plain);
    if (c->reproduce) { /* somebody copies it: never wrapped */
        buf_printf(&s->out, "%s%-10s %s", s->style.dim, "again", s->style.plain);
        text_name(&s->out, c->reproduce, LINE_MOST);
        buf_add_char(&s->out, '\n');
    }
    return stream_poll(s);
}
