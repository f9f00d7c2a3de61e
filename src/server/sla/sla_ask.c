/* SPDX-License-Identifier: MIT
 * sla_ask.c - see sla_ask.h. */
#include "server/sla/sla_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/sla/slo.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"

enum { SEAL_AFTER_MS = 5 * 60 * 1000 };
#define DAY_MS (24 * (int64_t)STORE_HOUR_MS)

/* The widest slots that steps of such a length begin and end with: an hour, a minute, 10 s. */
static int64_t width_of(int64_t from_ms, int64_t step_ms)
{
    if (step_ms % STORE_HOUR_MS == 0 && from_ms % STORE_HOUR_MS == 0) return STORE_HOUR_MS;
    if (step_ms % STORE_MINUTE_MS == 0 && from_ms % STORE_MINUTE_MS == 0) return STORE_MINUTE_MS;
    return STORE_SLOT_MS;
}

/* ---- adding up ---- */

/* Tallies by name: of routes, or of hosts. */
struct group {
    struct map_str names;
    VEC(struct tally) at; /* by the number that the map has for the name */
};

static void group_release(struct group *g)
{
    for (size_t i = 0; i < g->at.n; i++) tally_release(&g->at.items[i]);
    vec_release(&g->at);
    map_str_release(&g->names);
}

static tare_status group_of(struct group *g, const char *name, struct tally **out, tare_error *err)
{
    static const struct tally none = TALLY_INIT;
    uint64_t *number, *known = map_str_find(&g->names, name, strlen(name));
    if (!known) {
        tare_status s = vec_push(&g->at, none, err);
        if (s == TARE_OK) s = map_str_ref(&g->names, name, strlen(name), &number, err);
        if (s != TARE_OK) return s;
        *number = g->at.n - 1;
        known = number;
    }
    *out = &g->at.items[*known];
    return TARE_OK;
}

/* Where the tallies of slots go; each may be NULL. */
struct sum {
    struct tally *total;
    struct tally *steps; /* from from_ms on, each step_ms long */
    int64_t from_ms, step_ms;
    struct group *routes, *hosts;
};

static tare_status add_slot(void *ctx, const struct store_slot *at, const struct store_body *bytes,
                            tare_error *err)
{
    struct sum *sum = ctx;
    struct tally one = TALLY_INIT, *to;
    tare_status s = tally_decode(&one, bytes->data, bytes->size, err);
    if (s == TARE_OK && sum->total) s = tally_merge(sum->total, &one, err);
    if (s == TARE_OK && sum->steps)
        s = tally_merge(&sum->steps[(at->at_ms - sum->from_ms) / sum->step_ms], &one, err);
    if (s == TARE_OK && sum->routes && (s = group_of(sum->routes, at->route, &to, err)) == TARE_OK)
        s = tally_merge(to, &one, err);
    if (s == TARE_OK && sum->hosts && (s = group_of(sum->hosts, at->host, &to, err)) == TARE_OK)
        s = tally_merge(to, &one, err);
    tally_release(&one);
    return s;
}

/* Slots of all hosts together, within from and to. */
static struct store_slots fleet(const struct sla_ask *a, int64_t width)
{
    return (struct store_slots){.project = a->project,
                                .service = a->service,
                                .route = a->route,
                                .host = "",
                                .width_ms = width,
                                .from_ms = a->from_ms,
                                .to_ms = a->to_ms};
}

static tare_status add_up(struct store *s, const struct store_slots *q, struct sum *sum, tare_error *err)
{
    return s->ops->slots(s, q, add_slot, sum, err);
}

/* ---- filling in ---- */

static void fill_head(struct sla *out, const struct sla_ask *a, const char *kind)
{
    out->kind = kind;
    out->service = arena_str(&out->arena, a->service);
    if (*a->project) out->project = arena_str(&out->arena, a->project);
    if (a->route) out->route = arena_str(&out->arena, a->route);
    out->error = known_f64(HIST_ERROR);
    out->total.from_ms = (uint64_t)a->from_ms;
    out->total.to_ms = (uint64_t)a->to_ms;
}

static int more_requests(const void *a, const void *b)
{
    const struct sla_route *x = *(struct sla_route *const *)a, *y = *(struct sla_route *const *)b;
    if (x->total.requests != y->total.requests) return x->total.requests < y->total.requests ? 1 : -1;
    return strcmp(x->name, y->name);
}

