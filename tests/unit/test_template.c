/* SPDX-License-Identifier: MIT
 * test_template.c - requests as filled in, the same for the same number; what is refused, and where it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "load/template.h"

static tare_status make(struct template **t, const char *text, tare_error *err)
{
    struct buf b = {(char *)(uintptr_t)text, strlen(text), 0, 0};
    return template_new(t, "body.json", b, err);
}

/* What request `id` is; mem_free it. */
static char *filled(const char *text, uint64_t id, const char *line)
{
    struct template *t = NULL;
    struct buf out = BUF_INIT;
    struct template_facts f = {
        .id = id, .seed = 7, .line = line, .n_line = line ? strlen(line) : 0, .line_number = 3};
    tare_error err = TARE_ERROR_INIT;
    if (make(&t, text, &err) < 0 || template_fill(t, &f, &out, &err) < 0) {
        buf_clear(&out);
        buf_printf(&out, "error: %s", err.text);
    }
    template_free(t);
    return buf_take(&out);
}

static void is(const char *text, const char *line, const char *want)
{
    char *got = filled(text, 17, line);
    if (strcmp(got, want) != 0) fail_msg("%s: %s", text, got);
    mem_free(got);
}

static void places(void **state)
{
    is("plain", NULL, "plain");
    is("", NULL, "");
    is("{\"id\": {{id}}}", NULL, "{\"id\": 17}");
    is("{\"a\": {\"b\": {}}}", NULL, "{\"a\": {\"b\": {}}}");
    is("{{{{id}}", NULL, "{{id}}");
    is("{{line}}", "{\"p\": 1}", "{\"p\": 1}");
    is("{\"x\": \"{{line:p}}\"}", "{\"p\": \"say \\\"hi\\\"\\n\\u00e4\"}",
       "{\"x\": \"say \\\"hi\\\"\\n\xc3\xa4\"}");
    is("[{{line:p}},{{line:q}}]", "{\"q\": null, \"p\": [1, 2.5, {\"a\": true}, \"s\"]}",
       "[[1,2.5,{\"a\":true},\"s\"],null]");
    is("{{random:5..5}}", NULL, "5");
    (void)state;
}

static void refused(void **state)
{
    static const char none[] = "there are {{id}}";
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"a\nb {{ident}}", "body.json: line 2, column 3: no such place; there are {{id}}"},
        {"\xc3\xa4{{", "body.json: line 1, column 2: {{ without }}"},
        {"{{random:}}", none},
        {"{{random:x}}", "{{random:1..100}}"},
        {"{{random:9..1}}", "the first number must not be above"},
        {"{{random:1..2x}}", "{{random:1..100}}"},
        {"{{random:hex:0}}", "from 1 to 1048576"},
        {"{{random:words:9999999999}}", "from 1 to 1048576"},
        {"{{line:}}", none},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct template *t = NULL;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(make(&t, bad[i].text, &err), TARE_INVALID);
        if (!strstr(err.text, bad[i].says)) fail_msg("%s: %s", bad[i].text, err.text);
    }
    is("{{line}}", NULL, "error: body.json speaks of {{line}}: give a file of inputs, a line per request");
    is("{{line:p}}", "{\"q\":1}", "error: line 3 of the inputs has no 'p' for {{line:p}}");
    is("{{line:p}}", "what", "error: line 3 of the inputs is no JSON object, which {{line:p}} needs");
    is("{{line:p}}", "[1]", "error: line 3 of the inputs is no JSON object, which {{line:p}} needs");
    struct template *t = NULL;
    assert_int_equal(template_new(&t, "b", (struct buf){(char *)(uintptr_t) "a\0b", 3, 0, 0}, NULL),
                     TARE_INVALID);
    (void)state;
}

static void random_by_number(void **state)
{
    static const char text[] = "{{random:1..1000000}} {{random:hex:16}} {{random:words:3}}";
    char *a = filled(text, 1, NULL), *again = filled(text, 1, NULL), *other = filled(text, 2, NULL);
    assert_string_equal(a, again);
    assert_string_not_equal(a, other);
    unsigned seen[3] = {0};
    for (uint64_t i = 0; i < 300; i++) {
        char *s = filled("{{random:4..6}}", i, NULL);
        long v = strtol(s, NULL, 10);
        assert_true(v >= 4 && v <= 6);
        seen[v - 4]++;
        mem_free(s);
    }
    assert_true(seen[0] > 60 && seen[1] > 60 && seen[2] > 60);
    mem_free(a);
    mem_free(again);
    mem_free(other);
    (void)state;
}

static void what_it_needs(void **state)
{
    static const struct {
        const char *text;
        bool lines, fixed;
    } cases[] = {
        {"x", false, true}, {"{{{{", false, true}, {"{{id}}", false, false}, {"{{line:a}}", true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct template *t = NULL;
        assert_int_equal(make(&t, cases[i].text, NULL), TARE_OK);
        assert_int_equal(template_needs_lines(t), cases[i].lines);
        assert_int_equal(template_is_fixed(t), cases[i].fixed);
        template_free(t);
    }
    (void)state;
}

static void without_memory(void **state)
{
    for (long n = 0;; n++) {
        struct template *t = NULL;
        struct buf out = BUF_INIT;
        struct template_facts f = {.line = "{\"p\":[1,\"x\"]}", .n_line = 13, .line_number = 1};
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        tare_status s = make(&t, "{{id}} and {{line:p}}", &err);
        if (s == TARE_OK) s = template_fill(t, &f, &out, &err);
        mem_fail_after(-1);
        template_free(t);
        if (s == TARE_OK) assert_string_equal(out.data, "0 and [1,\"x\"]");
        buf_release(&out);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 100);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),         cmocka_unit_test(refused),        cmocka_unit_test(random_by_number),
        cmocka_unit_test(what_it_needs), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
