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
#include "server/live/metric_ask.h"
#include "server/live/readings.h"
#include "server/route.h"
#include "store/chunk.h"

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
        .host = host, .from_ms = l->from_ms, .to_ms = l->to_ms, .limit = METRIC_CHUNKS_MAX};
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

/* ---- one metric over a time: metric_ask.c ---- */

static void answer_metrics(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct metric_question q;
    int64_t host = 0;
    if (metric_question(x, &q, &err) != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    if (!api_find_host(sv, s, x, &host)) return;
    if (q.name) {
        metric_answer(sv, s, x, host, &q);
        return;
    }
    struct listing l = {.from_ms = q.since_ms, .to_ms = q.to_ms, .index = MAP_U64_INIT};
    if (list_metrics(s, x, host, &l, &err) != TARE_OK) steps_failed(sv, x, &err);
    map_u64_release(&l.index);
    vec_release(&l.latest);
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
