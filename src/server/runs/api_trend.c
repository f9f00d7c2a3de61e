/* SPDX-License-Identifier: MIT
 * api_trend.c - how a metric went, by HTTP: the series of one subject with their levels and changes, as `tare trend`
 * tells them, and what got worse lately over all subjects. Judged on a reader, of a bounded number of points. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "core/json.h"
#include "core/suggest.h"
#include "history/trend_answer.h"
#include "server/route.h"

/* Judging 40 runs of a series takes some 2.4 ms, 100 runs 6 ms: an answer must not hold a reader long. */
enum { LAST_DEFAULT = 100, SERIES_MOST = 500, WORSE_LAST = 40, WORSE_SERIES_MOST = 200, WORSE_REACH = 300 };

/* ---- the question ---- */

static tare_status read_metric(struct exchange *x, struct store_query *q, tare_error *err)
{
    const char *name = NULL;
    struct suggest near;
    tare_status s = exchange_query(x, "metric", &name, err);
    if (s != TARE_OK) return s;
    if (!name) name = "latency.p50";
    const struct measure *m = measure_find(name);
    q->metric = m ? m->name : NULL;
    if (m) return TARE_OK;
    suggest_init(&near, name, strlen(name));
    for (m = measure_table; m->name; m++) suggest_offer(&near, m->name);
    const char *best = suggest_best(&near);
    return error_set(err, TARE_INVALID, "metric: there is no %.60s%s%s%s", name,
                     best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
}

/* ask->last and the limit of series are set already. */
static tare_status read_ask(struct exchange *x, struct trend_ask *ask, tare_error *err)
{
    const struct number_range lasts = {1, TREND_MAX};
    struct store_query *q = &ask->query;
    q->project = x->project[0] ? x->project : NULL;
    tare_status s = read_metric(x, q, err);
    if (s == TARE_OK) s = exchange_query(x, "subject", &q->subject, err);
    if (s == TARE_OK) s = exchange_query(x, "case", &q->case_name, err);
    if (s == TARE_OK) s = exchange_query(x, "host", &q->host, err);
    if (s == TARE_OK) s = exchange_query(x, "branch", &ask->branch, err);
    return s == TARE_OK ? exchange_query_number(x, "last", lasts, &ask->last, err) : s;
}

/* ---- one subject ---- */

static tare_status tell_trend(struct exchange *x, const struct trend_answer *found, tare_error *err)
{
    struct report_style none = REPORT_STYLE_NONE;
    struct trend_style look = TREND_STYLE_NONE;
    struct answer a;
    answer_begin(&a, sink_to_buf(&x->reply.body), true, &none, err);
    trend_say(&a, found, &look);
    return answer_end(&a);
}

static void answer_trend(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct trend_ask ask = {.last = LAST_DEFAULT, .query.limit = SERIES_MOST};
    struct trend_answer found = {0};
    tare_status status = read_ask(x, &ask, &err);
    if (status == TARE_OK && !ask.query.subject) status = error_set(&err, TARE_INVALID, "subject: which?");
    if (status != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    found.subject = ask.query.subject;
    status = trend_load(s, &ask, &found, &err);
    if (status == TARE_OK && found.series.n == 0) {
        reply_problem(x, 404, "there is no such subject, case, host or metric");
    } else {
        if (status == TARE_OK) status = tell_trend(x, &found, &err);
        if (status == TARE_OK)
            reply_json(x, 200);
        else
            steps_failed(sv, x, &err);
    }
    trend_answer_release(&found);
}

static const struct query_word trend_query[] = {
    {"subject", "of this subject; needed"},
    {"metric", "this number of its cases; latency.p50 where nothing is said"},
    {"case", "only this case"},
    {"host", "only the host with this fingerprint"},
    {"branch", "only clean runs on this branch"},
    {"last", "of the newest so many runs: 1 to 2000, 100 where nothing is said"},
    {NULL, NULL}};

const struct steps trend_get = {.read = answer_trend, .query = trend_query, .replies = "200,404"};

/* ---- what got worse ---- */

struct worse {
    const struct trend_series *series;
    const struct trend_change *change;
    struct interval ratio;
    bool accepted; /* against the accepted run, and not against the level before */
};

/* The largest change first. */
static int by_effect(const void *a, const void *b)
{
    double x = fabs(log(((const struct worse *)a)->ratio.value));
    double y = fabs(log(((const struct worse *)b)->ratio.value));
    return (x < y) - (x > y);
}

static void put_worse(struct json *j, const struct worse *w)
{
    const struct trend_series *s = w->series;
    const struct trend_change *c = w->change;
    const struct store_point *p = &s->points.at.items[c->at], *before = p - 1;
    json_object_begin(j);
    json_kv_string(j, "subject", s->subject);
    json_kv_string(j, "case", s->case_name);
    json_kv_string(j, "host", s->host);
    json_kv_string(j, "hostname", s->hostname[0] ? s->hostname : NULL);
    json_kv_string(j, "run", p->run);
    json_kv_int(j, "created_ms", p->created_ms);
    json_kv_string(j, "commit", p->commit[0] ? p->commit : NULL);
    json_kv_string(j, "run_before", before->run);
    json_kv_string(j, "commit_before", before->commit[0] ? before->commit : NULL);
    json_kv_string(j, "baseline", w->accepted ? s->accepted.run : NULL);
    json_kv_double(j, "ratio", w->ratio.value);
    json_kv_double(j, "ratio_lo", w->ratio.lo > 0 ? w->ratio.lo : NAN);
    json_kv_double(j, "ratio_hi", w->ratio.hi);
    json_kv_double(j, "p", c->p);
    json_object_end(j);
}

struct worse_list {
    VEC(struct worse) at;
};

/* Against the accepted run where there is one: what it was accepted with is told no more, and what came since is told
 * however long ago. */
static tare_status find_accepted(const struct trend_series *of, struct worse_list *to, tare_error *err)
{
    if (!of->accepted.worse) return TARE_OK;
    const struct trend_change *c = &of->found.changes.items[of->accepted.change];
    return vec_push(&to->at, ((struct worse){of, c, of->accepted.ratio, true}), err);
}

static tare_status find_steps(const struct trend_series *of, struct worse_list *to, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t k = 0; k < of->found.changes.n && s == TARE_OK; k++) {
        const struct trend_change *c = &of->found.changes.items[k];
        if (c->worse && c->recent) s = vec_push(&to->at, ((struct worse){of, c, c->ratio, false}), err);
    }
    return s;
}

static tare_status find_worse(const struct trend_answer *found, struct worse_list *to, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < found->series.n && s == TARE_OK; i++) {
        const struct trend_series *of = &found->series.items[i];
        s = of->accepted.seen ? find_accepted(of, to, err) : find_steps(of, to, err);
    }
    if (s == TARE_OK && to->at.n) qsort(to->at.items, to->at.n, sizeof *to->at.items, by_effect);
    return s;
}

