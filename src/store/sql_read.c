/* SPDX-License-Identifier: MIT
 * sql_read.c - what is asked of the history, answered from indices. Changes nothing. */
#include <stdio.h>
#include <string.h>

#include "store/sql.h"

static struct known_f64 real_or_unknown(struct db_stmt *q, int column)
{
    bool known = !db_null_at(q, column);
    return (struct known_f64){known, known ? db_real_at(q, column) : 0};
}

static struct known_bool bool_or_unknown(struct db_stmt *q, int column)
{
    bool known = !db_null_at(q, column);
    return (struct known_bool){known, known && db_int_at(q, column) != 0};
}

static void read_run(struct db_stmt *q, struct store_run *r)
{
    const char **texts[] = {&r->id,      &r->kind, &r->created,  &r->subject, &r->sha256,
                            &r->runtime, &r->host, &r->hostname, &r->commit,  &r->branch};
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) *texts[i] = db_column(q, i);
    r->dirty = bool_or_unknown(q, 10);
    r->created_ms = db_int_at(q, 11);
    r->cases = (uint64_t)db_int_at(q, 12);
    r->bytes = (uint64_t)db_int_at(q, 13);
    r->tags = db_column(q, 14);
}

/* 0 and what is beyond all numbers of rows: no limit. */
static int64_t limit_of(uint64_t n)
{
    return n && n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

/* A parameter that is not bound is NULL, which the statement takes as "any". A
 * row without what the schema requires is reported as damage: callers rely on these texts. */
tare_status db_list(struct store *base, const struct store_filter *f, store_run_fn *fn, void *ctx,
                    tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, f->project ? DB_LIST_PROJECT : DB_LIST, &q, err);
    if (status != TARE_OK) return status;
    if (f->project) db_text(q, 9, f->project);
    db_text(q, 1, f->subject);
    db_text(q, 2, f->host);
    db_text(q, 3, f->tag);
    db_text(q, 4, f->id_prefix);
    db_int(q, 5, f->since_ms ? f->since_ms : INT64_MIN);
    db_int(q, 6, limit_of(f->limit));
    db_text(q, 7, f->before);
    db_text(q, 8, f->commit);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_run run = {0};
        read_run(q, &run);
        if (!run.id || !run.kind || !run.created || !run.subject || !run.host || !ulid_is_valid(run.id))
            status = error_set(err, TARE_FORMAT,
                               "%s: the history is damaged: a run without id, subject or time", s->path);
        else
            status = fn(ctx, &run, err);
    }
    return db_walked(s, q, rc, status, err);
}

tare_status db_body(struct store *base, const char *id, struct buf *out, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_BODY, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, id);
    int rc = db_next(q);
    if (rc == DB_ROW) {
        const void *bytes = db_blob_at(q, 0);
        size_t n = db_bytes_at(q, 0);
        if (bytes) buf_add(out, bytes, n);
        status = buf_status(out, err);
    } else {
        status = rc == DB_DONE ? error_set(err, TARE_INVALID, "%s: has no run %s", s->path, id)
                               : db_fail(s, "reading a document", err);
    }
    db_done(q);
    return status;
}

tare_status db_names(struct store *base, const struct store_query *what, store_name_fn *fn, void *ctx,
                     tare_error *err)
{
    const char *const texts[] = {what->subject, what->case_name, what->metric, what->host, what->anchor};
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, what->project ? DB_NAMES_PROJECT : DB_NAMES, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 6, what->after);
    db_int(q, 7, limit_of(what->limit));
    if (what->project) db_text(q, 8, what->project);
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) db_text(q, i + 1, texts[i]);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_series_name n = {.id = db_int_at(q, 0)};
        const char **to[] = {&n.subject, &n.case_name, &n.metric, &n.anchor, &n.host, &n.hostname};
        for (int i = 0; i < (int)(sizeof to / sizeof *to); i++) *to[i] = db_column(q, i + 1);
        n.points = (uint64_t)db_int_at(q, 7);
        if (!n.subject || !n.case_name || !n.metric || !n.anchor || !n.host)
            status =
                error_set(err, TARE_FORMAT, "%s: the history is damaged: a series without a name", s->path);
        else
            status = fn(ctx, &n, err);
    }
    return db_walked(s, q, rc, status, err);
}

tare_status db_pinned(struct store *base, const struct store_pin *p, char id[ULID_SIZE], tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_PINNED, &q, err);
    if (status != TARE_OK) return status;
    id[0] = 0;
    db_text(q, 1, p->name);
    db_text(q, 2, p->subject);
    db_text(q, 3, p->project);
    enum db_result rc = db_next(q);
    const char *text = rc == DB_ROW ? db_column(q, 0) : NULL;
    if (text) snprintf(id, ULID_SIZE, "%s", text);
    return db_walked(s, q, rc == DB_ROW ? DB_DONE : rc, TARE_OK, err);
}

tare_status db_pins(struct store *base, int64_t *out, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_PINS, &q, err);
    if (status != TARE_OK) return status;
    enum db_result rc = db_next(q);
    if (rc == DB_ROW) *out = (db_int_at(q, 0) << 40) + db_int_at(q, 1);
    return db_walked(s, q, rc == DB_ROW ? DB_DONE : rc, TARE_OK, err);
}

static void read_point(struct db_stmt *q, struct store_point *p)
{
    const char *id = db_column(q, 0), *commit = db_column(q, 6), *branch = db_column(q, 7);
    *p = (struct store_point){.created_ms = db_int_at(q, 1), .value = db_real_at(q, 2)};
    snprintf(p->run, sizeof p->run, "%s", id ? id : "");
    snprintf(p->commit, sizeof p->commit, "%s", commit ? commit : "");
    snprintf(p->branch, sizeof p->branch, "%s", branch ? branch : "");
    p->lo = real_or_unknown(q, 3);
    p->hi = real_or_unknown(q, 4);
    p->samples = (struct known_u64){!db_null_at(q, 5), (uint64_t)db_int_at(q, 5)};
    p->dirty = bool_or_unknown(q, 8);
}

/* The statement takes the newest, as the limit must cut old ones off; the points are then turned round,
 * since all who read a series want it in the order of time. */
tare_status db_series(struct store *base, const struct store_span *span, struct store_points *out,
                      tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, span->project ? DB_SERIES_PROJECT : DB_SERIES, &q, err);
    if (status != TARE_OK) return status;
    out->at.n = 0;
    db_int(q, 1, span->series);
    db_int(q, 2, limit_of(span->last));
    if (span->project) db_text(q, 3, span->project);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_point p;
        read_point(q, &p);
        status = vec_push(&out->at, p, err);
    }
    for (size_t i = 0, j = out->at.n; status == TARE_OK && i + 1 < j; i++) { /* oldest first */
        struct store_point t = out->at.items[i];
        out->at.items[i] = out->at.items[--j];
        out->at.items[j] = t;
    }
    return db_walked(s, q, rc, status, err);
}
