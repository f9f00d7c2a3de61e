/* SPDX-License-Identifier: MIT
 * watch_send.c - see watch_send.h. */
#include "watch/watch_send.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/client.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/ulid.h"

enum {
    ROOM = 10000, /* values that wait; minutes of an ordinary machine, and less than a server takes at once */
    ANSWER_MS = 4000,
    PAUSE_FIRST_S = 1,
    PAUSE_MOST_S = 16,
    SPAN_MS = 3000 * 1000, /* of a batch */
    HOST_MAX = 64          /* bytes of a host's name, as servers take it */
};
#define BEAT_NS UINT64_C(1000000000)

struct sent_value {
    const char *label;
    int64_t at_ms;
    double value;
    enum metric_id metric;
};

struct sent_values {
    VEC(struct sent_value) at;
};

struct latest {   /* of a series, since it was last sent */
    double value; /* NAN: not read since */
    int64_t at_ms;
};

struct sender {
    struct client *client;
    int claim; /* a socket whose name only one process can have */
    struct utsname machine;
    char host[HOST_MAX + 1];

    /* of who samples */
    VEC(struct latest) latest;
    uint64_t beat_ns; /* of the last moment that was handed over */

    /* of both */
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct sent_values waiting;
    struct sender_account account;
    bool ending;

    /* of the thread */
    pthread_t thread;
    bool started;
    struct sent_values batch;
    struct buf body;
};

/* ---- opening ---- */

/* As the host is called here; what servers take in no name becomes '_'. */
static void name_host(struct sender *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (uname(&s->machine) != 0) s->machine = (struct utsname){0};
    snprintf(s->host, sizeof s->host, "%s", s->machine.nodename[0] ? s->machine.nodename : "unknown");
    for (char *c = s->host; *c; c++)
        if (!strchr(plain, *c)) *c = '_';
}

/* A name in the kernel's room for sockets: it goes with the process, however that ends. */
static tare_status claim_host(struct sender *s, tare_error *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "tare metrics %s %s", s->host,
                     client_url(s->client));
    size_t used = (size_t)n < sizeof name.sun_path - 1 ? (size_t)n : sizeof name.sun_path - 2;
    s->claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s->claim < 0) return error_errno(err, "no socket");
    if (bind(s->claim, (struct sockaddr *)&name,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + used)) == 0)
        return TARE_OK;
    if (errno != EADDRINUSE) return error_errno(err, "no name for a socket");
    return error_set(err, TARE_BUSY, "another tare run sends those of %s to %s", s->host,
                     client_url(s->client));
}

static void release(struct sender *s)
{
    client_close(s->client);
    if (s->claim >= 0) close(s->claim);
    vec_release(&s->latest);
    vec_release(&s->waiting.at);
    vec_release(&s->batch.at);
    buf_release(&s->body);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->news);
    mem_free(s);
}

tare_status sender_open(struct sender **out, const char *url, const char *token, tare_error *err)
{
    struct sender *s = mem_new(1, sizeof *s);
    pthread_condattr_t attr;
    if (!s) return error_nomem(err, "live metrics");
    s->claim = -1;
    s->body = (struct buf)BUF_INIT;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->news, &attr);
    pthread_condattr_destroy(&attr);
    tare_status status =
        client_open(&s->client, url, &(struct client_options){.token = token, .deadline_ms = ANSWER_MS}, err);
    if (status == TARE_OK) {
        name_host(s);
        status = claim_host(s, err);
    }
    if (status == TARE_OK) status = vec_reserve(&s->waiting.at, ROOM, err);
    if (status == TARE_OK) status = vec_reserve(&s->batch.at, ROOM, err);
    if (status == TARE_OK)
        *out = s;
    else
        release(s);
    return status;
}

/* ---- who samples ---- */

/* Single processes are the trace's: each would be a series of the host for ever. */
static bool is_sent(const struct series *one)
{
    return !*one->label || one->metric > METRIC_PROC_WRITE_CALLS;
}

static bool note_latest(struct sender *s, const struct series_set *set, const struct sample *now)
{
    int64_t at_ms = (int64_t)(clock_unix_ns() / 1000000);
    while (s->latest.n < set->items.n)
        if (vec_push(&s->latest, ((struct latest){NAN, 0}), NULL) != TARE_OK) break;
    for (size_t i = 0; i < s->latest.n; i++) {
        double v;
        if (sample_get(now, i, &v) && is_sent(&set->items.items[i]))
            s->latest.items[i] = (struct latest){v, at_ms};
    }
    return s->latest.n == set->items.n;
}

static void note_lost(struct sender *s, uint64_t n, const char *why)
{
    if (n && !s->account.lost) error_set(&s->account.why, TARE_IO, "%s", why);
    s->account.lost += n;
}

/* The newest stay: what is live is looked at now. And a server takes no batch that lasts longer than an hour. */
static void make_room(struct sender *s, size_t n, int64_t now_ms)
{
    struct sent_values *w = &s->waiting;
    size_t old = w->at.n + n > ROOM ? w->at.n + n - ROOM : 0;
    if (old > w->at.n) old = w->at.n;
    while (old < w->at.n && w->at.items[old].at_ms < now_ms - SPAN_MS) old++;
    if (!old) return;
    note_lost(s, old, "the server took too long");
    w->at.n -= old;
    memmove(w->at.items, w->at.items + old, w->at.n * sizeof *w->at.items);
}

