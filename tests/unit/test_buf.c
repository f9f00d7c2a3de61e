/* SPDX-License-Identifier: MIT
 * test_buf.c - always a NUL, failure sticks until the end, and taking hands the memory over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/buf.h"
#include "core/mem.h"

static void text_grows_and_ends_with_nul(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    assert_string_equal(b.data, "");
    for (int i = 0; i < 1000; i++) {
        buf_add_char(&b, (char)('a' + i % 26));
        assert_int_equal(b.len, i + 1);
        assert_int_equal(b.data[b.len], 0);
        assert_true(b.cap > b.len);
    }
    for (int i = 0; i < 1000; i++) assert_int_equal(b.data[i], 'a' + i % 26);
    buf_clear(&b);
    assert_string_equal(b.data, "");
    buf_add(&b, "a\0b", 3);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b", 4);
    buf_add(&b, NULL, 0);
    assert_int_equal(b.len, 3);
    buf_release(&b);
    buf_release(&b);
    assert_string_equal(b.data, "");
}

/* Around the size of the stack buffer inside, and around the buffer's own capacity. */
static void printf_of_every_length(void **state)
{
    (void)state;
    char filler[701];
    memset(filler, 'f', 700);
    for (int n = 0; n <= 700; n++) {
        struct buf b = BUF_INIT;
        buf_add_str(&b, "<");
        buf_printf(&b, "%.*s|%d", n, filler, n);
        char tail[16];
        struct buf want = BUF_INIT;
        buf_add_str(&want, "<");
        buf_add(&want, filler, (size_t)n);
        int digits = n < 10 ? 1 : n < 100 ? 2 : 3;
        for (int k = digits, v = n; k > 0; k--, v /= 10) tail[k] = (char)('0' + v % 10);
        tail[0] = '|';
        buf_add(&want, tail, (size_t)digits + 1);
        assert_string_equal(b.data, want.data);
        assert_int_equal(b.len, strlen(b.data));
        buf_release(&b);
        buf_release(&want);
    }
}

static void taking_hands_the_memory_over(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    struct buf b = BUF_INIT;
    buf_add_str(&b, "mine");
    char *text = buf_take(&b);
    assert_string_equal(text, "mine");
    assert_int_equal(b.len, 0);
    buf_add_str(&b, "next");
    assert_string_equal(text, "mine");
    buf_release(&b);
    mem_free(text);
    char *empty = buf_take(&b); /* an empty one is still a string to free */
    assert_non_null(empty);
    assert_string_equal(empty, "");
    mem_free(empty);
    assert_int_equal(mem_live_blocks(), start);
}

static void failure_sticks(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    struct buf b = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    buf_add_str(&b, "before");
    mem_fail_after(0);
    for (int i = 0; i < 100; i++) buf_add_str(&b, "0123456789");
    mem_fail_after(-1);
    size_t kept = b.len;
    buf_add_str(&b, "x"); /* would fit, but a hole in the text would be worse */
    assert_int_equal(b.len, kept);
    assert_memory_equal(b.data, "before0123", 10);
    assert_int_equal(buf_status(&b, &err), TARE_NOMEM);
    assert_int_equal(err.status, TARE_NOMEM);
    assert_null(buf_take(&b));
    assert_int_equal(mem_live_blocks(), start);
    assert_int_equal(buf_status(&b, &err), TARE_OK);
    b.failed = 1;
    buf_clear(&b);
    buf_add_str(&b, "again");
    assert_string_equal(b.data, "again");
    buf_release(&b);
}

static void absurd_sizes_fail(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    buf_add_str(&b, "abc");
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -1);
    assert_int_equal(b.failed, 1);
    buf_clear(&b);
    assert_int_equal(buf_reserve(&b, SIZE_MAX / 2), -1);
    buf_release(&b);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK; n++) {
        struct buf b = BUF_INIT;
        mem_fail_after(n);
        for (int i = 0; i < 60; i++) {
            buf_add_str(&b, "some text");
            buf_printf(&b, "%0300d", i);
        }
        s = buf_status(&b, NULL);
        mem_fail_after(-1);
        assert_int_equal(strlen(b.data), b.len);
        buf_release(&b);
        assert_int_equal(mem_live_blocks(), start);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_grows_and_ends_with_nul),
        cmocka_unit_test(printf_of_every_length),
        cmocka_unit_test(taking_hands_the_memory_over),
        cmocka_unit_test(failure_sticks),
        cmocka_unit_test(absurd_sizes_fail),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
