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

static tare_status fill_series(struct store *store, const struct trend_ask *a, struct trend_series *s,
                               const struct trend_options *o, tare_error *err)
{
    size_t kept = 0;
    tare_status status = store->ops->series(
        store, &(struct store_span){.series = s->id, .last = a->last, .project = a->query.project},
        &s->points, err);
    if (status != TARE_OK) return status;
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
    return kept ? trend_find(s->y, kept, o, &s->found, err) : TARE_OK;
}

tare_status trend_load(struct store *store, const struct trend_ask *ask, struct trend_answer *to,
                       tare_error *err)
{
    struct loading l = {ask, to};
    struct trend_options o = TREND_OPTIONS_INIT;
    to->metric = measure_find(ask->query.metric);
    o.less_is_worse = to->metric->more_is_better;
    tare_status s = store->ops->names(store, &ask->query, note_series, &l, err);
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