static int slower(const void *a, const void *b)
{
    const struct sla_route *x = *(struct sla_route *const *)a, *y = *(struct sla_route *const *)b;
    double p = x->total.latency_ns.p99.value, q = y->total.latency_ns.p99.value; /* 0: unknown, the last */
    if (p != q) return p < q ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void fill_named(struct sla *out, struct sla_route *r, const char *name, const struct tally *t)
{
    r->name = arena_str(&out->arena, name);
    r->total.from_ms = out->total.from_ms;
    r->total.to_ms = out->total.to_ms;
    slo_span(out, &r->total, t, false);
}

static void fill_routes(struct sla *out, const struct group *g)
{
    for (size_t i = 0; i < g->names.n; i++) {
        struct sla_route *r = RUN_LIST_ADD(&out->arena, &out->routes);
        if (r) fill_named(out, r, g->names.entries[i].key, &g->at.items[g->names.entries[i].value]);
    }
    if (out->routes.n) qsort(out->routes.at, out->routes.n, sizeof *out->routes.at, more_requests);
}

static void fill_hosts(struct sla *out, const struct group *g)
{
    for (size_t i = 0; i < g->names.n; i++) {
        struct sla_route *r = RUN_LIST_ADD(&out->arena, &out->hosts);
        if (r) fill_named(out, r, g->names.entries[i].key, &g->at.items[g->names.entries[i].value]);
    }
    if (out->hosts.n) qsort(out->hosts.at, out->hosts.n, sizeof *out->hosts.at, slower);
    if (out->hosts.n > SLA_HOSTS_SHOWN) out->hosts.n = SLA_HOSTS_SHOWN;
}

/* ---- any span ---- */

/* Burn rates look back from the end over an hour and six, whatever the span is. */
static tare_status add_windows(struct store *s, const struct sla_ask *a, struct tally window[2],
                               tare_error *err)
{
    static const int64_t hours[] = {1, 6};
    tare_status status = TARE_OK;
    for (size_t i = 0; i < 2 && status == TARE_OK; i++) {
        struct sla_ask back = *a;
        back.from_ms = a->to_ms - hours[i] * STORE_HOUR_MS;
        struct store_slots q = fleet(&back, STORE_MINUTE_MS);
        status = add_up(s, &q, &(struct sum){.total = &window[i]}, err);
    }
    return status;
}

static tare_status read_windows(struct store *s, const struct sla_ask *a, struct sla_span *to,
                                tare_error *err)
{
    struct tally window[2] = {TALLY_INIT, TALLY_INIT};
    tare_status status = add_windows(s, a, window, err);
    if (status == TARE_OK) slo_windows(to, &window[0], &window[1]);
    tally_release(&window[0]);
    tally_release(&window[1]);
    return status;
}

tare_status sla_burns_read(struct store *s, const struct sla_ask *a, struct sla *out, tare_error *err)
{
    struct tally window[2] = {TALLY_INIT, TALLY_INIT};
    tare_status status = add_windows(s, a, window, err);
    if (status == TARE_OK) {
        slo_span(out, &out->total, &window[1], false);
        slo_windows(&out->total, &window[0], &window[1]);
    }
    tally_release(&window[0]);
    tally_release(&window[1]);
    return status;
}

static void fill_steps(struct sla *out, const struct sla_ask *a, const struct tally *steps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sla_span *to = RUN_LIST_ADD(&out->arena, &out->steps);
        if (!to) return;
        to->from_ms = (uint64_t)(a->from_ms + (int64_t)i * a->step_ms);
        to->to_ms = to->from_ms + (uint64_t)a->step_ms;
        slo_span(out, to, &steps[i], true);
    }
}

tare_status sla_span_read(struct store *s, const struct sla_ask *a, struct sla *out, tare_error *err)
{
    static const struct tally none = TALLY_INIT;
    size_t n = (size_t)((a->to_ms - a->from_ms) / a->step_ms);
    struct store_slots q = fleet(a, width_of(a->from_ms, a->step_ms));
    struct tally total = TALLY_INIT, *steps = mem_new(n, sizeof *steps);
    struct group routes = {MAP_STR_INIT, VEC_INIT};
    struct sum sum = {
        .total = &total, .steps = steps, .from_ms = a->from_ms, .step_ms = a->step_ms, .routes = &routes};
    if (!steps) return error_nomem(err, "%zu steps", n);
    for (size_t i = 0; i < n; i++) steps[i] = none;
    fill_head(out, a, "span");
    out->resolution_ms = known_u64((uint64_t)q.width_ms);
    tare_status status = add_up(s, &q, &sum, err);
    if (status == TARE_OK) {
        slo_span(out, &out->total, &total, true);
        slo_add_worst(out, &total);
        fill_steps(out, a, steps, n);
        fill_routes(out, &routes);
        status = read_windows(s, a, &out->total, err);
    }
    for (size_t i = 0; i < n; i++) tally_release(&steps[i]);
    mem_free(steps);
    tally_release(&total);
    group_release(&routes);
    return status;
}

