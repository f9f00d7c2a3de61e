/* SPDX-License-Identifier: MIT
 * sql_write.c - what changes the history: each call is one transaction, or a part of the one around it. A
 * failure takes back all of it. */
#include <string.h>

#include "store/sql.h"

/* ---- transactions: begin and end nest, the outermost decides ---- */

/* What may have to undo it is there before it begins: it must not fail for want of memory. */
tare_status db_begin(struct store *base, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *undo = NULL;
    tare_status status = db_get(s, DB_ROLLBACK, &undo, err);
    if (status == TARE_OK && s->depth == 0) status = db_run(s, DB_BEGIN, "beginning to write", err);
    if (status == TARE_OK) s->depth++;
    return status;
}

/* A failed commit (a full disk) is taken back, so that the connection is usable again. */
tare_status db_end(struct store *base, bool commit, tare_error *err)
{
    struct db_store *s = db_of(base);
    if (--s->depth > 0) return TARE_OK;
    tare_status status = commit ? db_run(s, DB_COMMIT, "writing", err) : TARE_OK;
    if (!commit || status != TARE_OK) map_str_release(&s->metric_ids);
    if ((!commit || status != TARE_OK) && s->db->driver->in_transaction(s->db))
        db_run(s, DB_ROLLBACK, "undoing", NULL);
    return status;
}

static tare_status finish(struct db_store *s, tare_status status, tare_error *err)
{
    tare_status end = db_end(&s->base, status == TARE_OK, status == TARE_OK ? err : NULL);
    return status != TARE_OK ? status : end;
}

/* ---- adding ---- */

static tare_status add_about(struct db_store *s, const struct store_run *r, tare_error *err)
{
    const char *const texts[] = {r->created, r->kind,     r->subject, r->sha256, r->runtime,
                                 r->host,    r->hostname, r->commit,  r->branch};
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_RUN, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, r->id);
    db_int(q, 2, r->created_ms);
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) db_text(q, 3 + i, texts[i]);
    if (r->dirty.known) db_int(q, 12, r->dirty.v);
    db_int(q, 13, (int64_t)r->cases);
    db_int(q, 14, (int64_t)r->bytes);
    return db_step(s, q, "adding a run", err);
}

static tare_status add_document(struct db_store *s, int64_t run, struct store_body body, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_DOCUMENT, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, run);
    db_blob(q, 2, body.data, body.size);
    return db_step(s, q, "adding a document", err);
}

static tare_status add_project(struct db_store *s, int64_t run, const char *name, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_PROJECT, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, run);
    db_text(q, 2, name);
    return db_step(s, q, "adding a run to its project", err);
}

static void bind_series(struct db_stmt *q, const struct store_run *r, const struct store_value *v)
{
    db_text(q, 1, r->subject);
    db_text(q, 2, v->metric);
    db_text(q, 3, v->anchor);
    db_text(q, 4, v->case_name);
    db_text(q, 5, r->host);
}

/* TARE_OK and 0: there is none. */
static tare_status find_series(struct db_store *s, const struct store_run *r, const struct store_value *v,
                               int64_t *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    *out = 0;
    tare_status status = db_get(s, DB_FIND_SERIES, &q, err);
    if (status != TARE_OK) return status;
    bind_series(q, r, v);
    enum db_result found = db_next(q);
    if (found == DB_ROW) *out = db_int_at(q, 0);
    if (found == DB_BAD) status = db_fail(s, "looking up a series", err);
    db_done(q);
    return status;
}

/* Another server may add the same one at the same time: the database makes one of them wait, and then find it. */
static tare_status series_id(struct db_store *s, const struct store_run *r, const struct store_value *v,
                             int64_t *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = find_series(s, r, v, out, err);
    if (status != TARE_OK || *out) return status;
    if ((status = db_get(s, DB_ADD_SERIES, &q, err)) != TARE_OK) return status;
    bind_series(q, r, v);
    status = db_step(s, q, "adding a series", err);
    return status == TARE_OK ? find_series(s, r, v, out, err) : status;
}

static tare_status add_value(struct db_store *s, int64_t run, const struct store_run *r,
                             const struct store_value *v, tare_error *err)
{
    int64_t series = 0;
    struct db_stmt *q = NULL;
    tare_status status = series_id(s, r, v, &series, err);
    if (status == TARE_OK) status = db_get(s, DB_ADD_VALUE, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, series);
    db_int(q, 2, r->created_ms);
    db_int(q, 3, run);
    db_real(q, 4, v->value);
    if (v->lo.known) db_real(q, 5, v->lo.v);
    if (v->hi.known) db_real(q, 6, v->hi.v);
    if (v->samples.known) db_int(q, 7, (int64_t)v->samples.v);
    return db_step(s, q, "adding a value", err);
}

