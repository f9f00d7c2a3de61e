/* SPDX-License-Identifier: MIT
 * sql_upload.c - files of runs: pieces by their hash, and which of them make a file. */
#include <stdio.h>
#include <string.h>

#include "store/care.h"
#include "store/sql.h"

/* ---- pieces ---- */

static tare_status sum_pieces(struct db_store *s, const char *project, int64_t *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_SUM_PIECES, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, project);
    return db_number(s, q, out, err);
}

/* One that is there is heard of anew: it must not go while its file is on the way. */
static tare_status touch_piece(struct db_store *s, const struct store_piece *p, bool *there, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_TOUCH_PIECE, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, p->project);
    db_text(q, 2, p->hash);
    db_int(q, 3, p->heard_ms);
    status = db_step(s, q, "looking up a piece", err);
    *there = status == TARE_OK && db_changes(s->db) > 0;
    return status;
}

static tare_status add_piece(struct db_store *s, const struct store_piece *p, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_PIECE, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, p->project);
    db_text(q, 2, p->hash);
    db_int(q, 3, (int64_t)p->body.size);
    db_int(q, 4, p->heard_ms);
    db_blob(q, 5, p->body.data, p->body.size);
    return db_step(s, q, "adding a piece", err);
}

static tare_status keep_piece(struct db_store *s, const struct store_piece *p, enum store_kept *kept,
                              tare_error *err)
{
    bool there = false;
    int64_t sum = 0;
    tare_status status = touch_piece(s, p, &there, err);
    *kept = there ? STORE_SAME : STORE_NEW;
    if (status != TARE_OK || there) return status;
    if (p->quota) status = sum_pieces(s, p->project, &sum, err);
    if (status != TARE_OK) return status;
    if (p->quota && (uint64_t)sum + p->body.size > p->quota) {
        *kept = STORE_CROWDED;
        return TARE_OK;
    }
    return add_piece(s, p, err);
}

static tare_status finish(struct store *s, tare_status status, tare_error *err)
{
    tare_status end = db_end(s, status == TARE_OK, status == TARE_OK ? err : NULL);
    return status != TARE_OK ? status : end;
}

tare_status db_piece_add(struct store *base, const struct store_piece *p, enum store_kept *kept,
                         tare_error *err)
{
    tare_status status = db_begin(base, err);
    if (status != TARE_OK) return status;
    return finish(base, keep_piece(db_of(base), p, kept, err), err);
}

/* ---- files ---- */

struct owner { /* of a file to be: its run, and how many it has */
    int64_t run, files;
    char project[STORE_NAME_MAX + 1];
};

static tare_status find_owner(struct db_store *s, const char *id, struct owner *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_UPLOAD_OWNER, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, id);
    enum db_result rc = db_next(q);
    if (rc == DB_ROW) {
        const char *project = db_column(q, 1);
        out->run = db_int_at(q, 0);
        out->files = db_int_at(q, 2);
        snprintf(out->project, sizeof out->project, "%s", project ? project : "");
    } else {
        status = rc == DB_DONE ? error_set(err, TARE_INVALID, "%s: has no run %s", s->path, id)
                               : db_fail(s, "looking up a run", err);
    }
    db_done(q);
    return status;
}

/* Of one with this name, what it is called; "": there is none. */
static tare_status find_named(struct db_store *s, int64_t run, const char *name, char id[STORE_HEX_SIZE],
                              tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_UPLOAD_NAMED, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, run);
    db_text(q, 2, name);
    enum db_result rc = db_next(q);
    const char *hash = rc == DB_ROW ? db_column(q, 0) : NULL;
    snprintf(id, STORE_HEX_SIZE, "%s", hash ? hash : "");
    if (rc == DB_BAD) status = db_fail(s, "looking up a file", err);
    db_done(q);
    return status;
}

struct piece_row {
    int64_t id, bytes; /* id 0: there is none */
};

static tare_status find_piece(struct db_store *s, const char *project, const char *hash,
                              struct piece_row *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    *out = (struct piece_row){0, 0};
    tare_status status = db_get(s, DB_FIND_PIECE, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, project);
    db_text(q, 2, hash);
    enum db_result rc = db_next(q);
    if (rc == DB_ROW) *out = (struct piece_row){db_int_at(q, 0), db_int_at(q, 1)};
    if (rc == DB_BAD) status = db_fail(s, "looking up a piece", err);
    db_done(q);
    return status;
}

/* All of them there, all but the last of full length? u->missing is the first that is not. */
static tare_status measure(struct db_store *s, const struct owner *o, struct store_upload_new *u,
                           enum store_kept *kept, tare_error *err)
{
    tare_status status = TARE_OK;
    struct piece_row row;
    u->bytes = 0;
    for (size_t i = 0; i < u->n && status == TARE_OK; i++) {
        status = find_piece(s, o->project, u->hashes[i], &row, err);
        if (status != TARE_OK) break;
        if (!row.id || (i + 1 < u->n && row.bytes != STORE_PIECE_BYTES)) {
            u->missing = i;
            *kept = STORE_LACKING;
            return TARE_OK;
        }
        u->bytes += (uint64_t)row.bytes;
    }
    return status;
}

static tare_status add_file(struct db_store *s, const struct owner *o, const struct store_upload_new *u,
                            int64_t *number, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_UPLOAD, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, o->run);
    db_text(q, 2, u->name);
    db_text(q, 3, u->id);
    db_int(q, 4, (int64_t)u->bytes);
    db_int(q, 5, (int64_t)u->n);
    db_int(q, 6, u->now_ms);
    return db_number(s, q, number, err);
}

