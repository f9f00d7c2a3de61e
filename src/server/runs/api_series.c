/* SPDX-License-Identifier: MIT
 * api_series.c - the numbers of runs over time by HTTP: which series there are, and the points of one. What a token is
 * bound to decides which points there are: a series of which no run is of its project is as absent as one that never
 * was. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/json.h"
#include "server/route.h"

enum { SERIES_DEFAULT = 100, SERIES_MAX = 1000, POINTS_DEFAULT = 100, POINTS_MAX = 100000 };

static tare_status list_one(void *ctx, const struct store_series_name *n, tare_error *err)
{
    (void)err;
    store_series_json(ctx, n);
    return TARE_OK;
}

static tare_status read_query(struct exchange *x, struct store_query *q, tare_error *err)
{
    const struct number_range limits = {1, SERIES_MAX}, ids = {0, INT64_MAX};
    uint64_t after = 0;
    *q = (struct store_query){.limit = SERIES_DEFAULT, .project = x->project[0] ? x->project : NULL};
    tare_status s = exchange_query(x, "subject", &q->subject, err);
    if (s == TARE_OK) s = exchange_query(x, "case", &q->case_name, err);
    if (s == TARE_OK) s = exchange_query(x, "metric", &q->metric, err);
    if (s == TARE_OK) s = exchange_query(x, "host", &q->host, err);
    if (s == TARE_OK) s = exchange_query(x, "anchor", &q->anchor, err);
    if (s == TARE_OK) s = exchange_query_number(x, "after", ids, &after, err);
    q->after = (int64_t)after;
    return s == TARE_OK ? exchange_query_number(x, "limit", limits, &q->limit, err) : s;
}

static void answer_names(struct server *sv, struct store *s, struct exchange *x)
{
    struct store_query q;
    tare_error err = TARE_ERROR_INIT;
    struct json j;
    if (read_query(x, &q, &err) != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "series");
    json_array_begin(&j);
    if (s->ops->names(s, &q, list_one, &j, &err) != TARE_OK) {
        steps_failed(sv, x, &err);
        return;
    }
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

static const struct query_word names_query[] = {
    {"subject", "of this subject"},
    {"case", "of this case"},
    {"metric", "of this metric"},
    {"host", "of the host with this fingerprint"},
    {"anchor", "relative to this build; empty: values of their own"},
    {"after", "an id: the list goes on after that series"},
    {"limit", "at most so many: 1 to 1000, 100 where nothing is said"},
    {NULL, NULL}};

const struct steps series_list = {.read = answer_names, .query = names_query, .example = "?limit=2"};

/* ---- one of them ---- */

/* "17": nothing else is the id of a series. */
static bool read_id(const char *text, int64_t *out)
{
    int64_t v = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *text - '0', &v)) return false;
    *out = v;
    return !*text && v > 0;
}

static void put_points(struct exchange *x, const struct store_points *points)
{
    struct json j;
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "points");
    json_array_begin(&j);
    for (size_t i = 0; i < points->at.n; i++) store_point_json(&j, &points->at.items[i]);
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

static void answer_points(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct store_points points = {VEC_INIT};
    struct store_span span = {.last = POINTS_DEFAULT, .project = x->project[0] ? x->project : NULL};
    const struct number_range limits = {1, POINTS_MAX};
    bool good = read_id(x->param, &span.series);
    if (good && exchange_query_number(x, "last", limits, &span.last, &err) != TARE_OK)
        reply_refused(x, 400, &err);
    else if (good && s->ops->series(s, &span, &points, &err) != TARE_OK)
        steps_failed(sv, x, &err);
    else if (points.at.n == 0)
        reply_problem(x, 404, "there is no such series");
    else
        put_points(x, &points);
    vec_release(&points.at);
}

static const struct query_word points_query[] = {
    {"last", "the newest so many: 1 to 100000, 100 where nothing is said"}, {NULL, NULL}};

const struct steps series_get = {.read = answer_points, .query = points_query};
