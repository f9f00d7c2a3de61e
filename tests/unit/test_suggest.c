/* SPDX-License-Identifier: MIT
 * test_suggest.c - distances between words, and which name is near enough to be meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/suggest.h"

static unsigned distance(const char *a, const char *b)
{
    return suggest_distance(a, strlen(a), b, strlen(b));
}

static void distances(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        unsigned want;
    } rows[] = {{"", "", 0},
                {"", "abc", 3},
                {"report", "report", 0},
                {"reprot", "report", 1},
                {"repot", "report", 1},
                {"reportt", "report", 1},
                {"raport", "report", 1},
                {"kitten", "sitting", 3},
                {"abcdef", "abXdeYf", 2},
                {"ca", "abc", 3},
                {"ab", "ba", 1},
                {"abcd", "badc", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(distance(rows[i].a, rows[i].b), rows[i].want);
        assert_int_equal(distance(rows[i].b, rows[i].a), rows[i].want);
    }
    char longer[101];
    memset(longer, 'a', 100);
    longer[100] = 0;
    assert_int_equal(distance(longer, "a"), 65);
    longer[64] = 0;
    assert_int_equal(distance(longer, "a"), 63);
}

static void the_nearest_name(void **state)
{
    (void)state;
    static const char *const names[] = {"doctor", "report", "export", "version", "help", "ab"};
    assert_string_equal(suggest_among("reprot", names, 6), "report");
    assert_string_equal(suggest_among("exprt", names, 6), "export");
    assert_string_equal(suggest_among("hlep", names, 6), "help");
    assert_string_equal(suggest_among("ba", names, 6), "ab");
    assert_string_equal(suggest_among("vers", names, 6), "version"); /* begins like it */
    assert_null(suggest_among("zebra", names, 6));
    assert_null(suggest_among("x", names, 6)); /* nothing in common */
    assert_null(suggest_among("", names, 6));
    assert_null(suggest_among("help", names, 0));
}

static void a_word_within_a_text(void **state)
{
    (void)state;
    struct suggest s;
    suggest_init(&s, "reprot=x", 6);
    suggest_offer(&s, "export");
    suggest_offer(&s, "report");
    assert_string_equal(suggest_best(&s), "report");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(the_nearest_name),
        cmocka_unit_test(a_word_within_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
