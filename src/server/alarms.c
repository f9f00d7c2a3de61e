/* SPDX-License-Identifier: MIT
 * alarms.c - see alarms.h. */
#include "server/alarms.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analyze/watch/alert.h"
#include "core/clock.h"
#include "store/chunk.h"
#include "watch/watch_hook.h"

enum { LOOK_EVERY_MS = 1000, CHUNKS_AT_ONCE = 256, NO_DATA_MS = 120000 };

struct rule_now {
    bool firing, ever;
    int64_t since_ms;
    double value;
};

struct host_watch {
    int64_t id, heard_ms, last_ms; /* heard: by our clock; last: of its readings */
    char *name, *project;
    struct series_set set;
    struct sample sample;
    struct deriver *deriver;
    struct alerts *alerts;
    VEC(struct {
        int64_t metric;
        size_t series; /* SIZE_MAX: no quantity is made of it */
    })
    known;
    struct rule_now *rules;
};

struct arrived { /* one reading, by time */
    int64_t at_ms;
    size_t series;
    double value;
};

struct alarms {
    struct alarms_options options;
    struct store *store;
    struct alert_rules rules;
    struct hooks hooks;
    int64_t seq;
    pthread_t thread;
    bool started, stop;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t wake;
    VEC(struct host_watch *) hosts;
};

static int64_t now_ms(void)
{
    return (int64_t)(clock_unix_ns() / 1000000);
}

/* ---- hosts ---- */

static void free_host(struct host_watch *h)
{
    if (!h) return;
    series_set_release(&h->set);
    sample_release(&h->sample);
    deriver_free(h->deriver);
    alerts_free(h->alerts);
    vec_release(&h->known);
    mem_free(h->rules);
    mem_free(h->name);
    mem_free(h->project);
    mem_free(h);
}

static tare_status name_host(void *ctx, const struct store_host *host, tare_error *err)
{
    struct host_watch *h = ctx;
    if (host->id != h->id) return TARE_OK;
    h->name = mem_strdup(host->name);
    h->project = mem_strdup(host->project ? host->project : "");
    return h->name && h->project ? TARE_OK : error_nomem(err, "a host");
}

static tare_status watch_host(struct alarms *a, int64_t id, struct host_watch **out, tare_error *err)
{
    struct host_watch *h = mem_new(1, sizeof *h);
    if (!h) return error_nomem(err, "a host");
    h->id = id;
    tare_status s = deriver_new(&h->deriver, err);
    if (s == TARE_OK) s = alerts_new(&h->alerts, a->rules.items.items, a->rules.items.n, err);
    if (s == TARE_OK && !(h->rules = mem_new(a->rules.items.n, sizeof *h->rules)))
        s = error_nomem(err, "rules");
    if (s == TARE_OK) s = a->store->ops->hosts(a->store, &(struct store_host){0}, name_host, h, err);
    if (s == TARE_OK && !h->name) s = error_set(err, TARE_INVALID, "a host without a name");
    if (s == TARE_OK) s = vec_push(&a->hosts, h, err);
    if (s == TARE_OK)
        *out = h;
    else
        free_host(h);
    return s;
}

static tare_status know_metric(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    struct host_watch *h = ctx;
    enum metric_id which = metric_find(m->name);
    size_t series = SIZE_MAX;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < h->known.n; i++)
        if (h->known.items[i].metric == id) return TARE_OK;
    if (which != METRIC_COUNT) s = series_find(&h->set, which, m->label, &series, err);
    if (s == TARE_OK) s = vec_reserve(&h->known, h->known.n + 1, err);
    if (s != TARE_OK) return s;
    h->known.items[h->known.n].metric = id;
    h->known.items[h->known.n++].series = series;
    return TARE_OK;
}

/* ---- what is told ---- */

static void tell(struct alarms *a, const struct host_watch *h, const struct alert_event *e)
{
    const struct alert_rule *r = alerts_rule(h->alerts, e->rule);
    struct buf json = BUF_INIT;
    struct json j;
    pid_t pids[HOOK_KINDS];
    if (!a->hooks.command && !a->hooks.url) return;
    json_init(&j, &json, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "state", e->fired ? "fired" : "cleared");
    json_kv_string(&j, "rule", r->text);
    json_kv_string(&j, "metric", r->when.name);
    json_kv_string(&j, "label", r->when.label);
    json_kv_double(&j, "value", e->value);
    json_kv_double(&j, "threshold", r->when.threshold);
    json_kv_string(&j, "unit", r->unit);
    json_kv_string(&j, "host", h->name);
    json_kv_string(&j, "project", h->project);
    json_kv_int(&j, "at_ms", (int64_t)(e->at_ns / 1000000));
    json_kv_string(&j, "action", e->action);
    json_object_end(&j);
    json_finish(&j, NULL);
    buf_add_char(&json, '\n');
    hooks_start(&a->hooks, &json, pids);
    buf_release(&json);
}

