/* SPDX-License-Identifier: MIT
 * postgres_conn.c - see postgres_conn.h. Values go as text, which PostgreSQL reads by the type of their place; only
 * blobs are binary. */
#include "store/care.h"
#include "store/postgres_conn.h"

#ifdef WITH_LIBPQ
#include <dlfcn.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/clock.h"
#include "core/mem.h"
#include "store/store.h"

/* ---- the library ---- */

#define PQ_CALLS(X)                                                                                         \
    X(connectdbParams)                                                                                      \
    X(reset)                                                                                                \
    X(finish)                                                                                               \
    X(status)                                                                                               \
    X(errorMessage)                                                                                         \
    X(conninfoParse)                                                                                        \
    X(conninfoFree)                                                                                         \
    X(setNoticeReceiver)                                                                                    \
    X(exec)                                                                                                 \
    X(prepare)                                                                                              \
    X(execPrepared)                                                                                         \
    X(resultStatus)                                                                                         \
    X(resultErrorField)                                                                                     \
    X(resultErrorMessage)                                                                                   \
    X(cmdStatus)                                                                                            \
    X(cmdTuples)                                                                                            \
    X(clear)                                                                                                \
    X(ntuples)                                                                                              \
    X(nfields)                                                                                              \
    X(getisnull)                                                                                            \
    X(getlength)                                                                                            \
    X(getvalue)                                                                                             \
    X(unescapeBytea)                                                                                        \
    X(freemem)

static struct {
#define X(name) __typeof__(PQ##name) *name;
    PQ_CALLS(X)
#undef X
    bool loaded;
} pq;

static void load(void)
{
    bool all = true;
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
#define X(name)                                                                                             \
    {                                                                                                       \
        void *found = dlsym(library, "PQ" #name);                                                           \
        memcpy(&pq.name, &found, sizeof found);                                                             \
        all = all && found;                                                                                 \
    }
    PQ_CALLS(X)
#undef X
    pq.loaded = all;
}

/* ---- what there is ---- */

enum { STATE_LEN = 5, RETRY_MS = 1000 };

struct pg_conn {
    struct db_conn base;
    PGconn *pg;
    char *url;
    char where[200];
    unsigned wait_ms;
    unsigned lives;                       /* counts connections: statements are prepared in one */
    unsigned names;                       /* of statements so far */
    bool began;                           /* between BEGIN and its end */
    uint64_t tried_ns;                    /* when no connection could be made last; 0: it could */
    int64_t changes;                      /* of the last statement */
    char state[STATE_LEN + 1], text[400]; /* the last error; state "": of the connection */
    bool no_memory;
};

/* What a parameter was given as, by the numbers that PostgreSQL has for types. */
enum pg_type { PG_ANY = 0, PG_BLOB = 17, PG_INT = 20, PG_TEXT = 25, PG_REAL = 701 };

struct pg_param {
    char number[32];
    const char *value; /* NULL: null */
    int size, binary;
    Oid type;
};

enum { PARAMS_MAX = 48 };

struct pg_stmt {
    struct db_stmt base;
    struct pg_conn *conn;
    char *sql;
    int n_params;
    unsigned life; /* of the connection that knows it; 0: none */
    char name[16];
    Oid types[PARAMS_MAX]; /* as it was prepared */
    struct pg_param params[PARAMS_MAX];
    PGresult *rows;
    int row;
    unsigned char *bytes; /* the last blob, decoded */
};

static const struct db_driver pg_driver;

static struct pg_conn *conn_of(struct db_conn *c)
{
    return (struct pg_conn *)c;
}

static struct pg_stmt *of(struct db_stmt *q)
{
    return (struct pg_stmt *)q;
}

/* ---- errors ---- */

static const struct {
    const char *state; /* begins so */
    tare_status status;
    const char *text;
} causes[] = {
    {"08", TARE_BUSY, "the connection was lost"},
    {"57P", TARE_BUSY, "the database is going down or coming up"},
    {"55P03", TARE_BUSY, "locked by another process"},
    {"40", TARE_BUSY, "another server changed the same at the same time"},
    {"57014", TARE_BUSY, "took too long"},
    {"53100", TARE_IO, "no space left to write the history; what it held is intact"},
    {"53200", TARE_NOMEM, "the database has no memory"},
    {"53", TARE_BUSY, "the database has no room for more connections"},
    {"25006", TARE_IO, "the history is read-only"},
    {"42501", TARE_IO, "access denied"},
    {"58", TARE_IO, "the database could not read or write; what it held is intact"},
    {"XX", TARE_FORMAT, "the history is damaged"},
    {"22021", TARE_INVALID, "a text is no UTF-8"},
    {"42", TARE_FORMAT, "the history has not the tables that tare makes"},
};

/* One line: libpq's texts have several, and end with one. */
static void note_text(struct pg_conn *c, const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p && n + 1 < sizeof c->text; p++) {
        bool blank = *p == '\n' || *p == '\t' || *p == ' ';
        if (blank && (n == 0 || c->text[n - 1] == ' ')) continue;
        c->text[n++] = (char)(blank ? ' ' : *p);
    }
    while (n > 0 && c->text[n - 1] == ' ') n--;
    c->text[n] = 0;
}

