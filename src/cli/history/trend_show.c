/* SPDX-License-Identifier: MIT
 * trend_show.c - see trend_show.h. Percentages are ratios of levels; what has no bound is said to have none. */
#include "cli/history/trend_show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/str.h"
#include "report/csv.h"
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

/* ---- text ---- */

static void add_plain(struct buf *b, const char *text, size_t max)
{
    text_plain(b, text, text_clip(text, max));
}

static void add_level(struct buf *b, const struct trend_answer *a, const struct trend_series *s, double y)
{
    double half = isnan(s->found.noise) ? 0 : exp(y) * s->found.noise;
    if (is_anchored(s))
        buf_printf(b, "%.3f x the anchor", exp(y));
    else
        run_measure_text(b, a->metric, exp(y), half);
}

static void add_percent(struct buf *b, double ratio)
{
    double percent = 100 * (ratio - 1);
    if (isinf(ratio) || ratio <= 0)
        buf_add_str(b, "?");
    else
        buf_printf(b, "%+.*f", fabs(percent) < 9.995 ? 1 : 0, percent);
}

static void add_point(struct buf *b, const struct store_point *p)
{
    uint64_t ns = p->created_ms > 0 ? (uint64_t)p->created_ms * 1000000 : 0;
    buf_printf(b, "run %s of ", p->run);
    text_date(b, ns, false);
    if (!p->commit[0]) return;
    buf_printf(b, ", commit %.*s", COMMIT_SHOWN, p->commit);
    if (!p->branch[0]) return;
    buf_add_str(b, " on ");
    add_plain(b, p->branch, 40);
}

static void add_change(struct buf *b, const struct trend_series *s, const struct trend_change *c,
                       const struct term *t)
{
    const struct store_point *p = &s->points.at.items[c->at], *before = p - 1;
    buf_printf(b, "  %s%-6s%s ", term_style(t, c->worse ? TERM_RED : TERM_GREEN),
               c->worse ? "worse" : "better", term_style(t, TERM_PLAIN));
    add_percent(b, c->ratio.value);
    if (isfinite(c->ratio.lo) && isfinite(c->ratio.hi) && c->ratio.lo > 0) {
        buf_add_str(b, " % (");
        add_percent(b, c->ratio.lo);
        buf_add_str(b, " to ");
        add_percent(b, c->ratio.hi);
        buf_add_str(b, ") since ");
    } else {
        buf_add_str(b, " % (too few runs for an interval) since ");
    }
    add_point(b, p);
    buf_add_str(b, "\n         before it: ");
    add_point(b, before);
    buf_add_char(b, '\n');
}

static void add_limits(struct buf *b, const struct trend_series *s)
{
    const struct trend *t = &s->found;
    const struct trend_level *now = vec_last(&t->levels);
    if (isnan(t->noise))
        buf_add_str(b, "  too few runs to say what could be seen\n");
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
    add_percent(b, t->creep.ratio);
    buf_add_str(b, " % from the best there was, which ended with ");
    add_point(b, &s->points.at.items[t->levels.items[t->creep.best].to - 1]);
    buf_add_char(b, '\n');
}

