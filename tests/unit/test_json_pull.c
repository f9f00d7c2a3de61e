/* SPDX-License-Identifier: MIT
 * test_json_pull.c - JSON from a stream: the same tokens however the stream is cut, bounded texts, places of errors,
 * numbers to the last digit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/json_pull.h"
#include "core/mem.h"

struct pieces {
    const char *text;
    size_t left, piece;
};

static tare_status give(void *ctx, void *bytes, size_t room, size_t *n, tare_error *err)
{
    struct pieces *p = ctx;
    (void)err;
    *n = p->left < p->piece ? p->left : p->piece;
    if (*n > room) *n = room;
    memcpy(bytes, p->text, *n);
    p->text += *n;
    p->left -= *n;
    return TARE_OK;
}

/* All tokens as one text: { } [ ] for levels, k: keys, s: strings, n: numbers. */
static tare_status tokens(const char *text, size_t n, size_t piece, struct buf *out, tare_error *err)
{
    struct pieces from = {text, n, piece};
    struct json_pull p;
    enum pull_token t = PULL_NULL;
    tare_status s = json_pull_init(&p, (struct json_source){"doc", give, &from}, 20, err);
    while (s == TARE_OK && (s = json_pull_next(&p, &t, err)) == TARE_OK && t != PULL_DONE) {
        static const char letters[] = {
            [PULL_OBJECT] = '{', [PULL_OBJECT_END] = '}', [PULL_ARRAY] = '[',  [PULL_ARRAY_END] = ']',
            [PULL_KEY] = 'k',    [PULL_STRING] = 's',     [PULL_NUMBER] = 'n', [PULL_TRUE] = 't',
            [PULL_FALSE] = 'f',  [PULL_NULL] = '0'};
        buf_add_char(out, letters[t]);
        if (t == PULL_KEY || t == PULL_STRING || t == PULL_NUMBER) buf_printf(out, "<%s>", p.text.data);
        if (p.cut && t == PULL_STRING) buf_add_char(out, '~');
    }
    json_pull_release(&p);
    return s;
}

static void same_however_it_is_cut(void **state)
{
    static const char text[] =
        "{\"a\": [1, -2.5e+3, true,false , null, NaN, -Infinity], \"b\\n\\u00e9\\ud83d\\ude00\": "
        "\"123456789012345678901\", \"c\": {}, \"d\": [], \"e\": \"\\ud800x\\udc00\"}";
    static const char want[] =
        "{k<a>[n<1>n<-2.5e+3>tf000]k<b\n\xc3\xa9\xf0\x9f\x98\x80>s<12345678901234567890>~k<c>{}k<d>[]"
        "k<e>s<\xef\xbf\xbdx\xef\xbf\xbd>}";
    (void)state;
    for (size_t piece = 1; piece < 70; piece++) {
        struct buf out = BUF_INIT;
        tare_error err = TARE_ERROR_INIT;
        if (tokens(text, sizeof text - 1, piece, &out, &err) < 0) fail_msg("%s", err.text);
        assert_string_equal(out.data, want);
        buf_release(&out);
    }
}

static void what_is_no_json_is_told_with_its_place(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "doc: line 1, byte 0: the file ends here, where a value should be: it was cut off"},
        {"{\"a\": 1", "doc: line 1, byte 7: the file ends here, where ',' or '}' should be: it was cut off"},
        {"[1,\n 2,\n x]", "doc: line 3, byte 10: 'x' is no value"},
        {"[1 2]", "doc: line 1, byte 3: expected ',' or ']', found '2'"},
        {"{1: 2}", "doc: line 1, byte 1: expected a key in quotes, found '1'"},
        {"{\"a\" 1}", "doc: line 1, byte 5: expected ':', found '1'"},
        {"{\"a\": 1,}", "doc: line 1, byte 8: expected a key in quotes, found '}'"},
        {"[1,]", "doc: line 1, byte 3: expected a value, found ']'"},
        {"[01]", "doc: line 1, byte 3: '01' is no value"},
        {"[1.]", "doc: line 1, byte 3: '1.' is no value"},
        {"[1e]", "doc: line 1, byte 3: '1e' is no value"},
        {"[-]", "doc: line 1, byte 2: '-' is no value"},
        {"\"\\x\"", "doc: line 1, byte 2: expected an escape such as \\n, found 'x'"},
        {"\"\\u12g4\"", "doc: line 1, byte 5: expected four hexadecimal digits, found 'g'"},
        {"[1] 2", "doc: line 1, byte 4: something follows the end of the document"},
        {"[\x01]", "doc: line 1, byte 1: expected a value, found byte 0x01"},
        {"}", "doc: line 1, byte 0: expected a value, found '}'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = BUF_INIT;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(tokens(cases[i].text, strlen(cases[i].text), 3, &out, &err), TARE_FORMAT);
        assert_string_equal(err.text, cases[i].why);
        buf_release(&out);
    }
}

