/* SPDX-License-Identifier: MIT
 * exports.c - see exports.h. One request holds whole chunks, in the order in which they came. 2xx: they are there. 429,
 * 5xx, no answer: again, later and later. Any other answer: these are refused for good, which is told and passed. */
#include "server/exports/exports.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/client.h"
#include "core/clock.h"
#include "core/map.h"
#include "core/mem.h"
#include "server/exports/export_form.h"
#include "server/exports/snappy.h"

enum {
    TICK_MS = 1000,
    CHUNKS_AT_ONCE = 64,
    BODY_MAX = 1 << 20, /* then no further chunk is added */
    LEASE_MS = 30000,
    DEADLINE_MS = 5000,
    BACKOFF_MAX_MS = 60000,
    NAMES_MAX = 1 << 16,
};

struct host_name {
    int64_t id;
    const char *name, *project;
};

struct target {
    const struct export_to *to;
    struct client *client;
    uint64_t again_ns, backoff_ms; /* 0: nothing is wrong */
};

struct exports {
    struct exports_options options;
    struct store *store;
    char owner[ULID_SIZE];
    struct target at[EXPORTS_MAX];
    size_t n;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    /* the thread's own */
    struct arena texts;
    VEC(struct host_name) hosts;
    struct map_u64 series; /* id of a metric -> struct export_series */
};

/* ---- names ---- */

static void forget_names(struct exports *e)
{
    map_u64_release(&e->series);
    vec_release(&e->hosts);
    arena_release(&e->texts);
    e->texts = (struct arena)ARENA_INIT;
}

static tare_status note_host(void *ctx, const struct store_host *h, tare_error *err)
{
    struct exports *e = ctx;
    struct host_name one = {h->id, arena_str(&e->texts, h->name), arena_str(&e->texts, h->project)};
    return e->texts.failed ? error_nomem(err, "names of hosts") : vec_push(&e->hosts, one, err);
}

static const struct host_name *find_host(const struct exports *e, int64_t id)
{
    for (size_t i = 0; i < e->hosts.n; i++)
        if (e->hosts.items[i].id == id) return &e->hosts.items[i];
    return NULL;
}

struct naming {
    struct exports *e;
    const struct host_name *host;
};

static tare_status note_series(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    struct naming *n = ctx;
    struct arena *a = &n->e->texts;
    struct export_series *one = arena_new(a, 1, sizeof *one);
    if (one)
        *one = (struct export_series){n->host->name,          n->host->project,      arena_str(a, m->name),
                                      arena_str(a, m->label), arena_str(a, m->unit), m->counter};
    if (a->failed) return error_nomem(err, "names of metrics");
    return map_u64_put(&n->e->series, (uint64_t)id, (uint64_t)(uintptr_t)one, err);
}

/* All series of the host are known afterwards, as far as there are any. */
static tare_status learn(struct exports *e, int64_t host, tare_error *err)
{
    struct store_metric_query q = {.host = host};
    tare_status s = TARE_OK;
    if (!find_host(e, host)) {
        e->hosts.n = 0;
        s = e->store->ops->hosts(e->store, &(struct store_host){0}, note_host, e, err);
    }
    struct naming n = {e, find_host(e, host)};
    return s == TARE_OK && n.host ? e->store->ops->metrics(e->store, &q, note_series, &n, err) : s;
}

/* ---- a request ---- */

struct gathering {
    struct exports *e;
    struct export_form form;
    int64_t host, last; /* last: the chunk that it ends with */
    VEC(struct chunk_value) values;
    bool full;
};

static tare_status take_value(void *ctx, const struct chunk_value *v, tare_error *err)
{
    struct gathering *g = ctx;
    return vec_push(&g->values, *v, err);
}

/* A statement is under way: names are looked for when it is through. */
static tare_status take_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    struct gathering *g = ctx;
    struct chunk_value end = {.metric = -c->host, .at_ms = c->seq};
    if (g->full) return TARE_OK;
    tare_status s = chunk_read(c, take_value, g, err);
    if (s == TARE_FORMAT) s = TARE_OK; /* --check tells; here it must not hold up what follows */
    g->full = g->values.n * sizeof(struct chunk_value) > BODY_MAX;
    return s == TARE_OK ? vec_push(&g->values, end, err) : s;
}

