/* SPDX-License-Identifier: MIT
 * sqlite.c - the history in one SQLite file: opening, schema, statements, errors. WAL with full
 * synchronisation: a commit that returned is on the disk. Never repairs, never deletes: what is damaged or
 * of a newer version is told and left alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "store/care.h"
#include "store/sql.h"

#define APPLICATION_ID 0x74617265 /* "tare", at a fixed place of the file */

/* ---- errors ---- */

static const struct {
    int code;
    tare_status status;
    const char *text;
} causes[] = {
    {SQLITE_CORRUPT, TARE_FORMAT, "the history is damaged"},
    {SQLITE_NOTADB, TARE_FORMAT, "is no history of tare"},
    {SQLITE_BUSY, TARE_BUSY, "locked by another process"},
    {SQLITE_LOCKED, TARE_BUSY, "locked"},
    {SQLITE_FULL, TARE_IO, "no space left to write the history; what it held is intact"},
    {SQLITE_READONLY, TARE_IO, "the history is read-only"},
    {SQLITE_CANTOPEN, TARE_IO, "cannot open the history"},
    {SQLITE_PERM, TARE_IO, "access denied"},
    {SQLITE_AUTH, TARE_IO, "access denied"},
    {SQLITE_NOMEM, TARE_NOMEM, "out of memory"},
    {SQLITE_IOERR, TARE_IO, "the system could not read or write the history; what it held is intact"},
    {SQLITE_TOOBIG, TARE_INVALID, "too large to keep"},
    {SQLITE_ERROR, TARE_FORMAT, "the history has not the tables that tare makes"},
};

static tare_status explain(int code, const char *path, const char *detail, const char *doing, tare_error *err)
{
    tare_status status = TARE_IO;
    const char *text = "the history cannot be used";
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (causes[i].code == (code & 0xff)) {
            status = causes[i].status;
            text = causes[i].text;
        }
    return error_set(err, status, "%.300s: %s (%s: %s)", path, text, doing, detail);
}

/* ---- the driver ---- */

struct sqlite_conn {
    struct db_conn base;
    sqlite3 *db;
    const char *path; /* the store's */
    bool full;        /* no room for a log beside it: it is read as it is */
    bool no_memory;   /* for a statement: SQLite itself knows nothing of it */
};

struct sqlite_statement {
    struct db_stmt base;
    sqlite3_stmt *q;
};

static const struct db_driver sqlite_driver;

static struct sqlite_conn *conn_of(const struct db_store *s)
{
    return (struct sqlite_conn *)s->db;
}

static sqlite3_stmt *of(struct db_stmt *q)
{
    return ((struct sqlite_statement *)q)->q;
}

static tare_status tell(struct db_conn *base, const char *doing, tare_error *err)
{
    const struct sqlite_conn *c = (const struct sqlite_conn *)base;
    int code = sqlite3_extended_errcode(c->db);
    if (c->no_memory) return error_set(err, TARE_NOMEM, "%.300s: out of memory", c->path);
    if (c->full && (code & 0xff) == SQLITE_READONLY) code = SQLITE_FULL;
    return explain(code, c->path, sqlite3_errmsg(c->db), doing, err);
}

static struct db_stmt *prepare(struct db_conn *base, const char *text)
{
    struct sqlite_statement *q = mem_new(1, sizeof *q);
    sqlite3 *db = ((struct sqlite_conn *)base)->db;
    ((struct sqlite_conn *)base)->no_memory = !q;
    if (!q) return NULL;
    q->base.driver = &sqlite_driver;
    if (sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &q->q, NULL) != SQLITE_OK) {
        mem_free(q);
        return NULL;
    }
    return &q->base;
}

static void drop(struct db_stmt *q)
{
    sqlite3_finalize(of(q));
    mem_free(q);
}

static void done(struct db_stmt *q)
{
    sqlite3_reset(of(q));
    sqlite3_clear_bindings(of(q));
}

