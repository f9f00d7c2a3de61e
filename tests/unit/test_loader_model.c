/* SPDX-License-Identifier: MIT
 * test_loader_model.c - made-up loaders whose answer is known: what holds them back, how many workers they want, and
 * how much there is to gain at most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/tune/loader_model.h"
#include "core/mem.h"

static const struct loader_choice alone = {LOADER_PROCESSES, 0};

static struct loader_pipeline empty(double cores)
{
    struct loader_pipeline p = {.locked = NAN,
                                .cores = cores,
                                .others = NAN,
                                .share = NAN,
                                .delayed = NAN,
                                .read_bytes = NAN,
                                .disk_rate = NAN,
                                .spread = NAN,
                                .batch_bytes = NAN,
                                .memory = NAN,
                                .batch = 8,
                                .most_workers = 16};
    for (int s = 0; s < LOADER_STAGE_COUNT; s++) p.stage[s] = (struct loader_cost){NAN, NAN};
    return p;
}

static struct loader_rate rate(const struct loader_pipeline *p, enum loader_mode mode, size_t workers)
{
    struct loader_rate r;
    assert_int_equal(loader_predict(p, (struct loader_choice){mode, workers}, &r, NULL), TARE_OK);
    return r;
}

static struct loader_plan planned(const struct loader_pipeline *p, struct loader_choice now)
{
    struct loader_plan out;
    assert_int_equal(loader_plan(p, now, &out, NULL), TARE_OK);
    return out;
}

/* 4 ms of waiting, 1 ms of step: 200 a second alone; five workers reach the step's 1000. */
static void test_waiting_wants_workers_until_the_step_is_the_limit(void **state)
{
    (void)state;
    struct loader_pipeline p = empty(2);
    p.stage[LOADER_FETCH] = (struct loader_cost){0.004, 0};
    p.stage[LOADER_STEP] = (struct loader_cost){0.001, 0.001};
    struct loader_rate r = rate(&p, LOADER_PROCESSES, 0);
    assert_float_equal(r.rate, 200, 1e-9);
    assert_int_equal(r.limit, LOADER_LIMIT_WORKERS);
    assert_int_equal(r.longest, LOADER_FETCH);
    assert_float_equal(r.waiting, 0.8, 1e-9);
    assert_float_equal(rate(&p, LOADER_PROCESSES, 2).rate, 500, 1e-9);
    r = rate(&p, LOADER_PROCESSES, 8);
    assert_float_equal(r.rate, 1000, 1e-9);
    assert_int_equal(r.limit, LOADER_LIMIT_STEP);
    assert_float_equal(r.waiting, 0, 1e-9);
    assert_float_equal(r.cores, 1, 1e-9);
    struct loader_plan plan = planned(&p, alone);
    assert_float_equal(plan.bound, 5, 1e-9);
    assert_int_equal(plan.best.workers, 4);
    assert_int_equal(plan.depth, 2);
}

/* Two threads of others on two cores: one of ours gets two thirds of one, four get two thirds of all. What others take
 * is no part of the bound, and nobody is slowed down while processors are free. */
static void test_others_take_their_share_of_a_prediction(void **state)
{
    (void)state;
    struct loader_pipeline p = empty(2);
    p.stage[LOADER_DECODE] = (struct loader_cost){0.002, 0.002};
    double bound = planned(&p, alone).bound;
    p.others = 2;
    assert_float_equal(rate(&p, LOADER_PROCESSES, 0).rate, 500 * 2.0 / 3, 1e-9);
    assert_int_equal(rate(&p, LOADER_PROCESSES, 0).limit, LOADER_LIMIT_CORES);
    assert_float_equal(rate(&p, LOADER_PROCESSES, 4).rate, 1000 * 4.0 / 6, 1e-9);
    assert_float_equal(planned(&p, alone).bound, bound, 1e-12);
    p.others = 1;
    assert_float_equal(rate(&p, LOADER_PROCESSES, 0).rate, 500, 1e-9);
    p.stage[LOADER_FETCH] =
        (struct loader_cost){0.010, 0}; /* what mostly waits asks for less than its share */
    p.others = 8;
    assert_float_equal(rate(&p, LOADER_PROCESSES, 0).rate, 1 / 0.012, 1e-9);
    p.delayed = 0.008; /* each time it wakes up others are first */
    assert_float_equal(rate(&p, LOADER_PROCESSES, 2).rate, 2 / 0.020, 1e-9);
    assert_float_equal(planned(&p, alone).now.rate, 1 / 0.012, 1e-9);
    p.others = INFINITY;
    tare_error err = TARE_ERROR_INIT;
    struct loader_rate r;
    assert_int_equal(loader_predict(&p, alone, &r, &err), TARE_INVALID);
}

