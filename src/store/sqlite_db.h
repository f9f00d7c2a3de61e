/* SPDX-License-Identifier: MIT
 * sqlite_db.h - what the files of the SQLite backend share: the connection, its statements, its errors.
 * Private to src/store. */
#ifndef STORE_SQLITE_DB_H
#define STORE_SQLITE_DB_H

#include <sqlite3.h>

#include "store/store.h"

/* Every statement there is, once; prepared when first used, kept until the end. */
enum db_sql {
    DB_BEGIN,
    DB_COMMIT,
    DB_ROLLBACK,
    DB_ADD_RUN,
    DB_ADD_DOCUMENT,
    DB_FIND_SERIES,
    DB_ADD_SERIES,
    DB_ADD_VALUE,
    DB_FIND_RUN,
    DB_ADD_TAG,
    DB_DROP_TAG,
    DB_PIN,
    DB_UNPIN,
    DB_DROP_VALUES,
    DB_DROP_DOCUMENT,
    DB_DROP_TAGS,
    DB_DROP_PINS,
    DB_DROP_RUN,
    DB_DROP_EMPTY,
    DB_LIST,
    DB_BODY,
    DB_NAMES,
    DB_SERIES,
    DB_ADD_PROJECT,
    DB_DROP_PROJECT,
    DB_LIST_PROJECT,
    DB_IN_PROJECT,
    DB_ADD_TOKEN,
    DB_REVOKE_TOKEN,
    DB_TOKENS,
    DB_VERSION,
    DB_N
};

struct sqlite_store {
    struct store base;
    sqlite3 *db;
    char *path;
    unsigned wait_ms;
    int depth; /* of begin */
    bool full; /* no room for a log beside it: it is read as it is */
    sqlite3_stmt *prepared[DB_N];
};

static inline struct sqlite_store *db_of(struct store *s)
{
    return (struct sqlite_store *)s;
}

/* The last error of the connection as a sentence that names the file. */
tare_status db_fail(const struct sqlite_store *s, const char *doing, tare_error *err);

/* A statement ready to bind and step; db_done() when finished with it. */
tare_status db_get(struct sqlite_store *s, enum db_sql which, sqlite3_stmt **out, tare_error *err);
void db_done(sqlite3_stmt *stmt);
/* Step one that gives no rows, and be done with it. */
tare_status db_step(struct sqlite_store *s, sqlite3_stmt *stmt, const char *doing, tare_error *err);
tare_status db_run(struct sqlite_store *s, enum db_sql which, const char *doing, tare_error *err);

void db_text(sqlite3_stmt *stmt, int at, const char *text); /* NULL: null; borrowed until db_done() */
const char *db_column(sqlite3_stmt *stmt, int column);      /* NULL: null; good until the next step */

/* sqlite_write.c, sqlite_read.c: the rows of store_sqlite */
tare_status db_begin(struct store *s, tare_error *err);
tare_status db_end(struct store *s, bool commit, tare_error *err);
tare_status db_add(struct store *s, const struct store_entry *e, bool *added, tare_error *err);
tare_status db_remove(struct store *s, const char *id, tare_error *err);
tare_status db_tag(struct store *s, const char *id, const char *name, bool on, tare_error *err);
tare_status db_pin(struct store *s, const char *id, const char *name, bool on, tare_error *err);
tare_status db_list(struct store *s, const struct store_filter *f, store_run_fn *fn, void *ctx,
                    tare_error *err);
tare_status db_body(struct store *s, const char *id, struct buf *out, tare_error *err);
tare_status db_names(struct store *s, const struct store_query *q, store_name_fn *fn, void *ctx,
                     tare_error *err);
tare_status db_series(struct store *s, int64_t id, uint64_t last, struct store_points *out, tare_error *err);
/* sqlite_token.c */
tare_status db_in_project(struct store *s, const char *id, const char *project, bool *yes, tare_error *err);
tare_status db_token_add(struct store *s, const struct store_token *t, tare_error *err);
tare_status db_token_revoke(struct store *s, const char *id, int64_t now_ms, tare_error *err);
tare_status db_tokens(struct store *s, store_token_fn *fn, void *ctx, tare_error *err);
tare_status db_version(struct store *s, int64_t *out, tare_error *err);

#endif
