/* SPDX-License-Identifier: MIT
 * test_login.c - sessions by the clock that the test sets: links work once and in time, sessions end by idleness, by
 * age, by leaving, and by too many others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "server/access/login.h"

#define S UINT64_C(1000000000)

static struct logins *open_with(uint64_t idle, uint64_t longest, uint64_t link)
{
    struct logins *l = NULL;
    assert_int_equal(logins_open(&l, &(struct login_times){idle * S, longest * S, link * S}, NULL), TARE_OK);
    return l;
}

static void a_link_works_once_and_in_time(void **state)
{
    struct logins *l = open_with(10, 100, 5);
    char once[LOGIN_TEXT_SIZE], later[LOGIN_TEXT_SIZE];
    assert_false(logins_redeem(l, "", S)); /* none was made */
    assert_int_equal(logins_link(l, S, once, NULL), TARE_OK);
    assert_int_equal(strlen(once), LOGIN_TEXT_SIZE - 1);
    assert_false(logins_redeem(l, "0", 2 * S)); /* a wrong one does not spend it */
    assert_true(logins_redeem(l, once, 2 * S));
    assert_false(logins_redeem(l, once, 2 * S));
    assert_int_equal(logins_link(l, 10 * S, once, NULL), TARE_OK);
    assert_false(logins_redeem(l, once, 15 * S)); /* too old */
    assert_int_equal(logins_link(l, 20 * S, once, NULL), TARE_OK);
    assert_int_equal(logins_link(l, 20 * S, later, NULL), TARE_OK);
    assert_string_not_equal(once, later);
    assert_false(logins_redeem(l, once, 20 * S)); /* the later one replaced it */
    assert_true(logins_redeem(l, later, 20 * S));
    logins_close(l);
    (void)state;
}

static void sessions_end_by_idleness_and_by_age(void **state)
{
    struct logins *l = open_with(10, 25, 5);
    struct login as = {.grant = {.scopes = SCOPE_READ, .id = "abc", .project = "p"}, .began_ns = 100 * S},
                 got;
    char cookie[LOGIN_TEXT_SIZE], other[LOGIN_TEXT_SIZE];
    assert_int_equal(logins_begin(l, &as, cookie, NULL), TARE_OK);
    assert_int_equal(logins_begin(l, &as, other, NULL), TARE_OK);
    assert_true(logins_check(l, cookie, 109 * S, &got));
    assert_int_equal(got.grant.scopes, SCOPE_READ);
    assert_string_equal(got.grant.project, "p");
    assert_false(logins_check(l, other, 110 * S, &got)); /* idle for 10 s */
    assert_false(logins_check(l, other, 101 * S, &got)); /* and gone, whatever the clock says */
    assert_true(logins_check(l, cookie, 118 * S, &got));
    assert_true(logins_check(l, cookie, 124 * S, &got));
    assert_false(logins_check(l, cookie, 125 * S, &got)); /* 25 s old, though it was busy */
    logins_close(l);
    (void)state;
}

static void who_left_is_gone(void **state)
{
    struct logins *l = open_with(10, 25, 5);
    struct login as = {.began_ns = S}, got;
    char cookie[LOGIN_TEXT_SIZE];
    assert_int_equal(logins_begin(l, &as, cookie, NULL), TARE_OK);
    assert_true(logins_end(l, cookie));
    assert_false(logins_end(l, cookie));
    assert_false(logins_check(l, cookie, S, &got));
    logins_close(l);
    (void)state;
}

static void too_many_end_the_one_that_waited_longest(void **state)
{
    struct logins *l = open_with(1000000, 1000000, 5);
    struct login got;
    static char cookies[LOGINS_MAX + 1][LOGIN_TEXT_SIZE];
    for (uint64_t i = 0; i < LOGINS_MAX; i++)
        assert_int_equal(logins_begin(l, &(struct login){.began_ns = (i + 1) * S}, cookies[i], NULL),
                         TARE_OK);
    assert_true(logins_check(l, cookies[0], 1000 * S, &got)); /* now the second waited longest */
    assert_int_equal(logins_begin(l, &(struct login){.began_ns = 1001 * S}, cookies[LOGINS_MAX], NULL),
                     TARE_OK);
    assert_false(logins_check(l, cookies[1], 1002 * S, &got));
    for (size_t i = 0; i <= LOGINS_MAX; i++)
        if (i != 1) assert_true(logins_check(l, cookies[i], 1002 * S, &got));
    logins_close(l);
    (void)state;
}

#define HEX16 "0123456789abcdef"
#define TEXT HEX16 HEX16 HEX16 HEX16

static void cookies_are_found_by_their_whole_name(void **state)
{
    static const struct {
        const char *header;
        bool found;
    } cases[] = {
        {"", false},
        {"n=" TEXT, true},
        {"a=b; n=" TEXT, true},
        {"a=b;n=" TEXT "; c=d", true},
        {"nn=" TEXT, false},
        {"x; ; =; n=" TEXT, true},
        {"n=" TEXT "0", false},
        {"n=0" TEXT, false},
        {"n= " TEXT, false},
        {"n=\"" TEXT "\"", false},
        {"n=0123456789ABCDEF" HEX16 HEX16 HEX16, false},
        {"n", false},
        {"n=", false},
        {"; ; ;", false},
        {"a=n=" TEXT, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[LOGIN_TEXT_SIZE] = "";
        bool found = login_cookie(cases[i].header, "n", out);
        if (found != cases[i].found) fail_msg("'%s' is %sfound", cases[i].header, found ? "" : "not ");
        if (found) assert_string_equal(out, TEXT);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_works_once_and_in_time),
        cmocka_unit_test(sessions_end_by_idleness_and_by_age),
        cmocka_unit_test(who_left_is_gone),
        cmocka_unit_test(too_many_end_the_one_that_waited_longest),
        cmocka_unit_test(cookies_are_found_by_their_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
