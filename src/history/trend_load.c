/* SPDX-License-Identifier: MIT
 * trend_load.c - see trend_answer.h. Asks for names first, then for the points of those that are shown. */
#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "history/trend_answer.h"

struct loading {
    const struct trend_ask *a;
    struct trend_answer *to;
};

static struct trend_series *same_place(struct trend_answer *to, const struct store_series_name *n)
{
    for (size_t i = 0; i < to->series.n; i++) {
        struct trend_series *s = &to->series.items[i];
        if (strcmp(s->case_name, n->case_name) == 0 && strcmp(s->host, n->host) == 0 &&
            strcmp(s->subject, n->subject) == 0)
            return s;
    }
    return NULL;
}

/* Ratios to an anchor are some twenty times less noisy than times: where they exist they are taken, the ones to
 * the newest anchor. */
static tare_status note_series(void *ctx, const struct store_series_name *n, tare_error *err)
{
    struct loading *l = ctx;
    bool anchored = n->anchor[0] != 0;
    l->to->names++;
    l->to->last_name = n->id;
    if (anchored ? l->a->absolute : l->a->anchored) return TARE_OK;
    struct arena *a = &l->to->arena;
    struct trend_series *there = same_place(l->to, n);
    if (there && !anchored) return TARE_OK;
    struct trend_series fresh = {.subject = arena_str(a, n->subject),
                                 .case_name = arena_str(a, n->case_name),
                                 .host = arena_str(a, n->host),
                                 .hostname = arena_str(a, n->hostname ? n->hostname : ""),
                                 .anchor = arena_str(a, n->anchor),
                                 .id = n->id,
                                 .in_store = n->points};
    if (a->failed) return error_nomem(err, "a series");
    if (!there) return vec_push(&l->to->series, fresh, err);
    if (there->anchor[0]) fresh.other_anchors = there->other_anchors + 1;
    *there = fresh; /* nothing was loaded for it yet */
    return TARE_OK;
}

/* ---- the accepted run ---- */

static void find_accepted(struct trend_series *s)
{
    struct trend_accepted *a = &s->accepted;
    a->seen = false;
    for (size_t i = 0; a->run[0] && !a->seen && i < s->points.at.n; i++) {
        a->seen = strcmp(s->points.at.items[i].run, a->run) == 0;
        a->at = i;
    }
}

static size_t level_of(const struct trend *t, size_t at)
{
    size_t i = 0;
    while (i + 1 < t->levels.n && at >= t->levels.items[i].to) i++;
    return i;
}

static struct stats_sample values_of(const struct trend_series *s, const struct trend_level *l)
{
    return (struct stats_sample){s->y + l->from, l->to - l->from};
}

/* Steps up to the accepted run were accepted with it. What came after is one question: the level now against the level
 * that it is of, however many steps lie between them. */
static tare_status judge_accepted(struct trend_series *s, const struct trend_options *o, tare_error *err)
{
    struct trend_accepted *a = &s->accepted;
    const struct trend *t = &s->found;
    double worst = 0;
    struct interval shift = {0};
    a->ratio = (struct interval){1, 1, 1};
    size_t from = a->seen ? level_of(t, a->at) : 0;
    if (!a->seen || from + 1 == t->levels.n) return TARE_OK;
    tare_status status = shift_between(values_of(s, &t->levels.items[from]),
                                       values_of(s, vec_last(&t->levels)), 0.95, &shift, err);
    if (status != TARE_OK) return status;
    a->ratio = (struct interval){exp(shift.value), exp(shift.lo), exp(shift.hi)};
    double by = o->less_is_worse ? -shift.value : shift.value;
    bool unsure =
        o->less_is_worse ? shift.hi >= 0 && isfinite(shift.hi) : shift.lo <= 0 && isfinite(shift.lo);
    a->worse = by >= log1p(o->min_effect) && !unsure;
    for (size_t i = from; i < t->changes.n; i++) {
        double step = log(t->changes.items[i].ratio.value) * (o->less_is_worse ? -1 : 1);
        if (step <= worst) continue;
        worst = step;
        a->change = i;
    }
    return TARE_OK;
}

