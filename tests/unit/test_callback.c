/* SPDX-License-Identifier: MIT
 * test_callback.c - functions of this process as a subject: how often they are called, how long they take, what the
 * document says, and what happens when they fail. Compares times with each other, with wide margins. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "analyze/judge/measure.h"
#include "bench/bench.h"
#include "core/clock.h"
#include "core/mem.h"
#include "subject/callback.h"

struct counted {
    uint64_t calls, befores, made, finished;
    uint64_t spin_ns, tell_ns;
    uint64_t fail_at; /* this call and all after it fail; 0: none */
};

static tare_status make_state(void *ctx, const struct case_params *p, void **state, tare_error *err)
{
    struct counted *c = ctx;
    (void)p, (void)err;
    c->made++;
    *state = c;
    return TARE_OK;
}

static tare_status spin(void *state, unsigned worker, struct subject_cost *cost, tare_error *err)
{
    struct counted *c = state;
    (void)worker;
    if (++c->calls >= c->fail_at && c->fail_at) return error_set(err, TARE_DENIED, "call %d", (int)c->calls);
    uint64_t until = c->spin_ns ? clock_raw_ns() + c->spin_ns : 0;
    while (until && clock_raw_ns() < until) continue;
    if (c->tell_ns) cost->wall_ns = c->tell_ns;
    return TARE_OK;
}

static tare_status idle(void *state, unsigned worker, struct subject_cost *cost, tare_error *err)
{
    (void)state, (void)worker, (void)cost, (void)err;
    return TARE_OK;
}

static tare_status count_before(void *state, unsigned worker, tare_error *err)
{
    (void)worker, (void)err;
    ((struct counted *)state)->befores++;
    return TARE_OK;
}

static void count_finish(void *state)
{
    ((struct counted *)state)->finished++;
}

static struct callback_options options(struct counted *c)
{
    return (struct callback_options){.type = "python",
                                     .name = "spin",
                                     .path = "spin.c",
                                     .runtime = "c",
                                     .runtime_version = "11",
                                     .ctx = c,
                                     .prepare = make_state,
                                     .call = spin,
                                     .nothing = idle,
                                     .finish = count_finish};
}

/* One bench of it, 20 ms; the run is the caller's. */
static tare_status weigh(const struct callback_options *o, struct run *run, enum bench_load load,
                         tare_error *err)
{
    struct dim_value length = {"length", 7};
    struct bench_case c = {.name = "batch=3,length=7", .params = {.batch = 3, .dims = &length, .n_dims = 1}};
    struct bench_plan plan = BENCH_PLAN_INIT;
    tare_status s = subject_open_callback(&c.subject, o, err);
    if (s < 0) return s;
    plan.cases = &c;
    plan.n_cases = 1;
    plan.budget_ns = 20000000;
    plan.load = load;
    plan.rate = 1000;
    if (load == BENCH_OPEN) { /* a few, with time to serve them on a machine that is busy */
        plan.max_runs = 10;
        plan.warmup_runs = 3;
        plan.budget_ns = UINT64_C(5000000000);
    }
    s = c.subject->ops->describe(c.subject, run, err);
    if (s == TARE_OK) s = bench_run(run, &plan, err);
    subject_close(c.subject);
    return s;
}

static void must_weigh(const struct callback_options *o, struct run *run, enum bench_load load)
{
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(run, "bench", &err), TARE_OK);
    if (weigh(o, run, load, &err) < 0) fail_msg("%s", err.text);
}

static void long_calls_one_at_a_time(void **state)
{
    (void)state;
    struct counted c = {.spin_ns = 50000};
    struct callback_options o = options(&c);
    struct run run;
    must_weigh(&o, &run, BENCH_CLOSED);
    const struct run_case *m = run.cases.at[0];
    assert_true(m->latency_ns.p50.value >= 50000);
    assert_int_equal(run_map_get(&m->params, "batch")->i, 3);
    assert_int_equal(run_map_get(&m->params, "length")->i, 7);
    assert_int_equal(m->units_per_run.v, 3);
    assert_int_equal(m->samples.v + m->warmup_runs.v, c.calls);
    assert_int_equal(run.cases.at[0]->calls_per_sample.v, 1);
    assert_int_equal(c.made, c.finished);
    assert_string_equal(run.subject.type, "python");
    assert_string_equal(run.subject.runtime.version, "11");
    run_release(&run);
}

