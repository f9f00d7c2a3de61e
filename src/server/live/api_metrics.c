/* SPDX-License-Identifier: MIT
 * api_metrics.c - hosts and what they send: keeping batches of samples, asking for them over a time. A batch is
 * answered 201 when the transaction that holds it is committed, as a run is. */
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/mem.h"
#include "server/live/api_metrics.h"
#include "server/live/buckets.h"
#include "server/live/readings.h"
#include "server/route.h"
#include "store/chunk.h"

enum {
    POINTS_DEFAULT = 300,
    POINTS_MAX = 2000,
    ANSWER_MAX = 50000,   /* points times series */
    CHUNKS_MAX = 500000,  /* batches that one question may read */
    READ_MAX = 4 << 20,   /* readings that it may gather */
    HOUR_MS = 3600 * 1000 /* the time that is asked for where none is said */
};

static int64_t now_ms(void)
{
    return (int64_t)(clock_unix_ns() / 1000000);
}

/* ---- keeping ---- */

struct ingest {
    struct arena arena;
    struct readings readings;
    struct store_batch batch;
    enum store_kept kept;
};

static void forget_batch(struct exchange *x)
{
    struct ingest *in = x->work;
    if (!in) return;
    readings_release(&in->readings);
    arena_release(&in->arena);
    mem_free(in);
}

void api_batch_of(struct store_batch *b, const struct exchange *x, const struct readings *r)
{
    *b = (struct store_batch){.project = x->project,
                              .host = r->host,
                              .about = r->about,
                              .id = r->id,
                              .heard_ms = now_ms(),
                              .metrics = r->metrics.items,
                              .n_metrics = r->metrics.n,
                              .readings = r->at.items,
                              .n_readings = r->at.n};
    SHA256((const unsigned char *)x->body.data, x->body.len, b->hash);
}

static void check_batch(struct server *sv, struct store *s, struct exchange *x)
{
    (void)sv;
    (void)s;
    tare_error err = TARE_ERROR_INIT;
    struct ingest *in = x->work = mem_new(1, sizeof *in);
    tare_status status = in ? TARE_OK : error_nomem(&err, "a batch");
    if (in) {
        readings_init(&in->readings, &in->arena);
        status = readings_read_json(&in->readings, x->body.data, x->body.len, &err);
        if (status == TARE_OK) status = readings_close(&in->readings, now_ms(), &err);
    }
    if (status != TARE_OK)
        reply_refused(x, 422, &err);
    else
        api_batch_of(&in->batch, x, &in->readings);
}

static tare_status keep_batch(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    struct ingest *in = x->work;
    (void)sv;
    tare_status status = s->ops->batch_add(s, &in->batch, &in->kept, err);
    if (status == TARE_OK) reply_json(x, in->kept == STORE_NEW ? 201 : 200);
    return status;
}

static void answer_batch(struct server *sv, struct store *s, struct exchange *x)
{
    const struct ingest *in = x->work;
    struct json j;
    (void)sv;
    (void)s;
    if (in->kept == STORE_OTHER) reply_problem(x, 409, "another batch of this host has this id");
    if (in->kept == STORE_CROWDED)
        reply_problem(x, 422, "the host would have more than %d series (names and labels): nothing was kept",
                      STORE_METRICS_MAX);
    if (x->reply.status > 201) return;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "batch", in->readings.id);
    json_kv_uint(&j, "samples", in->readings.at.n);
    json_object_end(&j);
    json_finish(&j, NULL);
}

const struct steps metrics_post = {
    .read = check_batch,
    .write = keep_batch,
    .written = answer_batch,
    .forget = forget_batch,
    .replies = "201,200,409",
    .example = "{\"batch\":\"01KA3QZ4M6S1V7W8X9Y0Z1A2B3\",\"host\":\"gpu7\",\"about\":{\"os\":\"Debian 12\"},"
               "\"at\":1763200000000,\"samples\":[{\"name\":\"load.1m\",\"value\":3.5},"
               "{\"name\":\"gpu.power\",\"label\":\"gpu0\",\"value\":412}]}",
};

/* ---- hosts ---- */

