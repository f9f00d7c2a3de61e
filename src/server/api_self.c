/* SPDX-License-Identifier: MIT
 * api_self.c - what the server says of itself, as JSON and for Prometheus; there with the latest values of hosts. */
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/map.h"
#include "core/mem.h"
#include "report/prom.h"
#include "server/route.h"
#include "store/chunk.h"

enum { LATEST_MS = 120 * 1000 }; /* a value that is older is not the host's any more */

/* ---- its own numbers ---- */

struct count {
    const char *name, *help;
    bool counter;
    double value;
};

enum { COUNTS = 10 };
static const char *const kinds[] = {"2xx", "3xx", "4xx", "5xx"};

static void read_counts(struct server *s, struct count out[COUNTS])
{
    const struct loop_counts *n = loop_counts(s->loop);
    const struct count now[COUNTS] = {
        {"threads", "threads that answer", false, s->options.threads},
        {"connections", "connections open now", false, atomic_load(&n->connections)},
        {"accepted", "connections that were accepted", true, (double)atomic_load(&n->accepted)},
        {"refused", "connections beyond the limits", true, (double)atomic_load(&n->refused)},
        {"closed_by_deadline", "connections of slow clients", true, (double)atomic_load(&n->closed_by_deadline)},
        {"requests", "requests that were answered", true, (double)atomic_load(&n->requests)},
        {"bytes_in", "bytes that were read", true, (double)atomic_load(&n->bytes_in)},
        {"bytes_out", "bytes that were sent", true, (double)atomic_load(&n->bytes_out)},
        {"commits", "transactions that were committed", true, (double)atomic_load(&s->commits)},
        {"committed", "runs and batches in them", true, (double)atomic_load(&s->committed)},
    };
    memcpy(out, now, sizeof now);
}

static double uptime_s(const struct server *s)
{
    return (double)instant_since(instant_now(), s->began).ns / 1e9;
}

static void tell_self(struct server *s, struct exchange *x)
{
    const struct loop_counts *n = loop_counts(s->loop);
    struct count counts[COUNTS];
    struct json j;
    read_counts(s, counts);
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "version", TARE_VERSION);
    json_kv_double(&j, "uptime_s", uptime_s(s));
    for (size_t i = 0; i < COUNTS; i++) json_kv_uint(&j, counts[i].name, (uint64_t)counts[i].value);
    json_key(&j, "replies");
    json_object_begin(&j);
    for (int i = 0; i < 4; i++) json_kv_uint(&j, kinds[i], atomic_load(&n->replies[i + 2]));
    json_object_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

const struct steps self_get = {.now = tell_self};

static void write_self(struct server *s, struct buf *out)
{
    const struct loop_counts *n = loop_counts(s->loop);
    struct count counts[COUNTS];
    char name[PROM_NAME_MAX];
    read_counts(s, counts);
    prom_head(out, "tare_server_uptime_seconds", "time since the server began", false);
    buf_add_str(out, "tare_server_uptime_seconds");
    prom_value(out, uptime_s(s));
    for (size_t i = 0; i < COUNTS; i++) {
        snprintf(name, sizeof name, "tare_server_%s%s", counts[i].name, counts[i].counter ? "_total" : "");
        prom_head(out, name, counts[i].help, counts[i].counter);
        buf_add_str(out, name);
        prom_value(out, counts[i].value);
    }
    prom_head(out, "tare_server_replies_total", "replies by kind of status", true);
    for (int i = 0; i < 4; i++) {
        buf_add_str(out, "tare_server_replies_total");
        prom_label(out, "code", kinds[i]);
        prom_value(out, (double)atomic_load(&n->replies[i + 2]));
    }
}

/* ---- the latest values of hosts ---- */

struct latest { /* of one host */
    int64_t id, heard_ms;
    const char *name, *project;
    struct series_set set;
    struct sample now;
    VEC(int64_t) at;       /* of each value of `now` */
    struct map_u64 series; /* id of a metric -> its number in the set + 1 */
    int64_t oldest_ms;
};

struct all_latest {
    struct arena arena;
    VEC(struct latest) hosts;
};