static void reap(struct alarms *a)
{
    int status;
    hooks_expire(&a->hooks, clock_raw_ns());
    for (size_t i = 0; i < HOOKS_AT_ONCE; i++) {
        pid_t pid = a->hooks.running[i].pid;
        if (pid && waitpid(pid, &status, WNOHANG) == pid) hooks_ended(&a->hooks, pid, status);
    }
}

/* ---- what came ---- */

static int by_time(const void *a, const void *b)
{
    const struct arrived *x = a, *y = b;
    return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

struct gathering {
    struct host_watch *h;
    VEC(struct arrived) at;
    bool strange; /* a series that is not known yet */
};

static tare_status gather(void *ctx, const struct chunk_value *v, tare_error *err)
{
    struct gathering *g = ctx;
    for (size_t i = 0; i < g->h->known.n; i++) {
        if (g->h->known.items[i].metric != v->metric) continue;
        size_t series = g->h->known.items[i].series;
        if (series == SIZE_MAX || v->at_ms <= g->h->last_ms) return TARE_OK;
        return vec_push(&g->at, ((struct arrived){v->at_ms, series, v->value}), err);
    }
    g->strange = true;
    return TARE_OK;
}

/* One moment: what is known of it goes through the quantities to the rules. */
static tare_status judge_moment(struct alarms *a, struct host_watch *h, const struct arrived *at, size_t n,
                                tare_error *err)
{
    struct alert_events events = {VEC_INIT};
    sample_clear(&h->sample);
    h->sample.at_ns = (uint64_t)at->at_ms * 1000000;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < n && s == TARE_OK; i++) s = sample_set(&h->sample, at[i].series, at[i].value, err);
    if (s == TARE_OK) s = deriver_feed(h->deriver, &h->set, &h->sample, err);
    if (s == TARE_OK) s = alerts_feed(h->alerts, h->deriver, h->sample.at_ns, &events, err);
    for (size_t i = 0; i < events.items.n; i++) {
        const struct alert_event *e = &events.items.items[i];
        h->rules[e->rule] = (struct rule_now){e->fired, true, at->at_ms, e->value};
        tell(a, h, e);
    }
    vec_release(&events.items);
    h->last_ms = at->at_ms;
    return s;
}

static tare_status judge_chunk(struct alarms *a, const struct store_chunk *c, tare_error *err)
{
    struct gathering g = {.h = NULL};
    for (size_t i = 0; i < a->hosts.n; i++)
        if (a->hosts.items[i]->id == c->host) g.h = a->hosts.items[i];
    tare_status s = g.h ? TARE_OK : watch_host(a, c->host, &g.h, err);
    for (int round = 0; s == TARE_OK && round < 2; round++) {
        g.strange = false;
        vec_clear(&g.at);
        s = chunk_read(c, gather, &g, err);
        if (s != TARE_OK || !g.strange || round) break;
        s = a->store->ops->metrics(a->store, &(struct store_metric_query){.host = c->host}, know_metric, g.h,
                                   err);
    }
    if (s == TARE_OK && g.at.n) qsort(g.at.items, g.at.n, sizeof *g.at.items, by_time);
    for (size_t i = 0, n; s == TARE_OK && i < g.at.n; i += n) {
        for (n = 1; i + n < g.at.n && g.at.items[i + n].at_ms == g.at.items[i].at_ms; n++) continue;
        s = judge_moment(a, g.h, &g.at.items[i], n, err);
    }
    if (s == TARE_OK) g.h->heard_ms = now_ms();
    vec_release(&g.at);
    return s;
}

/* Copied: the questions about a chunk go over the same connection. */
struct copies {
    VEC(struct store_chunk) at;
};

static tare_status copy_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    struct copies *to = ctx;
    struct store_chunk copy = *c;
    char *bytes = mem_new(c->body.size + 1, 1);
    if (!bytes) return error_nomem(err, "readings");
    memcpy(bytes, c->body.data, c->body.size);
    copy.body.data = bytes;
    tare_status s = vec_push(&to->at, copy, err);
    if (s != TARE_OK) mem_free(bytes);
    return s;
}

