/* SPDX-License-Identifier: MIT
 * sql_rollup.c - hours of hosts and their sums: which are due, their rows, and what is too old of them. */
#include "store/sql.h"

static void read_block(struct db_stmt *q, struct store_block *out)
{
    *out = (struct store_block){.host = db_int_at(q, 0),
                                .at_ms = db_int_at(q, 1),
                                .seq = db_int_at(q, 2),
                                .due_ms = db_int_at(q, 3),
                                .cut = (enum store_cut)db_int_at(q, 4)};
}

tare_status db_blocks(struct store *base, const struct store_block_query *what, store_block_fn *fn, void *ctx,
                      tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, DB_BLOCKS, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, what->host);
    db_int(q, 2, what->from_ms);
    db_int(q, 3, what->to_ms);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_block b;
        read_block(q, &b);
        status = fn(ctx, &b, err);
    }
    return db_walked(s, q, rc, status, err);
}

/* The first of a list of blocks from before a time; out->host 0: it has none. */
static tare_status first_block(struct db_store *s, enum db_sql which, int64_t before_ms,
                               struct store_block *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    *out = (struct store_block){0};
    tare_status status = db_get(s, which, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, before_ms);
    enum db_result rc = db_next(q);
    if (rc == DB_ROW) read_block(q, out);
    if (rc == DB_BAD) status = db_fail(s, "looking for an hour of a host", err);
    db_done(q);
    return status;
}

tare_status db_block_due(struct store *base, int64_t now_ms, struct store_block *out, tare_error *err)
{
    return first_block(db_of(base), DB_BLOCK_DUE, now_ms, out, err);
}

/* A statement about one block and two more numbers. */
static tare_status change_block(struct db_store *s, enum db_sql which, const struct store_block *b,
                                const int64_t more[2], tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, which, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, b->host);
    db_int(q, 2, b->at_ms);
    db_int(q, 3, more[0]);
    db_int(q, 4, more[1]);
    return db_step(s, q, "changing an hour of a host", err);
}

/* What came since has a greater number. A block whose readings are gone is told by its own. */
tare_status db_block_again(struct store *base, const struct store_block *b, bool *same, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    int64_t found = 0;
    tare_status status = db_get(s, DB_BLOCK_AGAIN, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, b->host);
    db_int(q, 2, b->at_ms);
    db_int(q, 3, b->seq);
    db_int(q, 4, b->due_ms);
    db_int(q, 5, (int64_t)b->cut);
    status = db_number(s, q, &found, err);
    *same = found != 0;
    return status;
}

/* Readings that came after the others of their block had gone are in its sums now: they go, too. Where still newer ones
 * came while this was read, it stays due. */
tare_status db_block_done(struct store *base, const struct store_block *b, tare_error *err)
{
    struct db_store *s = db_of(base);
    tare_status status =
        change_block(s, DB_BLOCK_DONE, b, (const int64_t[]){b->seq, b->at_ms + ROLLUP_HOUR_MS}, err);
    const int64_t summed[] = {b->at_ms + ROLLUP_HOUR_MS, b->seq};
    if (status != TARE_OK || b->cut < STORE_CUT_READINGS) return status;
    status = change_block(s, DB_DROP_SUMMED, b, summed, err);
    return status == TARE_OK ? change_block(s, DB_EMPTY_CHUNKS, b, summed, err) : status;
}

tare_status db_block_put_off(struct store *base, const struct store_block *b, int64_t until_ms,
                             tare_error *err)
{
    return change_block(db_of(base), DB_PUT_OFF_BLOCK, b, (const int64_t[]){until_ms, 0}, err);
}

tare_status db_rollup_put(struct store *base, const struct store_rollup *r, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_PUT_ROLLUP, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, r->metric);
    db_int(q, 2, r->width_ms);
    db_int(q, 3, r->at_ms);
    db_blob(q, 4, r->body.data, r->body.size);
    return db_step(s, q, "adding sums", err);
}

tare_status db_rollups(struct store *base, const struct store_rollup_query *what, store_rollup_fn *fn,
                       void *ctx, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, DB_ROLLUPS, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, what->metric);
    db_int(q, 2, what->width_ms);
    db_int(q, 3, what->from_ms);
    db_int(q, 4, what->to_ms);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_rollup r = {
            what->metric, what->width_ms, db_int_at(q, 0), {db_blob_at(q, 1), db_bytes_at(q, 1)}};
        status = fn(ctx, &r, err);
    }
    return db_walked(s, q, rc, status, err);
}

/* ---- handing on ---- */

