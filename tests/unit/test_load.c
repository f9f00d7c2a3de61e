/* SPDX-License-Identifier: MIT
 * test_load.c - the closed loop with several workers, the open loop and its schedule, scenarios, and what is
 * made of slices: growth of memory, outliers. Virtual time where one worker is enough; real time without
 * limits where not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/bench.h"
#include "core/mem.h"
#include "fake_subject.h"

static struct fake_subject subject;
static struct run run;
static tare_error err;
static struct bench_case one_case = {.name = "only"};

static int set_up(void **state)
{
    (void)state;
    fake_machine();
    err = (tare_error)TARE_ERROR_INIT;
    one_case.subject = &subject.base;
    return run_init(&run, "bench", &err) < 0;
}

static int tear_down(void **state)
{
    (void)state;
    run_release(&run);
    real_machine();
    return mem_live_blocks() != 0;
}

static struct bench_plan plan_of(struct fake_script script)
{
    fake_open(&subject, script);
    struct bench_plan plan = BENCH_PLAN_INIT;
    plan.cases = &one_case;
    plan.n_cases = 1;
    plan.warmup_runs = 0;
    plan.interrupted = &subject.stop;
    return plan;
}

static const struct run_case *must_run(const struct bench_plan *plan)
{
    if (bench_run(&run, plan, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(run.cases.n, 1);
    struct buf text = BUF_INIT, missing = BUF_INIT;
    run.subject.type = run.subject.name = "fake";
    if (run_write(&run, &text, &err) < 0 || run_unexplained(&run, &missing, &err) < 0)
        fail_msg("%s", err.text);
    if (strstr(missing.data, "cases[")) fail_msg("without a reason: %s", missing.data);
    buf_release(&text);
    buf_release(&missing);
    return run.cases.at[0];
}

/* ---- the open loop, in virtual time ---- */

static void test_open_idle(void **state)
{
    (void)state;
    struct bench_plan plan = plan_of((struct fake_script){.base_ns = 1000000});
    plan.load = BENCH_OPEN;
    plan.arrivals = ARRIVALS_CONSTANT;
    plan.rate = 100;
    const struct run_case *c = must_run(&plan);
    assert_int_equal(c->samples.v, 1000);
    assert_int_equal(c->latency_ns.min.v, 1000000); /* no queue: latency is the run */
    assert_int_equal(c->latency_ns.max.v, 1000000);
    assert_true(fabs(c->throughput.rate.value - 100) < 0.5);
    assert_true(fabs(run.cases.at[0]->open_loop.offered.v - 100) < 0.5);
    assert_int_equal(run.cases.at[0]->open_loop.queued.v, 0);
    assert_int_equal(run.cases.at[0]->open_loop.late_starts.v, 0);
    assert_false(run.cases.at[0]->open_loop.overloaded.v);
    assert_string_equal(run_map_get(&run.config, "load")->s, "open");
}

/* Every 500th run stalls for a second. A closed loop meets one slow run in 500; of users who come every 10 ms,
 * a hundred wait each time. */
static void test_open_shows_the_stall(void **state)
{
    (void)state;
    struct fake_script script = {.base_ns = 1000000, .stall_every = 500, .stall_ns = 1000000000};
    struct bench_plan plan = plan_of(script);
    plan.load = BENCH_OPEN;
    plan.arrivals = ARRIVALS_CONSTANT;
    plan.rate = 100;
    plan.budget_ns = 20 * NS_PER_S;
    const struct run_case *c = must_run(&plan);
    assert_int_equal(c->samples.v, 1999); /* the last one came while the last stall went on */
    assert_int_equal(c->open_loop.due.v, 2000);
    uint64_t open_p95 = c->latency_ns.p95.value, open_p99 = c->latency_ns.p99.value;
    /* 3 stalls x 111 arrivals wait for up to a second: a sixth of all, evenly spread */
    assert_true(open_p95 > 650000000 && open_p95 < 850000000);
    assert_true(open_p99 > 930000000);
    assert_true(run.cases.at[0]->open_loop.queued.v > 300);
    assert_true(run.cases.at[0]->open_loop.longest_delay_ns.v > 900000000);
    assert_false(run.cases.at[0]->open_loop.overloaded.v);

    run_release(&run);
    assert_int_equal(run_init(&run, "bench", &err), TARE_OK);
    plan = plan_of(script);
    plan.max_runs = 2000;
    plan.min_runs = 2000;
    c = must_run(&plan);
    assert_int_equal(c->latency_ns.p95.value, 1000000); /* the closed loop hides it */
    assert_int_equal(c->latency_ns.p99.value, 1000000);
}

