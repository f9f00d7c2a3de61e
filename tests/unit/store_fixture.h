/* SPDX-License-Identifier: MIT
 * store_fixture.h - the backends that every test of the store runs over: a file, and a PostgreSQL of the test's own
 * where one is installed. Give find_postgres and end_postgres to cmocka_run_group_tests(), and add
 * TEST(postgresql_is_here). */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/mem.h"
#include "store/postgres_conn.h"
#include "store_home.h"

static const struct store_ops *const backends[] = {&store_sqlite, &store_postgres};

/* ---- a PostgreSQL of our own, where one is installed ---- */

static struct {
    pid_t server;
    char folder[64], why_not[200];
    unsigned schemas;
    struct db_conn *admin;
} pg;

static void pg_url(char out[400], unsigned schema)
{
    snprintf(out, 400, "postgresql:///postgres?host=%s&user=postgres&options=-csearch_path%%3Dt%u", pg.folder,
             schema);
}

/* It is a child that goes when we go, whatever happens to us. */
static void start_postgres(void)
{
    const char *src = getenv("TARE_SRC");
    char url[400], script[300];
    tare_error err = TARE_ERROR_INIT;
    snprintf(pg.folder, sizeof pg.folder, "/tmp/tare-pg-XXXXXX");
    snprintf(script, sizeof script, "%s/tests/postgres.sh", src ? src : ".");
    if (!mkdtemp(pg.folder)) return;
    pg.server = fork();
    if (pg.server == 0) {
        execl("/bin/sh", "sh", script, pg.folder, NULL);
        _exit(127);
    }
    pg_url(url, 0);
    for (int rc; waitpid(pg.server, &rc, WNOHANG) == 0; usleep(20000))
        if (pg_connect(&pg.admin, &(struct pg_options){url, 0}, &err) == TARE_OK) return;
    pg.server = 0;
    snprintf(pg.why_not, sizeof pg.why_not, "PostgreSQL did not start (%.150s)", err.text);
}

static int find_postgres(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct db_conn *c = NULL;
    if (pg_connect(&c, &(struct pg_options){"postgresql:///x?host=/nowhere", 0}, &err) == TARE_UNSUPPORTED)
        snprintf(pg.why_not, sizeof pg.why_not, "%.190s", err.text);
    else if (system("ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null"))
        snprintf(pg.why_not, sizeof pg.why_not, "PostgreSQL is not installed");
    else
        start_postgres();
    return 0;
}

static int end_postgres(void **state)
{
    char command[200];
    (void)state;
    pg_disconnect(pg.admin);
    if (pg.server) kill(pg.server, SIGQUIT);
    if (pg.server) waitpid(pg.server, NULL, 0);
    snprintf(command, sizeof command, "rm -rf '%s'", pg.folder);
    return pg.folder[0] ? system(command) : 0;
}

/* An empty store of this kind at `path`: a new file, a schema of its own. False: there is no PostgreSQL here. */
static bool use_backend(const struct store_ops *ops)
{
    static unsigned files;
    char text[80];
    tare_error err = TARE_ERROR_INIT;
    if (ops == &store_sqlite) snprintf(path, sizeof path, "%s/deep/%u.db", home, files++);
    if (ops == &store_sqlite || !pg.server) return ops == &store_sqlite;
    snprintf(text, sizeof text, "CREATE SCHEMA t%u", ++pg.schemas);
    if (pg_ask(pg.admin, text, NULL, &err) != TARE_OK) fail_msg("%s", err.text);
    pg_url(path, pg.schemas);
    return true;
}

static void test_postgresql_is_here(void **state)
{
    (void)state;
    if (pg.server) return;
    print_message("not tested: PostgreSQL: %s\n", pg.why_not);
    skip();
}

#define FOR_EACH_BACKEND(i)                                                                                 \
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)                                         \
        if (use_backend(backends[i]))

/* A case of the suite: over every backend. */
#define CONFORMS(name)                                                                                       \
    static void test_##name(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        FOR_EACH_BACKEND(i) name(backends[i]);                                                               \
    }

#endif
