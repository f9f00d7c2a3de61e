/* SPDX-License-Identifier: MIT
 * test_mem.c - the gate: zeroed memory, overflow refused, blocks counted, the n-th allocation failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"

static void new_memory_is_zero_and_counted(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    unsigned char *p = mem_new(100, 7);
    assert_non_null(p);
    for (int i = 0; i < 700; i++) assert_int_equal(p[i], 0);
    assert_int_equal(mem_live_blocks(), start + 1);
    void *none = mem_new(0, 8);
    assert_non_null(none);
    assert_int_equal(mem_live_blocks(), start + 2);
    mem_free(none);
    mem_free(p);
    mem_free(NULL);
    assert_int_equal(mem_live_blocks(), start);
}

static void resizing_keeps_content_and_count(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    char *p = mem_resize(NULL, 4, 1);
    assert_non_null(p);
    memcpy(p, "abcd", 4);
    char *bigger = mem_resize(p, 100000, 1);
    assert_non_null(bigger);
    assert_memory_equal(bigger, "abcd", 4);
    assert_int_equal(mem_live_blocks(), start + 1);
    assert_null(mem_resize(bigger, SIZE_MAX / 2, 4)); /* n * size overflows */
    assert_memory_equal(bigger, "abcd", 4);
    char *small = mem_resize(bigger, 2, 1);
    assert_non_null(small);
    assert_memory_equal(small, "ab", 2);
    char *none = mem_resize(small, 0, 1);
    assert_non_null(none);
    mem_free(none);
    assert_int_equal(mem_live_blocks(), start);
}

static void copies_end_with_nul(void **state)
{
    (void)state;
    char *whole = mem_strdup("scope"), *part = mem_strndup("scope", 3), *empty = mem_strdup("");
    assert_string_equal(whole, "scope");
    assert_string_equal(part, "sco");
    assert_string_equal(empty, "");
    mem_free(whole);
    mem_free(part);
    mem_free(empty);
}

static void the_nth_fails_and_so_do_all_after(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    mem_fail_after(2);
    void *a = mem_new(1, 1), *b = mem_strdup("b");
    void *c = mem_new(1, 1), *d = mem_strdup("d"), *e = mem_resize(NULL, 1, 1), *f = mem_resize(a, 10, 1);
    mem_fail_after(-1);
    assert_true(a && b && !c && !d && !e && !f);
    assert_int_equal(mem_live_blocks(), start + 2);
    mem_free(a);
    mem_free(b);
    void *again = mem_new(1, 1);
    assert_non_null(again);
    mem_free(again);
    assert_int_equal(mem_live_blocks(), start);
}

static void *churn(void *arg)
{
    for (int i = 0; i < 20000; i++) mem_free(mem_new(1, 16));
    return arg;
}

static void threads_count_right(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert_int_equal(mem_live_blocks(), start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_memory_is_zero_and_counted),
        cmocka_unit_test(resizing_keeps_content_and_count),
        cmocka_unit_test(copies_end_with_nul),
        cmocka_unit_test(the_nth_fails_and_so_do_all_after),
        cmocka_unit_test(threads_count_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
