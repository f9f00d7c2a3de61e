/* SPDX-License-Identifier: MIT
 * stream.c - see stream.h. Viewers are in the hands of this thread or of the loop's: `ours` says which. */
#include "server/live/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/json.h"
#include "core/map.h"
#include "core/mem.h"
#include "server/live/api_metrics.h"
#include "server/route.h"
#include "store/chunk.h"

enum {
    TICK_MS = 1000,
    QUIET_TICKS = 15,       /* then a comment tells both ends that the other is there */
    TOTAL_TICKS = 3600,     /* then the client comes again, which it does by itself */
    CHUNKS_A_TICK = 600,    /* for one who was away; the rest comes a second later */
    RESUME_CHUNKS = 100000, /* further back than that nothing is looked for */
    NAMES_MAX = 1 << 16,
};

struct viewer {
    struct streams *streams;
    struct exchange *x;
    struct viewer *next;
    int64_t host, at; /* the last chunk it has, or has passed */
    int64_t resume;   /* that it says it has; 0: it begins now */
    unsigned ticks, quiet;
    bool ours;
};

struct metric_name {
    const char *name, *label;
};

struct streams {
    struct server *server;
    struct store *store;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct viewer *viewers;
    bool stop;
    /* the thread's own */
    struct arena texts;
    struct map_u64 names; /* id of a metric -> struct metric_name */
};

/* ---- events ---- */

static tare_status note_name(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    struct streams *l = ctx;
    struct metric_name *n = arena_new(&l->texts, 1, sizeof *n);
    if (n) *n = (struct metric_name){arena_str(&l->texts, m->name), arena_str(&l->texts, m->label)};
    if (l->texts.failed) return error_nomem(err, "names of metrics");
    return map_u64_put(&l->names, (uint64_t)id, (uint64_t)(uintptr_t)n, err);
}

static void forget_names(struct streams *l)
{
    map_u64_release(&l->names);
    arena_release(&l->texts);
    l->texts = (struct arena)ARENA_INIT;
}

/* What came for one host after one chunk: the same for all viewers that have seen as much. */
struct event {
    struct streams *streams;
    int64_t host, after, last;
    size_t n; /* chunks */
    struct buf text;
    struct json j;
};

/* A series without a name is left out: *out is NULL. */
static tare_status name_of(struct event *e, int64_t metric, const struct metric_name **out, tare_error *err)
{
    struct streams *l = e->streams;
    struct store_metric_query of = {.host = e->host};
    tare_status s = TARE_OK;
    uint64_t *at = map_u64_find(&l->names, (uint64_t)metric);
    if (!at) {
        if (l->names.n > NAMES_MAX) forget_names(l);
        s = l->store->ops->metrics(l->store, &of, note_name, l, err);
        at = map_u64_find(&l->names, (uint64_t)metric);
    }
    *out = at ? (const struct metric_name *)(uintptr_t)*at : NULL;
    return s;
}

static tare_status tell_value(void *ctx, const struct chunk_value *v, tare_error *err)
{
    struct event *e = ctx;
    const struct metric_name *n = NULL;
    tare_status s = name_of(e, v->metric, &n, err);
    if (s != TARE_OK || !n) return s;
    json_object_begin(&e->j);
    json_kv_string(&e->j, "name", n->name);
    json_kv_string(&e->j, "label", n->label);
    json_kv_int(&e->j, "at", v->at_ms);
    json_kv_double(&e->j, "value", v->value);
    json_object_end(&e->j);
    return TARE_OK;
}

static tare_status tell_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    struct event *e = ctx;
    buf_printf(&e->text, "id: %" PRId64 "\nevent: samples\ndata: ", c->seq);
    json_init(&e->j, &e->text, JSON_STYLE_COMPACT);
    json_object_begin(&e->j);
    json_key(&e->j, "samples");
    json_array_begin(&e->j);
    tare_status s = chunk_read(c, tell_value, e, err);
    if (s != TARE_OK) return s;
    json_array_end(&e->j);
    json_object_end(&e->j);
    buf_add_str(&e->text, "\n\n");
    e->last = c->seq;
    e->n++;
    return TARE_OK;
}

