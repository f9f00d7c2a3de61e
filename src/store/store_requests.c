/* SPDX-License-Identifier: MIT
 * store_requests.c - from a batch of requests to slots: each of its tallies is added to what the slots of its time hold
 * already, at every width. No SQL. */
#include <string.h>

#include "analyze/sla/tally.h"
#include "core/mem.h"
#include "core/vec.h"
#include "store/store.h"

enum { SEAL_MS = 5 * 60 * 1000 };

/* A report is sealed five minutes after its hour. What comes later belongs to a revision of its own, together with all
 * that comes within the same five minutes. */
static int64_t seal_of(int64_t hour_ms, int64_t received_ms)
{
    int64_t first = hour_ms + STORE_HOUR_MS + SEAL_MS;
    return received_ms < first ? first : (received_ms / SEAL_MS + 1) * SEAL_MS;
}

#define DAY_MS (24 * (int64_t)STORE_HOUR_MS)
enum { ID_DAYS = 7 }; /* how long a batch that is sent again is known */

/* How long slots stay: two days of 10 s, a month of minutes and of the hours of each host, two years of what all hosts
 * did and of who was heard, without which there is no report. */
static int64_t days_of(const struct store_slot *at)
{
    if (at->width_ms == STORE_SLOT_MS) return 2;
    if (at->width_ms == STORE_MINUTE_MS) return 30;
    return *at->host && *at->route ? 30 : 731;
}

struct change {
    struct store_slot at;
    struct buf tally;
};

struct changes { /* that a batch makes */
    const struct requests *r;
    const struct store_sent *b;
    VEC(struct change) list;
};

/* The slot of this width that the batch begins in. */
static struct store_slot slot_of(const struct changes *all, int64_t width)
{
    const struct requests *r = all->r;
    const struct store_sent *b = all->b;
    int64_t at = (int64_t)r->from_ms - (int64_t)r->from_ms % width;
    return (struct store_slot){.project = b->project,
                               .service = r->service,
                               .host = "",
                               .width_ms = width,
                               .at_ms = at,
                               .seal_ms = width == STORE_HOUR_MS ? seal_of(at, b->received_ms) : 0};
}

/* What is in the slot, and `more`. */
static tare_status add_to_slot(struct store *s, struct changes *all, const struct store_slot *at,
                               const struct tally *more, tare_error *err)
{
    struct tally sum = TALLY_INIT;
    struct buf was = BUF_INIT;
    struct change change = {*at, BUF_INIT};
    tare_status status = s->ops->slot_get(s, at, &was, err);
    if (status == TARE_OK && tally_decode(&sum, was.data, was.len, err) != TARE_OK)
        status = error_wrap(err, "%s: the requests of %s are damaged", s->where, at->service);
    if (status == TARE_OK) status = tally_merge(&sum, more, err);
    if (status == TARE_OK) status = tally_encode(&sum, &change.tally, err);
    if (status == TARE_OK) status = vec_push(&all->list, change, err);
    if (status != TARE_OK) buf_release(&change.tally);
    buf_release(&was);
    tally_release(&sum);
    return status;
}

static tare_status add_route(struct store *s, struct changes *all, const struct requests_route *route,
                             tare_error *err)
{
    static const struct {
        int64_t width;
        bool of_host;
    } slots[] = {
        {STORE_SLOT_MS, false}, {STORE_MINUTE_MS, false}, {STORE_HOUR_MS, false}, {STORE_HOUR_MS, true}};
    struct tally t = TALLY_INIT;
    tare_status status = tally_add_route(&t, route, err);
    for (size_t k = 0; k < sizeof slots / sizeof *slots && status == TARE_OK; k++) {
        struct store_slot at = slot_of(all, slots[k].width);
        at.route = route->route;
        if (slots[k].of_host) at.host = all->r->host;
        status = add_to_slot(s, all, &at, &t, err);
    }
    tally_release(&t);
    return status;
}

/* That the host is alive, whether it served anything or not. */
static tare_status add_presence(struct store *s, struct changes *all, tare_error *err)
{
    const struct requests *r = all->r;
    struct store_slot at = slot_of(all, STORE_HOUR_MS);
    struct tally t = TALLY_INIT;
    at.route = "";
    at.host = r->host;
    t.lost = r->lost;
    for (uint64_t ms = r->from_ms; ms < r->to_ms; ms += STORE_MINUTE_MS - ms % STORE_MINUTE_MS) {
        uint64_t minute = (ms - (uint64_t)at.at_ms) / STORE_MINUTE_MS;
        if (minute < 60) t.minutes |= UINT64_C(1) << minute;
    }
    return add_to_slot(s, all, &at, &t, err);
}

/* What is too old goes with each batch, of its own series: a step of the index where nothing is. By the server's clock,
 * since that of a host may be years ahead. */
static tare_status drop_old(struct store *s, const struct store_slot *at, int64_t now_ms, tare_error *err)
{
    return s->ops->slots_drop(s, at, now_ms - days_of(at) * DAY_MS, err);
}

/* All sums are made before the first is written: what does not fit leaves the transaction around it as it was. */
tare_status store_add_requests(struct store *s, const struct requests *r, const struct store_sent *b,
                               enum store_kept *was, tare_error *err)
{
    struct changes all = {r, b, VEC_INIT};
    tare_status status = add_presence(s, &all, err);
    for (size_t i = 0; i < r->routes.n && status == TARE_OK; i++) status = add_route(s, &all, r->routes.at[i], err);
    if (status == TARE_OK) status = s->ops->requests_batch(s, b, was, err);
    for (size_t i = 0; i < all.list.n && status == TARE_OK && *was == STORE_NEW; i++) {
        struct change *c = &all.list.items[i];
        status = s->ops->slot_put(s, &c->at, &(struct store_body){c->tally.data, c->tally.len}, err);
        if (status == TARE_OK) status = drop_old(s, &c->at, b->received_ms, err);
    }
    if (status == TARE_OK) status = s->ops->requests_drop(s, b->received_ms - ID_DAYS * DAY_MS, err);
    for (size_t i = 0; i < all.list.n; i++) buf_release(&all.list.items[i].tally);
    vec_release(&all.list);
    return status;
}