static tare_status list_host(void *ctx, const struct store_host *h, tare_error *err)
{
    struct json *j = ctx;
    (void)err;
    json_object_begin(j);
    json_kv_string(j, "name", h->name);
    json_kv_string(j, "project", h->project[0] ? h->project : NULL);
    json_kv_int(j, "first_heard", h->first_ms);
    json_kv_int(j, "last_heard", h->heard_ms);
    json_kv_uint(j, "metrics", h->metrics);
    json_key(j, "about");
    if (h->about)
        json_put_raw(j, h->about);
    else
        json_put_null(j);
    json_object_end(j);
    return TARE_OK;
}

static void answer_hosts(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct store_host like = {.project = x->project[0] ? x->project : NULL};
    struct json j;
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_int(&j, "now", now_ms());
    json_key(&j, "hosts");
    json_array_begin(&j);
    if (s->ops->hosts(s, &like, list_host, &j, &err) != TARE_OK) {
        steps_failed(sv, x, &err);
        return;
    }
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

const struct steps hosts_list = {.read = answer_hosts};

struct found_host {
    int64_t id;
    size_t n;
};

static tare_status note_host(void *ctx, const struct store_host *h, tare_error *err)
{
    struct found_host *f = ctx;
    (void)err;
    f->id = h->id;
    f->n++;
    return TARE_OK;
}

/* A host of another project is as absent as one that never was. */
bool api_find_host(struct server *sv, struct store *s, struct exchange *x, int64_t *id)
{
    tare_error err = TARE_ERROR_INIT;
    struct store_host like = {0};
    struct found_host found = {0};
    tare_status status = exchange_query(x, "host", &like.name, &err);
    if (status == TARE_OK) status = exchange_query(x, "project", &like.project, &err);
    if (status == TARE_OK && !like.name) status = error_set(&err, TARE_INVALID, "host= is needed");
    if (status != TARE_OK) {
        reply_refused(x, 400, &err);
        return false;
    }
    bool foreign = x->project[0] && like.project && strcmp(like.project, x->project) != 0;
    if (x->project[0]) like.project = x->project;
    if (!foreign) status = s->ops->hosts(s, &like, note_host, &found, &err);
    if (status != TARE_OK)
        steps_failed(sv, x, &err);
    else if (!found.n)
        reply_problem(x, 404, "no such host has been heard of");
    else if (found.n > 1)
        reply_problem(x, 400, "hosts of several projects are called so: project= is needed");
    *id = found.id;
    return !x->reply.status;
}

/* ---- what a host has ---- */

struct listing {
    struct json j;
    int64_t from_ms, to_ms; /* from_ms 0: names only */
    struct map_u64 index;   /* id -> number in `latest` + 1 */
    VEC(struct buckets_point) latest;
};

static tare_status note_latest(void *ctx, const struct chunk_value *v, tare_error *err)
{
    struct listing *l = ctx;
    struct buckets_point p = {v->at_ms, v->value};
    if (v->at_ms < l->from_ms || v->at_ms >= l->to_ms) return TARE_OK;
    const uint64_t *at = map_u64_find(&l->index, (uint64_t)v->metric);
    if (at) {
        if (l->latest.items[*at - 1].at_ms <= v->at_ms) l->latest.items[*at - 1] = p;
        return TARE_OK;
    }
    tare_status s = vec_push(&l->latest, p, err);
    return s == TARE_OK ? map_u64_put(&l->index, (uint64_t)v->metric, l->latest.n, err) : s;
}

static tare_status note_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    return chunk_read(c, note_latest, ctx, err);
}

static void list_latest(struct listing *l, int64_t id)
{
    const uint64_t *at = map_u64_find(&l->index, (uint64_t)id);
    if (!at) {
        json_kv_null(&l->j, "at");
        json_kv_null(&l->j, "value");
        return;
    }
    json_kv_int(&l->j, "at", l->latest.items[*at - 1].at_ms);
    json_kv_double(&l->j, "value", l->latest.items[*at - 1].value);
}

static tare_status list_metric(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    struct listing *l = ctx;
    (void)err;
    json_object_begin(&l->j);
    json_kv_string(&l->j, "name", m->name);
    json_kv_string(&l->j, "label", m->label);
    json_kv_string(&l->j, "unit", m->unit);
    json_kv_string(&l->j, "kind", m->counter ? "counter" : "gauge");
    if (l->from_ms) list_latest(l, id);
    json_object_end(&l->j);
    return TARE_OK;
}

