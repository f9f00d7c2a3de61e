/* SPDX-License-Identifier: MIT
 * test_html.c - the report page as bytes: one place for data, documents in it that read back the same, and no byte of
 * them that could end their element. Without a viewer in this build only the refusal is tested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/mem.h"
#include "report/html.h"

#define PLACE "<script id=\"tare-data\" type=\"application/json\">"

static tare_status write_page(const struct html_page *page, struct buf *out, tare_error *err)
{
    struct stream s;
    stream_init(&s, sink_to_buf(out), err);
    html_write(&s, page);
    return stream_finish(&s);
}

/* The data of a page, parsed; its text goes to *text unless NULL. */
static json_t *data_of(const struct buf *page, char **text)
{
    json_error_t why;
    char *at = strstr(page->data, PLACE);
    assert_non_null(at);
    at += strlen(PLACE);
    const char *end = strstr(at, "</script>");
    assert_non_null(end);
    json_t *doc = json_loadb(at, (size_t)(end - at), 0, &why);
    if (!doc) fail_msg("%s at %d", why.text, why.position);
    if (text) *text = at;
    return doc;
}

static void need_viewer(void)
{
    if (!html_has_viewer()) skip();
}

static tare_status write_words(struct stream *s, const void *ctx)
{
    buf_add_str(&s->out, ctx);
    return stream_poll(s);
}

static void test_one_place(void **state)
{
    (void)state;
    need_viewer();
    struct buf out = BUF_INIT;
    char doc[] = "{\"a\":1}";
    struct html_item item = {"run", "x.json", write_words, doc};
    struct html_page page = {"title", &item, 1};
    assert_int_equal(write_page(&page, &out, NULL), TARE_OK);
    char *first = strstr(out.data, PLACE);
    assert_non_null(first);
    assert_null(strstr(first + 1, PLACE));
    assert_memory_equal(out.data, "<!doctype html>", 15);
    assert_non_null(strstr(out.data, "default-src 'none'"));
    json_t *data = data_of(&out, NULL);
    assert_string_equal(json_string_value(json_object_get(data, "schema")), HTML_SCHEMA);
    assert_string_equal(json_string_value(json_object_get(data, "title")), "title");
    json_t *got = json_array_get(json_object_get(data, "items"), 0);
    assert_string_equal(json_string_value(json_object_get(got, "kind")), "run");
    assert_string_equal(json_string_value(json_object_get(got, "name")), "x.json");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(got, "document"), "a")), 1);
    json_decref(data);
    buf_release(&out);
}

/* Every text reads back as it was, and the bytes between hold no '<' and no line separator. */
static void check_hostile(const char *hostile)
{
    struct buf out = BUF_INIT, doc = BUF_INIT;
    json_t *value = json_string(hostile);
    assert_non_null(value);
    char *text = json_dumps(value, JSON_ENCODE_ANY), *at;
    buf_printf(&doc, "{\"a\":%s}", text);
    struct html_item item = {"run", hostile, write_words, doc.data};
    struct html_page page = {hostile, &item, 1};
    assert_int_equal(write_page(&page, &out, NULL), TARE_OK);
    json_t *data = data_of(&out, &at);
    json_t *got = json_array_get(json_object_get(data, "items"), 0);
    assert_string_equal(json_string_value(json_object_get(data, "title")), hostile);
    assert_string_equal(json_string_value(json_object_get(got, "name")), hostile);
    assert_string_equal(json_string_value(json_object_get(json_object_get(got, "document"), "a")), hostile);
    size_t n = strcspn(at, "<");
    assert_memory_equal(at + n, "</script>", 9);
    at[n] = 0;
    assert_null(strstr(at, "\xe2\x80\xa8"));
    assert_null(strstr(at, "\xe2\x80\xa9"));
    json_decref(data);
    json_decref(value);
    free(text); /* NOLINT: jansson's own */
    buf_release(&out);
    buf_release(&doc);
}