static void bind_text(struct db_stmt *q, int at, const char *text)
{
    if (text)
        sqlite3_bind_text(of(q), at, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(of(q), at);
}

static void bind_int(struct db_stmt *q, int at, int64_t v)
{
    sqlite3_bind_int64(of(q), at, v);
}

static void bind_real(struct db_stmt *q, int at, double v)
{
    sqlite3_bind_double(of(q), at, v);
}

static void bind_blob(struct db_stmt *q, int at, const void *data, size_t size)
{
    sqlite3_bind_blob64(of(q), at, data, size, SQLITE_STATIC);
}

static enum db_result next(struct db_stmt *q)
{
    int rc = sqlite3_step(of(q));
    if (rc == SQLITE_ROW) return DB_ROW;
    return rc == SQLITE_DONE ? DB_DONE : DB_BAD;
}

static bool null_at(struct db_stmt *q, int column)
{
    return sqlite3_column_type(of(q), column) == SQLITE_NULL;
}

static const char *text_at(struct db_stmt *q, int column)
{
    return (const char *)sqlite3_column_text(of(q), column);
}

static int64_t int_at(struct db_stmt *q, int column)
{
    return sqlite3_column_int64(of(q), column);
}

static double real_at(struct db_stmt *q, int column)
{
    return sqlite3_column_double(of(q), column);
}

static const void *blob_at(struct db_stmt *q, int column)
{
    return sqlite3_column_blob(of(q), column);
}

static size_t bytes_at(struct db_stmt *q, int column)
{
    return (size_t)sqlite3_column_bytes(of(q), column);
}

static int64_t changes(struct db_conn *c)
{
    return sqlite3_changes(((struct sqlite_conn *)c)->db);
}

static int64_t last_id(struct db_conn *c)
{
    return sqlite3_last_insert_rowid(((struct sqlite_conn *)c)->db);
}

static bool in_transaction(struct db_conn *c)
{
    return !sqlite3_get_autocommit(((struct sqlite_conn *)c)->db);
}

/* Of the log beside it, which holds what was committed and is not in the file yet; -1: cannot be told. */
static int64_t log_bytes(const char *path)
{
    struct stat st;
    struct buf log = BUF_INIT;
    buf_printf(&log, "%s-wal", path);
    int64_t n = -1;
    if (!log.failed && stat(log.data, &st) == 0)
        n = st.st_size;
    else if (!log.failed && errno == ENOENT)
        n = 0;
    buf_release(&log);
    return n;
}

/* The free space is that of the folder: the log beside the file needs it, too. */
static void measure(const struct sqlite_conn *c, struct store_health *h)
{
    struct stat st;
    struct statvfs v;
    int64_t log = log_bytes(c->path);
    if (stat(c->path, &st) == 0) h->bytes = (uint64_t)st.st_size + (log > 0 ? (uint64_t)log : 0);
    if (statvfs(c->path, &v) == 0)
        h->free_bytes = (struct known_u64){true, (uint64_t)v.f_bavail * v.f_frsize};
}

static tare_status examine(struct db_conn *base, struct store_health *h, tare_error *err)
{
    const struct sqlite_conn *c = (const struct sqlite_conn *)base;
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(c->db, "PRAGMA integrity_check(1)", -1, &q, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        const char *said = (const char *)sqlite3_column_text(q, 0);
        if (!said || strcmp(said, "ok") != 0)
            snprintf(h->trouble, sizeof h->trouble, "the file is damaged: %s", said ? said : "no answer");
    }
    tare_status status = rc == SQLITE_ROW ? TARE_OK : tell(base, "looking through it", err);
    sqlite3_finalize(q);
    measure(c, h);
    return status;
}

static tare_status sync_path(const char *path, int flags, tare_error *err)
{
    int fd = open(path, flags | O_CLOEXEC);
    tare_status status =
        fd >= 0 && fsync(fd) == 0 ? TARE_OK : error_errno(err, "%s: cannot be written to the disk", path);
    if (fd >= 0) close(fd);
    return status;
}

/* VACUUM INTO reads one moment of the file and holds nobody up; it writes into an empty file of ours, so that nobody
 * else may read it, and has the name that was asked for when it is on the disk. */
static tare_status copy_to(struct db_conn *base, const char *to, tare_error *err)
{
    const struct sqlite_conn *c = (const struct sqlite_conn *)base;
    struct buf part = BUF_INIT;
    sqlite3_stmt *q = NULL;
    buf_printf(&part, "%s.part", to);
    tare_status status = buf_status(&part, err);
    if (status == TARE_OK && access(to, F_OK) == 0)
        status = error_set(err, TARE_INVALID, "%s: is there already", to);
    int fd = status == TARE_OK ? open(part.data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (status == TARE_OK && fd < 0) status = error_errno(err, "%s: cannot be made", part.data);
    if (fd >= 0) {
        close(fd);
        if (sqlite3_prepare_v2(c->db, "VACUUM INTO ?1", -1, &q, NULL) != SQLITE_OK ||
            sqlite3_bind_text(q, 1, part.data, -1, SQLITE_STATIC) != SQLITE_OK ||
            sqlite3_step(q) != SQLITE_DONE)
            status = tell(base, "copying", err);
        sqlite3_finalize(q);
        if (status == TARE_OK) status = sync_path(part.data, O_RDONLY, err);
        if (status == TARE_OK && link(part.data, to) < 0) status = error_errno(err, "%s: cannot be made", to);
        unlink(part.data);
    }
    buf_release(&part);
    return status;
}

static const struct db_driver sqlite_driver = {
    .prepare = prepare,
    .drop = drop,
    .done = done,
    .text = bind_text,
    .integer = bind_int,
    .real = bind_real,
    .blob = bind_blob,
    .next = next,
    .null_at = null_at,
    .text_at = text_at,
    .int_at = int_at,
    .real_at = real_at,
    .blob_at = blob_at,
    .bytes_at = bytes_at,
    .changes = changes,
    .last_id = last_id,
    .in_transaction = in_transaction,
    .fail = tell,
    .examine = examine,
    .backup = copy_to,
};

/* ---- opening ---- */

static tare_status execute(struct db_store *s, const char *text, tare_error *err)
{
    return sqlite3_exec(conn_of(s)->db, text, NULL, NULL, NULL) == SQLITE_OK ? TARE_OK
                                                                             : db_fail(s, "opening", err);
}

static tare_status number(struct db_store *s, const char *text, int64_t *out, tare_error *err)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(conn_of(s)->db, text, -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW) {
        tare_status status = db_fail(s, "opening", err);
        sqlite3_finalize(stmt);
        return status;
    }
    *out = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return TARE_OK;
}

/* A damaged file may say anything, and its migrations are looked up by this number. */
static tare_status schema_version(struct db_store *s, int64_t *out, tare_error *err)
{
    tare_status status = number(s, "PRAGMA user_version", out, err);
    if (status != TARE_OK || *out >= 0) return status;
    return error_set(err, TARE_FORMAT, "%s: damaged: its schema has the number %lld", s->path,
                     (long long)*out);
}

/* Inside a transaction, so that two processes that open a new file at once do not both make the tables. */
static tare_status migrate(struct db_store *s, tare_error *err)
{
    int64_t from = 0;
    char version[80];
    tare_status status = db_begin(&s->base, err);
    if (status != TARE_OK) return status;
    status = schema_version(s, &from, err);
    for (int64_t v = from; v < db_schema_version && status == TARE_OK; v++)
        status = execute(s, db_migrations[v], err);
    snprintf(version, sizeof version, "PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION_ID,
             db_schema_version);
    if (status == TARE_OK) status = execute(s, version, err);
    tare_status end = db_end(&s->base, status == TARE_OK, status == TARE_OK ? err : NULL);
    return status != TARE_OK ? status : end;
}

/* Is it one of the statements of the migrations, to the letter? That is how SQLite keeps them. */
static bool is_ours(const char *statement)
{
    size_t n = strlen(statement);
    for (int i = 0; i < db_schema_version; i++)
        for (const char *at = db_migrations[i]; (at = strstr(at, statement)); at++)
            if ((at == db_migrations[i] || at[-1] == ';') && at[n] == ';') return true;
    return false;
}

/* A view may never end, a trigger may empty the history, an index may compute: whatever the migrations do not make is
 * refused before a statement of ours touches it. Statistics that a user's ANALYZE left are harmless. */
static tare_status refuse_strangers(struct db_store *s, tare_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tare_status status = TARE_OK;
    int rc = sqlite3_prepare_v2(conn_of(s)->db,
                                "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
                                " AND name NOT IN ('sqlite_stat1', 'sqlite_stat4')",
                                -1, &stmt, NULL);
    while (rc == SQLITE_OK && status == TARE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(stmt, 0);
        const char *name = (const char *)sqlite3_column_text(stmt, 1);
        const char *text = (const char *)sqlite3_column_text(stmt, 2);
        rc = SQLITE_OK;
        if (!text || !is_ours(text))
            status = error_set(err, TARE_FORMAT,
                               "%s: holds %s '%.80s', which tare does not make so; the history is left alone",
                               s->path, type ? type : "what", name ? name : "");
    }
    if (status == TARE_OK && rc != SQLITE_DONE) status = db_fail(s, "opening", err);
    sqlite3_finalize(stmt);
    return status;
}

/* Is this a history, of which version, or empty? Another program's database is refused unchanged. */
static tare_status check_schema(struct db_store *s, tare_error *err)
{
    int64_t id = 0, version = 0, tables = 0;
    tare_status status = number(s, "PRAGMA application_id", &id, err);
    if (status == TARE_OK) status = schema_version(s, &version, err);
    if (status == TARE_OK) status = number(s, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (status != TARE_OK) return status;
    if (id != APPLICATION_ID && (id || tables))
        return error_set(err, TARE_FORMAT, "%s: is an SQLite database, but not a history of tare", s->path);
    if (version > db_schema_version)
        return error_set(err, TARE_FORMAT,
                         "%s: written by a newer tare (schema %lld, this one knows %d); it is left alone",
                         s->path, (long long)version, db_schema_version);
    status = refuse_strangers(s, err);
    if (status != TARE_OK || version == db_schema_version) return status;
    /* What cannot be written is read as it is: of an older version there is only less to ask. */
    if (version && sqlite3_db_readonly(conn_of(s)->db, "main")) return TARE_OK;
    return migrate(s, err);
}

static tare_status make_folder_of(const char *file, tare_error *err)
{
    const char *slash = strrchr(file, '/');
    if (!slash || slash == file) return TARE_OK;
    char *folder = mem_strndup(file, (size_t)(slash - file));
    if (!folder) return error_set(err, TARE_NOMEM, "%s: out of memory", file);
    tare_status status = file_make_folders(folder, err);
    mem_free(folder);
    return status;
}

/* SQLite would let others read it. The log and the index beside it get the permissions of the file. */
static tare_status create_private(const char *path, tare_error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0) return error_errno(err, "%s: cannot open the history", path);
    close(fd);
    return TARE_OK;
}

static tare_status check_file(const char *path, const struct store_options *o, tare_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        if (errno != ENOENT) return error_errno(err, "%s: cannot open the history", path);
        if (!o->create)
            return error_set(err, TARE_INVALID, "%s: there is no history here yet (tare bench writes it)",
                             path);
        tare_status status = make_folder_of(path, err);
        return status == TARE_OK ? create_private(path, err) : status;
    }
    if (S_ISDIR(st.st_mode))
        return error_set(err, TARE_INVALID, "%s: is a folder; the history is a file", path);
    if (!S_ISREG(st.st_mode)) return error_set(err, TARE_INVALID, "%s: is no regular file", path);
    return TARE_OK;
}