/* ---- one second ---- */

struct events {
    VEC(struct event) at;
};

/* NULL: the store failed; the viewers try again in a second. */
static const struct event *event_for(struct streams *l, struct events *all, const struct viewer *v)
{
    for (size_t i = 0; i < all->at.n; i++)
        if (all->at.items[i].host == v->host && all->at.items[i].after == v->at) return &all->at.items[i];
    struct event e = {.streams = l, .host = v->host, .after = v->at, .last = v->at, .text = BUF_INIT};
    struct store_chunk_query q = {.host = v->host, .after = v->at, .limit = CHUNKS_A_TICK};
    if (l->store->ops->chunks(l->store, &q, tell_chunk, &e, NULL) == TARE_OK && !e.text.failed &&
        vec_push(&all->at, e, NULL) == TARE_OK)
        return vec_last(&all->at);
    buf_release(&e.text);
    return NULL;
}

/* A token that was revoked or a session that ended ends what was opened by it, too. */
static bool still_may(struct server *s, const struct exchange *x)
{
    const char *auth = http_header(&x->head, "authorization");
    struct grant grant;
    struct login login;
    if (auth && strncasecmp(auth, "Bearer ", 7) == 0) return tokens_check(s->tokens, auth + 7, &grant);
    return server_login(s, x, &login);
}

static void is_stream(struct exchange *x)
{
    x->reply.status = 200;
    x->reply.type = "text/event-stream";
    x->reply.extra = "X-Accel-Buffering: no\r\n"; /* a proxy must not gather the pieces */
}

/* Where it begins: at what it says it has, where that is not too long ago; it is told where that cannot be. */
static void begin(struct viewer *v, int64_t newest)
{
    bool can = v->resume > 0 && v->resume <= newest && newest - v->resume <= RESUME_CHUNKS;
    struct buf *out = &v->x->reply.body;
    v->at = can ? v->resume : newest;
    buf_add_str(out, "retry: 2000\n\n");
    if (v->resume && !can) buf_add_str(out, "event: gap\ndata: {}\n\n");
}

static void serve_viewer(struct streams *l, struct viewer *v, struct events *events, int64_t newest)
{
    struct buf *out = &v->x->reply.body;
    if (!v->ticks++) begin(v, newest);
    const struct event *e = newest > v->at ? event_for(l, events, v) : NULL;
    if (e) {
        buf_add(out, e->text.data, e->text.len);
        v->at = e->n < CHUNKS_A_TICK && newest > e->last ? newest : e->last; /* what others sent is passed */
    }
    if (!out->len && ++v->quiet >= QUIET_TICKS) buf_add_str(out, ": nothing new\n\n");
    if (v->ticks >= TOTAL_TICKS || !still_may(l->server, v->x)) v->x->last = true;
    if (out->len) v->quiet = 0;
}

static void tick(struct streams *l)
{
    struct events events = {VEC_INIT};
    int64_t newest = 0;
    bool known = l->store->ops->chunk_newest(l->store, &newest, NULL) == TARE_OK;
    pthread_mutex_lock(&l->lock);
    struct viewer *v = known ? l->viewers : NULL;
    while (v) { /* what is ours stays in the list until it is handed over */
        struct viewer *one = v;
        bool ours = v->ours;
        v = v->next;
        if (!ours) continue;
        pthread_mutex_unlock(&l->lock);
        serve_viewer(l, one, &events, newest);
        pthread_mutex_lock(&l->lock);
        v = one->next;
        if (!one->x->reply.body.len && !one->x->last) continue;
        one->ours = false;
        exchange_finish(one->x);
    }
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < events.at.n; i++) buf_release(&events.at.items[i].text);
    vec_release(&events.at);
}

/* All that are ours; the lock is held. */
static void let_go(struct streams *l)
{
    for (struct viewer *v = l->viewers, *next; v; v = next) {
        next = v->next;
        if (!v->ours) continue;
        v->ours = false;
        v->x->last = true;
        exchange_finish(v->x);
    }
}