static void test_hostile_text(void **state)
{
    (void)state;
    need_viewer();
    static const char *const texts[] = {"</script><script>alert(1)</script>",
                                        "<!--",
                                        "<<<<",
                                        "a\xe2\x80\xa8"
                                        "b\xe2\x80\xa9"
                                        "c",
                                        "\xe2\x80\xa7\xe2\x80\xaa\xe2\x82\xac",
                                        "\xe2\x80\xa8<\xe2\x80\xa8",
                                        "quotes \" ' \\ / \n\t",
                                        "\xf0\x9f\x92\x80 \xd7\x90 \xe2\x80\xae"
                                        "dlrow"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_hostile(texts[i]);
}

/* A line separator whose bytes fall into two pieces of the stream is escaped too. */
static tare_status write_split(struct stream *s, const void *ctx)
{
    size_t pad = *(const size_t *)ctx;
    buf_add_str(&s->out, "{\"a\":\"");
    for (size_t i = 0; i < pad; i++) buf_add_char(&s->out, 'x');
    buf_add_str(&s->out, "\xe2");
    if (stream_flush(s) < 0) return s->status;
    buf_add_str(&s->out, "\x80");
    if (stream_flush(s) < 0) return s->status;
    buf_add_str(&s->out, "\xa8<\"}");
    return stream_poll(s);
}

static void test_split_between_pieces(void **state)
{
    (void)state;
    need_viewer();
    size_t pad = 10;
    struct buf out = BUF_INIT;
    struct html_item item = {"run", NULL, write_split, &pad};
    struct html_page page = {NULL, &item, 1};
    assert_int_equal(write_page(&page, &out, NULL), TARE_OK);
    assert_non_null(strstr(out.data, "xxx\\u2028\\u003c\"}"));
    json_decref(data_of(&out, NULL));
    buf_release(&out);
}

/* ---- run documents ---- */

static void make_run(struct run *r, size_t n_samples)
{
    uint64_t *ns = mem_new(n_samples, sizeof *ns);
    assert_non_null(ns);
    for (size_t i = 0; i < n_samples; i++) ns[i] = 1000 + i;
    assert_int_equal(run_init(r, "bench", NULL), TARE_OK);
    r->subject.type = "onnx";
    r->subject.name = "m</script>";
    struct run_case *c = run_add_case(r, "batch=1");
    assert_non_null(c);
    assert_non_null(run_add_case(r, "batch=2"));
    run_set_samples(r, c, ns, n_samples, "all");
    mem_free(ns);
}

static json_t *case_of(json_t *data, size_t i)
{
    json_t *item = json_array_get(json_object_get(data, "items"), 0);
    return json_array_get(json_object_get(json_object_get(item, "document"), "cases"), i);
}

static json_t *page_of(struct html_run *h)
{
    struct buf out = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    struct html_item item = {"run", "r.json", html_run_write, h};
    struct html_page page = {"r", &item, 1};
    if (write_page(&page, &out, &err) != TARE_OK) fail_msg("%s", err.text);
    json_t *data = data_of(&out, NULL);
    buf_release(&out);
    return data;
}

static void test_samples_are_plain(void **state)
{
    (void)state;
    need_viewer();
    struct run r;
    make_run(&r, 100);
    json_t *data = page_of(&(struct html_run){&r, 0});
    json_t *c = case_of(data, 0), *ns = json_object_get(c, "samples_ns");
    assert_int_equal(json_array_size(ns), 100);
    assert_int_equal(json_integer_value(json_array_get(ns, 99)), 1099);
    assert_string_equal(json_string_value(json_object_get(c, "samples_kept")), "all");
    assert_null(json_object_get(c, "samples_raw"));
    assert_null(json_object_get(case_of(data, 1), "samples_ns")); /* none were taken: unknown, not empty */
    json_decref(data);
    run_release(&r);
}

static void test_samples_are_thinned(void **state)
{
    (void)state;
    need_viewer();
    struct run r;
    make_run(&r, 1000);
    json_t *data = page_of(&(struct html_run){&r, 300});
    json_t *c = case_of(data, 0), *ns = json_object_get(c, "samples_ns");
    assert_int_equal(json_array_size(ns), 250); /* every fourth */
    assert_int_equal(json_integer_value(json_array_get(ns, 1)), 1004);
    assert_string_equal(json_string_value(json_object_get(c, "samples_kept")), "one in 4 of all");
    json_decref(data);
    run_release(&r);
}

/* Refused when tare's allocations are, but not counted as one of them: some are given back with free(). */
static void *gated_malloc(size_t n)
{
    void *gate = mem_new(1, 1);
    if (!gate) return NULL;
    mem_free(gate);
    return malloc(n);
}

/* Of tare's own allocations and of jansson's. */
static void test_memory(void **state)
{
    (void)state;
    need_viewer();
    json_set_alloc_funcs(gated_malloc, free);
    struct run r;
    make_run(&r, 50);
    struct html_run h = {&r, 0};
    struct html_item item = {"run", "r.json", html_run_write, &h};
    struct html_page page = {"r", &item, 1};
    long live = mem_live_blocks();
    for (long n = 0;; n++) {
        struct buf out = BUF_INIT;
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        tare_status s = write_page(&page, &out, &err);
        mem_fail_after(-1);
        buf_release(&out);
        assert_int_equal(mem_live_blocks(), live);
        if (s == TARE_OK) break;
        if (s != TARE_NOMEM || !strstr(err.text, "memory")) fail_msg("allocation %ld: %s", n, err.text);
        assert_true(n < 10000);
    }
    json_set_alloc_funcs(malloc, free);
    run_release(&r);
}

static tare_status write_nothing(struct stream *s, const void *ctx)
{
    (void)ctx;
    return error_set(s->err, TARE_IO, "no such thing");
}

static void test_a_document_that_fails_fails_the_page(void **state)
{
    (void)state;
    need_viewer();
    struct buf out = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    struct html_item item = {"run", "x", write_nothing, NULL};
    struct html_page page = {"x", &item, 1};
    assert_int_equal(write_page(&page, &out, &err), TARE_IO);
    assert_string_equal(err.text, "no such thing");
    buf_release(&out);
}

static void test_without_viewer(void **state)
{
    (void)state;
    if (html_has_viewer()) skip();
    struct buf out = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    struct html_page page = {"x", NULL, 0};
    assert_int_equal(write_page(&page, &out, &err), TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "node"));
    assert_int_equal(out.len, 0);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_place),           cmocka_unit_test(test_hostile_text),
        cmocka_unit_test(test_split_between_pieces), cmocka_unit_test(test_samples_are_plain),
        cmocka_unit_test(test_samples_are_thinned), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_a_document_that_fails_fails_the_page), cmocka_unit_test(test_without_viewer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
