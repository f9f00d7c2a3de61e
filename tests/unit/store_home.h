/* SPDX-License-Identifier: MIT
 * store_home.h - a folder for each test of the store, and a history in it, at `path`. */
#ifndef TESTS_STORE_HOME_H
#define TESTS_STORE_HOME_H

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

#include "home_fixture.h"
#include "store/store.h"

static char path[400];

static int enter(void **state)
{
    (void)state;
    if (home_enter() < 0) return -1;
    snprintf(path, sizeof path, "%s/deep/history.db", home);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return home_leave();
}

static struct store *open_with(const struct store_ops *ops)
{
    struct store_options o = {.create = true, .wait_ms = 50};
    struct store *s = NULL;
    tare_error err = TARE_ERROR_INIT;
    if (ops->open(&s, path, &o, &err) != TARE_OK) fail_msg("%s", err.text);
    return s;
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, enter, leave)

#endif
