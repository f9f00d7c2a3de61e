/* SPDX-License-Identifier: MIT
 * store_slots.h - the part of store.h that is about requests of services. */
#ifndef STORE_STORE_SLOTS_H
#define STORE_STORE_SLOTS_H

#include "run/requests.h"
#include "store/live.h"

struct store;
struct store_body;

/* Slots in which tallies (analyze/sla/tally.h) are kept: of each route those of all hosts together, of each width, and
 * the hours of each host. Retention goes by width and host. */
enum { STORE_SLOT_MS = 10000, STORE_MINUTE_MS = 60000, STORE_HOUR_MS = 3600000 };

struct store_slot {
    const char *project; /* "": nobody's in particular */
    const char *service;
    const char *route; /* "": the host itself: which minutes it sent something from, and what it lost */
    const char *host;  /* "": all of them */
    int64_t width_ms, at_ms;
    int64_t seal_ms; /* of an hour: with which revision of its report it is told; else 0 */
};

struct store_slots { /* what is asked */
    const char *project, *service;
    const char *route;      /* "": hosts themselves; NULL: every route */
    const char *host;       /* "": all of them together; NULL: each by itself, hours alone */
    int64_t width_ms;       /* one of the three */
    int64_t from_ms, to_ms; /* slots that begin within */
    int64_t seal_ms;        /* sealed up to then; 0: all */
};

struct store_service {
    const char *project, *service;
    uint64_t routes, hosts;
    int64_t first_ms, last_ms; /* of the slots */
};

struct store_sent {
    const char *project, *id;
    uint8_t digest[STORE_HASH_SIZE]; /* of the document: the same again is harmless */
    int64_t received_ms;
};

typedef tare_status store_slot_fn(void *ctx, const struct store_slot *slot, const struct store_body *tally,
                                  tare_error *err);
typedef tare_status store_service_fn(void *ctx, const struct store_service *service, tare_error *err);

/* ---- what a backend does ---- */

struct buf;
/* Keep the batch's id, unless it is there. */
typedef tare_status store_sent_op(struct store *s, const struct store_sent *b, enum store_kept *was,
                                  tare_error *err);
/* The ids of batches that were received before. */
typedef tare_status store_sent_drop_op(struct store *s, int64_t before_ms, tare_error *err);
/* None: nothing is added. */
typedef tare_status store_slot_get_op(struct store *s, const struct store_slot *at, struct buf *tally,
                                      tare_error *err);
typedef tare_status store_slot_put_op(struct store *s, const struct store_slot *at,
                                      const struct store_body *tally, tare_error *err);
/* Slots of the same series and width that began before. */
typedef tare_status store_slots_drop_op(struct store *s, const struct store_slot *like, int64_t before_ms,
                                        tare_error *err);
/* Texts and bytes hold until fn returns. */
typedef tare_status store_slots_op(struct store *s, const struct store_slots *which, store_slot_fn *fn,
                                   void *ctx, tare_error *err);
/* By name; project NULL: of all. */
typedef tare_status store_services_op(struct store *s, const char *project, store_service_fn *fn, void *ctx,
                                      tare_error *err);

/* Keep what a batch says, in the slots of its time; within a transaction of the caller. STORE_SAME and STORE_OTHER
 * change nothing. TARE_INVALID: it does not fit to what is there, and nothing was changed. */
tare_status store_add_requests(struct store *s, const struct requests *r, const struct store_sent *b,
                               enum store_kept *was, tare_error *err);

#endif
