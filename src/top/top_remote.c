/* SPDX-License-Identifier: MIT
 * top_remote.c - a host as a server knows it: the latest value of each series, asked for at each moment. What was not
 * sent is unknown; where nothing new came the moment stays, and grows old. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "store/store.h"
#include "top/top_data.h"

enum {
    MOMENT_MS = 2000,    /* values of one moment lie within */
    FIRST_MS = 120000,   /* how far before it was last heard a host is looked for */
    GAP_MS = 60000,      /* no rate over more than that */
    SERIES_MOST = 20000, /* whatever a server says */
    LISTED = 8           /* hosts that are named in a text */
};
#define LAST_MS (INT64_C(1) << 52) /* the clock of a host may be ahead of the server's */

struct got {
    size_t series;
    int64_t at_ms;
    double value;
};

struct top_remote {
    struct store *server; /* borrowed */
    char *host;
    int64_t heard_ms, now_ms; /* by the server's clock */
    uint64_t asked_ns;        /* when it said so, by ours */
    int64_t last_ms;          /* of the last moment; 0: none yet */
    struct series_set set;
    struct sample sample;
    VEC(struct got) got;
};

/* ---- which host ---- */

struct choice {
    const char *wanted; /* NULL: the only one */
    struct top_remote *r;
    struct buf names;
    size_t n, same;
};

static tare_status see_host(void *ctx, const struct store_host *h, tare_error *err)
{
    struct choice *c = ctx;
    struct buf at = BUF_INIT;
    fmt_date(&at, (uint64_t)h->heard_ms * 1000000, false);
    if (c->n++ < LISTED) buf_printf(&c->names, "%s%.64s (heard %s)", c->n > 1 ? ", " : "", h->name, at.data);
    buf_release(&at);
    if (c->wanted && strcmp(h->name, c->wanted) != 0) return TARE_OK;
    c->same++;
    mem_free(c->r->host);
    c->r->host = mem_strdup(h->name);
    c->r->heard_ms = h->heard_ms;
    return c->r->host ? TARE_OK : error_nomem(err, "a host");
}

static tare_status choose(struct choice *c, tare_error *err)
{
    const char *where = c->r->server->where;
    tare_status s = c->r->server->ops->hosts(c->r->server, &(struct store_host){0}, see_host, c, err);
    if (s == TARE_OK && c->n > LISTED) buf_printf(&c->names, " and %zu more", c->n - LISTED);
    if (s != TARE_OK || c->same == 1) return s;
    if (!c->n) return error_set(err, TARE_INVALID, "%s: no host has sent metrics (tare run --push)", where);
    if (!c->wanted) return error_set(err, TARE_INVALID, "%s: which host? --host: %s", where, c->names.data);
    if (!c->same)
        return error_set(err, TARE_INVALID, "%s: no such host: %.64s; there are %s", where, c->wanted,
                         c->names.data);
    return error_set(err, TARE_INVALID,
                     "%s: hosts of several projects are called %.64s: use a token of one of them", where,
                     c->wanted);
}

tare_status top_remote_open(struct top_remote **out, struct store *server, const char *host, tare_error *err)
{
    struct top_remote *r = *out = mem_new(1, sizeof *r);
    if (!r) return error_nomem(err, "a host");
    r->server = server;
    struct choice c = {.wanted = host, .r = r, .names = BUF_INIT};
    tare_status s = choose(&c, err);
    buf_release(&c.names);
    return s;
}

void top_remote_close(struct top_remote *r)
{
    if (!r) return;
    series_set_release(&r->set);
    sample_release(&r->sample);
    vec_release(&r->got);
    mem_free(r->host);
    mem_free(r);
}

/* ---- a moment ---- */

/* Names that are not in the metric table are of no pane. */
static tare_status take_value(void *ctx, const struct store_latest *v, tare_error *err)
{
    struct top_remote *r = ctx;
    struct got one = {.at_ms = v->at_ms, .value = v->value};
    enum metric_id m = metric_find(v->name);
    if (m == METRIC_COUNT || (r->set.items.n >= SERIES_MOST && !series_has(&r->set, m, v->label)))
        return TARE_OK;
    tare_status s = series_find(&r->set, m, v->label, &one.series, err);
    return s == TARE_OK ? vec_push(&r->got, one, err) : s;
}

/* The moment before `to_ms` as r->sample, of what is newer than the last one; *at_ms 0: there is none. */
static tare_status read_moment(struct top_remote *r, int64_t to_ms, int64_t *at_ms, tare_error *err)
{
    int64_t since = r->last_ms ? r->last_ms - MOMENT_MS : r->heard_ms - FIRST_MS;
    struct store_latest_query q = {.host = r->host, .from_ms = since > 0 ? since : 1, .to_ms = to_ms};
    *at_ms = 0;
    vec_clear(&r->got);
    tare_status s = r->server->ops->latest(r->server, &q, take_value, r, err);
    if (s != TARE_OK) return s;
    r->now_ms = q.now_ms;
    r->asked_ns = clock_raw_ns();
    for (size_t i = 0; i < r->got.n; i++)
        if (r->got.items[i].at_ms > *at_ms) *at_ms = r->got.items[i].at_ms;
    if (*at_ms <= r->last_ms) *at_ms = 0;
    sample_clear(&r->sample);
    r->sample.at_ns = (uint64_t)*at_ms * 1000000;
    for (size_t i = 0; i < r->got.n && s == TARE_OK; i++) {
        const struct got *g = &r->got.items[i];
        if (*at_ms && g->at_ms > r->last_ms && g->at_ms > *at_ms - MOMENT_MS)
            s = sample_set(&r->sample, g->series, g->value, err);
    }
    return s;
}

/* The first time the moment before the newest is fed first: counters count from there. */
tare_status top_remote_next(struct top_remote *r, top_fed_fn *feed, void *ctx, tare_error *err)
{
    int64_t newest = 0, before = 0;
    bool first = !r->last_ms;
    tare_status s = read_moment(r, LAST_MS, &newest, err);
    if (s != TARE_OK || (!newest && !first)) return s;
    if (!newest)
        return error_set(err, TARE_IO,
                         "%s: %s has sent no values in the two minutes before it was last heard",
                         r->server->where, r->host);
    if (first) s = read_moment(r, newest, &before, err);
    if (s == TARE_OK && before && newest - before <= GAP_MS) {
        r->last_ms = before;
        s = feed(ctx, &r->set, &r->sample, err);
    }
    if (s == TARE_OK && first) s = read_moment(r, newest + 1, &newest, err);
    if (s != TARE_OK || !newest) return s;
    r->last_ms = newest;
    return feed(ctx, &r->set, &r->sample, err);
}

/* ---- what is said of it ---- */

const char *top_remote_host(const struct top_remote *r)
{
    return r->host;
}

const char *top_remote_where(const struct top_remote *r)
{
    return r->server->where;
}

/* By the server's clock when it was asked, by ours since. */
double top_remote_age_s(const struct top_remote *r)
{
    double age = (double)(r->now_ms - r->last_ms) / 1e3 + (double)(clock_raw_ns() - r->asked_ns) / 1e9;
    return age > 0 ? age : 0;
}