static void short_calls_several_at_a_time(void **state)
{
    (void)state;
    struct counted c = {0};
    struct callback_options o = options(&c);
    struct run run;
    must_weigh(&o, &run, BENCH_CLOSED);
    const struct run_case *m = run.cases.at[0];
    assert_true(m->calls_per_sample.v > 1);
    assert_true(c.calls > 2 * m->samples.v);
    assert_true(m->latency_ns.p50.value < 1000);
    assert_true(m->self.ns_per_run.v < 1000);
    double runs = run_case_runs(m);
    struct run_estimate cpu;
    assert_true(runs == (double)(m->samples.v * m->calls_per_sample.v) && runs <= (double)c.calls);
    assert_true(measure_named(m, "cpu.time", &cpu));
    assert_true(fabs(cpu.value * runs - (double)(m->cpu.user_ns.v + m->cpu.system_ns.v)) < 1);
    run_release(&run);
}

static void grouped_calls_are_never_prepared_told_or_scheduled_ones(void **state)
{
    (void)state;
    struct counted prepared = {0}, told = {.tell_ns = 123}, planned = {0};
    struct callback_options o = options(&prepared);
    struct run run;
    o.before = count_before;
    o.before_each = true;
    must_weigh(&o, &run, BENCH_CLOSED);
    assert_int_equal(prepared.befores, prepared.calls);
    assert_int_equal(run.cases.at[0]->calls_per_sample.v, 1);
    run_release(&run);
    o = options(&told);
    o.tells_time = true;
    must_weigh(&o, &run, BENCH_CLOSED);
    assert_int_equal(run.cases.at[0]->latency_ns.p50.value, 123);
    assert_int_equal(run.cases.at[0]->calls_per_sample.v, 1);
    run_release(&run);
    o = options(&planned);
    must_weigh(&o, &run, BENCH_OPEN);
    assert_int_equal(run.cases.at[0]->calls_per_sample.v, 1);
    run_release(&run);
}

static void calls_that_fail_name_the_first_and_end_their_case(void **state)
{
    (void)state;
    struct counted c = {.spin_ns = 1000, .fail_at = 4};
    struct callback_options o = options(&c);
    struct run run;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(&run, "bench", &err), TARE_OK);
    assert_int_equal(weigh(&o, &run, BENCH_CLOSED, &err), TARE_DENIED);
    assert_string_equal(err.text, "case batch=3,length=7: run 4: call 4");
    assert_true(c.calls >= 3 + 3 && c.calls < 20); /* three more than were served, in stretches */
    assert_int_equal(c.made, c.finished);
    run_release(&run);
}

static void out_of_memory_leaves_nothing(void **state)
{
    (void)state;
    long live = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK; n++) {
        struct counted c = {.spin_ns = 20000};
        struct callback_options o = options(&c);
        struct subject *subject = NULL;
        struct instance *instance = NULL;
        struct run_map params = {0};
        struct run run = {0};
        struct case_record to = {&run, &params};
        mem_fail_after(n);
        s = subject_open_callback(&subject, &o, NULL);
        if (s == TARE_OK)
            s = subject->ops->prepare(subject, &(struct case_params){.batch = 1}, &to, &instance, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        if (instance) subject->ops->finish(instance);
        subject_close(subject);
        run_release(&run);
        assert_int_equal(c.made, c.finished);
        assert_int_equal(mem_live_blocks(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_calls_one_at_a_time),
        cmocka_unit_test(short_calls_several_at_a_time),
        cmocka_unit_test(grouped_calls_are_never_prepared_told_or_scheduled_ones),
        cmocka_unit_test(calls_that_fail_name_the_first_and_end_their_case),
        cmocka_unit_test(out_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
