/* SPDX-License-Identifier: MIT
 * test_summary.c - percentiles, intervals, rates and reasons of samples whose answers are known exactly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "bench/engine.h"
#include "bench/record.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"

enum { MOST = 10000 };
static uint64_t ns[MOST];
static struct run run;
static struct run_case *c;
static tare_error err;

static int set_up(void **state)
{
    (void)state;
    err = (tare_error)TARE_ERROR_INIT;
    if (run_init(&run, "bench", &err) < 0) return 1;
    c = run_add_case(&run, "x");
    return c == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    run_release(&run);
    return mem_live_blocks() != 0;
}

/* 1 .. n in random order, so that rank and value are the same and nothing hangs together. */
static void ranks(size_t n, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) ns[i] = i + 1;
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rng_below(&rng, i);
        uint64_t t = ns[i - 1];
        ns[i - 1] = ns[j];
        ns[j] = t;
    }
}

static void must_summarise(struct sampled s)
{
    s.ns = ns;
    if (!s.unit) s.unit = "texts";
    if (s.units == 0) s.units = 1;
    if (summarise(&run, c, &s, &err) < 0) fail_msg("%s", err.text);
}

/* Every tenth run failed: where they stand among the others is no trend, and the median is known as well as of a run in
 * which none did. Put at the end they were a tenth that wanders. */
static void test_failed_runs_stand_where_they_came(void **state)
{
    (void)state;
    static struct wait waits[100];
    ranks(900, 3);
    for (size_t i = 0; i < 900; i++) ns[i] += 100000;
    for (size_t i = 0; i < 100; i++) waits[i] = (struct wait){5000000, 9 * i + 6, true};
    must_summarise((struct sampled){.n = 900, .waits = waits, .n_waits = 100});
    assert_int_equal(c->latency_ns.p50.value, 100500); /* the 500th of 1000: none that failed is before it */
    assert_true(c->latency_ns.p50.lo.v > 100440 && c->latency_ns.p50.hi.v < 100560);
    assert_false(c->latency_ns.p95.known);
}

/* Half of the runs failed at once. Within which time half of all were served is known, and the tail is beyond it:
 * it was "more than" the tail of the runs that did well, below the median. */
static void test_what_failed_soon_does_not_make_the_tail_short(void **state)
{
    (void)state;
    static struct wait waits[100];
    ranks(100, 4);
    for (size_t i = 0; i < 100; i++) {
        ns[i] += 1000;
        waits[i] = (struct wait){1, i, true};
    }
    must_summarise((struct sampled){.n = 100, .waits = waits, .n_waits = 100});
    assert_int_equal(c->latency_ns.p50.value, 1100); /* the slowest that was served: 100 of 200 */
    assert_int_equal(run_map_get(&c->latency_ns.at_least, "p95")->i, 1100);
    assert_int_equal(run_map_get(&c->latency_ns.at_least, "max")->i, 1100);
    assert_string_equal(run_reason(&c->unknown, "latency_ns.p95"),
                        "more than 1.10 us: 100 of 200 runs failed");
}

/* A queue that only grows: run k took k, and of another hundred it is known that they waited 1 to 100. The median
 * of all is one of them, or of those served: more than that of what is known, as the tail is. */
static void test_a_median_that_waits_may_be_below_is_not_known(void **state)
{
    (void)state;
    static struct wait waits[100];
    for (size_t i = 0; i < 100; i++) {
        ns[i] = 1000 * (i + 1);
        waits[i] = (struct wait){1000 * (100 - i), 100, false};
    }
    must_summarise((struct sampled){.n = 100, .waits = waits, .n_waits = 100});
    assert_false(c->latency_ns.p50.known || c->latency_ns.p95.known);
    assert_int_equal(run_map_get(&c->latency_ns.at_least, "p50")->i, 50000);
    assert_int_equal(run_map_get(&c->latency_ns.at_least, "p95")->i, 95000);
    assert_string_equal(run_reason(&c->unknown, "latency_ns.p50"),
                        "more than 50 us: 100 of 200 runs that were due were not served");
}

/* Five of a hundred wait at the end: p90 hardly depends on them, p95 does, and it is not below p90. */
static void test_few_waits_leave_what_is_below_them_known(void **state)
{
    (void)state;
    static struct wait waits[5];
    ranks(95, 5);
    for (size_t i = 0; i < 95; i++) ns[i] *= 1000;
    for (size_t i = 0; i < 5; i++) waits[i] = (struct wait){1, 95, false};
    must_summarise((struct sampled){.n = 95, .waits = waits, .n_waits = 5});
    assert_int_equal(c->latency_ns.p90.value, 90000);
    assert_false(c->latency_ns.p95.known);
    assert_int_equal(run_map_get(&c->latency_ns.at_least, "p95")->i, 90000);
}

