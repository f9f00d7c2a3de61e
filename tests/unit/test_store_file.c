/* SPDX-License-Identifier: MIT
 * test_store_file.c - what only a history in a file can go wrong with: other files, other schemas, damage, full disks,
 * modes. */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <sqlite3.h>

#include "core/rng.h"
#include "store_runs.h"

static tare_status reopen(tare_error *err)
{
    struct store_options o = {.create = true, .wait_ms = 50};
    struct store *s = NULL;
    tare_status status = store_open(&s, path, &o, err);
    store_close(s);
    return status;
}

static void write_file(const char *text, size_t n)
{
    char folder[300];
    snprintf(folder, sizeof folder, "%s/deep", home);
    mkdir(folder, 0777);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static void test_other_files_are_refused_unchanged(void **state)
{
    (void)state;
    char text[5000] = "SQLite format 3";
    tare_error err = TARE_ERROR_INIT;
    struct stat st;
    memset(text + 16, 'x', sizeof text - 16);
    write_file(text, sizeof text);
    assert_int_equal(reopen(&err), TARE_FORMAT);
    assert_non_null(strstr(err.text, path));
    assert_true(stat(path, &st) == 0 && st.st_size == sizeof text);
    write_file("hello, world", 12);
    assert_int_equal(reopen(&err), TARE_FORMAT);
    write_file("", 0); /* a new file, as SQLite sees it */
    assert_int_equal(reopen(&err), TARE_OK);
    snprintf(path, sizeof path, "%s", home);
    assert_int_equal(reopen(&err), TARE_INVALID);
    snprintf(path, sizeof path, "/dev/null");
    assert_int_equal(reopen(&err), TARE_INVALID);
    snprintf(path, sizeof path, "/dev/null/x/history.db");
    assert_int_equal(reopen(&err), TARE_IO);
    struct store *s = NULL;
    struct store_options look = {.create = false};
    snprintf(path, sizeof path, "%s/none.db", home);
    assert_int_equal(store_open(&s, path, &look, &err), TARE_INVALID);
    assert_int_equal(stat(path, &st), -1);
}

static void execute(const char *text)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_newer_and_foreign_schemas(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(reopen(&err), TARE_OK);
    execute("PRAGMA user_version = 99");
    assert_int_equal(reopen(&err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "newer"));
    execute("PRAGMA user_version = -1");
    assert_int_equal(reopen(&err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "damaged: its schema has the number -1"));
    execute("PRAGMA user_version = 6; DROP TABLE value;");
    struct store *s = open_with(&store_sqlite);
    struct run r;
    make_run(&r, 1, "minilm", 1e6);
    assert_int_equal(store_add_run(s, &r, NULL, NULL, &err), TARE_FORMAT); /* tables are missing */
    run_release(&r);
    store_close(s);
    execute("PRAGMA application_id = 7");
    assert_int_equal(reopen(&err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "not a history of tare"));
}

static tare_status read_all_of(tare_error *err)
{
    struct store_options o = {.wait_ms = 50};
    struct store *s = NULL;
    struct seen seen = {.n = 0};
    struct store_filter all = {0};
    struct store_points points = {VEC_INIT};
    struct store_query q = {
        .subject = "minilm", .case_name = "batch=1", .metric = "latency.p50", .anchor = ""};
    tare_status status = store_open(&s, path, &o, err);
    if (status == TARE_OK) status = s->ops->list(s, &all, see, &seen, err);
    for (size_t i = 0; status == TARE_OK && i < seen.n && i < 64; i++) {
        struct buf text = BUF_INIT;
        status = store_document(s, seen.ids[i], &text, err);
        buf_release(&text);
    }
    if (status == TARE_OK) status = store_series(s, &q, 0, &points, err);
    vec_release(&points.at);
    store_close(s);
    return status;
}

/* Bytes turned over anywhere: an answer or a refusal that names the file, never a crash. */
static void test_damaged_pages_are_told(void **state)
{
    (void)state;
    struct rng r;
    tare_error err = TARE_ERROR_INIT;
    struct store *s = open_with(&store_sqlite);
    for (unsigned i = 1; i <= 12; i++) keep(s, i, "minilm", 1e6);
    store_close(s);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    char *whole = malloc(1 << 22), *broken = malloc(1 << 22);
    assert_true(whole && broken);
    size_t n = fread(whole, 1, 1 << 22, f), refused = 0;
    fclose(f);
    assert_int_equal(read_all_of(&err), TARE_OK);
    rng_seed(&r, 42);
    for (int trial = 0; trial < 300; trial++) {
        memcpy(broken, whole, n);
        size_t at = rng_below(&r, n), len = 1 + rng_below(&r, trial % 3 ? 200 : 4096);
        for (size_t i = at; i < at + len && i < n; i++) broken[i] = (char)rng_next(&r);
        size_t cut = trial % 7 == 0 ? rng_below(&r, n) : n;
        write_file(broken, cut);
        if (read_all_of(&err) == TARE_OK) continue;
        refused++;
        assert_non_null(strstr(err.text, home));
    }
    assert_true(refused > 30); /* the others hit what is not read, or a number: those carry no checksum */
    free(whole);
    free(broken);
}

/* A limit on the size of files stands for a full disk: the add fails as a whole, what was there stays. */
static void test_no_space_left(void **state)
{
    (void)state;
    struct store *s = open_with(&store_sqlite);
    keep(s, 1, "minilm", 1e6);
    store_close(s);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tare_error err = TARE_ERROR_INIT;
        struct run r;
        struct stat st;
        if (stat(path, &st) < 0) _exit(3);
        struct rlimit limit = {(rlim_t)st.st_size + 30000, (rlim_t)st.st_size + 30000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        s = open_with(&store_sqlite);
        tare_status status = TARE_OK;
        unsigned i;
        for (i = 2; i < 200 && status == TARE_OK; i++) {
            make_run(&r, i, "minilm", 1e6);
            status = store_add_run(s, &r, NULL, NULL, &err);
            run_release(&r);
        }
        bool told = status == TARE_IO && strstr(err.text, path);
        bool kept = list(s, (struct store_filter){0}).n == i - 2;
        _exit(told && kept ? 0 : 1);
    }
    int rc = 0;
    assert_int_equal(waitpid(child, &rc, 0), child);
    assert_true(WIFEXITED(rc));
    assert_int_equal(WEXITSTATUS(rc), 0);
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(read_all_of(&err), TARE_OK);
}

/* What the first version had not: a file of it, with what was kept in it. */
/* Those of which the condition holds. */
static void drop_tables(const char *which)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    char text[300], drop[2000] = "";
    size_t used = 0;
    snprintf(text, sizeof text, "SELECT name FROM sqlite_schema WHERE type = 'table' AND %s", which);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &q, NULL), SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW)
        used += (size_t)snprintf(drop + used, sizeof drop - used, "DROP TABLE %s;",
                                 (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    sqlite3_close(db);
    execute(drop);
}

static void make_version_1(void)
{
    struct store *s = open_with(&store_sqlite);
    keep(s, 1, "minilm", 1e6);
    store_close(s);
    drop_tables("name NOT IN ('run', 'document', 'series', 'value', 'tag', 'baseline')");
    execute("PRAGMA user_version = 1; PRAGMA wal_checkpoint(TRUNCATE);");
}

static void test_an_older_schema_is_brought_up_to_date(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    int64_t version = 0;
    make_version_1();
    struct store *s = open_with(&store_sqlite);
    assert_int_equal(list(s, (struct store_filter){0}).n, 1);
    assert_int_equal(s->ops->version(s, &version, &err), TARE_OK);
    struct store_token t = {.id = "a", .scopes = "read", .created_ms = 1};
    assert_int_equal(s->ops->token_add(s, &t, &err), TARE_OK);
    store_close(s);
    assert_int_equal(read_all_of(&err), TARE_OK);
}

/* Modes of files hold for root, too, once it may not pass over them: the tree may lie where only root can enter, so it
 * becomes nobody else. */
static void obey_modes(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    if (syscall(SYS_capset, &head, none) < 0) _exit(3);
}

static void check_read_only_file(void)
{
    tare_error err = TARE_ERROR_INIT;
    struct store *s;
    struct run r;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char deep[300];
        snprintf(deep, sizeof deep, "%s/deep", home);
        chmod(deep, 0555);
        chmod(path, 0444);
        obey_modes();
        if (read_all_of(&err) != TARE_OK) _exit(2);
        struct store_options o = {.wait_ms = 50};
        make_run(&r, 2, "minilm", 1e6);
        tare_status status = store_open(&s, path, &o, &err);
        if (status == TARE_OK) status = store_add_run(s, &r, NULL, NULL, &err);
        _exit(status == TARE_IO && strstr(err.text, "read-only") && strstr(err.text, path) ? 0 : 1);
    }
    int rc = 0;
    assert_int_equal(waitpid(child, &rc, 0), child);
    assert_true(WIFEXITED(rc));
    assert_int_equal(WEXITSTATUS(rc), 0);
}

static void test_read_only_file(void **state)
{
    struct store *s = open_with(&store_sqlite);
    keep(s, 1, "minilm", 1e6);
    store_close(s);
    check_read_only_file();
    (void)state;
}

static void test_read_only_file_of_an_older_schema(void **state)
{
    make_version_1();
    check_read_only_file();
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(other_files_are_refused_unchanged),
        TEST(newer_and_foreign_schemas),
        TEST(damaged_pages_are_told),
        TEST(no_space_left),
        TEST(read_only_file),
        TEST(read_only_file_of_an_older_schema),
        TEST(an_older_schema_is_brought_up_to_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
