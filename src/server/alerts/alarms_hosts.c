/* SPDX-License-Identifier: MIT
 * alarms_hosts.c - alert rules over what hosts send: the readings that came since the last look go through the
 * quantities of `tare run` to its rules, moment by moment, each host for itself. */
#include <stdlib.h>
#include <string.h>

#include "server/alerts/alarms_state.h"
#include "store/chunk.h"

enum { CHUNKS_AT_ONCE = 256 };

struct host_watch {
    int64_t id, last_ms; /* last: of its readings */
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
    struct alarm **alarms; /* of each rule */
};

struct arrived { /* one reading, by time */
    int64_t at_ms;
    size_t series;
    double value;
};

/* ---- hosts ---- */

static void free_host(struct host_watch *h)
{
    if (!h) return;
    series_set_release(&h->set);
    sample_release(&h->sample);
    deriver_free(h->deriver);
    alerts_free(h->alerts);
    vec_release(&h->known);
    mem_free(h->alarms);
    mem_free(h->name);
    mem_free(h->project);
    mem_free(h);
}

void alarms_forget_hosts(struct alarms *a)
{
    for (size_t i = 0; i < a->hosts.n; i++) free_host(a->hosts.items[i]);
    vec_release(&a->hosts);
}

static tare_status name_host(void *ctx, const struct store_host *host, tare_error *err)
{
    struct host_watch *h = ctx;
    if (host->id != h->id) return TARE_OK;
    h->name = mem_strdup(host->name);
    h->project = mem_strdup(host->project ? host->project : "");
    return h->name && h->project ? TARE_OK : error_nomem(err, "a host");
}

/* What was known of it before goes on. */
static tare_status find_alarms(struct alarms *a, struct host_watch *h, tare_error *err)
{
    size_t n = a->host_rules.items.n;
    tare_status s = TARE_OK;
    if (!(h->alarms = mem_new(n + 1, sizeof *h->alarms))) return error_nomem(err, "rules");
    for (size_t i = 0; i < n && s == TARE_OK; i++) {
        struct alarm like = {
            .rule = &a->host_rules.items.items[i], .project = h->project, .about = h->name};
        s = alarm_find(a, &like, &h->alarms[i], err);
        if (s == TARE_OK && h->alarms[i]->ever) alerts_resume(h->alerts, i, h->alarms[i]->firing);
    }
    return s;
}

static tare_status watch_host(struct alarms *a, int64_t id, struct host_watch **out, tare_error *err)
{
    struct host_watch *h = mem_new(1, sizeof *h);
    if (!h) return error_nomem(err, "a host");
    h->id = id;
    tare_status s = deriver_new(&h->deriver, err);
    if (s == TARE_OK) s = alerts_new(&h->alerts, a->host_rules.items.items, a->host_rules.items.n, err);
    if (s == TARE_OK) s = a->store->ops->hosts(a->store, &(struct store_host){0}, name_host, h, err);
    if (s == TARE_OK && !h->name) s = error_set(err, TARE_INVALID, "a host without a name");
    if (s == TARE_OK) s = find_alarms(a, h, err);
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
        alarm_change(a, h->alarms[e->rule],
                     &(struct alarm_news){e->fired, at->at_ms, e->value, e->action, NULL});
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
    for (size_t i = 0; s == TARE_OK && i < a->host_rules.items.n; i++)
        if (alerts_judged(g.h->alerts, i)) alarm_heard(a, g.h->alarms[i], alarms_now_ms());
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

tare_status alarms_look_hosts(struct alarms *a, bool *more, tare_error *err)
{
    struct copies c = {VEC_INIT};
    struct store_chunk_query q = {.after = a->chunk_seq, .limit = CHUNKS_AT_ONCE};
    tare_status s = a->store->ops->chunks(a->store, &q, copy_chunk, &c, err);
    *more = s == TARE_OK && c.at.n == CHUNKS_AT_ONCE;
    for (size_t i = 0; i < c.at.n; i++) {
        void *bytes = NULL;
        if (s == TARE_OK) s = judge_chunk(a, &c.at.items[i], err);
        if (s == TARE_OK || s == TARE_FORMAT) a->chunk_seq = c.at.items[i].seq;
        memcpy(&bytes, &c.at.items[i].body.data, sizeof bytes);
        mem_free(bytes);
    }
    vec_release(&c.at);
    return s;
}

