/* SPDX-License-Identifier: MIT
 * trend_show.c - see trend_answer.h. Percentages are ratios of levels; what has no bound is said to have none. */
#include "history/trend_answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/fmt.h"
#include "report/markup.h"
#include "report/run/run_report.h"
#include "report/spark.h"
#include "report/text.h"

enum { SPARK_MAX = 100, COMMIT_SHOWN = 10 };

static bool is_anchored(const struct trend_series *s)
{
    return s->anchor[0] != 0;
}

static double as_value(const struct trend_series *s, double stored)
{
    return is_anchored(s) ? exp(stored) : stored;
}

/* ---- words ---- */

static void add_plain(struct buf *b, const char *text, size_t max)
{
    text_plain(b, text, text_clip(text, max));
}

static void add_level(struct buf *b, const struct trend_answer *a, const struct trend_series *s, double y)
{
    if (is_anchored(s))
        buf_printf(b, "%.3f x the anchor", exp(y));
    else
        run_measure_text(b, a->metric, exp(y));
}

static uint64_t unix_ns(const struct store_point *p)
{
    return p->created_ms > 0 ? (uint64_t)p->created_ms * 1000000 : 0;
}

static void add_point(struct buf *b, const struct store_point *p)
{
    buf_printf(b, "run %s of ", p->run);
    fmt_date(b, unix_ns(p), false);
    if (!p->commit[0]) return;
    buf_printf(b, ", commit %.*s", COMMIT_SHOWN, p->commit);
    if (!p->branch[0]) return;
    buf_add_str(b, " on ");
    add_plain(b, p->branch, 40);
}

/* "+12.3 % (+10.1 to +14.5 %) since " */
static void add_ratio(struct buf *b, const struct trend_change *c)
{
    fmt_change(b, c->ratio.value);
    buf_add_str(b, " (");
    if (isfinite(c->ratio.lo) && isfinite(c->ratio.hi) && c->ratio.lo > 0)
        fmt_changes(b, c->ratio.lo, c->ratio.hi, " to ");
    else
        buf_add_str(b, "too few runs for an interval");
    buf_add_str(b, ") since ");
}

/* A change lies between two runs: both are told, because the cause is in one of the commits between them. */
static void say_change(struct answer *a, const struct trend_series *s, const struct trend_change *c,
                       const struct trend_style *t)
{
    const struct store_point *p = &s->points.at.items[c->at], *before = p - 1;
    answer_object(a, NULL);
    answer_uint(a, "at", c->at, NULL);
    answer_str(a, "run", p->run, NULL);
    answer_str(a, "commit", p->commit[0] ? p->commit : NULL, NULL);
    answer_str(a, "run_before", before->run, NULL);
    answer_str(a, "commit_before", before->commit[0] ? before->commit : NULL, NULL);
    answer_bool(a, "worse", c->worse, "  %s%-6s%s ", c->worse ? t->worse : t->better,
                c->worse ? "worse" : "better", t->plain);
    answer_bool(a, "recent", c->recent, NULL);
    add_ratio(answer_text(a), c);
    answer_f64(a, "ratio", c->ratio.value, NULL);
    answer_f64(a, "ratio_lo", c->ratio.lo > 0 ? c->ratio.lo : NAN, NULL);
    answer_f64(a, "ratio_hi", c->ratio.hi, NULL);
    answer_f64(a, "p", c->p, NULL);
    add_point(answer_text(a), p);
    answer_say(a, "\n         before it: ");
    add_point(answer_text(a), before);
    answer_say(a, "\n");
    answer_object_end(a);
}

/* No change found means little without this: what could have been found. */
static void add_limits(struct buf *b, const struct trend_series *s)
{
    const struct trend *t = &s->found;
    const struct trend_level *now = vec_last(&t->levels);
    if (isnan(t->noise))
        buf_add_str(b, "  too few runs to estimate the smallest detectable change\n");
    else if (isnan(t->smallest))
        buf_printf(
            b, "  noise %.1f %% a run; after only %zu at this level no step is sure to show within 8 more\n",
            100 * t->noise, now->to - now->from);
    else
        buf_printf(
            b, "  noise %.1f %% a run; a step of %.1f %% or more would show within 8 runs, 9 times in 10\n",
            100 * t->noise, 100 * t->smallest);
    if (t->memory > 0.3)
        buf_printf(
            b, "  neighbours resemble each other (%.1f): the machine drifts, and steps need to be larger\n",
            t->memory);
}

static void add_creep(struct buf *b, const struct trend_series *s)
{
    const struct trend *t = &s->found;
    if (!t->creep.worse) return;
    buf_add_str(b, "  the level is now ");
    fmt_change(b, t->creep.ratio);
    buf_add_str(b, " from the best there was, which ended with ");
    add_point(b, &s->points.at.items[t->levels.items[t->creep.best].to - 1]);
    buf_add_char(b, '\n');
}