static void test_overload(void **state)
{
    (void)state;
    struct bench_plan plan = plan_of((struct fake_script){.base_ns = 20000000});
    plan.load = BENCH_OPEN;
    plan.rate = 100; /* it can do 50 */
    const struct run_case *c = must_run(&plan);
    assert_true(run.cases.at[0]->open_loop.overloaded.v);
    assert_true(fabs(c->throughput.rate.value - 50) < 1);
    assert_true(run.cases.at[0]->open_loop.due.v > run.cases.at[0]->open_loop.served.v);
    assert_false(c->latency_ns.max.known); /* of those that still wait nobody knows */
    assert_true(run_map_get(&c->latency_ns.at_least, "max")->i > 4 * (int64_t)NS_PER_S);
    assert_true(fake_time < UINT64_C(1000000000000) + 11 * NS_PER_S); /* and yet it ended in time */
}

static void test_open_max_runs(void **state)
{
    (void)state;
    struct bench_plan plan = plan_of((struct fake_script){.base_ns = 1000000});
    plan.load = BENCH_OPEN;
    plan.rate = 100;
    plan.max_runs = 50;
    const struct run_case *c = must_run(&plan);
    assert_int_equal(c->samples.v, 50);
    assert_true(c->throughput.rate.value > 50); /* over the time it took, not over the budget */
}

/* 20 arrivals a second for 5 s, one worker; the 90th takes 10 s. Of the 100 that were due 90 are served, 89 of them at
 * once. By the schedule p95 is above 9.75 s; of the 90 that were served alone it would be 1 ms. */
static void test_what_was_not_served_is_in_the_percentiles(void **state)
{
    (void)state;
    struct bench_plan plan =
        plan_of((struct fake_script){.base_ns = 1000000, .stall_every = 91, .stall_ns = 10 * NS_PER_S});
    plan.load = BENCH_OPEN;
    plan.arrivals = ARRIVALS_CONSTANT;
    plan.rate = 20;
    plan.budget_ns = 5 * NS_PER_S;
    const struct run_case *c = must_run(&plan);
    assert_int_equal(c->open_loop.due.v, 100);
    assert_int_equal(c->open_loop.served.v, 90);
    assert_int_equal(c->samples.v, 90);
    assert_true(fabs(c->open_loop.offered.v - 20) < 1e-9); /* not over a window that the stall made longer */
    assert_true(c->open_loop.overloaded.v);
    assert_int_equal(c->latency_ns.p50.value, 1000000);
    assert_false(c->latency_ns.p90.known || c->latency_ns.p95.known || c->latency_ns.max.known ||
                 c->latency_ns.mean.known);
    /* The 90th began at 4.45 s and ended at 14.451 s: 10.001 s, the longest of all. Those from 4.5 s to 4.95 s waited
     * until then: 9.501 s to 9.951 s. The 95th of all, by length, is the one of 4.7 s. */
    assert_int_equal(run_map_get(&c->latency_ns.at_least, "p90")->i, 9501000000); /* of 4.95 s; the truth */
    assert_int_equal(run_map_get(&c->latency_ns.at_least, "p95")->i, 9751000000);
    assert_int_equal(run_map_get(&c->latency_ns.at_least, "max")->i, 10001000000);
    assert_string_equal(run_reason(&c->unknown, "latency_ns.p95"),
                        "more than 9.75 s: 10 of 100 runs that were due were not served");
}

static void test_open_failure(void **state)
{
    (void)state;
    struct bench_plan plan = plan_of((struct fake_script){.base_ns = 1000000, .fail_at = 40});
    plan.load = BENCH_OPEN;
    plan.arrivals = ARRIVALS_CONSTANT;
    plan.rate = 100;
    const struct run_case *c = must_run(&plan); /* an outcome, not the end */
    assert_int_equal(c->open_loop.due.v, 1000);
    assert_int_equal(c->open_loop.served.v, 999);
    assert_int_equal(c->open_loop.failed.v, 1);
    assert_false(c->open_loop.overloaded.v);
    assert_string_equal(c->failure, "run 40: made up: this run fails");
    assert_int_equal(c->latency_ns.p99.value, 1000000);
    assert_false(c->latency_ns.max.known);
}