/* Forty threads that are ready, but one of ours got a quarter of a processor: they count as three on each, and two
 * workers get no more than 2 / 7 together. A share that is as small as forty threads make it changes nothing. */
static void test_a_share_that_was_had_counts_more_than_the_number_of_others(void **state)
{
    (void)state;
    struct loader_pipeline p = empty(2);
    p.stage[LOADER_DECODE] = (struct loader_cost){0.001, 0.001};
    double bound = planned(&p, alone).bound;
    p.others = 40;
    p.share = 0.25;
    assert_float_equal(rate(&p, LOADER_PROCESSES, 0).rate, 250, 1e-9);
    assert_float_equal(rate(&p, LOADER_PROCESSES, 2).rate, 2000.0 / 7, 1e-9);
    assert_float_equal(rate(&p, LOADER_PROCESSES, 4).rate, 2000.0 / 7, 1e-9);
    assert_float_equal(rate(&p, LOADER_PROCESSES, 40).rate, 1000, 1e-9); /* as many as they are: half */
    assert_float_equal(planned(&p, alone).bound, bound, 1e-12);
    p.share = 2.0 / 41;
    assert_float_equal(rate(&p, LOADER_PROCESSES, 4).rate, 1000 * 8.0 / 44, 1e-9);
    p.others = 0.5; /* a processor is free */
    assert_float_equal(rate(&p, LOADER_PROCESSES, 0).rate, 1000, 1e-9);
    tare_error err = TARE_ERROR_INIT;
    struct loader_rate r;
    p.share = 0;
    assert_int_equal(loader_predict(&p, alone, &r, &err), TARE_INVALID);
    p.share = 1.5;
    assert_int_equal(loader_predict(&p, alone, &r, &err), TARE_INVALID);
}

/* All processor time, two cores: two workers' worth and no more; threads are held by the lock. */
static void test_processors_limit_processes_and_the_lock_threads(void **state)
{
    (void)state;
    struct loader_pipeline p = empty(2);
    p.stage[LOADER_DECODE] = (struct loader_cost){0.004, 0.004};
    p.stage[LOADER_SEND] = (struct loader_cost){0.001, 0.001};
    struct loader_rate r = rate(&p, LOADER_PROCESSES, 8);
    assert_float_equal(r.rate, 400, 1e-9);
    assert_int_equal(r.limit, LOADER_LIMIT_CORES);
    assert_float_equal(r.cores, 2, 1e-9);
    assert_true(isnan(r.waiting));
    r = rate(&p, LOADER_THREADS, 4);
    assert_float_equal(r.rate, 250, 1e-9);
    assert_int_equal(r.limit, LOADER_LIMIT_LOCK);
    struct loader_plan plan = planned(&p, alone);
    assert_float_equal(plan.bound, 400.0 / 250, 1e-9);
    assert_int_equal(plan.best.mode, LOADER_PROCESSES);
    assert_int_equal(plan.best.workers, 2);
    p.locked = 0.0004; /* a decoder that releases the lock: threads, which send nothing */
    plan = planned(&p, alone);
    assert_int_equal(plan.best.mode, LOADER_THREADS);
    assert_float_equal(plan.at.rate, 500, 1e-9);
}