/* ---- reports ---- */

struct seals {
    struct sla_seals *out;
    int64_t first_ms, now_ms;
};

/* In order, each once. The oldest revisions stay where there are too many: what was told must be found again. */
static tare_status add_seal(void *ctx, const struct store_slot *at, const struct store_body *bytes, tare_error *err)
{
    struct seals *to = ctx;
    struct sla_seals *out = to->out;
    int64_t ms = at->seal_ms > to->first_ms ? at->seal_ms : to->first_ms;
    size_t i = out->n;
    (void)bytes;
    (void)err;
    if (ms > to->now_ms) return TARE_OK;
    while (i > 0 && out->ms[i - 1] > ms) i--;
    if (i > 0 && out->ms[i - 1] == ms) return TARE_OK;
    size_t room = sizeof out->ms / sizeof *out->ms;
    if (i == room) return TARE_OK;
    if (out->n < room) out->n++;
    memmove(&out->ms[i + 1], &out->ms[i], (out->n - 1 - i) * sizeof *out->ms);
    out->ms[i] = ms;
    return TARE_OK;
}

/* Rows of hosts themselves. */
static struct store_slots presence_of(const struct sla_ask *a)
{
    struct store_slots q = fleet(a, STORE_HOUR_MS);
    q.route = "";
    q.host = NULL;
    return q;
}

tare_status sla_seals_read(struct store *s, const struct sla_ask *span, int64_t now_ms, struct sla_seals *out,
                           tare_error *err)
{
    struct store_slots q = presence_of(span);
    struct seals to = {out, span->to_ms + SEAL_AFTER_MS, now_ms};
    *out = (struct sla_seals){.n = 0};
    return s->ops->slots(s, &q, add_seal, &to, err);
}

/* ---- completeness ---- */

struct heard {
    struct map_str minutes; /* of each host in the span */
    int64_t from_ms;
    uint64_t lost;
    /* the hour that was read last: its revisions are neighbours */
    char host[TALLY_LINE];
    int64_t at_ms;
    uint64_t mask;
};

static tare_status add_heard(void *ctx, const struct store_slot *at, const struct store_body *bytes, tare_error *err)
{
    struct heard *h = ctx;
    struct tally one = TALLY_INIT;
    uint64_t *minutes;
    tare_status s = map_str_ref(&h->minutes, at->host, strlen(at->host), &minutes, err);
    if (s != TARE_OK || at->at_ms < h->from_ms) return s; /* the day before: expected, no more */
    if ((s = tally_decode(&one, bytes->data, bytes->size, err)) == TARE_OK) {
        if (at->at_ms != h->at_ms || strcmp(at->host, h->host) != 0) h->mask = 0;
        snprintf(h->host, sizeof h->host, "%s", at->host);
        h->at_ms = at->at_ms;
        *minutes += (uint64_t)__builtin_popcountll(one.minutes & ~h->mask);
        h->mask |= one.minutes;
        h->lost += one.lost;
    }
    tally_release(&one);
    return s;
}

static int more_missing(const void *a, const void *b)
{
    const struct sla_missing *x = *(struct sla_missing *const *)a, *y = *(struct sla_missing *const *)b;
    if (x->minutes != y->minutes) return x->minutes < y->minutes ? 1 : -1;
    return strcmp(x->host, y->host);
}

