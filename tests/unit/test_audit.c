/* SPDX-License-Identifier: MIT
 * test_audit.c - the chain of the audit: whatever is changed, left out, moved or cut off is found and named; what is
 * refused waits in bounded room for the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "core/mem.h"
#include "home_fixture.h"
#include "server/route.h"

static char path[300];

static int enter(void **state)
{
    (void)state;
    if (home_enter() < 0) return -1;
    snprintf(path, sizeof path, "%s/history.db", home);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return home_leave();
}

static struct store *open_it(void)
{
    struct store *s = NULL;
    tare_error err = TARE_ERROR_INIT;
    if (store_open(&s, path, &(struct store_options){.create = true}, &err) != TARE_OK)
        fail_msg("%s", err.text);
    return s;
}

/* As a change of its own. */
static tare_status add(struct store *s, const struct store_audit *e)
{
    assert_int_equal(s->ops->begin(s, NULL), TARE_OK);
    tare_status status = audit_add(s, e, NULL);
    assert_int_equal(s->ops->end(s, status == TARE_OK, NULL), TARE_OK);
    return status;
}

static void fill(unsigned n)
{
    struct store *s = open_it();
    for (unsigned i = 1; i <= n; i++) {
        char about[16];
        snprintf(about, sizeof about, "thing %u", i);
        struct store_audit e = {
            .who = "3f1c9a0b77d2", .what = "POST /api/v1/tokens", .about = about, .status = 201};
        assert_int_equal(add(s, &e), TARE_OK);
    }
    store_close(s);
}