static tare_status form_chunk(struct gathering *g, const struct chunk_value *at, size_t n, tare_error *err)
{
    struct exports *e = g->e;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < n && s == TARE_OK; i++) {
        const uint64_t *known = map_u64_find(&e->series, (uint64_t)at[i].metric);
        if (!known) {
            s = learn(e, g->host, err);
            known = map_u64_find(&e->series, (uint64_t)at[i].metric);
        }
        if (s == TARE_OK && known)
            export_add(&g->form, (const struct export_series *)(uintptr_t)*known, at[i].at_ms, at[i].value);
    }
    export_end_host(&g->form);
    return s;
}

static tare_status form_all(struct gathering *g, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0, from = 0; i < g->values.n && s == TARE_OK; i++) {
        const struct chunk_value *v = &g->values.items[i];
        if (v->metric > 0) continue;
        g->host = -v->metric;
        g->last = v->at_ms;
        s = form_chunk(g, &g->values.items[from], i - from, err);
        from = i + 1;
    }
    return s == TARE_OK ? buf_status(&g->form.out, err) : s;
}

/* ---- sending ---- */

static void say(struct exports *e, const struct target *t, const char *what, const char *why)
{
    char text[600];
    snprintf(text, sizeof text, "export %s: %s%.400s", t->to->name, what, why);
    e->options.say(e->options.say_ctx, text);
}

/* Told once, until it works again. */
static void put_off(struct exports *e, struct target *t, const char *why)
{
    if (!t->backoff_ms) say(e, t, "samples wait in the store: ", why);
    t->backoff_ms = t->backoff_ms ? t->backoff_ms * 2 : TICK_MS;
    if (t->backoff_ms > BACKOFF_MAX_MS) t->backoff_ms = BACKOFF_MAX_MS;
    t->again_ns = clock_raw_ns() + t->backoff_ms * UINT64_C(1000000);
}

/* True: these are done with. */
static bool send(struct exports *e, struct target *t, struct gathering *g)
{
    struct client_reply reply = CLIENT_REPLY_INIT;
    struct buf packed = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    char why[100];
    if (t->to->prometheus) snappy_pack(&packed, g->form.out.data, g->form.out.len);
    const struct buf *body = t->to->prometheus ? &packed : &g->form.out;
    struct client_request q = {
        .method = "POST",
        .target = "",
        .type = "application/x-protobuf",
        .headers = t->to->prometheus
                       ? "Content-Encoding: snappy\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\n"
                       : NULL,
        .body = body->data,
        .n = body->len,
        .harmless = true};
    tare_status s = buf_status(body, &err);
    if (s == TARE_OK) s = client_ask(t->client, &q, &reply, &err);
    unsigned status = reply.status;
    snprintf(why, sizeof why, "HTTP status %u", status);
    bool later = s != TARE_OK || status == 429 || status >= 500;
    if (later)
        put_off(e, t, s == TARE_OK ? why : err.text);
    else if (status / 100 != 2)
        say(e, t, "refused for good, and left out: ", why);
    if (!later && t->backoff_ms) say(e, t, "it answers again", "");
    if (!later) t->backoff_ms = 0;
    client_reply_release(&reply);
    buf_release(&packed);
    return !later;
}

/* True: there may be more. */
static tare_status hand_on(struct exports *e, struct target *t, bool *more, tare_error *err)
{
    int64_t now = (int64_t)(clock_unix_ns() / 1000000);
    struct store_forward f = {t->to->name, e->owner, now, now + LEASE_MS, -1};
    struct gathering g = {.e = e};
    *more = false;
    tare_status s = e->store->ops->forward.take(e->store, &f, err);
    if (s != TARE_OK || f.seq < 0) return s;
    struct store_chunk_query q = {.after = f.seq, .limit = CHUNKS_AT_ONCE};
    export_form_init(&g.form, t->to->prometheus);
    s = e->store->ops->chunks(e->store, &q, take_chunk, &g, err);
    if (s == TARE_OK) s = form_all(&g, err);
    if (s == TARE_OK && g.last && (!g.form.samples || send(e, t, &g))) {
        f.seq = g.last;
        s = e->store->ops->forward.note(e->store, &f, err);
        *more = true;
    }
    export_form_release(&g.form);
    vec_release(&g.values);
    return s;
}