static void test_nearest_rank(void **state)
{
    (void)state;
    ranks(5000, 1);
    must_summarise((struct sampled){.n = 5000});
    const struct run_latency *l = &c->latency_ns;
    assert_int_equal(l->p50.value, 2500);
    assert_int_equal(l->p90.value, 4500);
    assert_int_equal(l->p95.value, 4750);
    assert_int_equal(l->p99.value, 4950);
    assert_int_equal(l->p999.value, 4995);
    assert_int_equal(l->min.v, 1);
    assert_int_equal(l->max.v, 5000);
    assert_true(l->mean.v == 2500 || l->mean.v == 2501); /* 2500.5 */
    assert_int_equal(l->stddev.v, 1444);
    assert_int_equal(c->samples.v, 5000);
    assert_true(c->confidence.v == 0.95);
    assert_string_equal(c->unit, "texts");
}

static void test_odd_ranks(void **state)
{
    (void)state;
    ranks(101, 2);
    must_summarise((struct sampled){.n = 101});
    assert_int_equal(c->latency_ns.p50.value, 51); /* ceil(50.5) */
    assert_int_equal(c->latency_ns.p90.value, 91); /* ceil(90.9) */
    assert_int_equal(c->latency_ns.p95.value, 96); /* ceil(95.95) */
}

/* n = 1000, independent: p95 [936, 964], p99 [983, 997]; with fewer effective ones only wider. */
static void test_intervals(void **state)
{
    (void)state;
    ranks(1000, 3);
    must_summarise((struct sampled){.n = 1000});
    const struct run_latency *l = &c->latency_ns;
    assert_true(l->p95.lo.v <= 936 && l->p95.lo.v > 925);
    assert_true(l->p95.hi.v >= 964 && l->p95.hi.v < 975);
    assert_true(l->p99.lo.v <= 983 && l->p99.hi.v >= 997);
    assert_true(l->p50.lo.v <= 470 && l->p50.hi.v >= 531);
}

static void test_needed(void **state)
{
    (void)state;
    static const double q[] = {0.90, 0.95, 0.99, 0.999};
    for (size_t i = 0; i < 4; i++) {
        uint64_t n = summary_samples_needed(q[i]), low, high;
        stats_quantile_ranks(n, q[i], 0.95, &low, &high);
        assert_true(high <= n);
        stats_quantile_ranks(n - 1, q[i], 0.95, &low, &high);
        assert_true(high > n - 1);
    }
}

static void test_too_few(void **state)
{
    (void)state;
    ranks(100, 4);
    must_summarise((struct sampled){.n = 100});
    assert_true(c->latency_ns.p90.known && c->latency_ns.p95.known);
    assert_false(c->latency_ns.p99.known);
    assert_false(c->latency_ns.p999.known);
    assert_string_equal(run_reason(&c->unknown, "latency_ns.p99"), "needs 368 samples, here 100");
}

static void test_one(void **state)
{
    (void)state;
    ns[0] = 7;
    const struct slice slice = {.n = 1, .wall_ns = 7};
    must_summarise((struct sampled){.n = 1, .slices = &slice, .n_slices = 1});
    assert_int_equal(c->latency_ns.p50.value, 7);
    assert_false(c->latency_ns.p50.lo.known);
    assert_non_null(run_reason(&c->unknown, "latency_ns.p50.lo"));
    assert_false(c->latency_ns.stddev.known);
    assert_non_null(run_reason(&c->unknown, "latency_ns.stddev"));
    assert_false(c->throughput.rate.lo.known);
}

static void test_none(void **state)
{
    (void)state;
    struct sampled s = {.ns = ns, .unit = "runs", .units = 1};
    assert_int_equal(summarise(&run, c, &s, &err), TARE_INVALID);
}

/* Long stretches of the same: the percentile is there, its end is not. */
static void test_hanging_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < 400; i++) ns[i] = i / 100 % 2 ? 2000 + i % 100 : 1000 + i % 100;
    must_summarise((struct sampled){.n = 400});
    assert_true(c->latency_ns.p99.known);
    assert_false(c->latency_ns.p99.hi.known);
    assert_non_null(run_reason(&c->unknown, "latency_ns.p99.hi"));
}