static void fill_completeness(struct sla *out, const struct heard *h, uint64_t span_minutes)
{
    struct sla_completeness *to = &out->completeness;
    to->known = true;
    to->hosts_expected = h->minutes.n;
    for (size_t i = 0; i < h->minutes.n; i++) {
        const struct map_str_entry *e = &h->minutes.entries[i];
        uint64_t missing = e->value < span_minutes ? span_minutes - e->value : 0;
        to->hosts_heard += e->value > 0;
        to->minutes_missing += missing;
        struct sla_missing *m = missing ? RUN_LIST_ADD(&out->arena, &to->missing) : NULL;
        if (m) *m = (struct sla_missing){arena_str(&out->arena, e->key), missing};
    }
    if (to->missing.n) qsort(to->missing.at, to->missing.n, sizeof *to->missing.at, more_missing);
    if (to->missing.n > SLA_MISSING_SHOWN) to->missing.n = SLA_MISSING_SHOWN;
    for (size_t i = 0; i < out->hosts.n; i++) {
        uint64_t *minutes = map_str_find(&h->minutes, out->hosts.at[i]->name, strlen(out->hosts.at[i]->name));
        if (minutes) out->hosts.at[i]->minutes = known_u64(*minutes);
    }
}

/* ---- the report ---- */

/* Hours of all hosts together that begin within, as far as they were sealed by then. */
static tare_status hours(struct store *s, const struct sla_ask *a, int64_t seal_ms, struct sum *sum, tare_error *err)
{
    struct store_slots q = fleet(a, STORE_HOUR_MS);
    q.seal_ms = seal_ms;
    return add_up(s, &q, sum, err);
}

static tare_status read_total(struct store *s, const struct sla_ask *a, int64_t seal_ms, struct sla *out,
                              tare_error *err)
{
    struct tally total = TALLY_INIT, six = TALLY_INIT, last = TALLY_INIT, week = TALLY_INIT;
    struct group routes = {MAP_STR_INIT, VEC_INIT};
    struct sla_ask back = *a, before = *a, end = *a;
    back.from_ms = a->to_ms - 6 * STORE_HOUR_MS;
    end.from_ms = a->to_ms - STORE_HOUR_MS;
    before.from_ms -= 7 * DAY_MS;
    before.to_ms -= 7 * DAY_MS;
    tare_status status = hours(s, a, seal_ms, &(struct sum){.total = &total, .routes = &routes}, err);
    if (status == TARE_OK) status = hours(s, &end, seal_ms, &(struct sum){.total = &last}, err);
    if (status == TARE_OK) status = hours(s, &back, seal_ms, &(struct sum){.total = &six}, err);
    if (status == TARE_OK) status = hours(s, &before, seal_ms, &(struct sum){.total = &week}, err);
    if (status == TARE_OK) {
        slo_span(out, &out->total, &total, true);
        slo_windows(&out->total, &last, &six);
        slo_add_worst(out, &total);
        fill_routes(out, &routes);
        out->p99_ratio = slo_ratio(&total.latency, &week.latency, 0.99);
    }
    tally_release(&total);
    tally_release(&six);
    tally_release(&last);
    tally_release(&week);
    group_release(&routes);
    return status;
}

static tare_status read_hosts(struct store *s, const struct sla_ask *a, int64_t seal_ms, struct sla *out,
                              tare_error *err)
{
    struct group hosts = {MAP_STR_INIT, VEC_INIT};
    struct heard heard = {.minutes = MAP_STR_INIT, .from_ms = a->from_ms};
    struct store_slots q = fleet(a, STORE_HOUR_MS), presence = presence_of(a);
    q.host = NULL;
    q.seal_ms = presence.seal_ms = seal_ms;
    presence.from_ms -= DAY_MS;
    tare_status status = add_up(s, &q, &(struct sum){.hosts = &hosts}, err);
    if (status == TARE_OK) status = s->ops->slots(s, &presence, add_heard, &heard, err);
    if (status == TARE_OK) {
        fill_hosts(out, &hosts);
        fill_completeness(out, &heard, (uint64_t)((a->to_ms - a->from_ms) / STORE_MINUTE_MS));
        out->total.lost = heard.lost;
    }
    map_str_release(&heard.minutes);
    group_release(&hosts);
    return status;
}

tare_status sla_report_read(struct store *s, const struct sla_ask *span, int64_t seal_ms, struct sla *out,
                            tare_error *err)
{
    fill_head(out, span, span->to_ms - span->from_ms > STORE_HOUR_MS ? "day" : "hour");
    out->sealed_ms = known_u64((uint64_t)seal_ms);
    tare_status status = read_total(s, span, seal_ms, out, err);
    return status == TARE_OK ? read_hosts(s, span, seal_ms, out, err) : status;
}
