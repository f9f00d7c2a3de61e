/* SPDX-License-Identifier: MIT
 * rollup.h - readings of hosts summed up over minutes and hours, as the store keeps them: part of store.h. An hour of a
 * host is a block: it is summed up when it is over, again when readings come late, and its readings may go before its
 * sums do. Blocks begin at full hours of 1970's clock. */
#ifndef STORE_ROLLUP_H
#define STORE_ROLLUP_H

#include "core/buf.h"
#include "store/live.h"

#define ROLLUP_MINUTE_MS INT64_C(60000)
#define ROLLUP_HOUR_MS INT64_C(3600000) /* a block; a row holds its minutes */
#define ROLLUP_DAY_MS INT64_C(86400000) /* a row holds its hours */
enum {
    ROLLUP_ENTRIES_MAX = 60,  /* of a row */
    ROLLUP_GRACE_MS = 300000, /* an hour is summed up so long after its end */
    ROLLUP_LATE_MS = 5000,    /* and again so long after the first reading that came later */
};

struct bucket {
    double least, greatest;
    double sum, weight; /* the mean is sum / weight: of rates by their time */
    uint64_t n;         /* readings, or rates; 0: empty */
};

void bucket_merge(struct bucket *into, const struct bucket *more); /* exact, in any order */

/* ---- a row: sums of one series at many times, by their place in the row; empty ones take nothing ---- */
void rollup_pack(struct buf *out, const struct bucket *at, size_t n);
/* Adds what the row holds to `at`, of ROLLUP_ENTRIES_MAX. TARE_FORMAT: damaged. */
tare_status rollup_unpack(const struct store_body *body, struct bucket *at, tare_error *err);

/* ---- blocks ---- */
enum store_cut {                  /* what is gone of a block */
                 STORE_CUT_NONE,  /* nothing */
                 STORE_CUT_GOING, /* some of its readings */
                 STORE_CUT_READINGS,
                 STORE_CUT_MINUTES, /* these, too */
};

struct store_block {
    int64_t host, at_ms;
    int64_t seq;    /* the newest chunk that its sums hold; 0: it has none */
    int64_t due_ms; /* when it is to be summed up; 0: that was done */
    enum store_cut cut;
};
typedef tare_status store_block_fn(void *ctx, const struct store_block *b, tare_error *err);

struct store_block_query { /* of a host, in [from_ms, to_ms) */
    int64_t host, from_ms, to_ms;
};

struct store_rollup {
    int64_t metric, width_ms, at_ms; /* width: a minute or an hour; at_ms: where the row begins */
    struct store_body body;
};
typedef tare_status store_rollup_fn(void *ctx, const struct store_rollup *r, tare_error *err);

struct store_rollup_query { /* rows that begin in [from_ms, to_ms) */
    int64_t metric, width_ms, from_ms, to_ms;
};

struct store_rollup_expiry { /* what is from before these times goes; 0: nothing does */
    int64_t readings_ms, minutes_ms, hours_ms, ids_ms;
    uint64_t most; /* chunks, or ids of batches, at a time */
    bool more;     /* out: there may be more to do */
};

struct store;
struct store_rollup_ops {
    tare_status (*blocks)(struct store *s, const struct store_block_query *q, store_block_fn *fn, void *ctx,
                          tare_error *err); /* oldest first */
    /* The one that was due first; out->host 0: none is. */
    tare_status (*due)(struct store *s, int64_t now_ms, struct store_block *out, tare_error *err);
    /* Within one transaction: `again` first, which is false where the block is no more as it was read; rows; `done`. */
    tare_status (*again)(struct store *s, const struct store_block *b, bool *same, tare_error *err);
    tare_status (*put)(struct store *s, const struct store_rollup *r, tare_error *err);
    tare_status (*done)(struct store *s, const struct store_block *b,
                        tare_error *err); /* seq is the new one */
    tare_status (*put_off)(struct store *s, const struct store_block *b, int64_t until_ms,
                           tare_error *err); /* it could not be summed up */
    tare_status (*rows)(struct store *s, const struct store_rollup_query *q, store_rollup_fn *fn, void *ctx,
                        tare_error *err); /* oldest first */
    tare_status (*expire)(struct store *s, struct store_rollup_expiry *e,
                          tare_error *err); /* one slice, one change */
};

#endif
