/* SPDX-License-Identifier: MIT
 * test_gpu_steps.c - the steps of made-up timelines: by range, by the order of kernels, or none; and the idle time of
 * each. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analyze/gpu/gpu_sum.h"
#include "analyze/gpu/gpu_work.h"
#include "gpu_fixture.h"

/* Steps of 1 ms, the last of 3 ms, within one outer range and around inner ones; the GPU works 400 us of each, 100 of
 * them on two streams at once. Numbers in their names do not matter. */
static void steps_by_range(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    uint64_t at = 100;
    begin(m);
    name(m, 9, "epoch");
    range(m, 1, 9, 1, 0);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t ns = i == 9 ? 3000 : 1000;
        char text[16];
        snprintf(text, sizeof text, "step %d", (int)i + 8);
        name(m, 20 + i, text);
        range(m, 2 + i, 20 + i, at, 0);
        range(m, 100 + i, 7, at + 1, 0); /* within each */
        kernel(m, 1 + 3 * i, at + 10, at + 210, 11);
        kernel(m, 2 + 3 * i, at + 110, at + 310, 22);
        copy(m, 3 + 3 * i, at + 310, at + 410, 10);
        range(m, 100 + i, 0, 0, at + 500);
        range(m, 2 + i, 0, 0, at + ns);
        at += ns;
    }
    range(m, 1, 0, 0, at + 100);
    analyse(m, &p);
    const struct gpu_steps *steps = &p.devices.at[0]->steps;
    assert_true(steps->known);
    assert_string_equal(steps->found_by, "range");
    assert_int_equal(steps->count, 10);
    assert_int_equal(steps->operations, 3);
    assert_string_equal(steps->name, "step 8");
    assert_int_equal((steps->step_ns.p50 + 500) / US, 1000);
    assert_int_equal((steps->step_ns.max + 500) / US, 3000);
    assert_float_equal(steps->busy.v, 10 * 400.0 / 12000, 1e-4);
    assert_float_equal(steps->least_busy.v, 400.0 / 3000, 1e-4);
    gpu_profile_release(&p);
}

/* A library's short ranges, on another thread and in equal numbers, are no steps beside those of the program. */
static void steps_beside_ranges_of_a_library(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    name(m, 9, "ncclAllReduce");
    for (uint64_t i = 0; i < 10; i++) {
        char text[16];
        snprintf(text, sizeof text, "step %d", (int)i);
        name(m, 20 + i, text);
        range(m, 1 + i, 20 + i, i * 1000, 0);
        range(m, 1 + i, 0, 0, i * 1000 + 900);
        range(m, 100 + i, 9, i * 1000 + 910, 0);
        range(m, 100 + i, 0, 0, i * 1000 + 920);
        kernel(m, 1 + i, i * 1000 + 10, i * 1000 + 500, 11);
    }
    analyse(m, &p);
    assert_string_equal(p.devices.at[0]->steps.name, "step 0");
    assert_int_equal(p.devices.at[0]->steps.count, 10);
    gpu_profile_release(&p);
}

static void range_of_thread_77(struct making *m, uint64_t number, uint64_t name, uint64_t at)
{
    struct gpu_record r = {.kind = GPU_RANGE_BEGIN};
    r.RANGE_BEGIN.at = STAMP + at * US;
    r.RANGE_BEGIN.thread = 77;
    r.RANGE_BEGIN.range = number;
    r.RANGE_BEGIN.name = name;
    put(m, r);
}

/* Ten steps within another range, 500, and beside short ones of a library on another thread. */
static void check_steps_within(struct making *m, const char *outer, bool ends)
{
    struct gpu_profile p;
    begin(m);
    name(m, 8, outer);
    name(m, 9, "ncclAllReduce");
    range(m, 500, 8, 1, 0);
    for (uint64_t i = 0; i < 10; i++) {
        range(m, 1 + i, 7, i * 1000 + 10, 0);
        range_of_thread_77(m, 100 + i, 9, i * 1000 + 400);
        range(m, 100 + i, 0, 0, i * 1000 + 420);
        kernel(m, 1 + i, i * 1000 + 20, i * 1000 + 500, 11);
        range(m, 1 + i, 0, 0, i * 1000 + 900);
    }
    if (ends) range(m, 500, 0, 0, 10000);
    analyse(m, &p);
    assert_string_equal(p.devices.at[0]->steps.name, "step");
    assert_int_equal(p.devices.at[0]->steps.count, 10);
    gpu_profile_release(&p);
}

