/* SPDX-License-Identifier: MIT
 * db.c - what all drivers share: each statement prepared once and kept, and the calls that hand on. */
#include "store/sql.h"

tare_status db_fail(const struct db_store *s, const char *doing, tare_error *err)
{
    return s->db->driver->fail(s->db, doing, err);
}

tare_status db_get(struct db_store *s, enum db_sql which, struct db_stmt **out, tare_error *err)
{
    struct db_stmt *q = s->prepared[which];
    if (!q) q = s->db->driver->prepare(s->db, db_statements[which]);
    if (!q) return db_fail(s, "preparing", err);
    *out = s->prepared[which] = q;
    return TARE_OK;
}

void db_forget_statements(struct db_store *s)
{
    map_str_release(&s->metric_ids);
    for (int i = 0; i < DB_N; i++) {
        if (s->prepared[i]) s->prepared[i]->driver->drop(s->prepared[i]);
        s->prepared[i] = NULL;
    }
}

void db_done(struct db_stmt *q)
{
    q->driver->done(q);
}

tare_status db_step(struct db_store *s, struct db_stmt *q, const char *doing, tare_error *err)
{
    tare_status status = db_next(q) == DB_BAD ? db_fail(s, doing, err) : TARE_OK;
    db_done(q);
    return status;
}

tare_status db_number(struct db_store *s, struct db_stmt *q, int64_t *out, tare_error *err)
{
    enum db_result rc = db_next(q);
    if (rc == DB_ROW) *out = db_int_at(q, 0);
    tare_status status = rc == DB_BAD ? db_fail(s, "reading", err) : TARE_OK;
    db_done(q);
    return status;
}

tare_status db_walked(struct db_store *s, struct db_stmt *q, enum db_result rc, tare_status status,
                      tare_error *err)
{
    if (status == TARE_OK && rc != DB_DONE) status = db_fail(s, "reading", err);
    db_done(q);
    return status;
}

tare_status db_run(struct db_store *s, enum db_sql which, const char *doing, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, which, &q, err);
    return q ? db_step(s, q, doing, err) : status;
}

void db_text(struct db_stmt *q, int at, const char *text)
{
    q->driver->text(q, at, text);
}

void db_int(struct db_stmt *q, int at, int64_t v)
{
    q->driver->integer(q, at, v);
}

void db_real(struct db_stmt *q, int at, double v)
{
    q->driver->real(q, at, v);
}

void db_blob(struct db_stmt *q, int at, const void *data, size_t size)
{
    q->driver->blob(q, at, data, size);
}

enum db_result db_next(struct db_stmt *q)
{
    return q->driver->next(q);
}

bool db_null_at(struct db_stmt *q, int column)
{
    return q->driver->null_at(q, column);
}

const char *db_column(struct db_stmt *q, int column)
{
    return q->driver->text_at(q, column);
}

int64_t db_int_at(struct db_stmt *q, int column)
{
    return q->driver->int_at(q, column);
}

double db_real_at(struct db_stmt *q, int column)
{
    return q->driver->real_at(q, column);
}

const void *db_blob_at(struct db_stmt *q, int column)
{
    return q->driver->blob_at(q, column);
}

size_t db_bytes_at(struct db_stmt *q, int column)
{
    return q->driver->bytes_at(q, column);
}

int64_t db_changes(struct db_conn *c)
{
    return c->driver->changes(c);
}

int64_t db_last_id(struct db_conn *c)
{
    return c->driver->last_id(c);
}
