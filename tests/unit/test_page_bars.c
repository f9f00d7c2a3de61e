/* SPDX-License-Identifier: MIT
 * test_page_bars.c - what the page's timeline is made of: bars of made-up threads and of a made-up GPU whose place is
 * known; the longest kept where there are too many; the document as JSON. */
#include "report_fixture.h"

#include "gpu_fixture.h"
#include "report/page/bars_json.h"
#include "report/page/page_bars.h"

/* ---- scopes ---- */

static void scopes_are_bars_in_order(void **state)
{
    struct fixture *f = fix_new();
    struct page_bars b;
    (void)state;
    assert_int_equal(page_bars_gather(&b, &f->source, 0, NULL), TARE_OK);
    assert_int_equal(b.seen, 5); /* a counter is none, a mark is */
    assert_int_equal(b.kept, 5);
    assert_int_equal(b.end, 9000);
    assert_int_equal(b.lanes.n, 2); /* the second thread has no event */
    const struct page_lane *app = &b.lanes.items[0];
    assert_string_equal(app->name, "app");
    assert_int_equal(app->bars.n, 3);
    assert_int_equal(app->bars.items[0].length, 2001); /* of two that begin together the outer one is first */
    assert_int_equal(app->bars.items[0].more, PAGE_UNENDED);
    assert_int_equal(app->bars.items[1].length, 1345);
    assert_int_equal(app->bars.items[1].more, PAGE_WEIGHED);
    assert_string_equal(b.names.items[app->bars.items[1].name].text, "step");
    assert_int_equal(b.names.items[app->bars.items[1].name].line, 20);
    assert_int_equal(b.names.items[app->bars.items[2].name].kind, PAGE_BAR_MARK);
    assert_int_equal(b.lanes.items[1].first, 3);
    page_bars_release(&b);
    free(f);
}

/* Of 1000 rounds, each with one bar of 2001, one of 1345 and a mark: the longest, then a part of the next. */
static void the_longest_are_kept(void **state)
{
    struct fixture *f = fix_new();
    struct page_bars b;
    uint64_t long_ones = 0, others = 0, gap = 0, last = 0;
    (void)state;
    f->repeat = 1000;
    assert_int_equal(page_bars_gather(&b, &f->source, 1502, NULL), TARE_OK);
    assert_int_equal(b.seen, 3002);
    assert_in_range(b.kept, 1500, 1502);
    const struct page_lane *app = &b.lanes.items[0];
    for (size_t i = 0; i < app->bars.n; i++) {
        const struct page_bar *bar = &app->bars.items[i];
        assert_true(bar->length > 0); /* no mark */
        long_ones += bar->length == 2001;
        if (bar->length != 1345) continue;
        others++;
        if (bar->start - last > gap) gap = bar->start - last;
        last = bar->start;
    }
    assert_int_equal(long_ones, 1000);
    assert_in_range(others, 498, 501);
    assert_in_range(gap, 1, UINT64_C(3000000000)); /* evenly: never three rounds without one */
    page_bars_release(&b);
    free(f);
}

static size_t count_of(const struct buf *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text->data; (at = strstr(at, what)); at++) n++;
    return n;
}

/* Begins at 1000, runs to 1100, waits, runs from 1500 to 1600, waits, runs from 2000 to 2100. */
static void a_call_that_waited_is_whole(void **state)
{
    struct fixture *f = fix_new();
    struct page_bars b;
    struct trace_event e = {.site = SITE_STEP, .began_ns = 1000};
    (void)state;
    f->n_events = 0;
    memset(f->threads, 0, sizeof f->threads);
    f->threads[0] = (struct trace_thread){0, 100, "app", 0, 0, false};
    f->threads[1].name = f->threads[2].name = "";
    for (uint32_t i = 0; i < 3; i++) {
        e.kind = TRACE_BEGIN;
        e.time_ns = 1000 + 500 * i;
        e.flags = i ? TRACE_RESUMED | TRACE_WAITED : 0;
        e.pause = i;
        fix_add(f, e);
        e.kind = TRACE_END;
        e.time_ns += 100;
        e.flags = i < 2 ? TRACE_PAUSED : 0;
        e.pause = i < 2 ? i + 1 : 0;
        fix_add(f, e);
    }
    assert_int_equal(page_bars_gather(&b, &f->source, 0, NULL), TARE_OK);
    assert_int_equal(b.lanes.n, 2);
    assert_int_equal(b.lanes.items[0].bars.n, 3); /* what ran on the thread */
    const struct page_lane *tasks = &b.lanes.items[1];
    assert_int_equal(tasks->kind, PAGE_TASKS);
    assert_int_equal(tasks->bars.n, 4);
    assert_int_equal(tasks->bars.items[0].start, 1000);
    assert_int_equal(tasks->bars.items[0].length, 1100);
    assert_int_equal(b.names.items[tasks->bars.items[0].name].kind, PAGE_BAR_TASK);
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(tasks->bars.items[i].start, 500 + 500 * i);
        assert_int_equal(tasks->bars.items[i].length, 100);
        assert_int_equal(b.names.items[tasks->bars.items[i].name].kind, PAGE_BAR_SCOPE);
        assert_int_equal(tasks->bars.items[i].depth, 0);
    }
    page_bars_release(&b);
    free(f);
}

