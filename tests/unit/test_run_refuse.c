/* SPDX-License-Identifier: MIT
 * test_run_refuse.c - run documents that are wrong: each is refused with its place and its cause. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/mem.h"
#include "run/run.h"
#include "run_documents.h"

/* The full document with `path` (dots and [n]) replaced by JSON text `value`, or removed when NULL. */
static char *changed(const char *path, const char *value)
{
    struct run r;
    struct buf b = BUF_INIT;
    make(&r, fill_full);
    text_of(&r, &b);
    json_t *root = json_loadb(b.data, b.len, 0, NULL), *at = root;
    char copy[200], *save = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    char *step = strtok_r(copy, ".[]", &save), *next;
    for (; (next = strtok_r(NULL, ".[]", &save)); step = next) {
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(step)) : json_object_get(at, step);
    }
    json_t *v = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_array(at)) {
        json_array_set_new(at, (size_t)atoi(step), v);
    } else if (v) {
        json_object_set_new(at, step, v);
    } else {
        json_object_del(at, step);
    }
    char *text = json_dumps(root, 0);
    json_decref(root);
    run_release(&r);
    buf_release(&b);
    return text;
}

static void test_read_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value, *want;
    } rows[] = {
        {"cases[0].latency_ns.p50.value", "\"1\"",
         "cases[0].latency_ns.p50.value: expected a number, got a string"},
        {"cases[0].latency_ns.p50.value", "-1", "cases[0].latency_ns.p50.value: must not be negative"},
        {"cases[0].latency_ns.p50.value", "1.5",
         "cases[0].latency_ns.p50.value: expected an integer, got a fraction"},
        {"cases[0].latency_ns.p50.value", "1e30", "cases[0].latency_ns.p50.value: does not fit 64 bits"},
        {"cases[0].latency_ns.p50.lo", "1001", "cases[0].latency_ns.p50: lo is above value"},
        {"cases[0].latency_ns.p50.new", "1", "cases[0].latency_ns.p50: unknown field \"new\""},
        {"cases[0].latency_ns.p50.value", NULL, "cases[0].latency_ns.p50.value: missing"},
        {"cases[0].latency_ns.histogram.counts[1]", "null",
         "cases[0].latency_ns.histogram.counts[1]: expected a number, got null"},
        {"cases[0].latency_ns.histogram.scale", "21",
         "cases[0].latency_ns.histogram: scale is not within -10 to 20"},
        {"cases[0].cpu.steal", "1.5", "cases[0].cpu.steal: a share must not be above 1"},
        {"cases[0].samples_raw.data", "\"@@@@\"", "cases[0].samples_raw.data: not base64"},
        {"cases[0].samples_raw.count", "6",
         "cases[0].samples_raw.data: more bytes than its count of 6 samples"},
        {"cases[0].samples_raw.count", "8", "cases[0].samples_raw: count is above cap"},
        {"cases[0].samples_raw.codec", "\"raw\"",
         "cases[0].samples_raw.codec: expected the codec delta-zigzag-varint+zstd+base64 or "
         "delta-zigzag-varint+base64, got \"raw\""},
        {"cases[0].unknown.gpu", "3", "cases[0].unknown.gpu: expected a string"},
        {"cases[3]", "7", "cases[3]: expected an object, got a number"},
        {"cases", "{}", "cases: expected an array, got an object"},
        {"cases", NULL, "cases: missing"},
        {"host", "null", "host: expected an object, got null"},
        {"host.virtual", "0", "host.virtual: expected a boolean, got a number"},
        {"id", "\"x\"", "id: expected a ULID: 26 characters of Crockford base 32, got \"x\""},
        {"created", "\"2026-13-15T02:17:21.123Z\"",
         "created: expected a time like 2026-11-15T02:17:21.123Z, got \"2026-13-15T02:17:21.123Z\""},
        {"trace", "\"../x\"", "trace: expected a file name without a folder, got \"../x\""},
        {"config", "[]", "config: expected an object, got an array"},
        {"config.deep", "[[[[[[[[[[[]]]]]]]]]]]", "config.deep[0][0][0][0][0][0][0][0]: nested too deeply"},
        {"schema", "\"tare.run/2\"", "schema tare.run/2 is newer than this tare reads (tare.run/1)"},
        {"schema", "\"tare.run/1x\"", "schema: expected tare.run/1, got \"tare.run/1x\""},
        {"schema", "4", "schema: expected a string"},
        {"schema", NULL, "schema: missing; not a run document"},
        {"targets[0].op", "\"~\"", "targets[0].op: expected <=, >=, <, > or ==, got \"~\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = changed(rows[i].path, rows[i].value), want[256];
        struct run r = {.id = "untouched"};
        tare_error err = TARE_ERROR_INIT;
        snprintf(want, sizeof want, "x.json: %s", rows[i].want);
        assert_int_equal(run_read(&r, "x.json", text, strlen(text), &err), TARE_FORMAT);
        assert_string_equal(err.text, want);
        assert_string_equal(r.id, "untouched");
        free(text);
    }
}

