/* SPDX-License-Identifier: MIT
 * api_badge.c - how a subject stands, for other pages: the last good run of a branch, a badge, a line (SVG). Without a
 * token they are given out for projects that the operator named (--public-badge) only; any other project is as absent
 * as one that is not there. */
#include <string.h>

#include "core/json.h"
#include "history/good.h"
#include "server/route.h"

enum { LINE_RUNS = 60 };

/* ---- the question ---- */

static tare_status read_ask(struct exchange *x, struct good_ask *ask, tare_error *err)
{
    *ask = (struct good_ask){.project = x->project[0] ? x->project : NULL};
    tare_status s = exchange_query(x, "subject", &ask->subject, err);
    if (s == TARE_OK) s = exchange_query(x, "branch", &ask->branch, err);
    if (s == TARE_OK) s = exchange_query(x, "host", &ask->host, err);
    if (s == TARE_OK) s = exchange_query(x, "metric", &ask->metric, err);
    if (s == TARE_OK && !ask->subject) s = error_set(err, TARE_INVALID, "subject: which?");
    if (s == TARE_OK && ask->metric && !measure_find(ask->metric))
        s = error_set(err, TARE_INVALID, "metric: there is no %.60s", ask->metric);
    return s;
}

/* 400 for what is wrong; false: answered. */
static bool ask_of(struct exchange *x, struct good_ask *ask)
{
    tare_error err = TARE_ERROR_INIT;
    if (read_ask(x, ask, &err) == TARE_OK) return true;
    reply_refused(x, 400, &err);
    return false;
}

/* The project that the query names, where the operator allows it; false: answered. */
static bool ask_public(struct server *sv, struct exchange *x, struct good_ask *ask)
{
    tare_error err = TARE_ERROR_INIT;
    const char *project = NULL;
    bool named = false;
    if (exchange_query(x, "project", &project, &err) != TARE_OK) {
        reply_refused(x, 400, &err);
        return false;
    }
    for (size_t i = 0; project && i < sv->options.n_public_badges; i++)
        named = named || strcmp(project, sv->options.public_badges[i]) == 0;
    if (!named) {
        reply_problem(x, 404, "there is no such badge");
        return false;
    }
    if (!ask_of(x, ask)) return false;
    ask->project = project;
    return true;
}

/* ---- the last good run ---- */

static void tell_good(struct exchange *x, const struct good_answer *g)
{
    struct json j;
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "run", g->run[0] ? g->run : NULL);
    json_kv_string(&j, "commit", g->run[0] && g->commit[0] ? g->commit : NULL);
    reply_time(&j, "created", g->run[0] ? g->created_ms : 0);
    json_kv_string(&j, "newest", g->newest);
    json_kv_bool(&j, "good", g->worse == 0);
    json_kv_string(&j, "metric", g->metric->name);
    json_kv_uint(&j, "series", g->series);
    json_kv_uint(&j, "worse", g->worse);
    json_kv_double(&j, "ratio", g->ratio);
    json_object_end(&j);
    json_finish(&j, NULL);
}

static void answer_good(struct server *sv, struct store *s, struct exchange *x)
{
    struct good_ask ask;
    struct good_answer found;
    tare_error err = TARE_ERROR_INIT;
    if (!ask_of(x, &ask)) return;
    tare_status status = good_find(s, &ask, &found, &err);
    if (status == TARE_OK)
        tell_good(x, &found);
    else if (status == TARE_INVALID)
        reply_problem(x, 404, "there is no such run");
    else
        steps_failed(sv, x, &err);
}

#define WORDS \
    {"subject", "of this subject; needed"}, {"branch", "of clean runs on this branch; any where nothing is said"}, \
        {"metric", "by this number; latency.p50 where nothing is said"}, {"host", "on the host with this fingerprint"}

static const struct query_word good_query[] = {WORDS, {NULL, NULL}};
const struct steps good_get = {.read = answer_good, .query = good_query, .replies = "200,404"};

/* ---- pictures ---- */

static void begin_picture(struct exchange *x)
{
    x->reply.status = 200;
    x->reply.type = "image/svg+xml";
    x->reply.policy = "Cache-Control: no-cache\r\nContent-Security-Policy: default-src 'none'\r\n";
}

/* What is not known is a badge, too: it stands where people look. */
static void draw_badge(struct server *sv, struct store *s, struct exchange *x, const struct good_ask *ask)
{
    struct good_answer found;
    tare_error err = TARE_ERROR_INIT;
    tare_status status = good_find(s, ask, &found, &err);
    if (status != TARE_OK && status != TARE_INVALID) {
        steps_failed(sv, x, &err);
        return;
    }
    begin_picture(x);
    good_badge(&x->reply.body, ask->subject, status == TARE_OK ? &found : NULL);
}

static void draw_line(struct server *sv, struct store *s, struct exchange *x, const struct good_ask *ask)
{
    tare_error err = TARE_ERROR_INIT;
    struct trend_answer found = {0};
    struct trend_ask trend = {.last = LINE_RUNS, .branch = ask->branch, .query = good_query_of(ask)};
    tare_status status = exchange_query(x, "case", &trend.query.case_name, &err);
    if (status != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    status = trend_load(s, &trend, &found, &err);
    if (status == TARE_OK) {
        begin_picture(x);
        good_line(&x->reply.body, &found);
    } else {
        steps_failed(sv, x, &err);
    }
    trend_answer_release(&found);
}

static void answer_badge(struct server *sv, struct store *s, struct exchange *x)
{
    struct good_ask ask;
    if (ask_of(x, &ask)) draw_badge(sv, s, x, &ask);
}

static void answer_line(struct server *sv, struct store *s, struct exchange *x)
{
    struct good_ask ask;
    if (ask_of(x, &ask)) draw_line(sv, s, x, &ask);
}

static void answer_public_badge(struct server *sv, struct store *s, struct exchange *x)
{
    struct good_ask ask;
    if (ask_public(sv, x, &ask)) draw_badge(sv, s, x, &ask);
}

static void answer_public_line(struct server *sv, struct store *s, struct exchange *x)
{
    struct good_ask ask;
    if (ask_public(sv, x, &ask)) draw_line(sv, s, x, &ask);
}

static const struct query_word line_query[] = {WORDS, {"case", "of this case"}, {NULL, NULL}};
static const struct query_word public_query[] = {
    WORDS, {"project", "of this project; needed"}, {NULL, NULL}};
static const struct query_word public_line_query[] = {
    WORDS, {"case", "of this case"}, {"project", "of this project; needed"}, {NULL, NULL}};

const struct steps badge_get = {.read = answer_badge, .query = good_query, .type = "image/svg+xml"};
const struct steps line_get = {.read = answer_line, .query = line_query, .type = "image/svg+xml"};
const struct steps public_badge = {
    .read = answer_public_badge, .query = public_query, .type = "image/svg+xml", .replies = "200,404"};
const struct steps public_line = {
    .read = answer_public_line, .query = public_line_query, .type = "image/svg+xml", .replies = "200,404"};