/* The first arrival is number 0: that was taken for "no number". */
static void test_open_failure_of_the_first(void **state)
{
    (void)state;
    struct bench_plan plan = plan_of((struct fake_script){.base_ns = 1000000, .fail_at = 2});
    plan.load = BENCH_OPEN;
    plan.arrivals = ARRIVALS_CONSTANT;
    plan.rate = 100;
    assert_string_equal(must_run(&plan)->failure, "run 2: made up: this run fails");
}

static void test_open_interrupted(void **state)
{
    (void)state;
    struct bench_plan plan = plan_of((struct fake_script){.base_ns = 1000000, .interrupt_at = 100});
    plan.load = BENCH_OPEN;
    plan.arrivals = ARRIVALS_CONSTANT;
    plan.rate = 100;
    const struct run_case *c = must_run(&plan);
    assert_int_equal(c->samples.v, 99); /* and the first run, which is apart */
    assert_true(fabs(c->throughput.rate.value - 100) < 3);
    assert_true(run_map_get(&run.config, "interrupted")->yes);
}

/* ---- several workers, in real time ---- */

static void test_workers(void **state)
{
    (void)state;
    real_machine();
    struct bench_plan plan = plan_of((struct fake_script){.base_ns = 2000000, .real = true});
    plan.concurrency = 4;
    plan.max_runs = 200;
    plan.budget_ns = NS_PER_S;
    const struct run_case *c = must_run(&plan);
    for (unsigned w = 0; w < 4; w++) assert_true(subject.by_worker[w] > 0);
    assert_true(c->latency_ns.min.v >= 2000000);
    /* Sleeping is done side by side: more than one worker alone could do. */
    double alone = 1e9 / (double)c->latency_ns.mean.v;
    assert_true(c->throughput.rate.value > 2 * alone);
    assert_true(c->samples.v >= 30);
    assert_int_equal(run_map_get(&run.config, "concurrency")->i, 4);
}

static void test_open_workers(void **state)
{
    (void)state;
    real_machine();
    struct bench_plan plan = plan_of((struct fake_script){.base_ns = 20000000, .real = true});
    plan.load = BENCH_OPEN;
    plan.arrivals = ARRIVALS_CONSTANT;
    plan.rate = 100; /* one worker could do 50 */
    plan.concurrency = 8;
    plan.budget_ns = NS_PER_S;
    const struct run_case *c = must_run(&plan);
    assert_true(c->samples.v > 50);
    assert_true(c->latency_ns.min.v >= 20000000);
    unsigned used = 0;
    for (unsigned w = 0; w < 8; w++) used += subject.by_worker[w] > 0;
    assert_true(used >= 2);
}

static void test_worker_fails(void **state)
{
    (void)state;
    real_machine();
    for (int open = 0; open < 2; open++) {
        struct bench_plan plan =
            plan_of((struct fake_script){.base_ns = 1000000, .real = true, .fail_at = 30});
        plan.concurrency = 3;
        plan.load = open ? BENCH_OPEN : BENCH_CLOSED;
        plan.rate = 500;
        assert_int_equal(bench_run(&run, &plan, &err), TARE_OK);
        const struct run_case *c = run.cases.at[run.cases.n - 1];
        const char *why = c->failure;
        assert_int_equal(c->failed_runs.v, 1);
        assert_non_null(strstr(why, "run "));
        assert_non_null(strstr(why, "made up: this run fails"));
        assert_int_equal(subject.live, 0);
    }
}

struct together {
    unsigned calls[5];
};

static void count_call(void *ctx, unsigned worker)
{
    ((struct together *)ctx)->calls[worker]++;
}

static void test_pool(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 5; n++) {
        struct pool pool;
        struct together t = {{0}};
        assert_int_equal(pool_open(&pool, n, &err), TARE_OK);
        for (int i = 0; i < 100; i++) pool_run(&pool, count_call, &t);
        for (unsigned w = 0; w < 5; w++) assert_int_equal(t.calls[w], w < n ? 100 : 0);
        pool_close(&pool);
    }
    struct pool none = {0};
    pool_close(&none);
}

/* ---- growth and outliers ---- */

static void test_slope_needs_slices(void **state)
{
    (void)state;
    struct slice few[5] = {{.runs = 10}, {.runs = 10}, {.runs = 10}, {.runs = 10}, {.runs = 10}};
    struct slices s = {few, 5, 5};
    struct interval i;
    bool known = true;
    assert_int_equal(memory_slope(&s, &i, &known, &err), TARE_OK);
    assert_false(known);
    s.n = 0;
    assert_int_equal(memory_slope(&s, &i, &known, &err), TARE_OK);
    assert_false(known);
}

