/* SPDX-License-Identifier: MIT
 * test_llm.c - answers of language models as the reader of the load client sees them: at known times, to known ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "load/llm.h"

#define MS UINT64_C(1000000)
#define TEXT(t) "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" t "\"},\"finish_reason\":null}]}\n\n"
#define THOUGHT "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}]}\n\n"
#define STOP "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define USAGE(n)                                                                              \
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":" #n "," \
    "\"prompt_tokens_details\":{\"cached_tokens\":8}}}\n\n"
#define DONE "data: [DONE]\n\n"

struct piece {
    uint64_t at;
    const char *bytes;
};

struct heard {
    struct llm_pool pool;
    struct load_outcome o;
    const char *why;
};

static void add_header(struct http_head *h, const char *name, const char *value)
{
    h->headers[h->n_headers].name = (uint16_t)h->used;
    h->used += (unsigned)snprintf(h->text + h->used, sizeof h->text - h->used, "%s", name) + 1;
    h->headers[h->n_headers++].value = (uint16_t)h->used;
    h->used += (unsigned)snprintf(h->text + h->used, sizeof h->text - h->used, "%s", value) + 1;
}

/* Given whole, or byte by byte with the time of the piece it is in. */
static struct heard hear(const char *type, const struct piece *pieces, bool bytewise)
{
    struct heard h = {.why = NULL};
    struct load_reader r = llm_reader(&h.pool);
    static struct http_head head;
    memset(&head, 0, sizeof head);
    add_header(&head, "content-type", type);
    void *state = mem_new(1, r.size);
    assert_non_null(state);
    r.clear(r.ctx);
    r.open(r.ctx, state);
    r.begin(r.ctx, state, &head, &h.o);
    for (; pieces->bytes; pieces++) {
        size_t n = strlen(pieces->bytes), step = bytewise ? 1 : n;
        for (size_t i = 0; i < n; i += step) {
            struct load_piece piece = {pieces->bytes + i, step, pieces->at};
            r.bytes(r.ctx, state, &piece, &h.o);
        }
    }
    h.why = r.end(r.ctx, state, &h.o);
    r.close(r.ctx, state);
    mem_free(state);
    return h;
}

static const struct piece usual[] = {
    {20 * MS, TEXT("")}, /* a role alone says nothing */
    {100 * MS, THOUGHT},
    {110 * MS, TEXT("a")},
    {125 * MS, ": still here\n\n" TEXT("b")},
    {135 * MS, TEXT("c") STOP USAGE(4) DONE},
    {0, NULL},
};

static void a_stream(void **state)
{
    for (int bytewise = 0; bytewise < 2; bytewise++) {
        struct heard h = hear("text/event-stream; charset=utf-8", usual, bytewise);
        assert_null(h.why);
        assert_int_equal(h.o.fault, LOAD_NONE);
        assert_int_equal(h.o.first_content, 100 * MS);
        assert_int_equal(h.o.first_answer, 110 * MS);
        assert_int_equal(h.o.last_content, 135 * MS);
        assert_int_equal(h.o.gap_max, 15 * MS);
        assert_int_equal(h.o.events, 4);
        assert_int_equal(h.o.tokens, 4);
        assert_int_equal(h.o.first_tokens, 1);
        assert_int_equal(h.o.tokens_in, 12);
        assert_int_equal(h.o.tokens_cached, 8);
        assert_int_equal(h.o.flags, 0);
        assert_int_equal(h.pool.gaps.all.n, 3);
        assert_int_equal(h.pool.gaps.ends.n, 1);
        assert_int_equal(h.pool.comments, 1);
        assert_int_equal(h.pool.no_done, 0);
        llm_pool_release(&h.pool);
    }
    (void)state;
}

static void glued_and_many_tokens(void **state)
{
    static const struct piece glued[] = {
        {100 * MS, TEXT("a") TEXT("b")}, {120 * MS, TEXT("c") TEXT("d") STOP USAGE(12) DONE}, {0, NULL}};
    struct heard h = hear("text/event-stream", glued, false);
    assert_null(h.why);
    assert_int_equal(h.pool.many_per_read, 2);
    assert_true(h.o.flags & LOAD_SHARED);
    assert_int_equal(h.o.first_tokens, 3);
    assert_int_equal(h.pool.many_tokens, 1);
    llm_pool_release(&h.pool);
    (void)state;
}