/* The same, but that it waited was noticed only by the next scope of the thread: how long it ran is not known. */
static void what_ran_until_nobody_knows_is_no_bar(void **state)
{
    struct fixture *f = fix_new();
    struct page_bars b;
    struct export_input in = {.source = &f->source};
    struct trace_event e = {.site = SITE_STEP, .began_ns = 1000},
                       within = {.site = SITE_MAIN, .time_ns = 1510};
    (void)state;
    f->n_events = 0;
    memset(f->threads, 0, sizeof f->threads);
    f->threads[0] = (struct trace_thread){0, 100, "app", 0, 0, true};
    f->threads[1].name = f->threads[2].name = "";
    for (uint32_t i = 0; i < 3; i++) {
        e.kind = TRACE_BEGIN;
        e.time_ns = 1000 + 500 * i;
        e.flags = i ? TRACE_RESUMED | TRACE_WAITED | TRACE_LATE : 0;
        e.pause = i;
        fix_add(f, e);
        for (int k = 0; k < 2 && i == 1; k++) {
            within.kind = k ? TRACE_END : TRACE_BEGIN;
            within.time_ns = within.began_ns = 1510;
            fix_add(f, within);
        }
        e.kind = TRACE_END;
        e.time_ns += 100;
        e.flags = i < 2 ? TRACE_PAUSED | TRACE_LATE : 0;
        e.pause = i < 2 ? i + 1 : 0;
        fix_add(f, e);
    }
    assert_int_equal(page_bars_gather(&b, &f->source, 0, NULL), TARE_OK);
    assert_int_equal(b.lanes.n, 2);
    assert_int_equal(b.lanes.items[0].bars.n, 1); /* what was called in it */
    assert_int_equal(b.lanes.items[1].bars.n, 1); /* the call as a whole */
    assert_int_equal(b.lanes.items[1].bars.items[0].length, 1100);
    page_bars_release(&b);
    struct buf got = fix_export(&export_chrome, &in);
    assert_int_equal(count_of(&got, "\"ph\":\"B\""), 1);
    assert_int_equal(count_of(&got, "\"ph\":\"E\""), 1);
    assert_int_equal(count_of(&got, "\"ph\":\"b\""), 1);
    assert_non_null(strstr(got.data, "\"ph\":\"b\",\"cat\":\"task\",\"ts\":1.000"));
    assert_non_null(strstr(got.data, "\"ph\":\"e\",\"cat\":\"task\",\"ts\":2.100"));
    buf_release(&got);
    free(f);
}

/* ---- a GPU ---- */

static void kernels_know_their_calls(void **state)
{
    struct making *m = *state;
    struct event_source source;
    struct page_bars b;
    begin(m);
    call(m, 5, 60, 70, 3);
    call(m, 9, 75, 80, 3);
    kernel(m, 9, 260, 300, 11);
    kernel(m, 5, 100, 200, 11); /* not in the order of time */
    copy(m, 77, 100, 150, 4096);
    struct trace *t = finish(m);
    event_source_of_trace(&source, t);
    assert_int_equal(page_bars_gather(&b, &source, 0, NULL), TARE_OK);
    assert_int_equal(b.lanes.n, 3);
    const struct page_lane *calls = &b.lanes.items[0], *stream = &b.lanes.items[1],
                           *copies = &b.lanes.items[2];
    assert_int_equal(calls->kind, PAGE_CALLS);
    assert_int_equal(calls->thread, 11);
    assert_int_equal(stream->first, 2);
    assert_true(stream->bars.items[0].start < stream->bars.items[1].start);
    const uint64_t *first = map_u64_find(&b.calls, stream->bars.items[0].flow),
                   *second = map_u64_find(&b.calls, stream->bars.items[1].flow);
    assert_true(first && *first == 1);
    assert_true(second && *second == 2);
    assert_int_equal(copies->bars.items[0].more, 4096);
    assert_null(map_u64_find(&b.calls, copies->bars.items[0].flow)); /* its call was not recorded */
    page_bars_release(&b);
    trace_close(t);
}