static void note_error(struct pg_conn *c, const PGresult *r)
{
    const char *state = r ? pq.resultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    const char *primary = r ? pq.resultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    snprintf(c->state, sizeof c->state, "%s", state ? state : "08000");
    note_text(c, primary ? primary : pq.errorMessage(c->pg));
    if (!c->text[0]) note_text(c, "the server closed the connection");
}

static tare_status explain(const struct pg_conn *c, const char *doing, tare_error *err)
{
    tare_status status = TARE_IO;
    const char *text = "the history cannot be used";
    if (c->no_memory) return error_set(err, TARE_NOMEM, "%s: out of memory", c->where);
    for (size_t i = sizeof causes / sizeof *causes; i-- > 0;)
        if (strncmp(c->state, causes[i].state, strlen(causes[i].state)) == 0) {
            status = causes[i].status;
            text = causes[i].text;
        }
    return error_set(err, status, "%s: %s (%s: %s)", c->where, text, doing, c->text);
}

/* Before there is a connection there are only texts, and those of a server in another language say nothing to us. */
static tare_status explain_connect(struct pg_conn *c, tare_error *err)
{
    const char *text = pq.errorMessage(c->pg);
    note_text(c, text);
    if (strstr(text, "password") || strstr(text, "authentication") || strstr(text, "pg_hba"))
        return error_set(err, TARE_IO, "%s: access denied (%s)", c->where, c->text);
    if (strstr(text, "does not exist"))
        return error_set(err, TARE_INVALID, "%s: there is no such database or user (%s)", c->where, c->text);
    return error_set(err, TARE_IO, "%s: cannot be reached (%s)", c->where, c->text);
}

/* ---- connecting ---- */

static void say_nothing(void *ctx, const PGresult *r)
{
    (void)ctx;
    (void)r;
}

/* What holds for one connection: a commit is on the disk when it returns, whatever the server's default is; one that
 * asks for more (a standby) is left so. */
static bool settle(struct pg_conn *c)
{
    char text[400];
    snprintf(
        text, sizeof text,
        "SET lock_timeout = %u; SET client_min_messages = warning; SET client_encoding = 'UTF8';"
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
        c->wait_ms);
    pq.setNoticeReceiver(c->pg, say_nothing, NULL);
    PGresult *r = pq.exec(c->pg, text);
    bool good = pq.resultStatus(r) == PGRES_TUPLES_OK;
    if (!good) note_error(c, r);
    pq.clear(r);
    c->lives++;
    return good;
}

/* Not more than once a second: who waits for an answer must not wait for each try. */
static bool connect_again(struct pg_conn *c)
{
    uint64_t now = clock_raw_ns();
    if (c->tried_ns && now - c->tried_ns < RETRY_MS * UINT64_C(1000000)) return false;
    pq.reset(c->pg);
    bool good = pq.status(c->pg) == CONNECTION_OK && settle(c);
    c->tried_ns = good ? 0 : now;
    if (!good) {
        snprintf(c->state, sizeof c->state, "08001");
        note_text(c, pq.errorMessage(c->pg));
    }
    return good;
}