static void without_counts_events_count(void **state)
{
    static const struct piece plain[] = {{5 * MS, TEXT("a")}, {6 * MS, TEXT("b") STOP DONE}, {0, NULL}};
    struct heard h = hear("text/event-stream", plain, false);
    assert_int_equal(h.o.tokens, 2);
    assert_true(h.o.flags & LOAD_ESTIMATED);
    assert_int_equal(h.pool.not_counted, 1);
    llm_pool_release(&h.pool);
    (void)state;
}

static void broken(void **state)
{
    static const struct {
        struct piece pieces[3];
        const char *why;
    } cases[] = {
        {{{1, TEXT("a") "data: {\"error\":{\"message\":\"out of blocks\"}}\n\n"}, {0, NULL}},
         "tells an error: out of blocks"},
        {{{1, TEXT("a") "event: error\ndata: {\"x\":1}\n\n" DONE}, {0, NULL}}, "tells an error"},
        {{{1, TEXT("a")}, {2, TEXT("b")}, {0, NULL}}, "ended without [DONE]"},
        {{{1, "data: what?\n\n" DONE}, {0, NULL}}, "is no JSON: what?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct heard h = hear("text/event-stream", cases[i].pieces, false);
        assert_int_equal(h.o.fault, LOAD_STREAM);
        if (!strstr(h.pool.why, cases[i].why)) fail_msg("%zu: %s", i, h.pool.why);
        llm_pool_release(&h.pool);
    }
    static const struct piece no_done[] = {{1, TEXT("a") STOP}, {0, NULL}};
    struct heard h = hear("text/event-stream", no_done, false);
    assert_int_equal(h.o.fault, LOAD_NONE);
    assert_int_equal(h.pool.no_done, 1);
    llm_pool_release(&h.pool);
    (void)state;
}

static void not_streamed(void **state)
{
    static const struct piece whole[] = {{9, "{\"choices\":[{\"message\":{\"content\":\"all\"}}],"},
                                         {9, "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":7}}"},
                                         {0, NULL}};
    static const struct piece bad[] = {{9, "<html>"}, {0, NULL}};
    struct heard h = hear("application/json", whole, true);
    assert_int_equal(h.o.fault, LOAD_NONE);
    assert_int_equal(h.o.tokens, 7);
    assert_int_equal(h.o.first_content, 0);
    assert_int_equal(h.pool.whole, 1);
    llm_pool_release(&h.pool);
    h = hear("text/html", bad, false);
    assert_int_equal(h.o.fault, LOAD_STREAM);
    assert_non_null(strstr(h.pool.why, "no JSON: <html>"));
    llm_pool_release(&h.pool);
    (void)state;
}

static void without_memory(void **state)
{
    for (long n = 0; n < 30; n++) {
        struct heard h = {.why = NULL};
        struct load_reader r = llm_reader(&h.pool);
        static struct http_head head;
        void *a = mem_new(1, r.size);
        memset(&head, 0, sizeof head);
        add_header(&head, "content-type", "text/event-stream");
        r.open(r.ctx, a);
        r.begin(r.ctx, a, &head, &h.o);
        mem_fail_after(n);
        for (const struct piece *p = usual; p->bytes; p++)
            for (const char *b = p->bytes; *b; b++)
                r.bytes(r.ctx, a, &(struct load_piece){b, 1, p->at}, &h.o);
        r.end(r.ctx, a, &h.o);
        mem_fail_after(-1);
        assert_true(h.o.fault == LOAD_STREAM || h.o.events == 4);
        r.close(r.ctx, a);
        mem_free(a);
        llm_pool_release(&h.pool);
        assert_int_equal(mem_live_blocks(), 0);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream),     cmocka_unit_test(glued_and_many_tokens),
        cmocka_unit_test(without_counts_events_count),
        cmocka_unit_test(broken),       cmocka_unit_test(not_streamed),          cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