static tare_status list_metrics(struct store *s, struct exchange *x, int64_t host, struct listing *l,
                                tare_error *err)
{
    struct store_chunk_query q = {
        .host = host, .from_ms = l->from_ms, .to_ms = l->to_ms, .limit = CHUNKS_MAX};
    tare_status status = l->from_ms ? s->ops->chunks(s, &q, note_chunk, l, err) : TARE_OK;
    if (status != TARE_OK) return status;
    reply_json(x, 200);
    json_init(&l->j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&l->j);
    if (l->from_ms) json_kv_int(&l->j, "now", now_ms());
    json_key(&l->j, "metrics");
    json_array_begin(&l->j);
    status = s->ops->metrics(s, &(struct store_metric_query){.host = host}, list_metric, l, err);
    if (status != TARE_OK) return status;
    json_array_end(&l->j);
    json_object_end(&l->j);
    return json_finish(&l->j, err);
}

/* ---- one metric over a time ---- */

struct asked_series {
    int64_t id;
    const char *label;
    VEC(struct buckets_point) at;
};

struct asked {
    struct exchange *x;
    int64_t host;
    const char *name, *label; /* label NULL: all */
    const char *unit;
    bool counter;
    struct buckets_range range;
    int64_t since_ms; /* as `from` was said; 0: it was not */
    VEC(struct asked_series) series;
    struct map_u64 index; /* id -> number + 1 */
    size_t chunks, gathered;
};

static void asked_release(struct asked *a)
{
    for (size_t i = 0; i < a->series.n; i++) vec_release(&a->series.items[i].at);
    vec_release(&a->series);
    map_u64_release(&a->index);
}

static tare_status note_series(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    struct asked *a = ctx;
    if (a->label && strcmp(a->label, m->label) != 0) return TARE_OK;
    struct asked_series one = {.id = id, .label = arena_str(&a->x->arena, m->label)};
    a->unit = arena_str(&a->x->arena, m->unit);
    a->counter = m->counter;
    if (a->x->arena.failed) return error_nomem(err, "a series");
    tare_status s = vec_push(&a->series, one, err);
    return s == TARE_OK ? map_u64_put(&a->index, (uint64_t)id, a->series.n, err) : s;
}

static tare_status too_much(tare_error *err)
{
    return error_set(err, TARE_INVALID, "too much was sent in this time: ask for less of it");
}

static tare_status gather_value(void *ctx, const struct chunk_value *v, tare_error *err)
{
    struct asked *a = ctx;
    const uint64_t *at = map_u64_find(&a->index, (uint64_t)v->metric);
    if (!at || v->at_ms >= a->range.to_ms || v->at_ms < a->range.from_ms - BUCKETS_GAP_MS) return TARE_OK;
    if (++a->gathered > READ_MAX) return too_much(err);
    struct buckets_point p = {v->at_ms, v->value};
    return vec_push(&a->series.items[*at - 1].at, p, err);
}

static tare_status gather_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    struct asked *a = ctx;
    if (++a->chunks > CHUNKS_MAX) return too_much(err);
    return chunk_read(c, gather_value, a, err);
}

static tare_status read_question(struct exchange *x, struct asked *a, tare_error *err)
{
    struct number_range times = {1, INT64_C(1) << 52}, sizes = {1, POINTS_MAX};
    uint64_t to = (uint64_t)now_ms(), from = 0, points = POINTS_DEFAULT;
    tare_status s = exchange_query(x, "name", &a->name, err);
    if (s == TARE_OK) s = exchange_query(x, "label", &a->label, err);
    if (s == TARE_OK) s = exchange_query_number(x, "to", times, &to, err);
    if (s == TARE_OK) s = exchange_query_number(x, "from", times, &from, err);
    if (s == TARE_OK) s = exchange_query_number(x, "points", sizes, &points, err);
    if (s != TARE_OK) return s;
    a->since_ms = (int64_t)from;
    if (!from) from = to > HOUR_MS ? to - HOUR_MS : 1;
    if (from >= to) return error_set(err, TARE_INVALID, "from must be before to");
    a->range = buckets_range((int64_t)from, (int64_t)to, points);
    return TARE_OK;
}

