/* SPDX-License-Identifier: MIT
 * test_json_expect.c - what must stand in an answer: paths, values, numbers; what is said where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "load/json_expect.h"

static const char answer[] =
    "{\"label\":\"cat\",\"score\":-0.5,\"n\":3,\"ok\":true,\"no\":null,\"list\":[{\"x\":1},{\"x\":[2]}],\"\":1}";

static bool holds(const char *text, char why[256])
{
    struct json_expect e = {VEC_INIT, ""};
    assert_int_equal(json_expect_add(&e, text, NULL), TARE_OK);
    bool good = json_expect_holds(&e, answer, sizeof answer - 1);
    if (why) memcpy(why, e.why, sizeof e.why);
    json_expect_close(&e);
    return good;
}

static void what_holds(void **state)
{
    static const char *const good[] = {"label=cat", "score=-0.5",   "score>=-0.5", "score<=0",
                                       "n=3",       "n=3.0",        "ok=true",     "no=null",
                                       "no",        "list.1.x.0=2", "list",        "list.0"};
    static const char *const bad[] = {"label=dog", "label=",    "score>=0", "score<=-0.6", "n=4",
                                      "n=3x",      "ok=false",  "no=false", "absent",      "list.2",
                                      "list.x",    "list.-1",   "label.a",  "list.0=1",    "label>=1",
                                      "ok>=0",     "list.0.x.0"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(holds(good[i], NULL));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(holds(bad[i], NULL));
    (void)state;
}

static void what_is_said(void **state)
{
    char why[256];
    assert_false(holds("label=dog", why));
    assert_string_equal(why, "label in the answer is cat, not dog");
    assert_false(holds("score>=0.5", why));
    assert_string_equal(why, "score in the answer is -0.5, not >= 0.5");
    assert_false(holds("list.7.x", why));
    assert_string_equal(why, "the answer has no list.7.x");
    struct json_expect e = {VEC_INIT, ""};
    assert_int_equal(json_expect_add(&e, "a", NULL), TARE_OK);
    assert_false(json_expect_holds(&e, "<html>", 6));
    assert_non_null(strstr(e.why, "no JSON that can be read: '[' or '{' expected"));
    assert_false(json_expect_holds(&e, "{\"a\":1,\"a\":2}", 13));
    assert_non_null(strstr(e.why, "duplicate object key"));
    assert_false(json_expect_holds(&e, "{\"a\":36893488147419103232}", 26));
    assert_non_null(strstr(e.why, "too big integer"));
    json_expect_close(&e);
    (void)state;
}

static void what_is_refused(void **state)
{
    static const char *const bad[] = {"",    "=1",    "a>1",    "a<1",  "a>=x",
                                      "a<=", "a>=1e", "a>=nan", "a==1", "a!=1"};
    struct json_expect e = {VEC_INIT, ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(json_expect_add(&e, bad[i], &err), TARE_INVALID);
        assert_true(err.text[0]);
    }
    json_expect_close(&e);
    (void)state;
}

static void without_memory(void **state)
{
    for (int n = 0;; n++) {
        struct json_expect e = {VEC_INIT, ""};
        mem_fail_after(n);
        tare_status s = json_expect_add(&e, "label=cat", NULL);
        bool good = s == TARE_OK && json_expect_holds(&e, answer, sizeof answer - 1);
        mem_fail_after(-1);
        json_expect_close(&e);
        if (good) break;
        assert_true(n < 100);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds),
        cmocka_unit_test(what_is_said),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
