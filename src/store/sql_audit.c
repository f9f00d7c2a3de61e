/* SPDX-License-Identifier: MIT
 * sql_audit.c - the audit's entries: added and listed. Knows nothing of how they are chained. */
#include <string.h>

#include "store/sql.h"

tare_status db_audit_seq(struct store *base, bool next, int64_t *out, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, next ? DB_AUDIT_NEXT : DB_AUDIT_SEQ, &q, err);
    if (status != TARE_OK) return status;
    enum db_result rc = db_next(q);
    *out = rc == DB_ROW ? db_int_at(q, 0) : 0;
    if (rc == DB_BAD) status = db_fail(s, "counting the audit", err);
    db_done(q);
    return status;
}

tare_status db_audit_add(struct store *base, const struct store_audit *e, tare_error *err)
{
    const char *const texts[] = {e->who, e->what, e->about, e->project, e->source, e->request};
    enum { N = sizeof texts / sizeof *texts };
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_AUDIT, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, e->seq);
    db_int(q, 2, e->at_ms);
    for (int i = 0; i < N; i++) db_text(q, 3 + i, texts[i]);
    db_int(q, 3 + N, e->status);
    db_blob(q, 4 + N, e->hash, STORE_HASH_SIZE);
    return db_step(s, q, "adding to the audit", err);
}

/* A hash of another length is told as one of zeros, which no entry has: whoever verifies names the place. */
static void read_entry(struct db_stmt *q, struct store_audit *e)
{
    *e = (struct store_audit){.seq = db_int_at(q, 0),
                              .at_ms = db_int_at(q, 1),
                              .who = db_column(q, 2),
                              .what = db_column(q, 3),
                              .about = db_column(q, 4),
                              .project = db_column(q, 5),
                              .source = db_column(q, 6),
                              .request = db_column(q, 7),
                              .status = (unsigned)db_int_at(q, 8)};
    const void *hash = db_blob_at(q, 9);
    if (hash && db_bytes_at(q, 9) == STORE_HASH_SIZE) memcpy(e->hash, hash, STORE_HASH_SIZE);
}

tare_status db_audits(struct store *base, const struct store_audit_filter *f, store_audit_fn *fn, void *ctx,
                      tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, f->newest_first ? DB_AUDITS_NEWEST : DB_AUDITS, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, f->project);
    db_int(q, 2, f->before);
    db_int(q, 3, f->limit ? (int64_t)f->limit : INT64_MAX);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_audit e;
        read_entry(q, &e);
        status = fn(ctx, &e, err);
    }
    if (status == TARE_OK && rc != DB_DONE) status = db_fail(s, "reading the audit", err);
    db_done(q);
    return status;
}