static tare_status gather(struct store *s, struct asked *a, tare_error *err)
{
    struct store_metric_query series = {a->host, a->name};
    struct store_chunk_query q = {.host = a->host,
                                  .from_ms = a->range.from_ms - BUCKETS_GAP_MS,
                                  .to_ms = a->range.to_ms,
                                  .limit = CHUNKS_MAX + 1};
    tare_status status = s->ops->metrics(s, &series, note_series, a, err);
    if (status != TARE_OK || !a->series.n) return status;
    if (a->series.n * a->range.n > ANSWER_MAX)
        return error_set(err, TARE_INVALID,
                         "%zu series of %zu points are too many: ask for fewer points, or by label=",
                         a->series.n, a->range.n);
    return s->ops->chunks(s, &q, gather_chunk, a, err);
}

static double least_of(const struct bucket *b)
{
    return b->least;
}
static double mean_of(const struct bucket *b)
{
    return b->sum / b->weight;
}
static double greatest_of(const struct bucket *b)
{
    return b->greatest;
}

/* Columns, as plots want them. */
static void write_series(struct json *j, const struct asked *a, const struct asked_series *one,
                         const struct bucket *at)
{
    static const struct {
        const char *name;
        double (*of)(const struct bucket *b);
    } columns[] = {{"min", least_of}, {"mean", mean_of}, {"max", greatest_of}};
    json_object_begin(j);
    json_kv_string(j, "label", one->label);
    json_key(j, "at");
    json_array_begin(j);
    for (size_t i = 0; i < a->range.n; i++)
        if (at[i].n) json_put_int(j, a->range.from_ms + (int64_t)i * a->range.step_ms);
    json_array_end(j);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        json_key(j, columns[c].name);
        json_array_begin(j);
        for (size_t i = 0; i < a->range.n; i++)
            if (at[i].n) json_put_double(j, columns[c].of(&at[i]));
        json_array_end(j);
    }
    json_key(j, "n");
    json_array_begin(j);
    for (size_t i = 0; i < a->range.n; i++)
        if (at[i].n) json_put_uint(j, at[i].n);
    json_array_end(j);
    json_object_end(j);
}

static void write_answer(struct exchange *x, struct asked *a)
{
    struct json j;
    struct bucket *at = arena_new(&x->arena, a->range.n, sizeof *at);
    if (!at) {
        reply_problem(x, 503, "no memory");
        return;
    }
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "name", a->name);
    json_kv_string(&j, "unit", a->unit);
    json_kv_string(&j, "kind", a->counter ? "counter" : "gauge");
    json_kv_bool(&j, "per_second", a->counter);
    json_kv_int(&j, "from", a->range.from_ms);
    json_kv_int(&j, "to", a->range.to_ms);
    json_kv_int(&j, "step", a->range.step_ms);
    json_key(&j, "series");
    json_array_begin(&j);
    for (size_t i = 0; i < a->series.n; i++) {
        struct asked_series *one = &a->series.items[i];
        memset(at, 0, a->range.n * sizeof *at);
        buckets_fill(at, &a->range, a->counter, one->at.items, one->at.n);
        write_series(&j, a, one, at);
    }
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

static void answer_metrics(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct asked a = {.x = x, .index = MAP_U64_INIT};
    if (read_question(x, &a, &err) != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    if (!api_find_host(sv, s, x, &a.host)) return;
    if (!a.name) {
        struct listing l = {.from_ms = a.since_ms, .to_ms = a.range.to_ms, .index = MAP_U64_INIT};
        if (list_metrics(s, x, a.host, &l, &err) != TARE_OK) steps_failed(sv, x, &err);
        map_u64_release(&l.index);
        vec_release(&l.latest);
        return;
    }
    tare_status status = gather(s, &a, &err);
    if (status == TARE_INVALID)
        reply_problem(x, 422, "%s", err.text);
    else if (status != TARE_OK)
        steps_failed(sv, x, &err);
    else if (!a.series.n)
        reply_problem(x, 404, "this host has sent no such metric");
    else
        write_answer(x, &a);
    asked_release(&a);
}

static const struct query_word metrics_query[] = {
    {"host", "the host's name; needed"},
    {"project", "of the host, where several have one of this name"},
    {"name", "of the metric; without it: what the host has sent, and after `from` the latest value of each"},
    {"label", "one series of it: gpu0, cpu3, sda; without it: all"},
    {"from", "milliseconds since 1970; an hour before `to` where it is not said"},
    {"to", "milliseconds since 1970, this moment excluded; now where it is not said"},
    {"points", "at most so many pieces of time, 1 to 2000; 300 where it is not said"},
    {NULL, NULL},
};

const struct steps metrics_get = {.read = answer_metrics, .query = metrics_query, .replies = "200,404,422"};