static tare_status look(struct alarms *a, bool *more, tare_error *err)
{
    struct copies c = {VEC_INIT};
    struct store_chunk_query q = {.after = a->seq, .limit = CHUNKS_AT_ONCE};
    tare_status s = a->store->ops->chunks(a->store, &q, copy_chunk, &c, err);
    *more = s == TARE_OK && c.at.n == CHUNKS_AT_ONCE;
    for (size_t i = 0; i < c.at.n; i++) {
        void *bytes = NULL;
        if (s == TARE_OK) s = judge_chunk(a, &c.at.items[i], err);
        if (s == TARE_OK || s == TARE_FORMAT) a->seq = c.at.items[i].seq;
        memcpy(&bytes, &c.at.items[i].body.data, sizeof bytes);
        mem_free(bytes);
    }
    vec_release(&c.at);
    return s;
}

static void *keep_looking(void *ctx)
{
    struct alarms *a = ctx;
    bool failed = false;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        tare_error err = TARE_ERROR_INIT;
        struct timespec until;
        bool more = false;
        reap(a);
        tare_status s = look(a, &more, &err);
        if (s != TARE_OK && !failed) a->options.say(a->options.say_ctx, err.text);
        failed = s != TARE_OK;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += more ? 0 : LOOK_EVERY_MS / 1000;
        if (!a->stop) pthread_cond_timedwait(&a->wake, &a->lock, &until);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- asking ---- */

static const char *state_of(const struct host_watch *h, size_t rule)
{
    if (now_ms() - h->heard_ms > NO_DATA_MS || !alerts_judged(h->alerts, rule)) return "no data";
    if (h->rules[rule].firing) return "firing";
    return h->rules[rule].ever ? "resolved" : "good";
}

void alarms_json(struct alarms *a, const char *project, struct json *j)
{
    json_array_begin(j);
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->hosts.n; i++) {
        const struct host_watch *h = a->hosts.items[i];
        if (project[0] && strcmp(project, h->project) != 0) continue;
        for (size_t k = 0; k < a->rules.items.n; k++) {
            const struct rule_now *now = &h->rules[k];
            json_object_begin(j);
            json_kv_string(j, "rule", alerts_rule(h->alerts, k)->text);
            json_kv_string(j, "host", h->name);
            json_kv_string(j, "project", h->project[0] ? h->project : NULL);
            json_kv_string(j, "state", state_of(h, k));
            json_key(j, "since_ms");
            if (now->ever)
                json_put_int(j, now->since_ms);
            else
                json_put_null(j);
            json_key(j, "value");
            if (now->ever)
                json_put_double(j, now->value);
            else
                json_put_null(j);
            json_object_end(j);
        }
    }
    pthread_mutex_unlock(&a->lock);
    json_array_end(j);
}

/* ---- opening ---- */

static tare_status start(struct alarms *a, tare_error *err)
{
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int rc = pthread_create(&a->thread, NULL, keep_looking, a);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    a->started = rc == 0;
    errno = rc;
    return rc ? error_errno(err, "no thread for alerts") : TARE_OK;
}

tare_status alarms_open(struct alarms **out, const struct alarms_options *o, tare_error *err)
{
    const struct operations *ops = o->operations;
    struct alarms *a = mem_new(1, sizeof *a);
    pthread_condattr_t steady;
    if (!a) return error_nomem(err, "alerts");
    a->options = *o;
    a->hooks = (struct hooks){.command = ops->alert_command, .url = ops->alert_webhook};
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&a->wake, &steady);
    pthread_condattr_destroy(&steady);
    tare_status s = alert_rules_add(&a->rules, false, ops->alert_rules.at, ops->alert_rules.n, err);
    if (s == TARE_OK) s = store_open(&a->store, o->store, &(struct store_options){.create = true}, err);
    if (s == TARE_OK) s = a->store->ops->chunk_newest(a->store, &a->seq, err);
    if (s == TARE_OK) s = start(a, err);
    if (s != TARE_OK) {
        alarms_close(a);
        return s;
    }
    *out = a;
    return TARE_OK;
}

void alarms_close(struct alarms *a)
{
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_mutex_unlock(&a->lock);
    pthread_cond_signal(&a->wake);
    if (a->started) pthread_join(a->thread, NULL);
    for (size_t i = 0; i < a->hosts.n; i++) free_host(a->hosts.items[i]);
    vec_release(&a->hosts);
    vec_release(&a->rules.items);
    store_close(a->store);
    pthread_cond_destroy(&a->wake);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}