static void test_read_accepts(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value;
    } rows[] = {
        {"schema", "\"tare.run/1.7\""}, {"new", "{\"a\": [1]}"},   {"cases[0].new", "1"},
        {"host.new", "null"},           {"cases[0].gpu", "null"},  {"cases[0].gpu", NULL},
        {"cases[0].load_ns", "5.0"},    {"cases[0].layers", "[]"}, {"host.governor", "\"performance\""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = changed(rows[i].path, rows[i].value);
        struct run r;
        tare_error err = TARE_ERROR_INIT;
        if (run_read(&r, "x.json", text, strlen(text), &err) < 0) fail_msg("%s", err.text);
        if (i == 6) assert_int_equal(r.cases.at[0]->load_ns.v, 5);
        run_release(&r);
        free(text);
    }
}

static void check_text_refused(const char *text, size_t len, const char *part)
{
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_read(&r, "x.json", text, len, &err), TARE_FORMAT);
    assert_memory_equal(err.text, "x.json: ", 8);
    if (!strstr(err.text, part)) fail_msg("\"%s\" lacks \"%s\"", err.text, part);
}

static void test_bad_text(void **state)
{
    (void)state;
    check_text_refused("", 0, "the file is empty");
    check_text_refused("seven", 5, "looks like text");
    check_text_refused("[]", 2, "expected an object");
    check_text_refused("{\"a\":1,\"a\":2}", 13, "duplicate");
    check_text_refused("{\"a\":99999999999999999999}", 26, "too big");
    check_text_refused("{\"a\":1e999}", 11, "overflow");
    check_text_refused("{\"a\":NaN}", 9, "line 1");
    check_text_refused("{\"a\":\"\xff\"}", 9, "unable to decode byte 0xff");
    check_text_refused("{\"schema\":\"tare.run/1\"} x", 25, "end of file");
    struct buf deep = BUF_INIT;
    for (int i = 0; i < 100000; i++) buf_add_char(&deep, '[');
    check_text_refused(deep.data, deep.len, "maximum parsing depth");
    buf_release(&deep);
}

/* Every key is looked up among all others: 100,000 of them took minutes. */
static void test_many_keys(void **state)
{
    (void)state;
    struct buf keys = BUF_INIT, items = BUF_INIT;
    for (int i = 0; i < 100000; i++) {
        buf_printf(&keys, "%c\"k%d\":1", i ? ',' : '{', i);
        buf_printf(&items, "%c1", i ? ',' : '[');
    }
    buf_add_char(&keys, '}');
    buf_add_char(&items, ']');
    char *text = changed("cases[0].params", keys.data);
    check_text_refused(text, strlen(text), "cases[0].params: 100000 keys, at most 4096 are allowed");
    free(text);
    text = changed("config.many", items.data);
    check_text_refused(text, strlen(text), "config.many: 100000 items, at most 65536 are allowed");
    free(text);
    buf_release(&keys);
    buf_release(&items);
}

/* Every truncation, and many single-byte changes, are refused or read: never a crash, never a leak. */
static void test_damage(void **state)
{
    (void)state;
    struct run r, again;
    struct buf b = BUF_INIT;
    make(&r, fill_full);
    text_of(&r, &b);
    long before = mem_live_blocks();
    for (size_t n = 0; n + 1 < b.len; n += 7) {
        assert_int_equal(run_read(&again, "x", b.data, n, NULL), TARE_FORMAT);
    }
    for (size_t i = 0; i < b.len; i++) {
        char keep = b.data[i];
        b.data[i] = (char)(keep ^ (1 << (i % 8)));
        if (run_read(&again, "x", b.data, b.len, NULL) == TARE_OK) run_release(&again);
        b.data[i] = keep;
    }
    assert_int_equal(mem_live_blocks(), before);
    run_release(&r);
    buf_release(&b);
}

/* Samples of every size of step come back exactly, whether the first n of many or none. */
static void test_samples(void **state)
{
    (void)state;
    enum { N = 10000 };
    static uint64_t ns[N];
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < N; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        ns[i] = x >> (1 + i % 63);
    }
    const size_t counts[] = {0, 1, 2, 3, 1000, N};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct run r, again;
        struct buf b = BUF_INIT;
        tare_error err = TARE_ERROR_INIT;
        make(&r, fill_minimal);
        struct run_case *c = run_add_case(&r, "x");
        c->samples_raw.cap = 5000;
        run_set_samples(&r, c, ns, counts[k], "first");
        text_of(&r, &b);
        if (run_read(&again, "x", b.data, b.len, &err) < 0) fail_msg("%s", err.text);
        size_t want = counts[k] < 5000 ? counts[k] : 5000;
        assert_int_equal(again.cases.at[0]->samples_raw.n, want);
        assert_memory_equal(again.cases.at[0]->samples_raw.ns, ns, want * sizeof *ns);
        run_release(&again);
        run_release(&r);
        buf_release(&b);
    }
}

static void test_histogram(void **state)
{
    (void)state;
    struct run r;
    struct hist h = HIST_INIT;
    make(&r, fill_minimal);
    struct run_case *c = run_add_case(&r, "x");
    assert_int_equal(hist_record_n(&h, 1000, 3, NULL), TARE_OK);
    assert_int_equal(hist_record(&h, 0, NULL), TARE_OK);
    run_set_histogram(&r, &c->latency_ns.histogram, &h);
    const struct run_histogram *to = &c->latency_ns.histogram;
    assert_true(to->known && to->scale == 6 && to->zero == 1 && to->offset == h.first);
    assert_int_equal(to->counts[hist_index(1000) - h.first], 3);
    hist_release(&h);
    run_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_refuses),
        cmocka_unit_test(test_read_accepts),
        cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_histogram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