/* "postgresql://user@host:port/name" */
static bool name_it(struct pg_conn *c)
{
    const char *host = "", *port = "", *name = "", *user = "";
    PQconninfoOption *all = pq.conninfoParse(c->url, NULL);
    for (PQconninfoOption *o = all; o && o->keyword; o++) {
        if (!o->val) continue;
        if (strcmp(o->keyword, "host") == 0) host = o->val;
        if (strcmp(o->keyword, "port") == 0) port = o->val;
        if (strcmp(o->keyword, "dbname") == 0) name = o->val;
        if (strcmp(o->keyword, "user") == 0) user = o->val;
    }
    snprintf(c->where, sizeof c->where, "postgresql://%.40s%s%.80s%s%.6s/%.60s", user, *user ? "@" : "", host,
             *port ? ":" : "", port, name);
    pq.conninfoFree(all);
    return all != NULL;
}

/* What the address says goes before what stands ahead of it here. */
static void dial(struct pg_conn *c)
{
    static const char *const keys[] = {
        "connect_timeout",  "fallback_application_name", "keepalives_idle", "keepalives_interval",
        "keepalives_count", "tcp_user_timeout",          "dbname",          NULL};
    const char *values[] = {"2", "tare", "10", "5", "3", "15000", c->url, NULL};
    c->pg = pq.connectdbParams(keys, values, 1);
}

tare_status pg_connect(struct db_conn **out, const struct pg_options *o, tare_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!pq.loaded)
        return error_set(
            err, TARE_UNSUPPORTED,
            "no libpq: libpq.so.5 cannot be loaded (Debian: apt install libpq5), so no PostgreSQL");
    struct pg_conn *c = mem_new(1, sizeof *c);
    char *url = mem_strdup(o->url);
    tare_status status = TARE_OK;
    if (!c || !url) {
        mem_free(c);
        mem_free(url);
        return error_nomem(err, "a connection to PostgreSQL");
    }
    *c = (struct pg_conn){.base = {&pg_driver}, .url = url, .wait_ms = o->wait_ms};
    if (!name_it(c))
        status = error_set(err, TARE_INVALID, "is no address of a database: postgresql://user@host/name");
    if (status == TARE_OK) {
        dial(c);
        if (!c->pg) status = error_nomem(err, "a connection to PostgreSQL");
    }
    if (status == TARE_OK && pq.status(c->pg) != CONNECTION_OK) status = explain_connect(c, err);
    if (status == TARE_OK && !settle(c)) status = explain(c, "connecting", err);
    if (status == TARE_OK)
        *out = &c->base;
    else
        pg_disconnect(&c->base);
    return status;
}

void pg_disconnect(struct db_conn *base)
{
    struct pg_conn *c = conn_of(base);
    if (!c) return;
    if (c->pg) pq.finish(c->pg);
    mem_free(c->url);
    mem_free(c);
}

const char *pg_where(struct db_conn *c)
{
    return conn_of(c)->where;
}

/* ---- from our spelling to PostgreSQL's ---- */

struct word {
    const char *ours, *theirs;
};