static bool stopping(struct exports *e)
{
    pthread_mutex_lock(&e->lock);
    bool stop = e->stop;
    pthread_mutex_unlock(&e->lock);
    return stop;
}

static void tick(struct exports *e)
{
    tare_error err = TARE_ERROR_INIT;
    for (size_t i = 0; i < e->n; i++) {
        struct target *t = &e->at[i];
        bool more = !t->backoff_ms || clock_raw_ns() >= t->again_ns;
        while (more && !stopping(e))
            if (hand_on(e, t, &more, &err) != TARE_OK) {
                put_off(e, t, err.text);
                more = false;
            }
    }
    if (e->series.n > NAMES_MAX) forget_names(e);
}

static void *run(void *ctx)
{
    struct exports *e = ctx;
    while (!stopping(e)) {
        struct timespec until;
        tick(e);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += TICK_MS / 1000;
        pthread_mutex_lock(&e->lock);
        while (!e->stop && pthread_cond_timedwait(&e->wake, &e->lock, &until) != ETIMEDOUT) continue;
        pthread_mutex_unlock(&e->lock);
    }
    return NULL;
}

/* ---- opening ---- */

/* The first line of the file. */
static tare_status read_token(const char *path, char out[256], tare_error *err)
{
    FILE *f = fopen(path, "re");
    out[0] = 0;
    if (!f) return error_errno(err, "%s: cannot be read", path);
    bool read = fgets(out, 256, f) != NULL;
    fclose(f);
    out[strcspn(out, "\r\n")] = 0;
    return read && out[0] ? TARE_OK : error_set(err, TARE_INVALID, "%s: has no token in its first line", path);
}

static tare_status open_target(struct target *t, const struct export_to *to, tare_error *err)
{
    char token[256] = "";
    tare_status s = to->token_file ? read_token(to->token_file, token, err) : TARE_OK;
    struct client_options o = {.token = token[0] ? token : NULL, .deadline_ms = DEADLINE_MS, .reply_max = 1 << 20};
    t->to = to;
    if (s == TARE_OK) s = client_open(&t->client, to->url, &o, err);
    return s;
}

static tare_status begin(struct exports *e, tare_error *err)
{
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int rc = pthread_create(&e->thread, NULL, run, e);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    e->started = rc == 0;
    errno = rc;
    return rc ? error_errno(err, "no thread for exports") : TARE_OK;
}

tare_status exports_open(struct exports **out, const struct exports_options *o, tare_error *err)
{
    struct exports *e = mem_new(1, sizeof *e);
    pthread_condattr_t steady;
    if (!e) return error_nomem(err, "exports");
    e->options = *o;
    e->texts = (struct arena)ARENA_INIT;
    pthread_mutex_init(&e->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&e->wake, &steady);
    pthread_condattr_destroy(&steady);
    tare_status s = ulid_new(e->owner, err);
    if (s == TARE_OK) s = store_open(&e->store, o->store, &(struct store_options){.create = true}, err);
    for (size_t i = 0; i < o->operations->n_exports && s == TARE_OK; i++)
        s = open_target(&e->at[e->n++], &o->operations->exports[i], err);
    if (s == TARE_OK) s = begin(e, err);
    if (s != TARE_OK) {
        exports_close(e);
        return s;
    }
    *out = e;
    return TARE_OK;
}

void exports_close(struct exports *e)
{
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    if (e->started) pthread_join(e->thread, NULL);
    for (size_t i = 0; i < e->n; i++) client_close(e->at[i].client);
    forget_names(e);
    store_close(e->store);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    mem_free(e);
}