tare_status db_forward_take(struct store *base, struct store_forward *f, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_TAKE_FORWARD, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, f->name);
    db_text(q, 2, f->owner);
    db_int(q, 3, f->now_ms);
    db_int(q, 4, f->until_ms);
    f->seq = -1;
    return db_number(s, q, &f->seq, err);
}

tare_status db_forward_note(struct store *base, const struct store_forward *f, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_NOTE_FORWARD, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, f->name);
    db_text(q, 2, f->owner);
    db_int(q, 3, f->seq);
    return db_step(s, q, "noting what was handed on", err);
}

/* ---- what is too old ---- */

static tare_status set_cut(struct db_store *s, const struct store_block *b, enum store_cut cut,
                           tare_error *err)
{
    return change_block(s, DB_CUT_BLOCK, b, (const int64_t[]){(int64_t)cut, 0}, err);
}

/* Before the first reading goes the block says so: no question mistakes the rest for all. */
static tare_status cut_readings(struct db_store *s, struct store_rollup_expiry *e, tare_error *err)
{
    struct store_block b;
    tare_status status = first_block(s, DB_BLOCK_WHOLE, e->readings_ms - ROLLUP_HOUR_MS, &b, err);
    if (status != TARE_OK || !b.host) return status;
    e->more = true;
    if (b.cut == STORE_CUT_NONE) status = set_cut(s, &b, STORE_CUT_GOING, err);
    if (status == TARE_OK)
        status = change_block(s, DB_DROP_CHUNKS, &b,
                              (const int64_t[]){b.at_ms + ROLLUP_HOUR_MS, (int64_t)e->most}, err);
    if (status != TARE_OK || db_changes(s->db) >= (int64_t)e->most) return status;
    status = change_block(s, DB_EMPTY_CHUNKS, &b, (const int64_t[]){b.at_ms + ROLLUP_HOUR_MS, b.seq}, err);
    return status == TARE_OK ? set_cut(s, &b, STORE_CUT_READINGS, err) : status;
}

static tare_status drop_rows(struct db_store *s, const struct store_block *b, int64_t width_ms, int64_t at_ms,
                             tare_error *err)
{
    struct store_block row = {.host = b->host, .at_ms = at_ms};
    return change_block(s, DB_DROP_ROLLUPS, &row, (const int64_t[]){width_ms, 0}, err);
}

static tare_status cut_minutes(struct db_store *s, struct store_rollup_expiry *e, tare_error *err)
{
    struct store_block b;
    tare_status status = first_block(s, DB_BLOCK_BARE, e->minutes_ms - ROLLUP_HOUR_MS, &b, err);
    if (status != TARE_OK || !b.host) return status;
    e->more = true;
    status = drop_rows(s, &b, ROLLUP_MINUTE_MS, b.at_ms, err);
    return status == TARE_OK ? set_cut(s, &b, STORE_CUT_MINUTES, err) : status;
}

/* By whole days, of which all hours are too old. */
static tare_status cut_hours(struct db_store *s, struct store_rollup_expiry *e, tare_error *err)
{
    struct store_block b;
    int64_t before = e->hours_ms - e->hours_ms % ROLLUP_DAY_MS;
    tare_status status = first_block(s, DB_BLOCK_LAST, before - ROLLUP_HOUR_MS, &b, err);
    if (status != TARE_OK || !b.host) return status;
    int64_t day = b.at_ms - b.at_ms % ROLLUP_DAY_MS;
    e->more = true;
    status = drop_rows(s, &b, ROLLUP_HOUR_MS, day, err);
    b.at_ms = day;
    return status == TARE_OK
               ? change_block(s, DB_DROP_BLOCKS, &b, (const int64_t[]){day + ROLLUP_DAY_MS, 0}, err)
               : status;
}

static tare_status drop_ids(struct db_store *s, struct store_rollup_expiry *e, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_DROP_BATCHES, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, e->ids_ms);
    db_int(q, 2, (int64_t)e->most);
    status = db_step(s, q, "forgetting batches", err);
    if (status == TARE_OK && db_changes(s->db) == (int64_t)e->most) e->more = true;
    return status;
}

tare_status db_rollup_expire(struct store *base, struct store_rollup_expiry *e, tare_error *err)
{
    struct db_store *s = db_of(base);
    e->more = false;
    tare_status status = db_begin(base, err);
    if (status != TARE_OK) return status;
    if (e->readings_ms) status = cut_readings(s, e, err);
    if (status == TARE_OK && e->minutes_ms) status = cut_minutes(s, e, err);
    if (status == TARE_OK && e->hours_ms) status = cut_hours(s, e, err);
    if (status == TARE_OK && e->ids_ms) status = drop_ids(s, e, err);
    tare_status end = db_end(base, status == TARE_OK, status == TARE_OK ? err : NULL);
    return status != TARE_OK ? status : end;
}