static void *watch(void *ctx)
{
    struct streams *l = ctx;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        struct timespec until;
        while (!l->viewers && !l->stop) pthread_cond_wait(&l->change, &l->lock);
        pthread_mutex_unlock(&l->lock);
        tick(l);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += TICK_MS / 1000;
        pthread_mutex_lock(&l->lock);
        while (!l->stop && pthread_cond_timedwait(&l->change, &l->lock, &until) != ETIMEDOUT) continue;
    }
    let_go(l);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- viewers come and go, on the loop's and the readers' threads ---- */

static void forget_viewer(struct streams *l, struct viewer *v)
{
    struct viewer **at = &l->viewers;
    while (*at && *at != v) at = &(*at)->next;
    if (*at) *at = v->next;
    mem_free(v);
}

/* Once x is the watching thread's, it may be finished as soon as the lock is open: it is not looked at again. */
static void more(struct exchange *x, bool held)
{
    struct viewer *v = x->work;
    struct streams *l = v->streams;
    pthread_mutex_lock(&l->lock);
    bool ends = held && l->stop;
    if (!held)
        forget_viewer(l, v);
    else if (ends)
        x->last = true;
    else
        v->ours = true;
    pthread_mutex_unlock(&l->lock);
    if (ends) exchange_finish(x);
}

static void find_host(struct server *s, struct store *st, struct exchange *x)
{
    const char *last = http_header(&x->head, "last-event-id");
    struct viewer *v = mem_new(1, sizeof *v);
    x->work = v;
    if (!v)
        reply_problem(x, 503, "no memory");
    else if (api_find_host(s, st, x, &v->host))
        v->resume = last && last[0] >= '0' && last[0] <= '9' ? strtoll(last, NULL, 10) : 0;
}

static void forget_work(struct exchange *x)
{
    mem_free(x->work);
}

static void take(struct server *s, struct exchange *x)
{
    struct streams *l = s->streams;
    struct viewer *v = x->work;
    is_stream(x);
    if (x->head.method == METHOD_HEAD) {
        mem_free(v);
        exchange_finish(x);
        return;
    }
    v->streams = l;
    v->x = x;
    x->more = more;
    pthread_mutex_lock(&l->lock);
    v->ours = !l->stop;
    v->next = l->viewers;
    l->viewers = v;
    if (!v->ours) {
        x->last = true;
        exchange_finish(x);
    }
    pthread_cond_signal(&l->change);
    pthread_mutex_unlock(&l->lock);
}

static const struct query_word live_query[] = {
    {"host", "the host's name; needed"},
    {"project", "of the host, where several have one of this name"},
    {NULL, NULL},
};

const struct steps live_get = {.read = find_host,
                               .take = take,
                               .forget = forget_work,
                               .query = live_query,
                               .replies = "200,404",
                               .type = "text/event-stream"};

/* ---- opening ---- */

tare_status streams_open(struct streams **out, struct server *s, const char *store, tare_error *err)
{
    struct streams *l = mem_new(1, sizeof *l);
    pthread_condattr_t monotonic;
    sigset_t all, was;
    if (!l) return error_nomem(err, "live metrics");
    l->server = s;
    *out = l;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    tare_status status = store_open(&l->store, store, &(struct store_options){.create = true}, err);
    if (status != TARE_OK) return status;
    sigfillset(&all); /* signals are for the thread that waits for them */
    pthread_sigmask(SIG_SETMASK, &all, &was);
    errno = pthread_create(&l->thread, NULL, watch, l);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    l->started = errno == 0;
    return l->started ? TARE_OK : error_errno(err, "no thread for live metrics");
}

void streams_stop(struct streams *l)
{
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->change);
    pthread_mutex_unlock(&l->lock);
    if (l->started) pthread_join(l->thread, NULL);
    l->started = false;
}

void streams_close(struct streams *l)
{
    if (!l) return;
    store_close(l->store);
    forget_names(l);
    pthread_cond_destroy(&l->change);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}