static void test_kept(void **state)
{
    (void)state;
    ranks(300, 5);
    must_summarise((struct sampled){.n = 300});
    assert_string_equal(c->samples_raw.kept, "all");
    assert_int_equal(c->samples_raw.n, 300);
    assert_memory_equal(c->samples_raw.ns, ns, 300 * sizeof *ns); /* in the order they were taken */
    assert_int_equal(c->latency_ns.histogram.scale, 6);
    uint64_t sum = c->latency_ns.histogram.zero;
    for (size_t i = 0; i < c->latency_ns.histogram.n_counts; i++) sum += c->latency_ns.histogram.counts[i];
    assert_int_equal(sum, 300);
}

static void test_throughput(void **state)
{
    (void)state;
    static const struct slice slices[] = {{.n = 100, .wall_ns = 1000},
                                          {.n = 110, .wall_ns = 1000},
                                          {.n = 90, .wall_ns = 1000},
                                          {.n = 100, .wall_ns = 1000}};
    for (size_t i = 0; i < 400; i++) ns[i] = 10;
    must_summarise((struct sampled){.n = 400, .units = 8, .slices = slices, .n_slices = 4});
    const struct run_estimate *r = &c->throughput.rate;
    assert_true(fabs(r->value - 8e8) < 1);
    /* rates 8, 8.8, 7.2, 8 (1e8): sd 0.6532, t(.975, 3) 3.1824, / 2 */
    assert_true(fabs(r->hi.v - (8e8 + 1.03936e8)) < 1e5);
    assert_true(fabs(r->lo.v - (8e8 - 1.03936e8)) < 1e5);
    assert_string_equal(c->throughput.unit, "texts/s");
    assert_int_equal(c->units_per_run.v, 8);
}

static void test_many_slices_are_ten_batches(void **state)
{
    (void)state;
    struct slice slices[1000];
    for (size_t i = 0; i < 1000; i++) slices[i] = (struct slice){.n = 1, .wall_ns = i % 2 ? 500 : 1500};
    for (size_t i = 0; i < 1000; i++) ns[i] = 10;
    must_summarise((struct sampled){.n = 1000, .slices = slices, .n_slices = 1000});
    assert_true(c->throughput.rate.hi.v - c->throughput.rate.lo.v < 1); /* each batch has as many of both */
}

/* One batch of ten that stood still: the rate was never below that batch's, and surely not 0. */
static void test_a_stall_leaves_a_rate_above_0(void **state)
{
    (void)state;
    struct slice slices[10];
    for (size_t i = 0; i < 10; i++) slices[i] = (struct slice){.n = 100, .wall_ns = i == 4 ? 1000000 : 1000};
    for (size_t i = 0; i < 1000; i++) ns[i] = 10;
    must_summarise((struct sampled){.n = 1000, .units = 1, .slices = slices, .n_slices = 10});
    const struct run_estimate *r = &c->throughput.rate;
    assert_true(fabs(r->lo.v - 1e5) < 1 && r->value > r->lo.v && r->hi.v > r->value && r->hi.v <= 1e8 + 1);
}

static void test_no_time(void **state)
{
    (void)state;
    memset(ns, 0, 100 * sizeof *ns);
    must_summarise((struct sampled){.n = 100});
    assert_int_equal(c->latency_ns.p50.value, 0);
    assert_false(c->throughput.rate.known);
    assert_non_null(run_reason(&c->unknown, "throughput"));
}

static void test_out_of_memory(void **state)
{
    (void)state;
    ranks(500, 6);
    const struct slice slice = {.n = 500, .wall_ns = 1000};
    struct sampled s = {.ns = ns, .n = 500, .unit = "runs", .units = 1, .slices = &slice, .n_slices = 1};
    for (long n = 0;; n++) {
        struct run r;
        assert_int_equal(run_init(&r, "bench", &err), TARE_OK);
        struct run_case *x = run_add_case(&r, "x");
        mem_fail_after(n);
        tare_status status = summarise(&r, x, &s, &err);
        mem_fail_after(-1);
        bool done = status == TARE_OK && !r.arena.failed;
        assert_true(status == TARE_OK || status == TARE_NOMEM);
        run_release(&r);
        if (done) break;
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_nearest_rank), T(test_odd_ranks), T(test_intervals),  T(test_needed),
        T(test_failed_runs_stand_where_they_came),
        T(test_what_failed_soon_does_not_make_the_tail_short),
        T(test_a_median_that_waits_may_be_below_is_not_known),
        T(test_few_waits_leave_what_is_below_them_known),
        T(test_too_few),      T(test_one),       T(test_none),       T(test_hanging_together),
        T(test_kept),         T(test_throughput), T(test_many_slices_are_ten_batches), T(test_no_time),
        T(test_a_stall_leaves_a_rate_above_0),
        T(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