tare_status db_add(struct store *base, const struct store_entry *e, bool *added, tare_error *err)
{
    struct db_store *s = db_of(base);
    tare_status status = db_begin(base, err);
    if (status != TARE_OK) return status;
    status = add_about(s, &e->about, err);
    bool fresh = status == TARE_OK && db_changes(s->db) > 0;
    int64_t run = db_last_id(s->db);
    if (fresh) status = add_document(s, run, e->body, err);
    if (fresh && e->about.project && status == TARE_OK) status = add_project(s, run, e->about.project, err);
    for (size_t i = 0; i < e->n_values && status == TARE_OK && fresh; i++)
        status = add_value(s, run, &e->about, &e->values[i], err);
    status = finish(s, status, err);
    if (status == TARE_OK && added) *added = fresh;
    return status;
}

/* ---- tags, baselines, removal ---- */

struct place { /* of a run that is there */
    int64_t seq, created_ms;
    char *subject, *host;
};

static void place_release(struct place *p)
{
    mem_free(p->subject);
    mem_free(p->host);
}

/* Texts are copied: those of SQLite go with the next step of the statement. */
static tare_status find_run(struct db_store *s, const char *id, struct place *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    *out = (struct place){0};
    tare_status status = db_get(s, DB_FIND_RUN, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, id);
    int rc = db_next(q);
    if (rc == DB_ROW) {
        const char *subject = db_column(q, 1), *host = db_column(q, 2);
        out->seq = db_int_at(q, 0);
        out->created_ms = db_int_at(q, 3);
        out->subject = mem_strdup(subject ? subject : "");
        out->host = mem_strdup(host ? host : "");
        if (!out->subject || !out->host) status = error_set(err, TARE_NOMEM, "%s: out of memory", s->path);
    } else {
        status = rc == DB_DONE ? error_set(err, TARE_INVALID, "%s: has no run %s", s->path, id)
                               : db_fail(s, "looking up a run", err);
    }
    db_done(q);
    return status;
}

/* A statement whose first parameter is the run's number; the others are its place, or a name. */
static tare_status change(struct db_store *s, enum db_sql which, const struct place *p, const char *name,
                          tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, which, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, p->seq);
    if (which == DB_DROP_VALUES) {
        db_text(q, 2, p->subject);
        db_text(q, 3, p->host);
        db_int(q, 4, p->created_ms);
    } else if (name) {
        db_text(q, 2, name);
        if (which == DB_PIN) db_text(q, 3, p->subject);
    }
    return db_step(s, q, "changing", err);
}

/* One statement on one run, as a change of its own. */
static tare_status mark(struct db_store *s, const char *id, enum db_sql which, const char *name,
                        tare_error *err)
{
    struct place p = {0};
    if (!store_name_ok(name))
        return error_set(err, TARE_INVALID,
                         "'%.80s': a name has letters, digits and . _ - / and at most %d bytes", name,
                         STORE_NAME_MAX);
    tare_status status = db_begin(&s->base, err);
    if (status != TARE_OK) return status;
    status = find_run(s, id, &p, err);
    if (status == TARE_OK) status = change(s, which, &p, name, err);
    if (status == TARE_OK && db_changes(s->db) == 0 && (which == DB_DROP_TAG || which == DB_UNPIN))
        status = error_set(err, TARE_INVALID, "%s: run %s does not carry %s", s->path, id, name);
    place_release(&p);
    return finish(s, status, err);
}

tare_status db_tag(struct store *base, const char *id, const char *name, bool on, tare_error *err)
{
    return mark(db_of(base), id, on ? DB_ADD_TAG : DB_DROP_TAG, name, err);
}

tare_status db_pin(struct store *base, const char *id, const char *name, bool on, tare_error *err)
{
    return mark(db_of(base), id, on ? DB_PIN : DB_UNPIN, name, err);
}

/* One change, the run itself last, so that no row ever points to one that is not there. A series whose
 * last value went is dropped, too: an empty one would still be listed. */
tare_status db_remove(struct store *base, const char *id, tare_error *err)
{
    static const enum db_sql steps[] = {DB_DROP_VALUES, DB_DROP_DOCUMENT, DB_DROP_TAGS,    DB_DROP_PINS,
                                        DB_DROP_LINKS,  DB_DROP_UPLOADS,  DB_DROP_PROJECT, DB_DROP_RUN};
    struct db_store *s = db_of(base);
    struct place p = {0};
    tare_status status = db_begin(base, err);
    if (status != TARE_OK) return status;
    status = find_run(s, id, &p, err);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == TARE_OK; i++)
        status = change(s, steps[i], &p, NULL, err);
    struct db_stmt *q = NULL;
    if (status == TARE_OK && (status = db_get(s, DB_DROP_EMPTY, &q, err)) == TARE_OK) {
        db_text(q, 1, p.subject);
        status = db_step(s, q, "removing", err);
    }
    place_release(&p);
    return finish(s, status, err);
}
