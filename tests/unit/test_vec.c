/* SPDX-License-Identifier: MIT
 * test_vec.c - growth, order, and that a failed push changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/vec.h"

struct pair {
    uint64_t a, b;
};

static void items_keep_their_order(void **state)
{
    (void)state;
    VEC(struct pair) v = VEC_INIT;
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(vec_push(&v, ((struct pair){i, i * i}), NULL), TARE_OK);
    assert_int_equal(v.n, 1000);
    for (uint64_t i = 0; i < 1000; i++) assert_true(v.items[i].a == i && v.items[i].b == i * i);
    assert_int_equal(vec_last(&v)->a, 999);
    assert_int_equal(vec_pop(&v).a, 999);
    assert_int_equal(v.n, 999);
    vec_clear(&v);
    assert_true(v.n == 0 && v.cap >= 1000);
    vec_release(&v);
    assert_true(v.items == NULL && v.cap == 0);
    vec_release(&v);
}

static void an_item_of_itself_survives_the_move(void **state)
{
    (void)state;
    VEC(int) v = VEC_INIT;
    vec_push(&v, 42, NULL);
    while (v.n < 100) assert_int_equal(vec_push(&v, v.items[0], NULL), TARE_OK);
    for (size_t i = 0; i < v.n; i++) assert_int_equal(v.items[i], 42);
    vec_release(&v);
}

static void reserve_avoids_later_growth(void **state)
{
    (void)state;
    VEC(char) v = VEC_INIT;
    assert_int_equal(vec_reserve(&v, 100, NULL), TARE_OK);
    mem_fail_after(0);
    for (int i = 0; i < 100; i++) assert_int_equal(vec_push(&v, 'x', NULL), TARE_OK);
    mem_fail_after(-1);
    tare_error err = TARE_ERROR_INIT;
    mem_fail_after(0);
    assert_int_equal(vec_reserve(&v, 101, &err), TARE_NOMEM);
    mem_fail_after(-1);
    assert_non_null(strstr(err.text, "out of memory"));
    assert_int_equal(v.n, 100);
    vec_release(&v);
    VEC(struct pair) pairs = VEC_INIT;
    assert_int_equal(vec_push(&pairs, ((struct pair){1, 2}), NULL), TARE_OK);
    assert_int_equal(vec_reserve(&pairs, SIZE_MAX / 8, NULL), TARE_NOMEM); /* n * size overflows */
    assert_true(pairs.n == 1 && pairs.items[0].b == 2);
    vec_release(&pairs);
}

static void a_failed_push_changes_nothing(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK; n++) {
        VEC(size_t) v = VEC_INIT;
        tare_error err = TARE_ERROR_INIT;
        s = TARE_OK;
        mem_fail_after(n);
        for (size_t i = 0; i < 100 && s == TARE_OK; i++) {
            s = vec_push(&v, i, &err);
            assert_int_equal(v.n, s == TARE_OK ? i + 1 : i);
        }
        mem_fail_after(-1);
        if (s != TARE_OK) assert_int_equal(err.status, TARE_NOMEM);
        for (size_t i = 0; i < v.n; i++) assert_int_equal(v.items[i], i);
        vec_release(&v);
        assert_int_equal(mem_live_blocks(), start);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_keep_their_order),
        cmocka_unit_test(an_item_of_itself_survives_the_move),
        cmocka_unit_test(reserve_avoids_later_growth),
        cmocka_unit_test(a_failed_push_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
