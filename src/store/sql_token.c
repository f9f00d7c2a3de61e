/* SPDX-License-Identifier: MIT
 * sql_token.c - what a server keeps beside the runs: whose they are, and who may ask. Knows hashes of tokens
 * only. */
#include <string.h>

#include "store/sql.h"

tare_status db_token_add(struct store *base, const struct store_token *t, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_TOKEN, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, t->id);
    db_text(q, 2, t->name);
    db_text(q, 3, t->project);
    db_text(q, 4, t->scopes);
    db_blob(q, 5, t->hash, STORE_HASH_SIZE);
    db_int(q, 6, t->created_ms);
    db_int(q, 7, t->expires_ms);
    return db_step(s, q, "adding a token", err);
}

tare_status db_token_revoke(struct store *base, const char *id, int64_t now_ms, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_REVOKE_TOKEN, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, id);
    db_int(q, 2, now_ms);
    status = db_step(s, q, "revoking a token", err);
    if (status == TARE_OK && db_changes(s->db) == 0)
        return error_set(err, TARE_INVALID, "%s: has no token %.40s that is not revoked already", s->path,
                         id);
    return status;
}

tare_status db_token_used(struct store *base, const char *id, int64_t now_ms, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_USE_TOKEN, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, id);
    db_int(q, 2, now_ms);
    return db_step(s, q, "noting the use of a token", err);
}

/* False: a row that the server must not trust. */
static bool read_token(struct db_stmt *q, struct store_token *t)
{
    const void *hash = db_blob_at(q, 4);
    *t = (struct store_token){.id = db_column(q, 0),
                              .name = db_column(q, 1),
                              .project = db_column(q, 2),
                              .scopes = db_column(q, 3),
                              .created_ms = db_int_at(q, 5),
                              .expires_ms = db_int_at(q, 6),
                              .revoked_ms = db_int_at(q, 7),
                              .used_ms = db_int_at(q, 8)};
    if (!t->id || !t->scopes || !hash || db_bytes_at(q, 4) != STORE_HASH_SIZE) return false;
    memcpy(t->hash, hash, STORE_HASH_SIZE);
    return true;
}

tare_status db_tokens(struct store *base, store_token_fn *fn, void *ctx, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    int rc = DB_DONE;
    tare_status status = db_get(s, DB_TOKENS, &q, err);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_token t;
        status = read_token(q, &t)
                     ? fn(ctx, &t, err)
                     : error_set(err, TARE_FORMAT, "%s: the table of tokens is damaged", s->path);
    }
    if (status == TARE_OK && rc != DB_DONE) status = db_fail(s, "reading tokens", err);
    if (q) db_done(q);
    return status;
}

tare_status db_version(struct store *base, int64_t *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(db_of(base), DB_VERSION, &q, err);
    return status == TARE_OK ? db_number(db_of(base), q, out, err) : status;
}

tare_status db_in_project(struct store *base, const char *id, const char *project, bool *yes, tare_error *err)
{
    int64_t found = 0;
    struct db_stmt *q = NULL;
    tare_status status = db_get(db_of(base), DB_IN_PROJECT, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, id);
    db_text(q, 2, project);
    status = db_number(db_of(base), q, &found, err);
    *yes = found != 0;
    return status;
}