/* NCCL begins a range on the program's thread and ends it nowhere: 257 `ncclAllReduce` were the steps of a program of
 * 60 (seen on an H200). */
static void steps_within_a_range_without_end(void **state)
{
    check_steps_within(*state, "ncclCommInitRankConfig", false);
}

static void steps_deeper_than_those_of_a_library(void **state)
{
    check_steps_within(*state, "epoch", true);
}

/* At one level names count as they are. What reaches out of a step counts as far as it is within. */
static void steps_by_range_as_named(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    name(m, 9, "layer 1");
    for (uint64_t i = 0; i < 20; i++) {
        range(m, 1 + i, i % 2 ? 9 : 7, i * 1000, 0);
        kernel(m, 1 + i, i * 1000 + 10, i * 1000 + (i == 4 ? 110 : 510), 11);
        range(m, 1 + i, 0, 0, i * 1000 + (i % 2 ? 900 : 1000));
    }
    kernel(m, 21, 18900, 19100, 11);
    analyse(m, &p);
    const struct gpu_steps *steps = &p.devices.at[0]->steps;
    assert_string_equal(steps->name, "step");
    assert_int_equal(steps->count, 10);
    assert_int_equal(steps->operations, 1);
    assert_int_equal((steps->step_ns.p50 + 500) / US, 1000);
    assert_float_equal(steps->busy.v, (9 * 500.0 + 100 + 100) / 10000, 1e-4);
    assert_float_equal(steps->least_busy.v, 0.1, 1e-3);
    gpu_profile_release(&p);
}

static unsigned cause_of(const char *name)
{
    unsigned i = 0;
    while (i < GPU_CAUSES && strcmp(gpu_cause_name(i), name) != 0) i++;
    assert_true(i < GPU_CAUSES);
    return i;
}

/* Every 400 a step of 310: its kernel runs from 10 to 110, then the GPU waits 300 for the next one: 200 for a wait (100
 * in it, 100 of code that would have been hidden), 90 for other code, 10 for the launch. A step has 200 of these 300,
 * and the last 10 of the gap before it; what comes before the first kernel is unknown. */
static void idle_time_of_each_step(void **state)
{
    const unsigned SYNC = cause_of("sync"), LAUNCH = cause_of("launch"), HOST = cause_of("host");
    const unsigned UNKNOWN = cause_of("unknown");
    struct making *m = *state;
    struct gpu_profile p;
    struct gpu_courses courses = {.with_gaps = true};
    begin(m);
    for (uint64_t i = 0; i < 7; i++) {
        uint64_t at = i * 400, id = 1 + 10 * i;
        if (i < 6) range(m, 1 + i, 7, at, 0);
        call(m, id, at, at + 5, 3);
        kernel(m, id, at + 10, at + 110, 11);
        call(m, id + 1, at + 20, at + 210, 4);
        if (i < 6) range(m, 1 + i, 0, 0, at + 310);
    }
    struct trace *t = finish(m);
    assert_int_equal(gpu_sum_over_time(&t, 1, &p, &courses, NULL), TARE_OK);
    assert_int_equal(courses.cards.n, 1);
    assert_int_equal(courses.cards.items[0].pid, trace_process(t, 0)->pid);
    const struct gpu_course *c = &courses.cards.items[0];
    assert_int_equal(c->gaps.n, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct gpu_gap *g = &c->gaps.items[i];
        assert_float_equal((double)g->start - (double)c->gaps.items[0].start, (double)i * 400 * US, 50);
        assert_float_equal((double)g->ns, 300 * US, 50);
        assert_int_equal(g->cause, SYNC); /* 200 of 300 */
        assert_in_range(g->percent, 66, 67);
    }
    assert_int_equal(c->steps.n, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct gpu_step *s = &c->steps.items[i];
        const double before = i ? 10.0 / 300 : 0, part = (200.0 / 300 + before) * US;
        uint64_t sum = s->busy;
        for (unsigned k = 0; k < GPU_CAUSES; k++) sum += s->idle[k];
        assert_int_equal(sum, s->end - s->start);
        assert_float_equal((double)s->busy, 100 * US, 50);
        assert_float_equal((double)s->idle[SYNC], 200 * part, 200);
        assert_float_equal((double)s->idle[HOST], 90 * part, 200);
        assert_float_equal((double)s->idle[LAUNCH], 10 * part, 200);
        assert_float_equal((double)s->idle[UNKNOWN], i ? 0 : 10 * US, 200);
    }
    gpu_courses_release(&courses);
    gpu_profile_release(&p);
    trace_close(t);
}