static void tell_worse(struct exchange *x, const struct trend_answer *found, const struct worse_list *list)
{
    struct json j;
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "metric", found->metric->name);
    json_kv_bool(&j, "more_is_better", found->metric->more_is_better);
    json_kv_uint(&j, "series", found->series.n);
    json_key(&j, "next");
    if (found->names < WORSE_SERIES_MOST)
        json_put_null(&j);
    else
        json_put_int(&j, found->last_name);
    json_key(&j, "regressions");
    json_array_begin(&j);
    for (size_t i = 0; i < list->at.n; i++) put_worse(&j, &list->at.items[i]);
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

static void answer_worse(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct trend_ask ask = {.last = WORSE_LAST, .reach = WORSE_REACH, .query.limit = WORSE_SERIES_MOST};
    const struct number_range ids = {0, INT64_MAX};
    uint64_t after = 0;
    struct trend_answer found = {0};
    struct worse_list list = {VEC_INIT};
    if (read_ask(x, &ask, &err) != TARE_OK ||
        exchange_query_number(x, "after", ids, &after, &err) != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    ask.query.after = (int64_t)after;
    tare_status status = trend_load(s, &ask, &found, &err);
    if (status == TARE_OK) status = find_worse(&found, &list, &err);
    if (status == TARE_OK)
        tell_worse(x, &found, &list);
    else
        steps_failed(sv, x, &err);
    vec_release(&list.at);
    trend_answer_release(&found);
}

static const struct query_word worse_query[] = {
    {"metric", "in this number of cases; latency.p50 where nothing is said"},
    {"subject", "only of this subject"},
    {"case", "only this case"},
    {"host", "only the host with this fingerprint"},
    {"branch", "only clean runs on this branch"},
    {"last", "of the newest so many runs: 1 to 2000, 40 where nothing is said"},
    {"after", "an id: of the series after that one; `next` of the answer before"},
    {NULL, NULL}};

const struct steps regressions_list = {.read = answer_worse, .query = worse_query, .example = "?metric=latency.p50"};