/* Whose series it is, and what of it is not shown. */
static void add_head(struct buf *b, const struct trend_answer *found, const struct trend_series *s,
                     const struct report_style *style)
{
    buf_add_str(b, style->bold);
    add_plain(b, s->case_name, 80);
    buf_printf(b, "%s  %s on ", style->plain, found->metric->name);
    add_plain(b, s->hostname[0] ? s->hostname : s->host, 40);
    buf_add_str(b, ", ");
    fmt_counted(b, s->points.at.n, "run", "runs");
    if (s->in_store > s->points.at.n + s->left_out) buf_printf(b, " of %" PRIu64, s->in_store);
    if (s->left_out) buf_printf(b, ", %zu left out because they are not above 0", s->left_out);
    if (is_anchored(s)) {
        buf_add_str(b, ", ratios to the anchor ");
        add_plain(b, s->anchor, 40);
    }
    if (s->other_anchors)
        buf_printf(b, "; not mixed with those to %zu other%s (--anchor)", s->other_anchors,
                   s->other_anchors == 1 ? "" : "s");
    buf_add_char(b, '\n');
}

static void add_now(struct buf *b, const struct trend_answer *found, const struct trend_series *s,
                    const struct trend_style *t)
{
    size_t width = t->width > 4 && t->width - 4 < SPARK_MAX ? t->width - 4 : SPARK_MAX;
    buf_add_str(b, "  ");
    spark_add(b, s->y, s->points.at.n, width, t->utf8);
    buf_add_str(b, "\n  now ");
    add_level(b, found, s, vec_last(&s->found.levels)->median);
    if (s->found.changes.n == 0) buf_add_str(b, ", no change of level");
    buf_add_char(b, '\n');
}

static void add_accepted(struct buf *b, const struct trend_series *s, const struct trend_style *t)
{
    const struct trend_accepted *a = &s->accepted;
    if (!a->run[0]) return;
    buf_add_str(b, "  baseline ");
    if (!a->seen) {
        buf_printf(b, "%s is not among these runs\n", a->run);
        return;
    }
    add_point(b, &s->points.at.items[a->at]);
    buf_add_str(b, ": ");
    if (a->ratio.value == 1) {
        buf_add_str(b, "no change of level since\n");
        return;
    }
    buf_printf(b, "%s%s%s by ", a->worse ? t->worse : "", a->worse ? "worse" : "changed",
               a->worse ? t->plain : "");
    fmt_change(b, a->ratio.value);
    if (a->ratio.lo > 0 && isfinite(a->ratio.hi)) {
        buf_add_str(b, " (");
        fmt_changes(b, a->ratio.lo, a->ratio.hi, " to ");
        buf_add_char(b, ')');
    }
    buf_add_str(b, " since\n");
}

/* ---- one description for text and JSON ---- */

static void say_known(struct answer *a, const char *key, struct known_f64 v, const struct trend_series *s)
{
    answer_f64(a, key, v.known ? as_value(s, v.v) : NAN, NULL);
}

/* Ratios are kept as logarithms; a reader gets what they stand for. */
static void say_points(struct answer *a, const struct trend_series *s)
{
    struct buf when = BUF_INIT;
    answer_list(a, "points");
    for (size_t i = 0; i < s->points.at.n; i++) {
        const struct store_point *p = &s->points.at.items[i];
        buf_clear(&when);
        fmt_date(&when, unix_ns(p), true);
        answer_object_flat(a, NULL);
        answer_str(a, "run", p->run, NULL);
        answer_str(a, "created", when.failed ? NULL : when.data, NULL);
        answer_str(a, "commit", p->commit[0] ? p->commit : NULL, NULL);
        answer_str(a, "branch", p->branch[0] ? p->branch : NULL, NULL);
        answer_f64(a, "value", as_value(s, p->value), NULL);
        say_known(a, "lo", p->lo, s);
        say_known(a, "hi", p->hi, s);
        answer_object_end(a);
    }
    answer_list_end(a);
    buf_release(&when);
}

static void say_levels(struct answer *a, const struct trend *t)
{
    answer_list(a, "levels");
    for (size_t i = 0; i < t->levels.n; i++) {
        answer_object_flat(a, NULL);
        answer_uint(a, "from", t->levels.items[i].from, NULL);
        answer_uint(a, "to", t->levels.items[i].to, NULL);
        answer_f64(a, "median", exp(t->levels.items[i].median), NULL);
        answer_object_end(a);
    }
    answer_list_end(a);
}

