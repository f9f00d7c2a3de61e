/* SPDX-License-Identifier: MIT
 * postgres.c - the history in a PostgreSQL database, which any number of servers may share: opening and schema. All
 * that is asked and changed is what SQLite is asked, by the same statements (db.h). Never repairs, never deletes: what
 * is of a newer version or another program's is told and left alone. */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "store/postgres_conn.h"
#include "store/sql.h"

struct pg_store {
    struct db_store db;
    struct store_ops ops; /* SQLite's, but for opening and closing */
};

/* Of the whole database, for as long as the transaction lasts: two servers that start at once make the tables once. */
#define LOCK_SCHEMA "SELECT pg_advisory_xact_lock(1952543333)" /* "tare" */

static void pg_close(struct store *base)
{
    struct db_store *s = db_of(base);
    db_forget_statements(s);
    pg_disconnect(s->db);
    mem_free(s->path);
    mem_free(s);
}

/* -1: there is none of ours. */
static tare_status read_version(struct db_store *s, int64_t *out, tare_error *err)
{
    int64_t there = 0;
    *out = -1;
    tare_status status = pg_ask(s->db, "SELECT (to_regclass('tare_schema') IS NOT NULL)::int", &there, err);
    return status == TARE_OK && there ? pg_ask(s->db, "SELECT max(version) FROM tare_schema", out, err)
                                      : status;
}

static tare_status refuse_others(struct db_store *s, tare_error *err)
{
    int64_t tables = 0;
    tare_status status =
        pg_ask(s->db,
               "SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
               " WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f')",
               &tables, err);
    if (status != TARE_OK || tables == 0) return status;
    return error_set(err, TARE_FORMAT,
                     "%s: holds tables of something else; the history needs a database of its own", s->path);
}

static tare_status migrate(struct db_store *s, tare_error *err)
{
    int64_t from = -1;
    char version[160];
    tare_status status = pg_ask(s->db, LOCK_SCHEMA, NULL, err);
    if (status == TARE_OK)
        status = read_version(s, &from, err); /* anew: another server may have been first */
    if (status == TARE_OK && from < 0) status = refuse_others(s, err);
    for (int64_t v = from < 0 ? 0 : from; v < db_schema_version && status == TARE_OK; v++)
        status = pg_define(s->db, db_migrations[v], err);
    snprintf(version, sizeof version,
             "CREATE TABLE IF NOT EXISTS tare_schema(version BIGINT NOT NULL); DELETE FROM tare_schema;"
             "INSERT INTO tare_schema VALUES(%d)",
             db_schema_version);
    return status == TARE_OK ? pg_ask(s->db, version, NULL, err) : status;
}

static tare_status check_schema(struct db_store *s, bool create, tare_error *err)
{
    int64_t version = -1;
    tare_status status = read_version(s, &version, err);
    if (status != TARE_OK || version == db_schema_version) return status;
    if (version > db_schema_version)
        return error_set(err, TARE_FORMAT,
                         "%s: written by a newer tare (schema %lld, this one knows %d); it is left alone",
                         s->path, (long long)version, db_schema_version);
    if (version < 0 && !create)
        return error_set(err, TARE_INVALID, "%s: there is no history here yet (tare serve makes it)",
                         s->path);
    status = pg_ask(s->db, "BEGIN", NULL, err);
    if (status != TARE_OK) return status;
    status = migrate(s, err);
    tare_status end =
        pg_ask(s->db, status == TARE_OK ? "COMMIT" : "ROLLBACK", NULL, status == TARE_OK ? err : NULL);
    return status != TARE_OK ? status : end;
}

static tare_status pg_open(struct store **out, const char *where, const struct store_options *o,
                           tare_error *err)
{
    struct pg_store *s = mem_new(1, sizeof *s);
    struct pg_options to = {where, o->wait_ms ? o->wait_ms : STORE_WAIT_MS};
    if (!s) return error_nomem(err, "the history");
    s->ops = store_sqlite;
    s->ops.name = store_postgres.name;
    s->ops.open = pg_open;
    s->ops.close = pg_close;
    s->db.wait_ms = to.wait_ms;
    tare_status status = pg_connect(&s->db.db, &to, err);
    if (status == TARE_OK) {
        s->db.path = mem_strdup(pg_where(s->db.db));
        if (!s->db.path) status = error_nomem(err, "the history");
    }
    s->db.base = (struct store){.ops = &s->ops, .where = s->db.path};
    if (status == TARE_OK) status = check_schema(&s->db, o->create, err);
    if (status == TARE_OK)
        *out = &s->db.base;
    else
        pg_close(&s->db.base);
    return status;
}

/* What an open store can do is in its own row. */
const struct store_ops store_postgres = {.name = "postgresql", .open = pg_open, .close = pg_close};