/* Tensors in memory: workers only add the way to the main process. Leave it. */
static void test_what_is_in_memory_is_left_alone(void **state)
{
    (void)state;
    struct loader_pipeline p = empty(8);
    p.stage[LOADER_FETCH] = (struct loader_cost){5e-6, 5e-6};
    p.stage[LOADER_SEND] = (struct loader_cost){30e-6, 30e-6};
    p.stage[LOADER_RECEIVE] = (struct loader_cost){20e-6, 20e-6};
    struct loader_rate r = rate(&p, LOADER_PROCESSES, 4);
    assert_float_equal(r.rate, 50e3, 1e-6);
    assert_int_equal(r.limit, LOADER_LIMIT_RECEIVE);
    assert_int_equal(rate(&p, LOADER_PROCESSES, 1).longest, LOADER_SEND);
    assert_int_equal(rate(&p, LOADER_PROCESSES, 0).longest, LOADER_FETCH); /* nothing is sent */
    struct loader_plan plan = planned(&p, alone);
    assert_int_equal(plan.best.workers, 0);
    assert_int_equal(plan.depth, 0);
    assert_true(plan.bound < 1.01);
}

static void test_the_disk_and_the_depth(void **state)
{
    (void)state;
    struct loader_pipeline p = empty(4);
    p.stage[LOADER_FETCH] = (struct loader_cost){0.02, 0.001};
    p.read_bytes = 1e6;
    p.disk_rate = 2e8;
    struct loader_rate r = rate(&p, LOADER_PROCESSES, 16);
    assert_float_equal(r.rate, 200, 1e-9);
    assert_int_equal(r.limit, LOADER_LIMIT_DISK);
    p.spread = 1.2; /* 240 samples are due meanwhile: 30 batches, of 5 workers */
    struct loader_plan plan = planned(&p, alone);
    assert_int_equal(plan.best.workers, 5);
    assert_int_equal(plan.depth, 7);
    p.batch_bytes = 8e6;
    p.memory = 160e6;
    assert_int_equal(planned(&p, alone).depth, 4);
    p.most_workers = 2;
    assert_int_equal(planned(&p, alone).best.workers, 2);
    p.most_workers = 0; /* none are allowed */
    assert_int_equal(planned(&p, alone).best.workers, 0);
}

static void test_nothing_known_is_no_gain(void **state)
{
    (void)state;
    struct loader_pipeline p = empty(1);
    struct loader_plan plan = planned(&p, alone);
    assert_float_equal(plan.bound, 1, 1e-9);
    assert_int_equal(plan.best.workers, 0);
    assert_true(isinf(plan.now.rate));
}

static void test_sentences_carry_their_evidence(void **state)
{
    (void)state;
    struct loader_pipeline p = empty(2);
    struct buf b = {0};
    p.stage[LOADER_TRANSFORM] = (struct loader_cost){0.003, 0.003};
    p.stage[LOADER_STEP] = (struct loader_cost){0.0005, 0};
    struct loader_rate r = rate(&p, LOADER_PROCESSES, 4);
    loader_explain(&p, (struct loader_choice){LOADER_PROCESSES, 4}, &r, &b);
    char *text = buf_take(&b);
    assert_string_equal(
        text, "cores: at most 666.7 samples a second with 4 worker processes; the step waits 67 % of "
              "the time; 2.00 of 2 cores busy; longest: transform, 3 ms of processor time a sample; "
              "the next limit is 2.00 times as high; all processors are busy: workers cannot help, "
              "only less work");
    mem_free(text);
}

static void test_bad_pipelines_say_why(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct loader_rate r;
    struct loader_plan plan;
    struct loader_pipeline p = empty(0);
    assert_int_equal(loader_predict(&p, alone, &r, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "0 cores"));
    p.cores = 1;
    p.stage[LOADER_COLLATE].wall = -1;
    assert_int_equal(loader_plan(&p, alone, &plan, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "collate"));
    p.stage[LOADER_COLLATE].wall = 1;
    p.batch = 0;
    assert_int_equal(loader_plan(&p, alone, &plan, &err), TARE_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_take_their_share_of_a_prediction),
        cmocka_unit_test(test_a_share_that_was_had_counts_more_than_the_number_of_others),
        cmocka_unit_test(test_waiting_wants_workers_until_the_step_is_the_limit),
        cmocka_unit_test(test_processors_limit_processes_and_the_lock_threads),
        cmocka_unit_test(test_what_is_in_memory_is_left_alone),
        cmocka_unit_test(test_the_disk_and_the_depth),
        cmocka_unit_test(test_nothing_known_is_no_gain),
        cmocka_unit_test(test_sentences_carry_their_evidence),
        cmocka_unit_test(test_bad_pipelines_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
