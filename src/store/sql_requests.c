/* SPDX-License-Identifier: MIT
 * sql_requests.c - tallies of requests by series and time. Does not look into them. */
#include <string.h>

#include "store/sql.h"

tare_status db_requests_batch(struct store *base, const struct store_sent *b, enum store_kept *was,
                              tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_REQUESTS, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, b->project);
    db_text(q, 2, b->id);
    db_blob(q, 3, b->digest, STORE_HASH_SIZE);
    db_int(q, 4, b->received_ms);
    status = db_step(s, q, "adding a batch of requests", err);
    *was = STORE_NEW;
    if (status != TARE_OK || db_changes(s->db) > 0) return status;
    if ((status = db_get(s, DB_FIND_REQUESTS, &q, err)) != TARE_OK) return status;
    db_text(q, 1, b->project);
    db_text(q, 2, b->id);
    int rc = db_next(q);
    bool same = rc == DB_ROW && db_bytes_at(q, 0) == STORE_HASH_SIZE &&
                memcmp(db_blob_at(q, 0), b->digest, STORE_HASH_SIZE) == 0;
    if (rc != DB_ROW) status = db_fail(s, "looking up a batch of requests", err);
    db_done(q);
    *was = same ? STORE_SAME : STORE_OTHER;
    return status;
}

/* 0: there is none. */
static tare_status find_route(struct db_store *s, const struct store_slot *at, int64_t *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_FIND_ROUTE, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, at->project);
    db_text(q, 2, at->service);
    db_text(q, 3, at->route);
    db_text(q, 4, at->host);
    int rc = db_next(q);
    *out = rc == DB_ROW ? db_int_at(q, 0) : 0;
    if (rc != DB_ROW && rc != DB_DONE) status = db_fail(s, "looking up a route", err);
    db_done(q);
    return status;
}

static tare_status add_route(struct db_store *s, const struct store_slot *at, int64_t *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_ROUTE, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, at->project);
    db_text(q, 2, at->service);
    db_text(q, 3, at->route);
    db_text(q, 4, at->host);
    db_int(q, 5, at->at_ms);
    status = db_step(s, q, "adding a route", err);
    return status == TARE_OK ? find_route(s, at, out, err) : status; /* another server may have added it */
}

static void bind_slot(struct db_stmt *q, int64_t series, const struct store_slot *at)
{
    db_int(q, 1, series);
    db_int(q, 2, at->width_ms);
    db_int(q, 3, at->at_ms);
    db_int(q, 4, at->seal_ms);
}

tare_status db_slot_get(struct store *base, const struct store_slot *at, struct buf *tally, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    int64_t series = 0;
    tare_status status = find_route(s, at, &series, err);
    if (status != TARE_OK || !series) return status;
    if ((status = db_get(s, DB_GET_SLOT, &q, err)) != TARE_OK) return status;
    bind_slot(q, series, at);
    int rc = db_next(q);
    if (rc == DB_ROW) {
        const void *bytes = db_blob_at(q, 0);
        if (bytes) buf_add(tally, bytes, db_bytes_at(q, 0));
        status = buf_status(tally, err);
    } else if (rc != DB_DONE) {
        status = db_fail(s, "reading requests", err);
    }
    db_done(q);
    return status;
}

tare_status db_slot_put(struct store *base, const struct store_slot *at, const struct store_body *tally,
                        tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    int64_t series = 0;
    tare_status status = find_route(s, at, &series, err);
    if (status == TARE_OK && !series) status = add_route(s, at, &series, err);
    if (status == TARE_OK) status = db_get(s, DB_PUT_SLOT, &q, err);
    if (status != TARE_OK) return status;
    bind_slot(q, series, at);
    db_blob(q, 5, tally->data, tally->size);
    if ((status = db_step(s, q, "adding requests", err)) != TARE_OK) return status;
    if ((status = db_get(s, DB_TOUCH_ROUTE, &q, err)) != TARE_OK) return status;
    db_int(q, 1, series);
    db_int(q, 2, at->at_ms);
    return db_step(s, q, "adding requests", err);
}

tare_status db_slots_drop(struct store *base, const struct store_slot *like, int64_t before_ms,
                          tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    int64_t series = 0;
    tare_status status = find_route(s, like, &series, err);
    if (status == TARE_OK) status = db_get(s, DB_DROP_SLOTS, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, series);
    db_int(q, 2, like->width_ms);
    db_int(q, 3, before_ms);
    return db_step(s, q, "removing old requests", err);
}

tare_status db_requests_drop(struct store *base, int64_t before_ms, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_DROP_REQUESTS, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, before_ms);
    return db_step(s, q, "removing old ids of batches", err);
}

tare_status db_slots(struct store *base, const struct store_slots *which, store_slot_fn *fn, void *ctx,
                     tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    int rc = DB_DONE;
    tare_status status = db_get(s, DB_SLOTS, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, which->project);
    db_text(q, 2, which->service);
    db_text(q, 3, which->route);
    db_int(q, 4, which->width_ms);
    db_int(q, 5, which->from_ms);
    db_int(q, 6, which->to_ms);
    db_int(q, 7, which->seal_ms ? which->seal_ms : INT64_MAX);
    db_text(q, 8, which->host);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_slot at = {.project = which->project,
                                .service = which->service,
                                .route = db_column(q, 0),
                                .host = db_column(q, 1),
                                .width_ms = which->width_ms,
                                .at_ms = db_int_at(q, 2),
                                .seal_ms = db_int_at(q, 3)};
        struct store_body tally = {db_blob_at(q, 4), db_bytes_at(q, 4)};
        status = at.route && at.host
                     ? fn(ctx, &at, &tally, err)
                     : error_set(err, TARE_FORMAT, "%s: the table of requests is damaged", s->path);
    }
    if (status == TARE_OK && rc != DB_DONE) status = db_fail(s, "reading requests", err);
    db_done(q);
    return status;
}

tare_status db_services(struct store *base, const char *project, store_service_fn *fn, void *ctx,
                        tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    int rc = DB_DONE;
    tare_status status = db_get(s, DB_SERVICES, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, project);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_service one = {.project = db_column(q, 0),
                                    .service = db_column(q, 1),
                                    .routes = (uint64_t)db_int_at(q, 2),
                                    .hosts = (uint64_t)db_int_at(q, 3),
                                    .first_ms = db_int_at(q, 4),
                                    .last_ms = db_int_at(q, 5)};
        status = one.project && one.service
                     ? fn(ctx, &one, err)
                     : error_set(err, TARE_FORMAT, "%s: the table of requests is damaged", s->path);
    }
    if (status == TARE_OK && rc != DB_DONE) status = db_fail(s, "reading services", err);
    db_done(q);
    return status;
}