static void add_head(struct buf *b, const struct trend_answer *a, const struct trend_series *s,
                     const struct term *t)
{
    buf_add_str(b, term_style(t, TERM_BOLD));
    add_plain(b, s->case_name, 80);
    buf_printf(b, "%s  %s on ", term_style(t, TERM_PLAIN), a->metric->name);
    add_plain(b, s->hostname[0] ? s->hostname : s->host, 40);
    buf_add_str(b, ", ");
    str_add_counted(b, s->points.at.n, "run", "runs");
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

static void add_series(struct buf *b, const struct trend_answer *a, const struct trend_series *s,
                       const struct term *t)
{
    const struct trend *f = &s->found;
    size_t width = t->width > 4 && t->width - 4 < SPARK_MAX ? t->width - 4 : SPARK_MAX;
    add_head(b, a, s, t);
    if (s->points.at.n == 0) return;
    buf_add_str(b, "  ");
    spark_add(b, s->y, s->points.at.n, width, t->utf8);
    buf_add_str(b, "\n  now ");
    add_level(b, a, s, vec_last(&f->levels)->median);
    if (f->changes.n == 0) buf_add_str(b, ", no change of level");
    buf_add_char(b, '\n');
    for (size_t i = 0; i < f->changes.n; i++) add_change(b, s, &f->changes.items[i], t);
    add_creep(b, s);
    add_limits(b, s);
}

void trend_show_text(struct buf *out, const struct trend_answer *a, const struct term *term)
{
    add_plain(out, a->subject, 80);
    buf_printf(out, ": %s\n", a->metric->help);
    for (size_t i = 0; i < a->series.n; i++) {
        buf_add_char(out, '\n');
        add_series(out, a, &a->series.items[i], term);
    }
}

/* ---- JSON ---- */

static void put_known(struct json *j, const char *key, struct known_f64 v, const struct trend_series *s)
{
    json_key(j, key);
    if (v.known)
        json_put_double(j, as_value(s, v.v));
    else
        json_put_null(j);
}

static void put_created(struct json *j, int64_t ms)
{
    struct buf when = BUF_INIT;
    text_date(&when, ms > 0 ? (uint64_t)ms * 1000000 : 0, true);
    json_kv_string(j, "created", when.failed ? NULL : when.data);
    buf_release(&when);
}

static void put_point(struct json *j, const struct trend_series *s, const struct store_point *p)
{
    json_object_begin_flat(j);
    json_kv_string(j, "run", p->run);
    put_created(j, p->created_ms);
    json_kv_string(j, "commit", p->commit[0] ? p->commit : NULL);
    json_kv_string(j, "branch", p->branch[0] ? p->branch : NULL);
    json_kv_double(j, "value", as_value(s, p->value));
    put_known(j, "lo", p->lo, s);
    put_known(j, "hi", p->hi, s);
    json_object_end(j);
}

static void put_change(struct json *j, const struct trend_series *s, const struct trend_change *c)
{
    const struct store_point *p = &s->points.at.items[c->at];
    json_object_begin(j);
    json_kv_uint(j, "at", c->at);
    json_kv_string(j, "run", p->run);
    json_kv_string(j, "commit", p->commit[0] ? p->commit : NULL);
    json_kv_string(j, "run_before", (p - 1)->run);
    json_kv_string(j, "commit_before", (p - 1)->commit[0] ? (p - 1)->commit : NULL);
    json_kv_bool(j, "worse", c->worse);
    json_kv_bool(j, "recent", c->recent);
    json_kv_double(j, "ratio", c->ratio.value);
    json_kv_double(j, "ratio_lo", c->ratio.lo > 0 ? c->ratio.lo : NAN);
    json_kv_double(j, "ratio_hi", c->ratio.hi);
    json_kv_double(j, "p", c->p);
    json_object_end(j);
}

static void put_levels(struct json *j, const struct trend *t)
{
    json_key(j, "levels");
    json_array_begin(j);
    for (size_t i = 0; i < t->levels.n; i++) {
        json_object_begin_flat(j);
        json_kv_uint(j, "from", t->levels.items[i].from);
        json_kv_uint(j, "to", t->levels.items[i].to);
        json_kv_double(j, "median", exp(t->levels.items[i].median));
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_series(struct json *j, const struct trend_series *s)
{
    const struct trend *t = &s->found;
    json_object_begin(j);
    json_kv_string(j, "case", s->case_name);
    json_kv_string(j, "host", s->host);
    json_kv_string(j, "hostname", s->hostname[0] ? s->hostname : NULL);
    json_kv_string(j, "anchor", s->anchor[0] ? s->anchor : NULL);
    json_kv_uint(j, "other_anchors", s->other_anchors);
    json_kv_uint(j, "left_out", s->left_out);
    json_kv_double(j, "noise", t->noise);
    json_kv_double(j, "smallest_step", t->smallest);
    json_kv_double(j, "correlation", t->memory);
    json_key(j, "creep");
    json_object_begin_flat(j);
    json_kv_bool(j, "worse", t->creep.worse);
    json_kv_double(j, "ratio", t->levels.n ? t->creep.ratio : NAN);
    json_object_end(j);
    put_levels(j, t);
    json_key(j, "changes");
    json_array_begin(j);
    for (size_t i = 0; i < t->changes.n; i++) put_change(j, s, &t->changes.items[i]);
    json_array_end(j);
    json_key(j, "points");
    json_array_begin(j);
    for (size_t i = 0; i < s->points.at.n; i++) put_point(j, s, &s->points.at.items[i]);
    json_array_end(j);
    json_object_end(j);
}

tare_status trend_show_json(struct buf *out, const struct trend_answer *a, tare_error *err)
{
    struct json j;
    json_init(&j, out, JSON_STYLE_PRETTY);
    json_object_begin(&j);
    json_kv_string(&j, "schema", "tare.trend/1");
    json_kv_string(&j, "history", a->history);
    json_kv_string(&j, "subject", a->subject);
    json_kv_string(&j, "metric", a->metric->name);
    json_kv_string(&j, "unit", measure_unit(a->metric));
    json_kv_bool(&j, "more_is_better", a->metric->more_is_better);
    json_key(&j, "series");
    json_array_begin(&j);
    for (size_t i = 0; i < a->series.n; i++) put_series(&j, &a->series.items[i]);
    json_array_end(&j);
    json_object_end(&j);
    return json_finish(&j, err);
}

/* ---- CSV ---- */

static void add_estimate(struct buf *b, struct known_f64 v, const struct trend_series *s)
{
    csv_number(b, v.known, v.known ? as_value(s, v.v) : 0);
}

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
        text_date(b, p->created_ms > 0 ? (uint64_t)p->created_ms * 1000000 : 0, true);
        buf_printf(b, ",%s,", p->commit);
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