static void disconnect(struct db_store *s)
{
    db_forget_statements(s);
    sqlite3_close(conn_of(s)->db);
    conn_of(s)->db = NULL;
}

static void db_close(struct store *base)
{
    struct db_store *s = db_of(base);
    disconnect(s);
    mem_free(s->db);
    mem_free(s->path);
    mem_free(s);
}

/* The file's content is not trusted: no functions or views of its own, no reading past damaged cells. */
static tare_status set_up(struct db_store *s, tare_error *err)
{
    sqlite3 *db = conn_of(s)->db;
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, (int)s->wait_ms);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    tare_status status = execute(s, "PRAGMA cell_size_check = ON; PRAGMA foreign_keys = OFF;", err);
    int64_t page = 0;
    if (status == TARE_OK) status = number(s, "SELECT count(*) FROM sqlite_schema", &page, err);
    if (status == TARE_OK && !sqlite3_db_readonly(conn_of(s)->db, "main"))
        status = execute(s, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", err);
    return status == TARE_OK ? check_schema(s, err) : status;
}

/* A file that this process may not write is read as it is: no log can be made beside it. When there is a
 * log, another process writes, and SQLite must see it. */
static bool is_sealed(const char *path)
{
    return access(path, F_OK) == 0 && access(path, W_OK) != 0 && log_bytes(path) == 0;
}