/* Whoever may write the file may do anything to it. */
static void tamper(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static tare_status verify(const char *noted, struct audit_report *r, tare_error *err)
{
    struct store *s = open_it();
    *err = (tare_error)TARE_ERROR_INIT;
    tare_status status = audit_verify(s, noted, r, err);
    store_close(s);
    return status;
}

static void what_is_written_verifies(void **state)
{
    struct audit_report r;
    tare_error err;
    assert_int_equal(verify(NULL, &r, &err), TARE_OK);
    assert_int_equal(r.entries, 0);
    assert_string_equal(r.head, "");
    fill(5);
    assert_int_equal(verify(NULL, &r, &err), TARE_OK);
    assert_int_equal(r.entries, 5);
    char head[AUDIT_HEX_SIZE];
    memcpy(head, r.head, sizeof head);
    fill(2);
    assert_int_equal(verify(head, &r, &err), TARE_OK);
    assert_int_equal(r.entries, 7);
    assert_string_not_equal(head, r.head);
    (void)state;
}

static void every_change_is_found_at_its_place(void **state)
{
    static const struct {
        const char *sql, *place;
    } cases[] = {
        {"UPDATE audit SET status = 200 WHERE seq = 3", "entry 3"},
        {"UPDATE audit SET who = 'somebody' WHERE seq = 1", "entry 1"},
        {"UPDATE audit SET who = NULL WHERE seq = 2", "entry 2"},
        {"UPDATE audit SET what = 'GET /x' WHERE seq = 5", "entry 5"},
        {"UPDATE audit SET about = '' WHERE seq = 4", "entry 4"},
        {"UPDATE audit SET project = 'nlp' WHERE seq = 4", "entry 4"},
        {"UPDATE audit SET source = '::1' WHERE seq = 4", "entry 4"},
        {"UPDATE audit SET request = 'r' WHERE seq = 4", "entry 4"},
        {"UPDATE audit SET at_ms = at_ms + 1 WHERE seq = 2", "entry 2"},
        {"UPDATE audit SET hash = zeroblob(32) WHERE seq = 2", "entry 2"},
        {"UPDATE audit SET hash = x'00' WHERE seq = 2", "entry 2"},
        /* words moved from one member to the next */
        {"UPDATE audit SET who = '3f1c9a0b77d2POST', what = ' /api/v1/tokens' WHERE seq = 2", "entry 2"},
        {"DELETE FROM audit WHERE seq = 3", "no entry 3"},
        {"DELETE FROM audit WHERE seq = 1", "no entry 1"},
        {"DELETE FROM audit WHERE seq = 5", "no entry 5"},
        {"DELETE FROM audit WHERE seq > 1", "no entry 2"},
        {"DELETE FROM audit", "no entry 1"},
        {"DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = seq - 1 WHERE seq > 3", "entry 3"},
        {"UPDATE audit SET seq = 99 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 4;"
         "UPDATE audit SET seq = 4 WHERE seq = 99",
         "entry 2"},
        {"INSERT INTO audit SELECT 6, at_ms, who, what, about, project, source, request, status, hash FROM audit"
         " WHERE seq = 5",
         "entry 6"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct audit_report r;
        tare_error err;
        fill(5);
        tamper(cases[i].sql);
        assert_int_equal(verify(NULL, &r, &err), TARE_FORMAT);
        if (!strstr(err.text, cases[i].place)) fail_msg("%s: %s", cases[i].sql, err.text);
        leave(NULL);
        enter(NULL);
    }
}

/* Whoever cuts off the end and corrects the count, or writes all of it anew, is found by a noted head alone. */
static void a_noted_head_finds_a_cut_end(void **state)
{
    struct audit_report r;
    tare_error err;
    fill(5);
    assert_int_equal(verify(NULL, &r, &err), TARE_OK);
    char head[AUDIT_HEX_SIZE];
    memcpy(head, r.head, sizeof head);
    tamper("DELETE FROM audit WHERE seq = 5; UPDATE audit_last SET seq = 4");
    assert_int_equal(verify(NULL, &r, &err), TARE_OK);
    assert_int_equal(verify(head, &r, &err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "was noted"));
    (void)state;
}

static tare_status see_what(void *ctx, const struct store_audit *e, tare_error *err)
{
    (void)err;
    snprintf(ctx, 200, "%s|%s", e->what, e->about ? e->about : "-");
    return TARE_OK;
}

static const char *last_of(struct store *s)
{
    static char text[200];
    text[0] = 0;
    struct store_audit_filter f = {.newest_first = true, .limit = 1};
    assert_int_equal(s->ops->audits(s, &f, see_what, text, NULL), TARE_OK);
    return text;
}

static void control_characters_are_escaped(void **state)
{
    struct store *s = open_it();
    struct store_audit e = {.what = "a\nb\033[2J\x7f", .about = "\xc2\x85\xff ä \xe2\x80\xae", .status = 200};
    assert_int_equal(audit_add(s, &e, NULL), TARE_OK);
    assert_string_equal(last_of(s), "a\\x0ab\\x1b[2J\\x7f|\\xc2\\x85\\xff ä \\xe2\\x80\\xae");
    store_close(s);
    (void)state;
}

/* An entry or none, and never a chain that does not verify. */
static void memory_runs_out(void **state)
{
    struct audit_report r;
    tare_error err;
    struct store *s = open_it();
    uint64_t added = 0;
    for (long n = 0; n < 60; n++) {
        struct store_audit e = {.who = "me", .what = "what\n", .status = 200};
        assert_int_equal(s->ops->begin(s, NULL), TARE_OK);
        mem_fail_after(n);
        tare_status status = audit_add(s, &e, NULL);
        mem_fail_after(-1);
        assert_int_equal(s->ops->end(s, status == TARE_OK, NULL), TARE_OK);
        assert_true(status == TARE_OK || status == TARE_NOMEM);
        added += status == TARE_OK;
    }
    store_close(s);
    assert_true(added > 0 && added < 60);
    assert_int_equal(verify(NULL, &r, &err), TARE_OK);
    assert_int_equal(r.entries, added);
    (void)state;
}

/* ---- notes ---- */

static void notes_are_bounded_and_kept_until_written(void **state)
{
    struct notes *n = NULL;
    struct store *s = open_it();
    static struct exchange x;
    struct audit_report r;
    tare_error err;
    assert_int_equal(notes_open(&n, NULL), TARE_OK);
    assert_false(notes_any(n));
    x.head.method = METHOD_GET;
    x.route = &route_table[1];
    x.reply.status = 401;
    for (int i = 0; i < 300; i++) notes_refused(n, &x);
    notes_unlisted(n);
    assert_true(notes_any(n));
    assert_int_equal(s->ops->begin(s, NULL), TARE_OK);
    assert_int_equal(notes_write(n, s, NULL), TARE_OK);
    assert_int_equal(s->ops->end(s, false, NULL), TARE_OK); /* it failed: nothing is lost */
    assert_true(notes_any(n));
    assert_int_equal(notes_write(n, s, NULL), TARE_OK);
    notes_refused(n, &x); /* meanwhile; there is no room until they are written */
    notes_written(n);
    assert_string_equal(last_of(s), "more requests were refused than are listed|45");
    assert_int_equal(notes_write(n, s, NULL), TARE_OK);
    notes_written(n);
    assert_string_equal(last_of(s), "more requests were refused than are listed|1");
    assert_false(notes_any(n));
    notes_close(n);
    store_close(s);
    assert_int_equal(verify(NULL, &r, &err), TARE_OK);
    assert_int_equal(r.entries, 256 + 2);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_verifies, enter, leave),
        cmocka_unit_test_setup_teardown(every_change_is_found_at_its_place, enter, leave),
        cmocka_unit_test_setup_teardown(a_noted_head_finds_a_cut_end, enter, leave),
        cmocka_unit_test_setup_teardown(control_characters_are_escaped, enter, leave),
        cmocka_unit_test_setup_teardown(memory_runs_out, enter, leave),
        cmocka_unit_test_setup_teardown(notes_are_bounded_and_kept_until_written, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
