/* SPDX-License-Identifier: MIT
 * report_fixture.h - a small trace by hand for the tests of reports and exports: two processes, three
 * threads, every kind of event, hostile names. Tests may change it before they use it. */
#ifndef TESTS_REPORT_FIXTURE_H
#define TESTS_REPORT_FIXTURE_H

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "core/mem.h"
#include "report/export/export.h"
#include "report/trace/report.h"
#include "report/text.h"

#define N_ELEMENTS(a) (sizeof(a) / sizeof *(a))

/* Quotes, a control, a newline, a semicolon, a byte that is no UTF-8, an overlong form, a lone surrogate. */
#define HOSTILE "q\"b\\c\x1b[31m\n;\xff\xc0\xaf\xed\xa0\x80 \xe2\x82\xac"

enum { SITE_MAIN, SITE_STEP, SITE_HOSTILE, SITE_TOKENS, SITE_EPOCH, FIX_SITES };

struct fixture {
    struct event_source source;
    struct trace_site sites[FIX_SITES];
    struct trace_process processes[2];
    struct trace_thread threads[3];
    struct trace_loss loss;
    struct trace_event events[32];
    size_t n_events;
    uint64_t repeat; /* deliver thread 0's events so many times, one second apart */
};

static const struct trace_site *fix_site(const void *ctx, uint32_t i)
{
    assert_true(i < FIX_SITES);
    return &((const struct fixture *)ctx)->sites[i];
}

static const struct trace_process *fix_process(const void *ctx, uint32_t i)
{
    assert_true(i < 2);
    return &((const struct fixture *)ctx)->processes[i];
}

static const struct trace_thread *fix_thread(const void *ctx, uint32_t i)
{
    assert_true(i < 3);
    return &((const struct fixture *)ctx)->threads[i];
}

static tare_status fix_events(void *ctx, uint32_t thread, trace_event_fn *fn, void *fn_ctx, tare_error *err)
{
    struct fixture *f = ctx;
    (void)err;
    for (uint64_t round = 0; round < (thread == 0 ? f->repeat : 1); round++) {
        for (size_t i = 0; i < f->n_events; i++) {
            if (f->events[i].thread != thread) continue;
            struct trace_event e = f->events[i];
            e.time_ns += round * 1000000000;
            int rc = fn(fn_ctx, &e);
            if (rc) return (tare_status)rc;
        }
    }
    return TARE_OK;
}

static inline void fix_add(struct fixture *f, struct trace_event e)
{
    f->events[f->n_events++] = e;
    f->threads[e.thread].events++;
}

static inline struct fixture *fix_new(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->sites[SITE_MAIN] = (struct trace_site){"main", "app.c", 10, TARE_SITE_SCOPE};
    f->sites[SITE_STEP] = (struct trace_site){"step", "app.c", 20, TARE_SITE_SCOPE};
    f->sites[SITE_HOSTILE] = (struct trace_site){HOSTILE, "", 0, TARE_SITE_SCOPE};
    f->sites[SITE_TOKENS] = (struct trace_site){"tokens", "app.c", 30, TARE_SITE_COUNTER};
    f->sites[SITE_EPOCH] = (struct trace_site){"epoch", "app.c", 31, TARE_SITE_MARK};
    f->processes[0] = (struct trace_process){.pid = 100,
                                             .parent_pid = 1,
                                             .command = "./app --n 3",
                                             .start_unix_ns = UINT64_C(1794721329123000000),
                                             .start_ns = 0,
                                             .end_ns = 2000000000,
                                             .mode = TARE_AGGREGATE | TARE_EVENTS,
                                             .tsc = true,
                                             .closed = true,
                                             .tick_ns = 0.5};
    f->processes[1] = f->processes[0];
    f->processes[1].pid = 101;
    f->processes[1].parent_pid = 100;
    f->processes[1].command = "./app child";
    f->processes[1].start_ns = 1000;
    f->processes[1].closed = false;
    f->threads[0] = (struct trace_thread){0, 100, "app", 0, 0, false};
    f->threads[1] = (struct trace_thread){0, 102, "", 0, 0, false};
    f->threads[2] = (struct trace_thread){1, 101, "worker \"x\"", 0, 0, false};
    f->repeat = 1;
    fix_add(f, (struct trace_event){.time_ns = 1000, .site = SITE_MAIN, .kind = TRACE_BEGIN});
    fix_add(f, (struct trace_event){
                   .time_ns = 1000, .site = SITE_STEP, .kind = TRACE_BEGIN, .flags = TRACE_WEIGHED});
    fix_add(f, (struct trace_event){.time_ns = 1200, .site = SITE_TOKENS, .kind = TRACE_COUNT, .value = 5});
    fix_add(f, (struct trace_event){.time_ns = 1300, .site = SITE_TOKENS, .kind = TRACE_COUNT, .value = -7});
    fix_add(f, (struct trace_event){
                   .time_ns = 1400, .site = SITE_EPOCH, .kind = TRACE_MARK, .text = "e \"1\"\xfe"});
    fix_add(f, (struct trace_event){.time_ns = 2345, .site = SITE_STEP, .kind = TRACE_END});
    fix_add(f, (struct trace_event){
                   .time_ns = 3001, .site = SITE_MAIN, .kind = TRACE_END, .flags = TRACE_SYNTHETIC});
    fix_add(f, (struct trace_event){.time_ns = 1500, .thread = 2, .site = SITE_HOSTILE, .kind = TRACE_BEGIN});
    fix_add(f, (struct trace_event){.time_ns = 1600, .thread = 2, .site = SITE_STEP, .kind = TRACE_BEGIN});
    fix_add(f, (struct trace_event){.time_ns = 1700, .thread = 2, .site = SITE_STEP, .kind = TRACE_END});
    fix_add(f, (struct trace_event){.time_ns = 9000, .thread = 2, .site = SITE_HOSTILE, .kind = TRACE_END});
    f->source = (struct event_source){.ctx = f,
                                      .events_ctx = f,
                                      .path = "app.tare",
                                      .id = "01K000",
                                      .n_sites = FIX_SITES,
                                      .n_processes = 2,
                                      .n_threads = 3,
                                      .has_events = true,
                                      .has_tree = true,
                                      .loss = &f->loss,
                                      .site = fix_site,
                                      .process = fix_process,
                                      .thread = fix_thread,
                                      .events = fix_events};
    return f;
}

