/* SPDX-License-Identifier: MIT
 * test_unit.c - quantities as people write them: whole bytes and times of options, and real numbers with a unit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/unit.h"

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double want;
    } good[] = {{"0", 0},
                {"1", 1},
                {"512B", 512},
                {"64M", 64 * 1048576.0},
                {"64m", 64 * 1048576.0},
                {"1GiB", 1073741824.0},
                {"4GB", 4e9},
                {"1.5K", 1536},
                {"0.1KB", 100},
                {"4kB", 4000},
                {"2TiB", 2199023255552.0}};
    static const char *const bad[] = {"",     " 1",   "1 ",  "1 M", "-1",    "+1",     "M",    "1.",
                                      "1..5", "0x10", "1MM", "1K5", "1.5.5", "1Mib/s", "1,5M", "\xD9\xA1"};
    double out;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(unit_parse(UNIT_BYTES, good[i].text, &out));
        assert_true(out == good[i].want);
    }
    out = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_true(!unit_parse(UNIT_BYTES, bad[i], &out) && out == 77);
}

static void times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want;
    } good[] = {{"0", 0},
                {"10s", INT64_C(10000000000)},
                {"1.5ms", 1500000},
                {"250us", 250000},
                {"250\xC2\xB5s", 250000},
                {"7ns", 7},
                {"0.6ns", 1},
                {"2m", INT64_C(120000000000)},
                {"1h", INT64_C(3600000000000)},
                {"1d", INT64_C(86400000000000)},
                {"1min", INT64_C(60000000000)},
                {"1m30s", INT64_C(90000000000)},
                {"106751d23h", INT64_C(9223369200000000000)},
                {"9223372036854775807ns", INT64_MAX}};
    static const char *const bad[] = {"",
                                      "10",
                                      "s",
                                      "10S",
                                      "10 s",
                                      "1s ",
                                      "1sec",
                                      "s1",
                                      "1m30",
                                      "-1s",
                                      "1,5s",
                                      "106752d",
                                      "1.s",
                                      "infs",
                                      "nan",
                                      "1s-1s",
                                      "9223372036854775808ns",
                                      "9223372036854775807ns1ns"};
    tare_error err = TARE_ERROR_INIT;
    struct duration out;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(unit_parse_duration(good[i].text, &out, &err), TARE_OK);
        assert_true(out.ns == good[i].want);
    }
    out.ns = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(unit_parse_duration(bad[i], &out, &err), TARE_INVALID);
        assert_true(out.ns == 77);
    }
    unit_parse_duration("10", &out, &err);
    assert_string_equal(err.text, "'10' has no unit; write 10s or 10ms");
    unit_parse_duration("106752d", &out, &err);
    assert_string_equal(err.text, "'106752d' is too large for a time");
    unit_parse_duration("1sec", &out, &err);
    assert_non_null(strstr(err.text, "is not a time: expected numbers with a unit"));
}

/* strptime() takes days that no month has, and timegm() makes others of them. */
static void dates_are_of_the_calendar(void **state)
{
    int64_t s = 0;
    (void)state;
    assert_string_equal(unit_date("2026-02-28", "%Y-%m-%d", &s), "");
    assert_int_equal(s, 1772236800);
    assert_string_equal(unit_date("2024-02-29T00:00:01Z", "%Y-%m-%dT%H:%M:%S", &s), "Z");
    assert_int_equal(s, 1709164801);
    assert_null(unit_date("2026-02-29", "%Y-%m-%d", &s));
    assert_null(unit_date("2026-02-31", "%Y-%m-%d", &s));
    assert_null(unit_date("2026-04-31T10:00:00", "%Y-%m-%dT%H:%M:%S", &s));
    assert_null(unit_date("2026-13-01", "%Y-%m-%d", &s));
    assert_null(unit_date("soon", "%Y-%m-%d", &s));
}

static void real_numbers_with_a_unit(void **state)
{
    (void)state;
    static const struct {
        enum unit_kind kind;
        const char *word;
        double want; /* NAN: refused */
    } rows[] = {
        {UNIT_TIME, "100ms", 1e8},       {UNIT_TIME, "1.5sec", 1.5e9},  {UNIT_TIME, "2min", 12e10},
        {UNIT_TIME, "2m", NAN},          {UNIT_TIME, "1h", NAN},        {UNIT_TIME, "5", NAN},
        {UNIT_TIME, "1m30s", NAN},       {UNIT_BYTES, "512", 512},      {UNIT_BYTES, "4gb", 4e9},
        {UNIT_BYTES, "4GB/s", NAN},      {UNIT_MEMORY, "4", NAN},       {UNIT_MEMORY, "1KiB", 1024},
        {UNIT_BYTE_RATE, "1MB/s", 1e6},  {UNIT_BYTE_RATE, "1MB", 1e6},  {UNIT_BYTE_RATE, "7/s", 7},
        {UNIT_RATE, "90texts/min", 1.5}, {UNIT_RATE, "12", 12},         {UNIT_RATE, "5te xts/s", NAN},
        {UNIT_RATE, "7200/h", 2},        {UNIT_RATE, "5ms", NAN},       {UNIT_FREQUENCY, "200/s", 200},
        {UNIT_FREQUENCY, "5/min", NAN},  {UNIT_FREQUENCY, "5x/s", NAN}, {UNIT_SHARE, "69%", 0.69},
        {UNIT_SHARE, "0.69", 0.69},      {UNIT_SHARE, ".5", 0.5},       {UNIT_PERCENT, "20%", 0.2},
        {UNIT_PERCENT, "20", NAN},       {UNIT_PERCENT, "-1%", NAN},    {UNIT_WATT, "250W", 250},
        {UNIT_CELSIUS, "85C", 85},       {UNIT_CELSIUS, "85K", NAN},    {UNIT_HERTZ, "1.2GHz", 1.2e9},
        {UNIT_HERTZ, "1e3", 1000},       {UNIT_HERTZ, "0x10", NAN},     {UNIT_SHARE, "inf", NAN},
        {UNIT_SHARE, "1e999", NAN},      {UNIT_SHARE, "", NAN},         {UNIT_SHARE, ".", NAN},
        {UNIT_SHARE, "5.", NAN},         {UNIT_BYTES, "1e308TB", NAN},  {UNIT_SHARE, " 5", NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double out = -7;
        bool good = unit_parse(rows[i].kind, rows[i].word, &out);
        if (good != !isnan(rows[i].want)) fail_msg("%s: %s", rows[i].word, good ? "accepted" : "refused");
        double want = good ? rows[i].want : -7; /* what is refused leaves it alone */
        if (fabs(out - want) > 1e-12 * fabs(want)) fail_msg("%s: %.17g", rows[i].word, out);
    }
}

static void a_number_says_what_is_wrong_and_where_it_ends(void **state)
{
    (void)state;
    const char *at = "12.5e1 ms";
    double v = 0;
    assert_null(unit_number(&at, &v));
    assert_true(v == 125);
    assert_string_equal(at, " ms");
    static const char *const bad[][2] = {
        {"ms", "a number was expected"},
        {"5.ms", "digits are missing after the point"},
        {"1e999", "the number is too large"},
        {"11111111111111111111111111111111111111111111111111111111111111111", "the number has too many digits"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        at = bad[i][0];
        assert_string_equal(unit_number(&at, &v), bad[i][1]);
        assert_ptr_equal(at, bad[i][0]);
        assert_true(v == 125);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(times),
        cmocka_unit_test(dates_are_of_the_calendar),
        cmocka_unit_test(real_numbers_with_a_unit),
        cmocka_unit_test(a_number_says_what_is_wrong_and_where_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