/* Kernels by name, one after the other, 100 us each and 50 between them; `extra` us behind each round. */
static struct gpu_steps steps_of(void **state, const char *names, unsigned rounds, unsigned extra)
{
    struct making *m = *state;
    struct gpu_profile p;
    uint64_t at = 0, id = 1, seed = 7;
    begin(m);
    name(m, 9, "multi_tensor_apply_kernel");
    for (unsigned i = 0; i < rounds; i++) {
        for (const char *c = names; *c; c++, at += 150, id++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint64_t any = 1 + (seed >> 40) % 6;
            kernel(m, id, at, at + 100, 10 + (*c == '?' ? any : (uint64_t)(*c - '0')));
        }
        at += i % 2 ? extra : 0;
    }
    analyse(m, &p);
    struct gpu_steps found = p.devices.at[0]->steps;
    if (found.known) assert_string_equal(found.found_by, "kernels");
    gpu_profile_release(&p);
    return found;
}

static void check_steps(struct gpu_steps found, unsigned count, unsigned kernels)
{
    assert_true(found.known);
    assert_in_range(found.count, count - 1, count);
    assert_int_equal(found.operations, kernels);
    assert_int_equal((found.step_ns.p50 + 500) / US, kernels * 150);
    assert_float_equal(found.busy.v, 100.0 / 150, 1e-3);
}

static void steps_of_five_kernels(void **state)
{
    check_steps(steps_of(state, "12223", 20, 0), 20, 5);
}
static void steps_of_many_layers(void **state) /* not the layer, which repeats more often */
{
    check_steps(steps_of(state, "3121212121212121212121212", 20, 0), 20, 25);
}
static void steps_where_no_name_comes_once(void **state)
{
    check_steps(steps_of(state, "12122", 30, 0), 30, 5);
}
static void steps_by_the_optimizer(void **state) /* not the epoch of five steps, which 5 ends */
{
    check_steps(steps_of(state, "1212912129121291212912129", 12, 0), 60, 5);
}
static void steps_of_one_kernel(void **state)
{
    check_steps(steps_of(state, "1", 50, 0), 50, 1);
}
static void no_steps_in_random_order(void **state)
{
    assert_false(steps_of(state, "?", 3000, 0).known);
}
static void no_steps_that_repeat_too_seldom(void **state)
{
    assert_false(
        steps_of(state, "123456??????????????????????????????????????????????????????????", 4, 0).known);
}
static void no_steps_of_different_lengths(void **state)
{
    assert_false(steps_of(state, "12223", 40, 5000).known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_by_range, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_by_range_as_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_beside_ranges_of_a_library, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_within_a_range_without_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_deeper_than_those_of_a_library, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_of_five_kernels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_of_many_layers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_where_no_name_comes_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_by_the_optimizer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_of_one_kernel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_steps_in_random_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_steps_that_repeat_too_seldom, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_steps_of_different_lengths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(idle_time_of_each_step, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