static size_t marks_named(const struct page_bars *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->names.n; i++) n += b->names.items[i].kind == PAGE_BAR_MARK;
    return n;
}

/* tare's marks and NVTX's are numbered alike: each keeps its own name. */
static void marks_of_both_kinds_keep_their_names(void **state)
{
    struct making *m = *state;
    struct fixture *f = fix_new();
    struct page_bars b;
    begin(m);
    for (uint64_t i = 1; i <= 8; i++) {
        struct gpu_record r = {.kind = GPU_RANGE_MARK};
        r.RANGE_MARK.at = STAMP + i * US;
        r.RANGE_MARK.thread = 11;
        r.RANGE_MARK.name = i;
        put(m, r);
    }
    struct trace *t = finish(m);
    assert_int_equal(page_bars_gather(&b, &f->source, 0, NULL), TARE_OK);
    size_t own = marks_named(&b);
    page_bars_release(&b);
    assert_true(own > 0);
    f->source.has_gpu = true;
    struct event_source of_trace;
    event_source_of_trace(&of_trace, t);
    f->source.gpu = of_trace.gpu;
    f->source.gpu_ctx = t;
    assert_int_equal(page_bars_gather(&b, &f->source, 0, NULL), TARE_OK);
    assert_int_equal(marks_named(&b), own + 8);
    page_bars_release(&b);
    trace_close(t);
    free(f);
}

static void the_document_is_json(void **state)
{
    struct making *m = *state;
    struct buf text = BUF_INIT;
    struct stream s;
    begin(m);
    name(m, 1, "a \"kernel\" </script>\x1b[31m\xff");
    for (uint64_t i = 0; i < 8; i++) {
        range(m, 1 + i, 7, i * 100, 0);
        call(m, 1 + i, i * 100 + 5, i * 100 + 10, 3);
        kernel(m, 1 + i, i * 100 + 20, i * 100 + 60, 11);
        range(m, 1 + i, 0, 0, i * 100 + 90);
    }
    struct trace *t = finish(m);
    assert_true(bars_json_has_any(t));
    stream_init(&s, sink_to_buf(&text), NULL);
    assert_int_equal(bars_json_write(&s, &t, 1, 0), TARE_OK);
    assert_int_equal(stream_finish(&s), TARE_OK);
    json_error_t why;
    json_t *doc = json_loadb(text.data, text.len, 0, &why);
    assert_non_null(doc);
    assert_string_equal(json_string_value(json_object_get(doc, "schema")), BARS_SCHEMA);
    assert_int_equal(json_integer_value(json_object_get(doc, "shown")), 24);
    assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "gpu"), "schema")),
                        "tare.gpu/1");
    json_t *course = json_array_get(json_object_get(doc, "courses"), 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(course, "steps"), "n")), 8);
    json_t *lanes = json_object_get(doc, "lanes");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(lanes); i++) {
        json_t *lane = json_array_get(lanes, i);
        n += (size_t)json_integer_value(json_object_get(lane, "n"));
        if (strcmp(json_string_value(json_object_get(lane, "kind")), "stream") == 0)
            assert_string_equal(json_string_value(json_object_get(lane, "call")),
                                "ACCCCCCC"); /* 0, then +1 each */
    }
    assert_int_equal(n, 24);
    json_decref(doc);
    buf_release(&text);
    trace_close(t);
}

/* Every allocation fails once: an error each time, and nothing is left behind. */
static void no_memory(void **state)
{
    struct fixture *f = fix_new();
    long blocks = mem_live_blocks();
    (void)state;
    for (long n = 0;; n++) {
        struct page_bars b;
        mem_fail_after(n);
        tare_status s = page_bars_gather(&b, &f->source, 0, NULL);
        mem_fail_after(-1);
        if (s == TARE_OK) {
            page_bars_release(&b);
            break;
        }
        assert_int_equal(s, TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), blocks);
    }
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_are_bars_in_order),
        cmocka_unit_test(the_longest_are_kept),
        cmocka_unit_test(a_call_that_waited_is_whole),
        cmocka_unit_test(what_ran_until_nobody_knows_is_no_bar),
        cmocka_unit_test_setup_teardown(kernels_know_their_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(marks_of_both_kinds_keep_their_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_document_is_json, set_up, tear_down),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
