/* SPDX-License-Identifier: MIT
 * test_operations.c - the operator's file and requests against it: what is read, what is refused and where, and that
 * every allocation may fail. The confinement itself is tested from outside: tests/python/test_serve_jobs.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/file.h"
#include "core/mem.h"
#include "server/jobs/operations.h"

#define HEAD "{\"schema\": \"tare.operations/1\", \"operations\": "
static const char typed[] = HEAD
    "{\"a\": {\"argv\": [\"/bin/ls\", \"--n={n}\", \"{x.y}\", \"{r}\", \"{'k': 1}\"], \"parameters\": {"
    "\"n\": {\"type\": \"int\", \"min\": -5, \"max\": 5, \"default\": 2},"
    "\"x.y\": {\"type\": \"number\", \"min\": 0, \"max\": 1},"
    "\"r\": {\"type\": \"run\"}, \"t\": {\"type\": \"texts\", \"max\": 2, \"bytes\": 3, \"optional\": true}},"
    "\"timeout_s\": 7, \"reads\": [\"/srv\"]}}, \"limits\": {\"queue\": 3}}";

static tare_status read_text(struct operations *o, const char *text, tare_error *err)
{
    return operations_read(o, "ops.json", text, strlen(text), err);
}

static void a_file_is_read(void **state)
{
    struct operations o = OPERATIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(read_text(&o, typed, &err), TARE_OK);
    const struct operation *a = operations_find(&o, "a");
    assert_non_null(a);
    assert_null(operations_find(&o, "b"));
    assert_int_equal(a->limits.timeout_s, 7);
    assert_int_equal(a->limits.cpu_s, 28);
    assert_int_equal(a->limits.memory_mb, 8192);
    assert_int_equal(o.queue, 3);
    assert_int_equal(o.at_once, 1);
    assert_false(a->network || a->perf);
    operations_release(&o);
    (void)state;
}

static void what_is_wrong_has_its_line(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {HEAD "{\"a\": {\"argv\": [\"/x\"],\n \"memory\": 4}}}", "ops.json: line 2, byte "},
        {HEAD "{\"a\": {\"argv\": [\"/x\"], \"memory\": 4}}}", "did you mean \"memory_mb\"?"},
        {HEAD "{\"a\": {\"argv\": [\"/x\"], \"timeout_s\": 90000}}}", "from 1 to 86400"},
        {HEAD "{\"a\": {\"argv\": [\"/x\"], \"timeout_s\": 1, \"timeout_s\": 2}}}", "there twice"},
        {HEAD "{\"a b\": {\"argv\": [\"/x\"]}}}", "an operation's name"},
        {HEAD
         "{\"a\": {\"argv\": [\"/x\"], \"parameters\": {\"p\": {\"type\": \"bool\"}, \"p.q\": {\"type\": \"bool\"}}}}}",
         "within another"},
        {HEAD
         "{\"a\": {\"argv\": [\"/x\"], \"parameters\": {\"p\": {\"type\": \"enum\", \"values\": [\"v\"], "
         "\"default\": \"w\"}}}}}",
         "the default of p: is none of what"},
        {HEAD "{}} x", "line 1, byte "},
        {"{\"operations\": {}}", "\"schema\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct operations o = OPERATIONS_INIT;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(read_text(&o, rows[i].text, &err), TARE_INVALID);
        if (!strstr(err.text, rows[i].why)) fail_msg("%s: %s", rows[i].text, err.text);
        operations_release(&o);
    }
    (void)state;
}

static void a_request_is_checked(void **state)
{
    static const char good[] = "{\"x\": {\"y\": 0.5}, \"r\": \"01KA3QZ4M6S1V7W8X9Y0Z1A2B3\"}";
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"{\"x\": {\"y\": 2}, \"r\": \"01KA3QZ4M6S1V7W8X9Y0Z1A2B3\"}", "x.y: a number from 0 to 1"},
        {"{\"x\": {\"y\": 1}}", "r: is missing"},
        {"{\"x\": {\"y\": 1, \"z\": 1}}", "x.z: operation a has no such parameter"},
        {"{\"x\": 1}", "x: an object"},
        {"{\"n\": 6, \"x\": {\"y\": 1}, \"r\": \"01KA3QZ4M6S1V7W8X9Y0Z1A2B3\"}",
         "n: a whole number from -5 to 5"},
        {"{\"x\": {\"y\": 1}, \"r\": \"../../etc/passwd\"}", "r: the id of a run"},
        {"{\"t\": [\"1234\"], \"x\": {\"y\": 1}, \"r\": \"01KA3QZ4M6S1V7W8X9Y0Z1A2B3\"}", "t: item 0"},
        {"[]", "no object"},
        {"{\"x\"", "no JSON"},
        {"{\"n\": 1, \"n\": 2}", "no JSON"},
    };
    struct operations o = OPERATIONS_INIT;
    struct call c = CALL_INIT;
    assert_int_equal(read_text(&o, typed, NULL), TARE_OK);
    assert_int_equal(call_make(&c, o.at, good, strlen(good), NULL), TARE_OK);
    assert_string_equal(c.argv[1], "--n=2");
    assert_string_equal(c.argv[2], "0.5");
    assert_string_equal(c.argv[3], "01KA3QZ4M6S1V7W8X9Y0Z1A2B3.json");
    assert_string_equal(c.argv[4], "{'k': 1}");
    assert_null(c.argv[5]);
    assert_int_equal(c.runs.n, 1);
    assert_string_equal(c.input.data, "{\"n\":2,\"r\":\"01KA3QZ4M6S1V7W8X9Y0Z1A2B3\",\"x\":{\"y\":0.5}}");
    call_release(&c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(call_make(&c, o.at, rows[i].text, strlen(rows[i].text), &err), TARE_INVALID);
        if (!strstr(err.text, rows[i].why)) fail_msg("%s: %s", rows[i].text, err.text);
        call_release(&c);
    }
    operations_release(&o);
    (void)state;
}

/* Wherever memory ends, nothing is lost and nothing half-read is used. */
static void every_allocation_may_fail(void **state)
{
    long before = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    for (long n = 0; s == TARE_NOMEM; n++) {
        struct operations o = OPERATIONS_INIT;
        struct call c = CALL_INIT;
        assert_true(n < 10000);
        mem_fail_after(n);
        s = read_text(&o, typed, NULL);
        static const char good[] = "{\"x\": {\"y\": 0.5}, \"r\": \"01KA3QZ4M6S1V7W8X9Y0Z1A2B3\"}";
        if (s == TARE_OK) s = call_make(&c, o.at, good, strlen(good), NULL);
        mem_fail_after(-1);
        call_release(&c);
        operations_release(&o);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_int_equal(s, TARE_OK);
    (void)state;
}

static void the_example_is_good(void **state)
{
    const char *root = getenv("TARE_SRC");
    char path[4096];
    struct file_view page = FILE_VIEW_INIT;
    struct operations o = OPERATIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    snprintf(path, sizeof path, "%s/docs/operations.example.json", root ? root : ".");
    assert_int_equal(file_map(path, &page, NULL), TARE_OK);
    if (operations_read(&o, path, page.data, page.size, &err) != TARE_OK) fail_msg("%s", err.text);
    assert_int_equal(o.n, 5);
    operations_release(&o);
    file_unmap(&page);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read),           cmocka_unit_test(what_is_wrong_has_its_line),
        cmocka_unit_test(a_request_is_checked),     cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(the_example_is_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
