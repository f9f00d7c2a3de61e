/* SPDX-License-Identifier: MIT
 * test_sse.c - events come out the same wherever the bytes are cut; what has no end is bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "load/sse.h"

static void note(void *ctx, const struct sse_event *e)
{
    buf_printf(ctx, "<%s|%.*s%s>", e->name, e->n < 60 ? (int)e->n : 60, e->data, e->cut ? "|cut" : "");
}

/* All events of the text, given in pieces of `step` bytes. */
static void read_in(struct buf *out, const char *text, size_t step)
{
    struct sse s = SSE_INIT;
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at += step)
        sse_feed(&s, text + at, n - at < step ? n - at : step, &(struct sse_sink){note, out});
    sse_release(&s);
}

static void cut_anywhere(void **state)
{
    static const struct {
        const char *text, *events;
    } cases[] = {
        {"data: a\n\ndata: b\n\n", "<|a><|b>"},
        {"data: a\r\n\r\ndata: b\r\n\r\n", "<|a><|b>"},
        {"data: a\r\rdata: b\r\r", "<|a><|b>"},
        {"data:a\ndata:  b\n\n", "<|a\n b>"},
        {"data\n\n", "<|>"},
        {": comment\n\n:\n\ndata: x\n\n", "<|x>"},
        {"event: error\nid: 7\nretry: 5\nfoo: bar\ndata: {}\n\n", "<error|{}>"},
        {"event: one\n\ndata: x\n\n", "<|x>"},
        {"\xef\xbb\xbf"
         "data: x\n\n",
         "<|x>"},
        {"data: whole\n\ndata: without end", "<|whole>"},
        {"data: whole\n\ndata: without end\n", "<|whole>"},
        {"data: a\n\r\n\r\ndata: b\r\n\n", "<|a><|b>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t step = 1; step < 24; step++) {
            struct buf out = BUF_INIT;
            read_in(&out, cases[i].text, step);
            if (strcmp(out.data, cases[i].events) != 0)
                fail_msg("%s in steps of %zu: %s", cases[i].text, step, out.data);
            buf_release(&out);
        }
    }
    (void)state;
}

static void counts_comments_and_begins_anew(void **state)
{
    struct sse s = SSE_INIT;
    struct buf out = BUF_INIT;
    struct sse_sink to = {note, &out};
    sse_feed(&s, ": one\n: two\ndata: half", 22, &to);
    assert_int_equal(s.comments, 2);
    sse_reset(&s);
    assert_int_equal(s.comments, 0);
    sse_feed(&s, "data: x\n\n", 9, &to);
    assert_string_equal(out.data, "<|x>");
    sse_release(&s);
    buf_release(&out);
    (void)state;
}

static void is_bounded(void **state)
{
    struct sse s = SSE_INIT;
    struct buf out = BUF_INIT;
    struct sse_sink to = {note, &out};
    static char many[65536];
    memset(many, 'x', sizeof many);
    sse_feed(&s, "data: ", 6, &to);
    for (int i = 0; i < 64; i++) sse_feed(&s, many, sizeof many, &to);
    assert_true(s.line.len <= SSE_EVENT_MOST);
    sse_feed(&s, "\n\ndata: y\n\n", 11, &to);
    assert_non_null(strstr(out.data, "|cut>"));
    assert_non_null(strstr(out.data, "<|y>"));
    sse_release(&s);
    buf_release(&out);
    (void)state;
}

static void without_memory(void **state)
{
    for (long n = 0; n < 20; n++) {
        struct sse s = SSE_INIT;
        struct buf out = BUF_INIT;
        struct sse_sink to = {note, &out};
        buf_reserve(&out, 4096);
        mem_fail_after(n);
        sse_feed(&s, "data: a lo", 10, &to);
        sse_feed(&s, "ng\n", 3, &to);
        sse_feed(&s, "data: one\n\n", 11, &to);
        mem_fail_after(-1);
        assert_true(strcmp(out.data, "<|a long\none>") == 0 || strstr(out.data, "|cut>"));
        sse_release(&s);
        buf_release(&out);
    }
    assert_int_equal(mem_live_blocks(), 0);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(counts_comments_and_begins_anew),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