/* Longest first. What refers to another table is not enforced, as it is not in SQLite. */
static const struct word of_tables[] = {
    {"INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
    {"INTEGER", "BIGINT"},
    {"REAL", "DOUBLE PRECISION"},
    {"BLOB", "BYTEA"},
    {"TEXT", "TEXT COLLATE \"C\""}, /* the order of bytes, whatever the database's own is */
    {"WITHOUT ROWID", ""},
    {NULL, NULL}};
static const struct word of_statements[] = {
    {"BEGIN IMMEDIATE", "BEGIN"},
    {"group_concat", "string_agg"},
    /* Two that look at different transactions get different numbers. */
    {"PRAGMA data_version", "SELECT hashtextextended(txid_current_snapshot()::text, 0)"},
    {NULL, NULL}};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The length of what was taken from `at`; 0: it is no word of the table. */
static size_t translate_word(const char *at, const struct word *table, struct buf *out)
{
    for (; table->ours; table++) {
        size_t n = strlen(table->ours);
        if (strncmp(at, table->ours, n) != 0 || is_word(at[n])) continue;
        buf_add_str(out, table->theirs);
        return n;
    }
    return 0;
}

static size_t reference_len(const char *at)
{
    if (strncmp(at, "REFERENCES ", 11) != 0) return 0;
    return strcspn(at, ")") + 1;
}

static void translate(const char *sql, const struct word *table, struct buf *out)
{
    bool quoted = false;
    char before = ' ';
    for (const char *at = sql; *at;) {
        size_t n = 0;
        if (*at == '\'') quoted = !quoted;
        if (!quoted && !is_word(before)) n = translate_word(at, table, out);
        if (!n && !quoted && table == of_tables) n = reference_len(at);
        if (!n) {
            buf_add_char(out, *at == '?' && !quoted ? '$' : *at);
            n = 1;
        }
        before = at[n - 1];
        at += n;
    }
}

/* The largest ?N. */
static int count_params(const char *sql)
{
    int most = 0;
    for (const char *at = sql; (at = strchr(at, '?')); at++) {
        int n = (int)strtol(at + 1, NULL, 10);
        if (n > most) most = n;
    }
    return most;
}

/* ---- statements ---- */

static struct db_stmt *prepare(struct db_conn *base, const char *sql)
{
    struct pg_conn *c = conn_of(base);
    struct buf text = BUF_INIT;
    struct pg_stmt *q = mem_new(1, sizeof *q);
    translate(sql, of_statements, &text);
    c->no_memory = !q || text.failed || count_params(sql) > PARAMS_MAX;
    if (!c->no_memory) {
        *q = (struct pg_stmt){.base = {&pg_driver}, .conn = c, .n_params = count_params(sql)};
        q->sql = mem_strndup(text.data, text.len);
        c->no_memory = !q->sql;
    }
    buf_release(&text);
    if (!c->no_memory) return &q->base;
    mem_free(q);
    return NULL;
}

static void done(struct db_stmt *base)
{
    struct pg_stmt *q = of(base);
    for (int i = 0; i < q->n_params; i++) {
        q->params[i].value = NULL;
        q->params[i].type = PG_ANY;
    }
    if (q->rows) pq.clear(q->rows);
    if (q->bytes) pq.freemem(q->bytes);
    q->rows = NULL;
    q->bytes = NULL;
}

static void drop(struct db_stmt *base)
{
    done(base);
    mem_free(of(base)->sql);
    mem_free(base);
}

static struct pg_param *param(struct db_stmt *base, int at, enum pg_type type)
{
    static struct pg_param nowhere;
    struct pg_stmt *q = of(base);
    struct pg_param *p = at >= 1 && at <= q->n_params ? &q->params[at - 1] : &nowhere;
    p->type = type;
    p->binary = type == PG_BLOB;
    p->value = p->number;
    p->size = 0;
    return p;
}

static void bind_text(struct db_stmt *q, int at, const char *text)
{
    param(q, at, text ? PG_TEXT : PG_ANY)->value = text;
}

static void bind_int(struct db_stmt *q, int at, int64_t v)
{
    struct pg_param *p = param(q, at, PG_INT);
    snprintf(p->number, sizeof p->number, "%lld", (long long)v);
}

static void bind_real(struct db_stmt *q, int at, double v)
{
    struct pg_param *p = param(q, at, PG_REAL);
    snprintf(p->number, sizeof p->number, "%.17g", v);
}

static void bind_blob(struct db_stmt *q, int at, const void *data, size_t size)
{
    struct pg_param *p = param(q, at, PG_BLOB);
    p->value = data ? data : "";
    p->size = (int)size;
}

static bool begins(const struct pg_stmt *q, const char *word)
{
    return strncmp(q->sql, word, strlen(word)) == 0;
}

/* Is it prepared, and with these types? What was NULL so far has the type of its place where rows are changed; where
 * they are asked for it is a filter that is not used ("?1 IS NULL OR .."), and PostgreSQL wants to be told: a text. */
static bool is_ready(const struct pg_stmt *q)
{
    if (q->life != q->conn->lives) return false;
    for (int i = 0; i < q->n_params; i++)
        if (q->params[i].type != PG_ANY && q->params[i].type != q->types[i]) return false;
    return true;
}

static bool make_ready(struct pg_stmt *q)
{
    struct pg_conn *c = q->conn;
    if (is_ready(q)) return true;
    bool anew = q->life != c->lives, asks = begins(q, "SELECT");
    for (int i = 0; i < q->n_params; i++) {
        if (anew) q->types[i] = asks ? PG_TEXT : PG_ANY;
        if (q->params[i].type != PG_ANY) q->types[i] = q->params[i].type;
    }
    snprintf(q->name, sizeof q->name, "t%u", ++c->names);
    PGresult *r = pq.prepare(c->pg, q->name, q->sql, q->n_params, q->types);
    bool good = pq.resultStatus(r) == PGRES_COMMAND_OK;
    if (good)
        q->life = c->lives;
    else
        note_error(c, r);
    pq.clear(r);
    return good;
}

/* A transaction that writes is alone, as in SQLite: what one reads and writes back no other changes meanwhile. Two
 * servers take turns by their groups. */
static bool begin_alone(struct pg_stmt *q)
{
    struct pg_conn *c = q->conn;
    PGresult *r = pq.exec(c->pg, "BEGIN; SELECT pg_advisory_xact_lock(1952543334)"); /* "tarf" */
    if (pq.resultStatus(r) == PGRES_TUPLES_OK) {
        q->rows = r;
        q->row = pq.ntuples(r); /* none for the caller */
        return true;
    }
    note_error(c, r);
    pq.clear(r);
    pq.clear(pq.exec(c->pg, "ROLLBACK"));
    return false;
}

static bool send(struct pg_stmt *q)
{
    struct pg_conn *c = q->conn;
    if (begins(q, "BEGIN")) return begin_alone(q);
    const char *values[PARAMS_MAX];
    int sizes[PARAMS_MAX], formats[PARAMS_MAX];
    for (int i = 0; i < q->n_params; i++) {
        values[i] = q->params[i].value;
        sizes[i] = q->params[i].size;
        formats[i] = q->params[i].binary;
    }
    if (!make_ready(q)) return false;
    PGresult *r = pq.execPrepared(c->pg, q->name, q->n_params, values, sizes, formats, 0);
    ExecStatusType status = pq.resultStatus(r);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        q->rows = r;
        q->row = -1;
        c->changes = strtoll(pq.cmdTuples(r), NULL, 10);
        return true;
    }
    note_error(c, r);
    pq.clear(r);
    return false;
}

