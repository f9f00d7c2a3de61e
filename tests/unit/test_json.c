/* SPDX-License-Identifier: MIT
 * test_json.c - what core/json.c writes is read back with jansson, a parser that is not ours. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/json.h"
#include "core/mem.h"

static void write_sample(struct json *j)
{
    json_object_begin(j);
    json_kv_string(j, "s", "a\"b\\c\n\x01");
    json_kv_int(j, "i", INT64_MIN);
    json_kv_uint(j, "u", 7);
    json_kv_double(j, "d", 0.1);
    json_kv_bool(j, "t", true);
    json_kv_null(j, "n");
    json_key(j, "list");
    json_array_begin(j);
    json_put_int(j, 1);
    json_object_begin(j);
    json_object_end(j);
    json_array_begin_flat(j);
    json_put_int(j, 2);
    json_array_begin(j);
    json_put_bool(j, false);
    json_array_end(j);
    json_array_end(j);
    json_array_end(j);
    json_object_end(j);
}

static void test_shape(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct json j;
    json_init(&j, &b, JSON_STYLE_COMPACT);
    write_sample(&j);
    assert_int_equal(json_finish(&j, NULL), TARE_OK);
    assert_string_equal(b.data, "{\"s\":\"a\\\"b\\\\c\\n\\u0001\",\"i\":-9223372036854775808,\"u\":7,"
                                "\"d\":0.1,\"t\":true,\"n\":null,\"list\":[1,{},[2,[false]]]}");
    buf_clear(&b);
    json_init(&j, &b, JSON_STYLE_PRETTY);
    write_sample(&j);
    assert_int_equal(json_finish(&j, NULL), TARE_OK);
    assert_string_equal(b.data, "{\n  \"s\": \"a\\\"b\\\\c\\n\\u0001\",\n  \"i\": -9223372036854775808,\n"
                                "  \"u\": 7,\n  \"d\": 0.1,\n  \"t\": true,\n  \"n\": null,\n  \"list\": [\n"
                                "    1,\n    {},\n    [2, [false]]\n  ]\n}\n");
    json_t *root = json_loads(b.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "s")), "a\"b\\c\n\x01");
    assert_true(json_integer_value(json_object_get(root, "i")) == INT64_MIN);
    assert_int_equal(json_array_size(json_object_get(root, "list")), 3);
    json_decref(root);
    buf_release(&b);
}

static void check_string(const char *bytes, size_t n, const char *want)
{
    struct buf b = BUF_INIT;
    struct json j;
    json_init(&j, &b, JSON_STYLE_COMPACT);
    json_put_string_n(&j, bytes, n);
    assert_int_equal(json_finish(&j, NULL), TARE_OK);
    json_t *v = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(v);
    assert_string_equal(json_string_value(v), want);
    json_decref(v);
    buf_release(&b);
}

#define BAD "\xEF\xBF\xBD"

static void test_utf8(void **state)
{
    (void)state;
    check_string("", 0, "");
    check_string("gr\xC3\xBC\xC3\x9F", 6, "gr\xC3\xBC\xC3\x9F");
    check_string("\xF0\x9F\x98\x80", 4, "\xF0\x9F\x98\x80");
    check_string("a\x80z", 3, "a" BAD "z");               /* stray continuation */
    check_string("\xC0\xAF", 2, BAD BAD);                 /* overlong */
    check_string("\xE0\x80\x80", 3, BAD BAD BAD);         /* overlong */
    check_string("\xED\xA0\x80", 3, BAD BAD BAD);         /* surrogate */
    check_string("\xF4\x90\x80\x80", 4, BAD BAD BAD BAD); /* above U+10FFFF */
    check_string("\xE2\x82", 2, BAD);                     /* cut short */
    check_string("\xE2\x82x", 3, BAD "x");                /* broken off */
    check_string("\xFF\xFE", 2, BAD BAD);
    check_string("\x7F", 1, "\x7F");
}