static void test_slope(void **state)
{
    (void)state;
    struct slice many[100];
    struct slices s = {many, 100, 100};
    struct interval i;
    bool known;
    for (size_t k = 0; k < 100; k++) /* 4 KiB every second slice of 10 runs: 205 bytes per run */
        many[k] = (struct slice){.runs = 10, .growth = k % 2 ? 4096 : 0};
    assert_int_equal(memory_slope(&s, &i, &known, &err), TARE_OK);
    assert_true(known && fabs(i.value - 204.8) < 30 && i.lo > 100);
    for (size_t k = 0; k < 100; k++) /* up and down */
        many[k] = (struct slice){.runs = 10, .growth = k % 2 ? 4096 : -4096};
    assert_int_equal(memory_slope(&s, &i, &known, &err), TARE_OK);
    assert_true(known && i.lo <= 0 && i.hi >= 0);
    for (size_t k = 0; k < 100; k++) /* a cache that fills: the first fifth only */
        many[k] = (struct slice){.runs = 10, .growth = k < 20 ? 1 << 20 : 0};
    assert_int_equal(memory_slope(&s, &i, &known, &err), TARE_OK);
    assert_true(known && i.lo <= 0);
}

static void test_outliers(void **state)
{
    (void)state;
    uint64_t times[100];
    struct slice slices[10];
    struct case_work w = {.samples = {times, 100, 100}, .slices = {slices, 10, 10}};
    struct run_outliers o;
    for (size_t i = 0; i < 100; i++) times[i] = 1000 + i % 7;
    for (size_t i = 0; i < 10; i++) slices[i] = (struct slice){.first = 10 * i, .n = 10};
    times[15] = times[35] = times[55] = times[85] = 9000;
    uint64_t switched[] = {3, 15, 54, 56};
    w.switched = (struct times){switched, 4, 4};
    slices[3].stolen = true;
    slices[8].throttled = true;
    assert_int_equal(outliers_explain(&w, &o, &err), TARE_OK);
    assert_true(o.known);
    assert_int_equal(o.count.v, 4);
    assert_int_equal(o.explained.v, 3); /* the one at 55 has no excuse */
    assert_true(o.limit_ns.v > 1006 && o.limit_ns.v < 9000);
    w.open.known = true;
    assert_int_equal(outliers_explain(&w, &o, &err), TARE_OK);
    assert_true(o.known && !o.explained.known);
    w.samples.n = 19;
    assert_int_equal(outliers_explain(&w, &o, &err), TARE_OK);
    assert_false(o.known);
}

/* ---- scenarios ---- */

static void test_presets(void **state)
{
    (void)state;
    struct bench_plan plan = BENCH_PLAN_INIT;
    const struct bench_preset *p;
    assert_int_equal(bench_preset_apply(&plan, "server", &p, &err), TARE_OK);
    assert_true(plan.load == BENCH_OPEN && plan.percentile == 0.99 && p->needs_rate);
    assert_int_equal(bench_preset_apply(&plan, "single-stream", &p, &err), TARE_OK);
    assert_true(plan.load == BENCH_CLOSED && plan.percentile == 0.90 && plan.concurrency == 1 &&
                p->batch == 0);
    assert_int_equal(bench_preset_apply(&plan, "multi-stream", &p, &err), TARE_OK);
    assert_true(p->batch == 8 && plan.percentile == 0.99);
    assert_int_equal(bench_preset_apply(&plan, "offline", NULL, &err), TARE_OK);
    assert_true(plan.percentile == 0);
    assert_int_equal(bench_preset_apply(&plan, "offlien", NULL, &err), TARE_INVALID);
    assert_string_equal(err.text,
                        "no scenario 'offlien': choose single-stream, multi-stream, server, offline");
    mem_fail_after(0);
    assert_int_equal(bench_preset_apply(&plan, "x", NULL, &err), TARE_NOMEM);
    mem_fail_after(-1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_open_idle),
        T(test_open_shows_the_stall),
        T(test_overload),
        T(test_open_max_runs),
        T(test_what_was_not_served_is_in_the_percentiles),
        T(test_open_failure),
        T(test_open_failure_of_the_first),
        T(test_open_interrupted),
        T(test_workers),
        T(test_open_workers),
        T(test_worker_fails),
        T(test_pool),
        T(test_slope_needs_slices),
        T(test_slope),
        T(test_outliers),
        T(test_presets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