static int open_sealed(const char *path, sqlite3 **db)
{
    struct buf uri = BUF_INIT;
    buf_add_str(&uri, "file:");
    for (const char *p = path; *p; p++)
        if (strchr("?#%", *p))
            buf_printf(&uri, "%%%02x", (unsigned char)*p);
        else
            buf_add_char(&uri, *p);
    buf_add_str(&uri, "?immutable=1");
    int rc = uri.failed ? SQLITE_NOMEM
                        : sqlite3_open_v2(uri.data, db,
                                          SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    buf_release(&uri);
    return rc;
}

static int open_file(const char *path, bool create, sqlite3 **db)
{
    if (is_sealed(path)) return open_sealed(path, db);
    return sqlite3_open_v2(
        path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0), NULL);
}

/* On a full disk no log can be made, which SQLite needs even to read. Nobody can write then: what is there is
 * read as it is. False: that does not help either. */
static bool open_on_full_disk(struct db_store *s)
{
    int code = sqlite3_errcode(conn_of(s)->db) & 0xff;
    bool no_log_made = code == SQLITE_FULL || code == SQLITE_CANTOPEN || code == SQLITE_IOERR;
    if (!no_log_made || log_bytes(s->path) != 0) return false;
    disconnect(s);
    conn_of(s)->full = true;
    return open_sealed(s->path, &conn_of(s)->db) == SQLITE_OK && set_up(s, NULL) == TARE_OK;
}