static void hand_over(struct sender *s, const struct series_set *set)
{
    size_t n = 0;
    for (size_t i = 0; i < s->latest.n; i++) n += !isnan(s->latest.items[i].value);
    make_room(s, n, (int64_t)(clock_unix_ns() / 1000000));
    s->account.values += n;
    for (size_t i = 0; i < s->latest.n; i++) {
        struct latest *l = &s->latest.items[i];
        const struct series *one = &set->items.items[i];
        if (isnan(l->value)) continue;
        if (s->waiting.at.n < ROOM)
            s->waiting.at.items[s->waiting.at.n++] =
                (struct sent_value){one->label, l->at_ms, l->value, one->metric};
        else
            note_lost(s, 1, "more series than a server takes");
        l->value = NAN;
    }
}

/* What is not asked at each sample is not lost between two beats: the latest reading of each series goes, with its own
 * time. */
void sender_take(struct sender *s, const struct series_set *set, const struct sample *now, bool last)
{
    bool whole = note_latest(s, set, now);
    if (!last && s->beat_ns && now->at_ns - s->beat_ns < BEAT_NS - BEAT_NS / 20) return;
    s->beat_ns = now->at_ns;
    pthread_mutex_lock(&s->lock);
    hand_over(s, set);
    if (!whole) note_lost(s, 1, "out of memory");
    pthread_cond_signal(&s->news);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the thread ---- */

static void write_samples(struct json *j, const struct sent_values *values)
{
    json_key(j, "samples");
    json_array_begin(j);
    for (size_t i = 0; i < values->at.n; i++) {
        const struct sent_value *v = &values->at.items[i];
        json_object_begin(j);
        json_kv_string(j, "name", metric_table[v->metric].name);
        if (*v->label) json_kv_string(j, "label", v->label);
        json_kv_int(j, "at", v->at_ms);
        json_kv_double(j, "value", v->value);
        json_object_end(j);
    }
    json_array_end(j);
}

static tare_status write_batch(struct sender *s, tare_error *err)
{
    struct json j;
    char id[ULID_SIZE];
    tare_status status = ulid_new(id, err);
    if (status != TARE_OK) return status;
    buf_clear(&s->body);
    json_init(&j, &s->body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "batch", id);
    json_kv_string(&j, "host", s->host);
    json_key(&j, "about");
    json_object_begin(&j);
    json_kv_string(&j, "os", s->machine.sysname);
    json_kv_string(&j, "kernel", s->machine.release);
    json_kv_string(&j, "machine", s->machine.machine);
    json_kv_string(&j, "tare", TARE_VERSION);
    json_object_end(&j);
    write_samples(&j, &s->batch);
    json_object_end(&j);
    return json_finish(&j, err);
}

/* What the server may take later is TARE_BUSY; what it never will, TARE_INVALID. */
static tare_status post_batch(struct sender *s, tare_error *err)
{
    struct client_reply reply = CLIENT_REPLY_INIT;
    const struct client_request q = {.method = "POST",
                                     .target = "/api/v1/metrics",
                                     .type = "application/json",
                                     .body = s->body.data,
                                     .n = s->body.len,
                                     .harmless = true};
    tare_status status = client_ask(s->client, &q, &reply, err);
    unsigned code = reply.status;
    client_reply_release(&reply);
    if (status != TARE_OK) return TARE_BUSY;
    if (code == 200 || code == 201) return TARE_OK;
    return error_set(err, code == 429 || code >= 500 ? TARE_BUSY : TARE_INVALID, "%s answers %u%s",
                     client_url(s->client), code, code == 401 || code == 403 ? " (TARE_TOKEN)" : "");
}

static void pause_until_end(struct sender *s, unsigned seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&s->lock);
    while (!s->ending && pthread_cond_timedwait(&s->news, &s->lock, &until) == 0) continue;
    pthread_mutex_unlock(&s->lock);
}

static bool is_ending(struct sender *s)
{
    pthread_mutex_lock(&s->lock);
    bool ending = s->ending;
    pthread_mutex_unlock(&s->lock);
    return ending;
}

/* Again and again, less and less often. A try that began after the program's end is the last one. */
static tare_status deliver(struct sender *s, tare_error *err)
{
    tare_status status = write_batch(s, err);
    if (status != TARE_OK) return status;
    for (unsigned pause = PAUSE_FIRST_S;; pause = pause < PAUSE_MOST_S ? pause * 2 : pause) {
        bool last = is_ending(s);
        status = post_batch(s, err);
        if (status != TARE_BUSY || last || is_ending(s)) return status;
        pause_until_end(s, pause);
    }
}

/* False: there is nothing more to send. */
static bool next_batch(struct sender *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->waiting.at.n && !s->ending) pthread_cond_wait(&s->news, &s->lock);
    struct sent_values full = s->waiting;
    s->waiting = s->batch;
    s->batch = full;
    vec_clear(&s->waiting.at);
    pthread_mutex_unlock(&s->lock);
    return s->batch.at.n > 0;
}

/* A server that refuses, or is away at the end, is asked no more. */
static void *keep_sending(void *ctx)
{
    struct sender *s = ctx;
    tare_error err = TARE_ERROR_INIT;
    tare_status status = TARE_OK;
    while (status == TARE_OK && next_batch(s)) status = deliver(s, &err);
    if (status == TARE_OK) return NULL;
    pthread_mutex_lock(&s->lock);
    note_lost(s, s->batch.at.n, err.text);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Signals are for who watches. */
tare_status sender_start(struct sender *s, tare_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = pthread_create(&s->thread, NULL, keep_sending, s);
    s->started = errno == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->started ? TARE_OK : error_errno(err, "no thread");
}

void sender_end(struct sender *s, struct sender_account *out)
{
    *out = (struct sender_account){0};
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_signal(&s->news);
    pthread_mutex_unlock(&s->lock);
    if (s->started) pthread_join(s->thread, NULL);
    note_lost(s, s->waiting.at.n, "not begun");
    *out = s->account;
    release(s);
}