/* Within a transaction a lost connection is its end: nothing of it was kept. */
static bool execute(struct pg_stmt *q)
{
    struct pg_conn *c = q->conn;
    bool alive = pq.status(c->pg) == CONNECTION_OK;
    bool ends = begins(q, "COMMIT") || begins(q, "ROLLBACK"), within = c->began;
    c->no_memory = false;
    if (ends) c->began = false;
    if (!alive && within) return false;
    if (!alive && !connect_again(c)) return false;
    bool good = send(q);
    bool lost = pq.status(c->pg) != CONNECTION_OK;
    /* Noticed only now, and nothing was changed: once more over a new one. */
    if (!good && lost && !within && (begins(q, "SELECT") || begins(q, "BEGIN")) && connect_again(c)) good = send(q);
    if (good && begins(q, "BEGIN")) c->began = true;
    /* A transaction that failed before is undone by COMMIT, which calls that a success. */
    if (good && begins(q, "COMMIT") && strcmp(pq.cmdStatus(q->rows), "COMMIT") != 0) {
        snprintf(c->state, sizeof c->state, "40000");
        note_text(c, "the transaction had failed before");
        return false;
    }
    return good;
}

static enum db_result next(struct db_stmt *base)
{
    struct pg_stmt *q = of(base);
    if (!q->rows && !execute(q)) return DB_BAD;
    return ++q->row < pq.ntuples(q->rows) ? DB_ROW : DB_DONE;
}

/* ---- rows ---- */

static bool null_at(struct db_stmt *q, int column)
{
    return pq.getisnull(of(q)->rows, of(q)->row, column);
}

