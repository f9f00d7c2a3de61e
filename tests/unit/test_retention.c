/* SPDX-License-Identifier: MIT
 * test_retention.c - `tare serve --keep` and a clock that is set while it runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/clock.h"
#include "core/mem.h"
#include "home_fixture.h"
#include "server/server.h"

#define DAY_MS INT64_C(86400000)

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

static void say_nothing(void *ctx, const char *text)
{
    (void)ctx;
    fail_msg("%s", text);
}

static tare_status count(void *ctx, const struct store_run *run, tare_error *err)
{
    (void)run;
    (void)err;
    ++*(unsigned *)ctx;
    return TARE_OK;
}

/* Runs that are left of one made in 2001, by a server that began when its clock was so far from today's. */
static unsigned left_when_clock_was(int64_t days)
{
    struct server s = {.options = {.keep_ms = 90 * DAY_MS, .say = say_nothing}};
    struct store *store = NULL;
    struct run run;
    bool added = false;
    unsigned n = 0;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(store_open(&store, path, &(struct store_options){.create = true}, &err), TARE_OK);
    assert_int_equal(run_init(&run, "bench", &err), TARE_OK);
    run.subject.type = "command";
    run.subject.name = "x";
    run.created = "2001-01-01T00:00:00.000Z";
    assert_non_null(run_add_case(&run, "one"));
    if (store_add_run(store, &run, &(struct store_context){0}, &added, &err) != TARE_OK)
        fail_msg("%s", err.text);
    assert_true(added);
    s.began_boot_ns = login_clock();
    s.began_unix_ms = (int64_t)(clock_unix_ns() / 1000000) + days * DAY_MS;
    retention_slice(&s, store);
    assert_int_equal(store->ops->list(store, &(struct store_filter){0}, count, &n, &err), TARE_OK);
    run_release(&run);
    store_close(store);
    assert_int_equal(mem_live_blocks(), 0);
    return n;
}

static void a_clock_that_was_not_set(void **state)
{
    (void)state;
    assert_int_equal(left_when_clock_was(0), 0);
}

/* Began 100 years before what the clock says now: it was set forward since, and nothing is old by that. */
static void a_clock_that_was_set_forward(void **state)
{
    (void)state;
    assert_int_equal(left_when_clock_was(-36500), 1);
}

/* Began in what is the future by now: the earlier of both counts. */
static void a_clock_that_was_set_back(void **state)
{
    (void)state;
    assert_int_equal(left_when_clock_was(36500), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_clock_that_was_not_set, enter, leave),
        cmocka_unit_test_setup_teardown(a_clock_that_was_set_forward, enter, leave),
        cmocka_unit_test_setup_teardown(a_clock_that_was_set_back, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