static tare_status link_pieces(struct db_store *s, const struct owner *o, const struct store_upload_new *u,
                               int64_t number, tare_error *err)
{
    tare_status status = TARE_OK;
    for (size_t i = 0; i < u->n && status == TARE_OK; i++) {
        struct db_stmt *q = NULL;
        if ((status = db_get(s, DB_LINK_PIECE, &q, err)) != TARE_OK) break;
        db_int(q, 1, number);
        db_int(q, 2, (int64_t)i);
        db_text(q, 3, o->project);
        db_text(q, 4, u->hashes[i]);
        status = db_step(s, q, "adding a file", err);
    }
    return status;
}

static tare_status keep_file(struct db_store *s, struct store_upload_new *u, enum store_kept *kept,
                             tare_error *err)
{
    struct owner o = {0};
    char there[STORE_HEX_SIZE];
    int64_t number = 0;
    *kept = STORE_NEW;
    tare_status status = find_owner(s, u->run, &o, err);
    if (status == TARE_OK) status = measure(s, &o, u, kept, err);
    if (status == TARE_OK && *kept == STORE_NEW) status = find_named(s, o.run, u->name, there, err);
    if (status != TARE_OK || *kept != STORE_NEW) return status;
    if (there[0])
        *kept = strcmp(there, u->id) == 0 ? STORE_SAME : STORE_OTHER;
    else if (o.files >= STORE_UPLOADS_MAX)
        *kept = STORE_CROWDED;
    if (*kept != STORE_NEW) return TARE_OK;
    status = add_file(s, &o, u, &number, err);
    return status == TARE_OK ? link_pieces(s, &o, u, number, err) : status;
}

tare_status db_upload_add(struct store *base, struct store_upload_new *u, enum store_kept *kept,
                          tare_error *err)
{
    store_upload_id(u->hashes, u->n, u->id);
    tare_status status = db_begin(base, err);
    if (status != TARE_OK) return status;
    return finish(base, keep_file(db_of(base), u, kept, err), err);
}

/* ---- reading ---- */

tare_status db_uploads(struct store *base, const struct store_upload_query *a, store_upload_fn *fn, void *ctx,
                       tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, a->run ? DB_UPLOADS_OF_RUN : DB_UPLOADS_BY_HASH, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, a->run ? a->run : a->id);
    db_text(q, 2, a->project);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_upload u = {.number = db_int_at(q, 0),
                                 .run = db_column(q, 1),
                                 .name = db_column(q, 2),
                                 .id = db_column(q, 3),
                                 .bytes = (uint64_t)db_int_at(q, 4),
                                 .pieces = (uint64_t)db_int_at(q, 5),
                                 .created_ms = db_int_at(q, 6)};
        status = fn(ctx, &u, err);
    }
    return db_walked(s, q, rc, status, err);
}

/* The bytes must be what they are called: a disk that forgot some is told of. */
tare_status db_piece(struct store *base, const struct store_upload *u, uint64_t number, struct buf *out,
                     tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    char hash[STORE_HEX_SIZE];
    tare_status status = db_get(s, DB_PIECE, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, u->number);
    db_int(q, 2, (int64_t)number);
    enum db_result rc = db_next(q);
    if (rc == DB_ROW) {
        const char *called = db_column(q, 0);
        const void *bytes = db_blob_at(q, 1);
        size_t n = db_bytes_at(q, 1);
        store_hash(bytes, n, hash);
        if (!called || strcmp(hash, called) != 0)
            status = error_set(err, TARE_FORMAT, "%s: a piece of a file is damaged", s->path);
        else
            buf_add(out, bytes, n);
    } else {
        status = rc == DB_DONE ? error_set(err, TARE_INVALID, "%s: has no such piece", s->path)
                               : db_fail(s, "reading a piece", err);
    }
    db_done(q);
    return status == TARE_OK ? buf_status(out, err) : status;
}

/* ---- care ---- */

tare_status db_sweep(struct store *base, struct store_sweep *e, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    e->removed = 0;
    tare_status status = db_begin(base, err);
    if (status != TARE_OK) return status;
    if ((status = db_get(s, DB_SWEEP_PIECES, &q, err)) == TARE_OK) {
        db_int(q, 1, e->before_ms);
        db_int(q, 2, (int64_t)e->most);
        status = db_step(s, q, "removing pieces", err);
        if (status == TARE_OK) e->removed = (uint64_t)db_changes(s->db);
    }
    return finish(base, status, err);
}

/* Is every piece what it is called, and every file made of pieces that are there? */
tare_status db_check_uploads(struct db_store *s, struct store_health *h, tare_error *err)
{
    struct db_stmt *q = NULL;
    enum db_result rc = DB_ROW;
    tare_status status = TARE_OK;
    for (int64_t last = 0; rc == DB_ROW && status == TARE_OK;) {
        char hash[STORE_HEX_SIZE];
        if ((status = db_get(s, DB_NEXT_PIECE, &q, err)) != TARE_OK) break;
        db_int(q, 1, last);
        if ((rc = db_next(q)) == DB_ROW) {
            const char *called = db_column(q, 1);
            last = db_int_at(q, 0);
            store_hash(db_blob_at(q, 2), db_bytes_at(q, 2), hash);
            if ((!called || strcmp(hash, called) != 0) && !h->trouble[0])
                snprintf(h->trouble, sizeof h->trouble, "piece %lld of a file is damaged", (long long)last);
        }
        if (rc == DB_BAD) status = db_fail(s, "reading pieces", err);
        db_done(q);
    }
    return status;
}