static void say_accepted(struct answer *a, const struct trend_accepted *of)
{
    answer_object_flat(a, "baseline");
    answer_str(a, "run", of->run[0] ? of->run : NULL, NULL);
    answer_bool(a, "seen", of->seen, NULL);
    answer_bool(a, "worse", of->worse, NULL);
    answer_f64(a, "ratio", of->seen ? of->ratio.value : NAN, NULL);
    answer_f64(a, "ratio_lo", of->seen && of->ratio.lo > 0 ? of->ratio.lo : NAN, NULL);
    answer_f64(a, "ratio_hi", of->seen ? of->ratio.hi : NAN, NULL);
    answer_object_end(a);
}

/* JSON and text are made in one go, in the order of both: answers without a format are JSON only, add_*() are text
 * only. Without a point there is nothing to tell a person, but a program finds all keys. */
static void say_series(struct answer *a, const struct trend_answer *found, const struct trend_series *s,
                       const struct trend_style *style)
{
    const struct trend *t = &s->found;
    bool any = s->points.at.n > 0;
    add_head(answer_text(a), found, s, &a->stream.style);
    answer_str(a, "case", s->case_name, NULL);
    answer_str(a, "host", s->host, NULL);
    answer_str(a, "hostname", s->hostname[0] ? s->hostname : NULL, NULL);
    answer_str(a, "anchor", s->anchor[0] ? s->anchor : NULL, NULL);
    answer_uint(a, "other_anchors", s->other_anchors, NULL);
    answer_uint(a, "left_out", s->left_out, NULL);
    answer_f64(a, "noise", t->noise, NULL);
    answer_f64(a, "smallest_step", t->smallest, NULL);
    answer_f64(a, "correlation", t->memory, NULL);
    answer_object_flat(a, "creep");
    answer_bool(a, "worse", t->creep.worse, NULL);
    answer_f64(a, "ratio", t->levels.n ? t->creep.ratio : NAN, NULL);
    answer_object_end(a);
    say_accepted(a, &s->accepted);
    say_levels(a, t);
    if (any) add_now(answer_text(a), found, s, style);
    answer_list(a, "changes");
    for (size_t i = 0; i < t->changes.n; i++) say_change(a, s, &t->changes.items[i], style);
    answer_list_end(a);
    if (any) add_creep(answer_text(a), s);
    if (any) add_accepted(answer_text(a), s, style);
    if (any) add_limits(answer_text(a), s);
    say_points(a, s);
}

void trend_say(struct answer *a, const struct trend_answer *found, const struct trend_style *style)
{
    answer_str(a, "schema", "tare.trend/1", NULL);
    answer_str(a, "history", found->history, NULL);
    answer_str(a, "subject", found->subject, NULL);
    add_plain(answer_text(a), found->subject, 80);
    answer_str(a, "metric", found->metric->name, ": %s\n", found->metric->help);
    answer_str(a, "unit", measure_unit(found->metric), NULL);
    answer_bool(a, "more_is_better", found->metric->more_is_better, NULL);
    answer_list(a, "series");
    for (size_t i = 0; i < found->series.n; i++) {
        answer_say(a, "\n");
        answer_object(a, NULL);
        say_series(a, found, &found->series.items[i], style);
        answer_object_end(a);
    }
    answer_list_end(a);
}

/* ---- CSV ---- */

static void add_estimate(struct buf *b, struct known_f64 v, const struct trend_series *s)
{
    csv_number(b, v.known, v.known ? as_value(s, v.v) : 0);
}

/* A row a run, with the level that it belongs to; `change` marks the first of a new level. */
static void add_rows(struct buf *b, const struct trend_answer *a, const struct trend_series *s)
{
    size_t level = 0;
    for (size_t i = 0; i < s->points.at.n; i++) {
        const struct store_point *p = &s->points.at.items[i];
        const char *const names[] = {s->case_name, a->metric->name, s->anchor, s->host, p->run};
        if (i == s->found.levels.items[level].to) level++;
        csv_field(b, a->subject);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            buf_add_char(b, ',');
            csv_field(b, names[k]);
        }
        buf_add_char(b, ',');
        fmt_date(b, unix_ns(p), true);
        buf_add_char(b, ',');
        csv_field(b, p->commit);
        buf_add_char(b, ',');
        csv_field(b, p->branch);
        add_estimate(b, known_f64(p->value), s);
        add_estimate(b, p->lo, s);
        add_estimate(b, p->hi, s);
        csv_number(b, true, exp(s->found.levels.items[level].median));
        buf_printf(b, ",%d\n", level && i == s->found.levels.items[level].from);
    }
}

void trend_show_csv(struct buf *out, const struct trend_answer *a)
{
    buf_add_str(out, "subject,case,metric,anchor,host,run,created,commit,branch,value,lo,hi,level,change\n");
    for (size_t i = 0; i < a->series.n; i++) add_rows(out, a, &a->series.items[i]);
}