/* ---- a tree by hand ---- */

static inline struct call_node node_of(uint32_t site, uint32_t parent, uint64_t count, double total,
                                       double self)
{
    double n = count ? (double)count : NAN;
    return (struct call_node){.site = site,
                              .parent = parent,
                              .count = count,
                              .threads = 1,
                              .total_ns = {total, total - 0.01 * total, total + 0.01 * total},
                              .self_ns = {self, self - 5, self + 5},
                              .mean_ns = {total / n, 0.99 * total / n, 1.01 * total / n},
                              .gross_total_ns = total + 100,
                              .gross_self_ns = self + 50,
                              .gross_mean_ns = (total + 100) / n,
                              .min_ns = 1,
                              .max_ns = total,
                              .p50_ns = total / n,
                              .p95_ns = NAN,
                              .p99_ns = NAN};
}

/* main > step > step (recursion) and hostile; hostile > step; tokens and epoch below main. */
static inline struct calltree fix_tree(struct call_node nodes[8])
{
    nodes[0] = node_of(CALL_NO_SITE, 0, 0, 10000, 0);
    nodes[0].child = 1;
    nodes[1] = node_of(SITE_MAIN, 0, 1, 8000, 1000);
    nodes[1].child = 2;
    nodes[1].next = 5;
    nodes[2] = node_of(SITE_STEP, 1, 10, 7000, 4000);
    nodes[2].child = 3;
    nodes[2].next = 6;
    nodes[3] = node_of(SITE_STEP, 2, 5, 3000, 3000);
    nodes[4] = node_of(SITE_STEP, 5, 2, 500, 500);
    nodes[5] = node_of(SITE_HOSTILE, 0, 3, 2000, 1500);
    nodes[5].child = 4;
    nodes[6] = (struct call_node){.site = SITE_TOKENS,
                                  .parent = 1,
                                  .kind = TARE_SITE_COUNTER,
                                  .count = 2,
                                  .value = -2,
                                  .threads = 1,
                                  .next = 7};
    nodes[7] =
        (struct call_node){.site = SITE_EPOCH, .parent = 1, .kind = TARE_SITE_MARK, .count = 1, .threads = 1};
    return (struct calltree){.nodes = nodes,
                             .n_nodes = 8,
                             .percentile_error = 0.0054,
                             .inside_ns = {12, 11, 13},
                             .weight_ns = {36, 34, 38},
                             .weighed_pairs = 1234,
                             .weighing_limit_ns = 20};
}

/* Write with `write` into memory; the text is NUL-terminated, release it. */
static inline struct buf fix_export(const struct export_format *format, const struct export_input *in)
{
    struct buf got = BUF_INIT;
    struct stream s;
    tare_error err = TARE_ERROR_INIT;
    stream_init(&s, sink_to_buf(&got), &err);
    format->write(&s, in);
    assert_int_equal(stream_finish(&s), TARE_OK);
    assert_int_equal(s.written, got.len);
    return got;
}

static inline json_t *fix_json(const struct buf *b)
{
    json_error_t why;
    json_t *j = json_loadb(b->data, b->len, JSON_REJECT_DUPLICATES, &why);
    if (!j) fail_msg("not JSON: %s at %d: %.80s", why.text, why.position, b->data);
    return j;
}

#endif