/* The points, further back where the accepted run is not among the newest. */
static tare_status load_points(struct store *store, const struct trend_ask *a, struct trend_series *s,
                               tare_error *err)
{
    struct store_span span = {.series = s->id, .last = a->last, .project = a->query.project};
    tare_status status = store->ops->series(store, &span, &s->points, err);
    if (status == TARE_OK) find_accepted(s);
    bool more = s->accepted.run[0] && !s->accepted.seen && a->reach > a->last && s->points.at.n == a->last;
    if (status != TARE_OK || !more) return status;
    span.last = a->reach;
    return store->ops->series(store, &span, &s->points, err);
}

/* Runs of other branches, and of what was not committed, are as if they were not there. */
static void keep_branch(struct trend_series *s, const char *branch)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->points.at.n; i++) {
        const struct store_point *p = &s->points.at.items[i];
        bool same = strncmp(p->branch, branch, sizeof p->branch - 1) == 0;
        if (same && !(p->dirty.known && p->dirty.v)) s->points.at.items[kept++] = *p;
    }
    s->points.at.n = kept;
}

static tare_status fill_series(struct store *store, const struct trend_ask *a, struct trend_series *s,
                               const struct trend_options *o, tare_error *err)
{
    size_t kept = 0;
    tare_status status = load_points(store, a, s, err);
    if (status != TARE_OK) return status;
    if (a->branch) keep_branch(s, a->branch);
    s->y = mem_new(s->points.at.n + 1, sizeof *s->y);
    if (!s->y) return error_set(err, TARE_NOMEM, "out of memory");
    for (size_t i = 0; i < s->points.at.n; i++) {
        double v = s->points.at.items[i].value, y = s->anchor[0] ? v : log(v);
        if (!isfinite(y)) continue;
        s->points.at.items[kept] = s->points.at.items[i];
        s->y[kept++] = y;
    }
    s->left_out = s->points.at.n - kept;
    s->points.at.n = kept;
    if (!kept) return TARE_OK;
    find_accepted(s);
    status = trend_find(s->y, kept, o, &s->found, err);
    return status == TARE_OK ? judge_accepted(s, o, err) : status;
}

/* Of a subject all series have the same one. */
static tare_status ask_accepted(struct store *store, const struct trend_ask *ask, struct trend_answer *to,
                                size_t i, tare_error *err)
{
    struct trend_series *s = &to->series.items[i];
    struct store_pin pin = {TREND_ACCEPTED, s->subject, ask->query.project};
    if (!i || strcmp(s[-1].subject, s->subject) != 0) return store_pinned(store, &pin, s->accepted.run, err);
    memcpy(s->accepted.run, s[-1].accepted.run, sizeof s->accepted.run);
    return TARE_OK;
}

tare_status trend_load(struct store *store, const struct trend_ask *ask, struct trend_answer *to,
                       tare_error *err)
{
    struct loading l = {ask, to};
    struct trend_options o = TREND_OPTIONS_INIT;
    to->metric = measure_find(ask->query.metric);
    o.less_is_worse = to->metric->more_is_better;
    tare_status s = store->ops->names(store, &ask->query, note_series, &l, err);
    for (size_t i = 0; i < to->series.n && s == TARE_OK; i++) s = ask_accepted(store, ask, to, i, err);
    for (size_t i = 0; i < to->series.n && s == TARE_OK; i++)
        s = fill_series(store, ask, &to->series.items[i], &o, err);
    return s;
}

void trend_answer_release(struct trend_answer *a)
{
    for (size_t i = 0; i < a->series.n; i++) {
        mem_free(a->series.items[i].y);
        vec_release(&a->series.items[i].points.at);
        trend_release(&a->series.items[i].found);
    }
    vec_release(&a->series);
    arena_release(&a->arena);
}
