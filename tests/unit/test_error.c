/* SPDX-License-Identifier: MIT
 * test_error.c - errors say who, where and why, fit their space, and cost nothing when nobody listens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/error.h"

static void every_status_has_a_text(void **state)
{
    (void)state;
    assert_string_equal(tare_status_text(TARE_OK), "success");
    assert_string_equal(tare_status_text(TARE_NOMEM), "out of memory");
    for (int s = TARE_OK; s >= TARE_BUSY; s--) {
        assert_string_not_equal(tare_status_text((tare_status)s), "unknown status");
        for (int other = TARE_OK; other > s; other--)
            assert_string_not_equal(tare_status_text((tare_status)s), tare_status_text((tare_status)other));
    }
    assert_string_equal(tare_status_text((tare_status)-999), "unknown status");
}

static void set_fills_and_returns(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(error_set(&err, TARE_FORMAT, "%s: version %d", "a.tare", 9), TARE_FORMAT);
    assert_int_equal(err.status, TARE_FORMAT);
    assert_string_equal(err.text, "a.tare: version 9");
    assert_int_equal(error_set(&err, TARE_BUSY, "again"), TARE_BUSY); /* the later one stands */
    assert_string_equal(err.text, "again");
    assert_int_equal(error_set(NULL, TARE_DENIED, "nobody listens"), TARE_DENIED);
}

static void system_errors_carry_their_text(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    char want[200];
    errno = ENOSPC;
    assert_int_equal(error_errno(&err, "%s: cannot write", "out"), TARE_IO);
    snprintf(want, sizeof want, "out: cannot write: %s", strerror(ENOSPC));
    assert_string_equal(err.text, want);
    errno = ENOMEM;
    assert_int_equal(error_errno(&err, "map"), TARE_NOMEM);
    assert_int_equal(err.status, TARE_NOMEM);
    errno = ENOMEM;
    assert_int_equal(error_errno(NULL, "map"), TARE_NOMEM);
    errno = EIO;
    assert_int_equal(error_errno(NULL, "map"), TARE_IO);
}

static void wrapping_puts_the_context_first(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    error_set(&err, TARE_FORMAT, "chunk %d is torn", 3);
    assert_int_equal(error_wrap(&err, "reading %s", "a.tare"), TARE_FORMAT);
    assert_string_equal(err.text, "reading a.tare: chunk 3 is torn");
    error_wrap(&err, "report");
    assert_string_equal(err.text, "report: reading a.tare: chunk 3 is torn");
    assert_int_equal(err.status, TARE_FORMAT);
    assert_int_equal(error_wrap(NULL, "report"), TARE_INVALID);
}

static void long_texts_are_cut_never_overrun(void **state)
{
    (void)state;
    struct {
        tare_error err;
        char guard[16];
    } s;
    char filler[2000];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = 0;
    memset(&s, '#', sizeof s);
    error_set(&s.err, TARE_IO, "%s", filler);
    assert_int_equal(strlen(s.err.text), sizeof s.err.text - 1);
    error_wrap(&s.err, "context");
    assert_int_equal(strlen(s.err.text), sizeof s.err.text - 1);
    assert_memory_equal(s.err.text, "context: xxx", 12);
    error_wrap(&s.err, "%s", filler);
    assert_int_equal(strlen(s.err.text), sizeof s.err.text - 1);
    errno = EIO;
    error_errno(&s.err, "%s", filler);
    assert_int_equal(strlen(s.err.text), sizeof s.err.text - 1);
    for (size_t i = 0; i < sizeof s.guard; i++) assert_int_equal(s.guard[i], '#');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_text),          cmocka_unit_test(set_fills_and_returns),
        cmocka_unit_test(system_errors_carry_their_text),   cmocka_unit_test(wrapping_puts_the_context_first),
        cmocka_unit_test(long_texts_are_cut_never_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