/* What fails to be set up may still be readable on a full disk; then the error of the first try is taken
 * back. Not with `create`: a write would come next. */
static tare_status db_open(struct store **out, const char *where, const struct store_options *o,
                           tare_error *err)
{
    tare_status status = check_file(where, o, err);
    if (status != TARE_OK) return status;
    struct db_store *s = mem_new(1, sizeof *s);
    struct sqlite_conn *c = mem_new(1, sizeof *c);
    char *path = mem_strdup(where);
    if (!s || !c || !path) {
        mem_free(s);
        mem_free(c);
        mem_free(path);
        return error_set(err, TARE_NOMEM, "%s: out of memory", where);
    }
    s->base = (struct store){.ops = &store_sqlite, .where = path};
    *c = (struct sqlite_conn){.base = {&sqlite_driver}, .path = path};
    s->db = &c->base;
    s->path = path;
    s->wait_ms = o->wait_ms ? o->wait_ms : STORE_WAIT_MS;
    if (open_file(where, o->create, &c->db) != SQLITE_OK)
        status = c->db ? db_fail(s, "opening", err) : error_set(err, TARE_NOMEM, "%s: out of memory", where);
    if (status == TARE_OK) {
        status = set_up(s, err);
        if (status != TARE_OK && !o->create && open_on_full_disk(s)) {
            status = TARE_OK;
            if (err) *err = (tare_error)TARE_ERROR_INIT;
        }
    }
    if (status == TARE_OK)
        *out = &s->base;
    else
        db_close(&s->base);
    return status;
}

const struct store_ops store_sqlite = {
    .name = "sqlite",
    .open = db_open,
    .close = db_close,
    .begin = db_begin,
    .end = db_end,
    .add = db_add,
    .remove = db_remove,
    .check = db_check,
    .backup = db_backup,
    .expire = db_expire,
    .tag = db_tag,
    .pin = db_pin,
    .pinned = db_pinned,
    .pins = db_pins,
    .list = db_list,
    .body = db_body,
    .names = db_names,
    .series = db_series,
    .in_project = db_in_project,
    .token_add = db_token_add,
    .token_revoke = db_token_revoke,
    .tokens = db_tokens,
    .token_used = db_token_used,
    .audit_seq = db_audit_seq,
    .audit_add = db_audit_add,
    .audits = db_audits,
    .version = db_version,
    .batch_add = db_batch_add,
    .hosts = db_hosts,
    .metrics = db_metrics,
    .chunks = db_chunks,
    .chunk_newest = db_chunk_newest,
    .requests_batch = db_requests_batch,
    .slot_get = db_slot_get,
    .slot_put = db_slot_put,
    .slots_drop = db_slots_drop,
    .requests_drop = db_requests_drop,
    .slots = db_slots,
    .services = db_services,
    .job_add = db_job_add,
    .job_change = db_job_change,
    .jobs = db_jobs,
    .jobs_lose = db_jobs_lose,
    .alert_put = db_alert_put,
    .alerts = db_alerts,
    .silence_add = db_silence_add,
    .silence_end = db_silence_end,
    .silences = db_silences,
    .runs_after = db_runs_after,
    .files.piece_add = db_piece_add,
    .files.upload_add = db_upload_add,
    .files.uploads = db_uploads,
    .files.piece = db_piece,
    .files.sweep = db_sweep,
    .rollups.blocks = db_blocks,
    .rollups.due = db_block_due,
    .rollups.again = db_block_again,
    .rollups.done = db_block_done,
    .rollups.put_off = db_block_put_off,
    .rollups.put = db_rollup_put,
    .rollups.rows = db_rollups,
    .rollups.expire = db_rollup_expire,
    .forward.take = db_forward_take,
    .forward.note = db_forward_note,
};