static void depth_is_bounded(void **state)
{
    char text[2 * JSON_PULL_DEPTH + 2];
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct buf out = BUF_INIT;
        tare_error err = TARE_ERROR_INIT;
        size_t n = (size_t)JSON_PULL_DEPTH + (size_t)more;
        memset(text, '[', n);
        memset(text + n, ']', n);
        assert_int_equal(tokens(text, 2 * n, 100, &out, &err), more ? TARE_FORMAT : TARE_OK);
        if (more) assert_non_null(strstr(err.text, "nested more than 256 deep"));
        buf_release(&out);
    }
}

static void bytes_that_are_no_text(void **state)
{
    static const char text[] = "\"a\0b\x01\xff\"";
    struct buf out = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(tokens(text, sizeof text - 1, 2, &out, &err), TARE_OK);
    assert_string_equal(out.data, "s<a\xef\xbf\xbd"
                                  "b\x01\xef\xbf\xbd>");
    buf_release(&out);
}

static void values_are_passed_over(void **state)
{
    static const char text[] = "{\"a\": {\"b\": [1, {\"c\": \"d\"}]}, \"e\": 2}";
    struct pieces from = {text, sizeof text - 1, 5};
    struct json_pull p;
    enum pull_token t;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(json_pull_init(&p, (struct json_source){"doc", give, &from}, 100, &err), TARE_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(json_pull_next(&p, &t, &err), TARE_OK);
    assert_int_equal(t, PULL_OBJECT);
    assert_int_equal(json_pull_skip(&p, t, &err), TARE_OK);
    assert_int_equal(json_pull_next(&p, &t, &err), TARE_OK);
    assert_int_equal(t, PULL_KEY);
    assert_string_equal(p.text.data, "e");
    json_pull_release(&p);
}

static void numbers_to_the_last_digit(void **state)
{
    static const struct {
        const char *text;
        unsigned decimals;
        int64_t want;
        bool ok;
    } cases[] = {
        {"3956152332463.327", 3, 3956152332463327, true},
        {"-1.5", 3, -1500, true},
        {"7", 0, 7, true},
        {"1.9999", 3, 1999, true},
        {"1e3", 3, 1000000, true},
        {"25E-1", 3, 2500, true},
        {"1e-9", 3, 0, true},
        {"9223372036854775807", 0, INT64_MAX, true},
        {"9223372036854775808", 0, 0, false},
        {"9223372036854775807", 3, 0, false},
        {"1e300", 0, 0, false},
        {"0e99999999999", 0, 0, true},
        {"0.12345678901234567890123", 3, 123, true},
        {"", 0, 0, false},
        {"x", 0, 0, false},
        {"1x", 0, 0, false},
        {".", 0, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t v = 0;
        assert_int_equal(json_pull_scaled(cases[i].text, cases[i].decimals, &v), cases[i].ok);
        if (cases[i].ok) assert_int_equal(v, cases[i].want);
    }
}

static void memory_may_run_out(void **state)
{
    static const char text[] = "{\"a\": \"a text that needs memory\", \"b\": [1, \"\xff\"]}";
    (void)state;
    for (long n = 0;; n++) {
        struct buf out = BUF_INIT;
        tare_error err = TARE_ERROR_INIT;
        long before = mem_live_blocks();
        mem_fail_after(n);
        tare_status s = tokens(text, sizeof text - 1, 7, &out, &err);
        mem_fail_after(-1);
        bool all = s == TARE_OK && !out.failed;
        buf_release(&out);
        assert_int_equal(mem_live_blocks(), before);
        if (all) break;
        if (s < 0) assert_int_equal(s, TARE_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_however_it_is_cut),   cmocka_unit_test(what_is_no_json_is_told_with_its_place),
        cmocka_unit_test(depth_is_bounded),         cmocka_unit_test(bytes_that_are_no_text),
        cmocka_unit_test(values_are_passed_over),   cmocka_unit_test(numbers_to_the_last_digit),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
