/* SPDX-License-Identifier: MIT
 * test_str.c - UTF-8, typos, quantities out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "core/fmt.h"
#include "core/str.h"

#define R "\xEF\xBF\xBD" /* U+FFFD */

static void utf8_is_told_from_other_bytes(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "plain",
                                       "\xC3\xA9",
                                       "\xE2\x82\xAC",
                                       "\xF0\x9F\x98\x80",
                                       "\xEF\xBF\xBF",
                                       "\xF4\x8F\xBF\xBF",
                                       "\xED\x9F\xBF",
                                       "\xEE\x80\x80",
                                       "\xC2\x80"};
    static const char *const bad[] = {"\x80",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFF",
                                      "a\xE2\x82",
                                      "\xC3",
                                      "\xE2\x28\xA1"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(str_is_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(str_is_utf8(bad[i], strlen(bad[i])));
    assert_true(str_is_utf8("a\0b", 3));
}

static void bad_bytes_are_replaced(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"plain \xE2\x82\xAC", "plain \xE2\x82\xAC"},
        {"a\x80z", "a" R "z"},
        {"\xC0\x80", R R},
        {"\xE2\x82"
         "A",
         R "A"}, /* one for the broken beginning */
        {"\xF0\x9F\x98"
         "A",
         R "A"},
        {"\xED\xA0\x80", R R R}, /* a surrogate has no valid beginning past its first byte */
        {"\xE2\x82", R},         /* cut off at the end */
        {"\xFF\xFE"
         "x",
         R R "x"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf b = BUF_INIT;
        str_add_utf8(&b, rows[i][0], strlen(rows[i][0]));
        assert_string_equal(b.data, rows[i][1]);
        assert_true(str_is_utf8(b.data, b.len));
        buf_release(&b);
    }
}

/* Every string of up to three bytes from an awkward alphabet comes out valid, and valid ones unchanged. */
static void sanitised_text_is_always_valid(void **state)
{
    (void)state;
    static const char alphabet[] = "A\x80\xBF\xC2\xE0\xA0\xED\x9F\xF0\x90\xF4\x8F\xFF";
    size_t k = sizeof alphabet - 1;
    for (size_t i = 0; i < k * k * k * k; i++) {
        char s[4] = {alphabet[i % k], alphabet[i / k % k], alphabet[i / k / k % k], alphabet[i / k / k / k]};
        struct buf b = BUF_INIT;
        str_add_utf8(&b, s, 4);
        assert_true(str_is_utf8(b.data, b.len));
        if (str_is_utf8(s, 4)) assert_memory_equal(b.data, s, 4);
        buf_release(&b);
    }
}

static void durations_for_people(void **state)
{
    (void)state;
    static const struct {
        double ns;
        const char *want;
    } rows[] = {{0, "0 ns"},         {812, "812 ns"},        {12.34, "12.3 ns"},    {0.5, "0.50 ns"},
                {999, "999 ns"},     {999.4, "999 ns"},      {999.6, "1.00 us"},    {1000, "1.00 us"},
                {1.23e6, "1.23 ms"}, {9.994e6, "9.99 ms"},   {9.996e6, "10.0 ms"},  {99.96e6, "100 ms"},
                {999.6e6, "1.00 s"}, {45.6e9, "45.6 s"},     {59.94e9, "59.9 s"},   {59.96e9, "1 m 00 s"},
                {125e9, "2 m 05 s"}, {3599.6e9, "1 h 00 m"}, {11220e9, "3 h 07 m"}, {-1500, "-1.50 us"},
                {NAN, "-"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf b = BUF_INIT;
        fmt_duration(&b, rows[i].ns);
        assert_string_equal(b.data, rows[i].want);
        buf_release(&b);
    }
}

static void bytes_and_counts_for_people(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        const char *bytes, *count;
    } rows[] = {{0, "0 B", "0"},
                {999, "999 B", "999"},
                {1000, "1000 B", "1,000"},
                {1023, "1023 B", "1,023"},
                {1024, "1.00 KiB", "1,024"},
                {1610612736, "1.50 GiB", "1,610,612,736"},
                {1048575, "1.00 MiB", "1,048,575"},
                {1234567, "1.18 MiB", "1,234,567"},
                {UINT64_MAX, "16.0 EiB", "18,446,744,073,709,551,615"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf b = BUF_INIT;
        fmt_bytes(&b, rows[i].n);
        assert_string_equal(b.data, rows[i].bytes);
        buf_clear(&b);
        fmt_count(&b, rows[i].n);
        assert_string_equal(b.data, rows[i].count);
        buf_release(&b);
    }
}

static void things_are_counted(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        const char *text;
    } rows[] = {{0, "0 processes"}, {1, "1 process"}, {2, "2 processes"}, {1000, "1,000 processes"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf b = BUF_INIT;
        fmt_counted(&b, rows[i].n, "process", "processes");
        assert_string_equal(b.data, rows[i].text);
        buf_release(&b);
    }
}

static void no_memory_is_told_at_the_end(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK; n++) {
        struct buf b = BUF_INIT;
        mem_fail_after(n);
        for (int i = 0; i < 40; i++) {
            fmt_duration(&b, 1.5e6);
            fmt_bytes(&b, 4096);
            fmt_count(&b, 1000000);
            str_add_utf8(&b, "a\xFF", 2);
        }
        s = buf_status(&b, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        buf_release(&b);
        assert_int_equal(mem_live_blocks(), start);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_told_from_other_bytes),
        cmocka_unit_test(bad_bytes_are_replaced),
        cmocka_unit_test(sanitised_text_is_always_valid),
        cmocka_unit_test(durations_for_people),
        cmocka_unit_test(bytes_and_counts_for_people),
        cmocka_unit_test(things_are_counted),
        cmocka_unit_test(no_memory_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