static void release_all(struct all_latest *all)
{
    for (size_t i = 0; i < all->hosts.n; i++) {
        struct latest *l = &all->hosts.items[i];
        series_set_release(&l->set);
        sample_release(&l->now);
        vec_release(&l->at);
        map_u64_release(&l->series);
    }
    vec_release(&all->hosts);
    arena_release(&all->arena);
}

static tare_status note_host(void *ctx, const struct store_host *h, tare_error *err)
{
    struct all_latest *all = ctx;
    struct latest one = {.id = h->id,
                         .heard_ms = h->heard_ms,
                         .name = arena_str(&all->arena, h->name),
                         .project = h->project[0] ? arena_str(&all->arena, h->project) : NULL,
                         .set = SERIES_SET_INIT,
                         .now = SAMPLE_INIT,
                         .series = MAP_U64_INIT};
    return all->arena.failed ? error_nomem(err, "hosts") : vec_push(&all->hosts, one, err);
}

/* What is not in the table has no name there that is surely its own. */
static tare_status note_metric(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    struct latest *l = ctx;
    enum metric_id metric = metric_find(m->name);
    size_t at;
    if (metric == METRIC_COUNT) return TARE_OK;
    tare_status s = series_find(&l->set, metric, m->label, &at, err);
    while (s == TARE_OK && l->at.n <= at) s = vec_push(&l->at, INT64_MIN, err);
    return s == TARE_OK ? map_u64_put(&l->series, (uint64_t)id, at + 1, err) : s;
}

static tare_status note_value(void *ctx, const struct chunk_value *v, tare_error *err)
{
    struct latest *l = ctx;
    const uint64_t *at = map_u64_find(&l->series, (uint64_t)v->metric);
    if (!at || v->at_ms < l->oldest_ms || v->at_ms < l->at.items[*at - 1]) return TARE_OK;
    l->at.items[*at - 1] = v->at_ms;
    return sample_set(&l->now, *at - 1, v->value, err);
}

static tare_status note_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    return chunk_read(c, note_value, ctx, err);
}

static tare_status read_latest(struct store *s, struct latest *l, int64_t now_ms, tare_error *err)
{
    struct store_chunk_query q = {
        .host = l->id, .from_ms = now_ms - LATEST_MS, .to_ms = INT64_MAX};
    if (l->heard_ms < now_ms - LATEST_MS) return TARE_OK;
    l->oldest_ms = q.from_ms;
    tare_status status =
        s->ops->metrics(s, &(struct store_metric_query){.host = l->id}, note_metric, l, err);
    return status == TARE_OK ? s->ops->chunks(s, &q, note_chunk, l, err) : status;
}

static tare_status write_hosts(struct all_latest *all, struct buf *out, tare_error *err)
{
    static const char heard[] = "tare_host_heard_timestamp_seconds";
    size_t n = all->hosts.n;
    struct prom_host *hosts = arena_new(&all->arena, n + 1, sizeof *hosts);
    if (!hosts) return error_nomem(err, "hosts");
    if (n) prom_head(out, heard, "when the server last heard of a host", false);
    for (size_t i = 0; i < n; i++) {
        const struct latest *l = &all->hosts.items[i];
        hosts[i] = (struct prom_host){l->name, l->project, &l->set, &l->now};
        buf_add_str(out, heard);
        prom_label(out, "host", l->name);
        prom_label(out, "project", l->project);
        prom_value(out, (double)l->heard_ms / 1e3);
    }
    prom_write_hosts(out, hosts, n);
    return buf_status(out, err);
}

static void answer_prom(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct all_latest all = {.arena = ARENA_INIT, .hosts = VEC_INIT};
    struct store_host like = {.project = x->project[0] ? x->project : NULL};
    int64_t now_ms = (int64_t)(clock_unix_ns() / 1000000);
    tare_status status = s->ops->hosts(s, &like, note_host, &all, &err);
    for (size_t i = 0; i < all.hosts.n && status == TARE_OK; i++)
        status = read_latest(s, &all.hosts.items[i], now_ms, &err);
    x->reply.status = 200;
    x->reply.type = "text/plain; version=0.0.4; charset=utf-8";
    write_self(sv, &x->reply.body);
    if (status == TARE_OK) status = write_hosts(&all, &x->reply.body, &err);
    if (status != TARE_OK) steps_failed(sv, x, &err);
    release_all(&all);
}

const struct steps prom_get = {.read = answer_prom, .type = "text/plain"};
