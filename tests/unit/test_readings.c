/* SPDX-License-Identifier: MIT
 * test_readings.c - batches as they come, and pieces of time: with every allocation failing in turn, and the edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/mem.h"
#include "server/live/buckets.h"
#include "server/live/readings.h"

static const char batch[] =
    "{\"samples\":[{\"value\":3,\"name\":\"b\",\"label\":\"x\",\"more\":[1,{}]},{\"name\":\"a\",\"value\":null},"
    "{\"name\":\"b\",\"label\":\"x\",\"value\":-1.5e2,\"at\":5000},{\"name\":\"b\",\"value\":4}],"
    "\"at\":7000,\"about\":{\"os\":\"Debian\",\"n\":2},\"host\":\"gpu7\",\"batch\":\"B-1\",\"unknown\":null}";

/* Members in any order; the batch's time where a sample has none; by series, then by time. */
static void any_order(void **state)
{
    struct arena arena = ARENA_INIT;
    struct readings r;
    tare_error err = TARE_ERROR_INIT;
    readings_init(&r, &arena);
    if (readings_read_json(&r, batch, sizeof batch - 1, &err) != TARE_OK) fail_msg("%s", err.text);
    assert_int_equal(readings_close(&r, 7000, &err), TARE_OK);
    assert_string_equal(r.host, "gpu7");
    assert_string_equal(r.id, "B-1");
    assert_string_equal(r.about, "{\"os\":\"Debian\",\"n\":2}");
    assert_int_equal(r.metrics.n, 2);
    const struct store_reading wanted[] = {{0, 5000, -150}, {0, 7000, 3}, {1, 7000, 4}};
    assert_int_equal(r.at.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(r.at.items[i].metric, wanted[i].metric);
        assert_int_equal(r.at.items[i].at_ms, wanted[i].at_ms);
        assert_true(r.at.items[i].value == wanted[i].value);
    }
    readings_release(&r);
    arena_release(&arena);
    (void)state;
}

static void memory_runs_out(void **state)
{
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK; n++) {
        struct arena arena = ARENA_INIT;
        struct readings r;
        mem_fail_after(n);
        readings_init(&r, &arena);
        s = readings_read_json(&r, batch, sizeof batch - 1, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        readings_release(&r);
        arena_release(&arena);
        assert_int_equal(mem_live_blocks(), 0);
    }
    (void)state;
}

static void a_clock_that_is_ahead(void **state)
{
    struct arena arena = ARENA_INIT;
    struct readings r;
    readings_init(&r, &arena);
    assert_int_equal(readings_read_json(&r, batch, sizeof batch - 1, NULL), TARE_OK);
    assert_int_equal(readings_close(&r, 7000 - READINGS_AHEAD_MS, NULL), TARE_OK);
    assert_int_equal(readings_close(&r, 6999 - READINGS_AHEAD_MS, NULL), TARE_INVALID);
    readings_release(&r);
    arena_release(&arena);
    (void)state;
}

static void ranges(void **state)
{
    static const struct {
        int64_t from, to;
        size_t points;
        int64_t step;
        size_t n;
    } cases[] = {
        {0, 1000, 10, 100, 10},
        {0, 1001, 10, 101, 10},
        {0, 5, 10, 1, 5},
        {0, 11, 4, 3, 4},
        {0, 9, 4, 3, 3},
        {7, 8, 1, 1, 1},
        {1, INT64_C(1) << 52, 2000, (INT64_C(1) << 52) / 2000 + 1, 2000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buckets_range r = buckets_range(cases[i].from, cases[i].to, cases[i].points, 1);
        assert_int_equal(r.step_ms, cases[i].step);
        assert_int_equal(r.n, cases[i].n);
        struct bucket *at = calloc(r.n, sizeof *at);
        struct buckets_point v[] = {{r.from_ms, 1}, {r.to_ms - 1, 2}, {r.to_ms, 3}, {r.from_ms - 1, 4}};
        buckets_fill(at, &r, false, v, 4); /* the first is in the first piece, the last moment in the last */
        assert_true(at[0].least == 1 && at[r.n - 1].greatest == 2);
        uint64_t sum = 0;
        for (size_t k = 0; k < r.n; k++) sum += at[k].n;
        assert_int_equal(sum, 2);
        free(at);
    }
    (void)state;
}

static void a_counter_gives_rates(void **state)
{
    struct buckets_range r = buckets_range(1000, 1000 + 3 * BUCKETS_GAP_MS, 3, 1);
    struct bucket at[3] = {{0}};
    struct buckets_point v[] = {
        /* one of them twice */
        {1000 + 2 * BUCKETS_GAP_MS, 50}, {0, 10},    {1000, 20}, {3000, 24},
        {3000 + BUCKETS_GAP_MS, 84},     {3000, 24},
    };
    buckets_fill(at, &r, true, v, 6);
    assert_int_equal(at[0].n, 2); /* 10 in 1 s, 4 in 2 s */
    assert_true(at[0].least == 2 && at[0].greatest == 10 && at[0].sum / at[0].weight == 14.0 / 3);
    assert_int_equal(at[1].n, 1); /* exactly as far apart as may be */
    assert_true(at[1].least == 1);
    assert_int_equal(at[2].n, 0); /* it fell */
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order), cmocka_unit_test(memory_runs_out),     cmocka_unit_test(a_clock_that_is_ahead),
        cmocka_unit_test(ranges),    cmocka_unit_test(a_counter_gives_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