static const char *text_at(struct db_stmt *q, int column)
{
    return null_at(q, column) ? NULL : pq.getvalue(of(q)->rows, of(q)->row, column);
}

static int64_t int_at(struct db_stmt *q, int column)
{
    const char *text = text_at(q, column);
    return text ? strtoll(text, NULL, 10) : 0;
}

static double real_at(struct db_stmt *q, int column)
{
    const char *text = text_at(q, column);
    return text ? strtod(text, NULL) : 0;
}

static const void *blob_at(struct db_stmt *base, int column)
{
    struct pg_stmt *q = of(base);
    const char *text = text_at(base, column);
    size_t n;
    if (q->bytes) pq.freemem(q->bytes);
    q->bytes = text ? pq.unescapeBytea((const unsigned char *)text, &n) : NULL;
    return q->bytes;
}

/* "\x" and two digits of each. */
static size_t bytes_at(struct db_stmt *q, int column)
{
    size_t n = (size_t)pq.getlength(of(q)->rows, of(q)->row, column);
    return n >= 2 ? (n - 2) / 2 : 0;
}

static int64_t changes(struct db_conn *c)
{
    return conn_of(c)->changes;
}

static int64_t last_id(struct db_conn *c)
{
    int64_t id = 0;
    return pg_ask(c, "SELECT lastval()", &id, NULL) == TARE_OK ? id : 0;
}

static bool in_transaction(struct db_conn *c)
{
    return conn_of(c)->began;
}

static tare_status fail(struct db_conn *c, const char *doing, tare_error *err)
{
    return explain(conn_of(c), doing, err);
}

/* PostgreSQL looks after its pages itself (data_checksums); what is asked here is how large it is. */
static tare_status examine(struct db_conn *c, struct store_health *h, tare_error *err)
{
    int64_t bytes = 0;
    tare_status status = pg_ask(c, "SELECT pg_database_size(current_database())", &bytes, err);
    h->bytes = (uint64_t)bytes;
    return status;
}

static tare_status copy_to(struct db_conn *c, const char *to, tare_error *err)
{
    (void)to;
    return error_set(err, TARE_UNSUPPORTED, "%s: PostgreSQL has its own: pg_dump --format=custom", pg_where(c));
}

static const struct db_driver pg_driver = {
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
    .fail = fail,
    .examine = examine,
    .backup = copy_to,
};

/* ---- by themselves ---- */

tare_status pg_ask(struct db_conn *base, const char *sql, int64_t *out, tare_error *err)
{
    struct pg_conn *c = conn_of(base);
    PGresult *r = pq.exec(c->pg, sql);
    ExecStatusType got = pq.resultStatus(r);
    bool good = got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK;
    if (!good) note_error(c, r);
    if (good && out)
        *out = pq.ntuples(r) && pq.nfields(r) && !pq.getisnull(r, 0, 0)
                   ? strtoll(pq.getvalue(r, 0, 0), NULL, 10)
                   : 0;
    pq.clear(r);
    return good ? TARE_OK : explain(c, "opening", err);
}

tare_status pg_define(struct db_conn *base, const char *sql, tare_error *err)
{
    struct buf text = BUF_INIT;
    translate(sql, of_tables, &text);
    tare_status status = buf_status(&text, err);
    if (status == TARE_OK) status = pg_ask(base, text.data, NULL, err);
    buf_release(&text);
    return status;
}

#else

tare_status pg_connect(struct db_conn **out, const struct pg_options *o, tare_error *err)
{
    (void)out;
    (void)o;
    return error_set(err, TARE_UNSUPPORTED,
                     "this tare was built without libpq: no PostgreSQL (`make deps`, then `make`)");
}

void pg_disconnect(struct db_conn *c)
{
    (void)c;
}

const char *pg_where(struct db_conn *c)
{
    (void)c;
    return "";
}

tare_status pg_define(struct db_conn *c, const char *sql, tare_error *err)
{
    return pg_ask(c, sql, NULL, err);
}

tare_status pg_ask(struct db_conn *c, const char *sql, int64_t *out, tare_error *err)
{
    (void)sql;
    (void)out;
    return pg_connect(&c, NULL, err);
}

#endif
