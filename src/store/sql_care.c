/* SPDX-License-Identifier: MIT
 * sql_care.c - what keeps a history well: is it whole, a copy of it while others write, and what is too old. */
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "store/care.h"
#include "store/sql.h"

static tare_status count(struct db_store *s, enum db_sql which, uint64_t *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    int64_t n = 0;
    tare_status status = db_get(s, which, &q, err);
    if (!q || status != TARE_OK) return status;
    status = db_number(s, q, &n, err);
    *out = (uint64_t)n;
    return status;
}

/* The first thing that is wrong is enough: what follows from it says less. */
static void note(struct store_health *h, uint64_t n, const char *what)
{
    if (n && !h->trouble[0]) snprintf(h->trouble, sizeof h->trouble, "%llu %s", (unsigned long long)n, what);
}

tare_status db_check(struct store *base, struct store_health *h, tare_error *err)
{
    struct db_store *s = db_of(base);
    uint64_t bare = 0, orphans = 0, torn = 0;
    *h = (struct store_health){.schema = (uint64_t)db_schema_version};
    tare_status status = s->db->driver->examine(s->db, h, err);
    if (status == TARE_OK && h->trouble[0]) return TARE_OK;
    if (status == TARE_OK) status = count(s, DB_COUNT_RUNS, &h->runs, err);
    if (status == TARE_OK) status = count(s, DB_COUNT_BARE, &bare, err);
    if (status == TARE_OK) status = count(s, DB_COUNT_ORPHANS, &orphans, err);
    note(h, bare, "runs have no document");
    if (status == TARE_OK) status = count(s, DB_COUNT_TORN, &torn, err);
    note(h, orphans, "values belong to no run");
    note(h, torn, "files are not whole, or belong to no run");
    if (status == TARE_OK) status = db_check_uploads(s, h, err);
    return status;
}

tare_status db_backup(struct store *base, const char *to, tare_error *err)
{
    struct db_store *s = db_of(base);
    return s->db->driver->backup(s->db, to, err);
}

struct old_ids {
    char at[64][ULID_SIZE];
    int n;
};

static tare_status find_old(struct db_store *s, int64_t before_ms, struct old_ids *out, tare_error *err)
{
    struct db_stmt *q = NULL;
    enum db_result got = DB_DONE;
    out->n = 0;
    tare_status status = db_get(s, DB_OLD_RUNS, &q, err);
    if (!q || status != TARE_OK) return status;
    db_int(q, 1, before_ms);
    db_int(q, 2, (int64_t)(sizeof out->at / sizeof *out->at));
    while (out->n < (int)(sizeof out->at / sizeof *out->at) && (got = db_next(q)) == DB_ROW) {
        const char *id = db_column(q, 0);
        snprintf(out->at[out->n++], ULID_SIZE, "%s", id ? id : "");
    }
    if (got == DB_BAD) status = db_fail(s, "looking for old runs", err);
    db_done(q);
    return status;
}

/* Look and delete are one change, as in store_prune(): a tag that appears between them keeps its run. */
tare_status db_expire(struct store *base, struct store_expiry *e, tare_error *err)
{
    struct old_ids ids;
    uint64_t end = clock_raw_ns() + e->most_ns;
    int i = 0;
    e->removed = 0;
    tare_status status = db_begin(base, err);
    if (status != TARE_OK) return status;
    status = find_old(db_of(base), e->before_ms, &ids, err);
    for (; i < ids.n && status == TARE_OK && (i == 0 || clock_raw_ns() < end); i++)
        status = db_remove(base, ids.at[i], err);
    tare_status ended = db_end(base, status == TARE_OK, status == TARE_OK ? err : NULL);
    if (status == TARE_OK) status = ended;
    if (status == TARE_OK) e->removed = (uint64_t)i;
    e->more = status == TARE_OK && (i < ids.n || ids.n == (int)(sizeof ids.at / sizeof *ids.at));
    return status;
}