static void test_every_string_is_valid(void **state)
{
    (void)state;
    uint32_t seed = 12345;
    for (int round = 0; round < 20000; round++) {
        char bytes[24];
        size_t n = 0;
        for (; n < sizeof bytes; n++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[n] = (char)(seed >> 24);
        }
        struct buf b = BUF_INIT;
        struct json j;
        json_init(&j, &b, JSON_STYLE_COMPACT);
        json_put_string_n(&j, bytes, n);
        assert_int_equal(json_finish(&j, NULL), TARE_OK);
        json_t *v = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(v);
        json_decref(v);
        buf_release(&b);
    }
}

static const char *number_text(struct buf *b, double v)
{
    struct json j;
    buf_clear(b);
    json_init(&j, b, JSON_STYLE_COMPACT);
    json_put_double(&j, v);
    assert_int_equal(json_finish(&j, NULL), TARE_OK);
    return b->data;
}

static void test_doubles(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } rows[] = {{0, "0"},
                {-0.0, "-0.0"},
                {1, "1"},
                {0.1, "0.1"},
                {-2.5, "-2.5"},
                {1e20, "1e+20"},
                {1.0 / 3, "0.3333333333333333"},
                {5e-324, "5e-324"},
                {DBL_MAX, "1.7976931348623157e+308"},
                {0.1 + 0.2, "0.30000000000000004"},
                {NAN, "null"},
                {INFINITY, "null"},
                {-INFINITY, "null"}};
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(number_text(&b, rows[i].v), rows[i].text);
    }
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        double v;
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        json_t *read = json_loads(number_text(&b, v), JSON_DECODE_ANY, NULL);
        assert_true(read && json_number_value(read) == v);
        json_decref(read);
    }
    buf_release(&b);
}

static void test_locale(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8")) skip();
    assert_string_equal(number_text(&b, 2.5), "2.5");
    setlocale(LC_NUMERIC, "C");
    buf_release(&b);
}

static void test_integers(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct json j;
    json_init(&j, &b, JSON_STYLE_COMPACT);
    json_array_begin(&j);
    json_put_int(&j, INT64_MAX);
    json_put_int(&j, -1);
    json_put_uint(&j, UINT64_MAX);
    json_put_string(&j, NULL);
    json_array_end(&j);
    assert_int_equal(json_finish(&j, NULL), TARE_OK);
    assert_string_equal(b.data, "[9223372036854775807,-1,18446744073709551615,null]");
    buf_release(&b);
}

static void test_no_memory(void **state)
{
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct buf b = BUF_INIT;
        struct json j;
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        json_init(&j, &b, JSON_STYLE_PRETTY);
        write_sample(&j);
        tare_status s = json_finish(&j, &err);
        mem_fail_after(-1);
        buf_release(&b);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 100);
    }
}

/* --json on a terminal: C1, DEL, marks of direction, separators, tags are escaped; a reader gets them back. */
static void test_controls_above_ascii(void **state)
{
    (void)state;
    static const char text[] = "\177\xc2\x9b\u200f\u2028\u202e\u2066\ufeff\U000e0041\u00e4\U0001f600";
    static const char escaped[] = "\"\\u007f\\u009b\\u200f\\u2028\\u202e\\u2066\\ufeff"
                                  "\\udb40\\udc41\u00e4\U0001f600\"";
    struct buf b = BUF_INIT;
    struct json j;
    json_init(&j, &b, JSON_STYLE_COMPACT);
    json_put_string(&j, text);
    assert_int_equal(json_finish(&j, NULL), TARE_OK);
    assert_string_equal(b.data, escaped);
    json_t *back = json_loads(b.data, JSON_DECODE_ANY, NULL);
    assert_non_null(back);
    assert_string_equal(json_string_value(back), text);
    json_decref(back);
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),     cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_doubles),   cmocka_unit_test(test_every_string_is_valid),
        cmocka_unit_test(test_locale),    cmocka_unit_test(test_integers),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_controls_above_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
