/* SPDX-License-Identifier: MIT
 * test_warmup.c - where a transient ends, in series that are made up and therefore known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/steady.h"
#include "core/mem.h"
#include "core/rng.h"

enum { MOST = 4000 };
static uint64_t ns[MOST];

static struct warmup_verdict judge(size_t n)
{
    tare_error err = TARE_ERROR_INIT;
    struct warmup_verdict v;
    if (warmup_judge(ns, n, &v, &err) < 0) fail_msg("%s", err.text);
    return v;
}

static void noise(size_t n, uint64_t seed, double spread)
{
    struct rng rng;
    rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) ns[i] = (uint64_t)(1e6 * (1 + spread * (2 * rng_unit(&rng) - 1)));
}

static void test_too_few(void **state)
{
    (void)state;
    noise(9, 1, 0.1);
    assert_false(judge(0).judged);
    assert_false(judge(9).judged);
    noise(10, 1, 0.1);
    assert_true(judge(10).judged);
}

static void test_constant_is_steady(void **state)
{
    (void)state;
    for (size_t i = 0; i < 100; i++) ns[i] = 5000;
    struct warmup_verdict v = judge(100);
    assert_true(v.judged && v.steady && v.cut == 0);
    for (size_t i = 0; i < 100; i++) ns[i] = 0; /* faster than the clock */
    v = judge(100);
    assert_true(v.judged && v.steady && v.cut == 0);
}

static void test_exact_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < 200; i++) ns[i] = i < 35 ? 9000 : 5000;
    struct warmup_verdict v = judge(200);
    assert_true(v.steady);
    assert_int_equal(v.cut, 35);
    for (size_t i = 0; i < 40; i++) ns[i] = i < 7 ? 9000 : 5000; /* few runs: one by one */
    v = judge(40);
    assert_true(v.steady);
    assert_int_equal(v.cut, 7);
}

/* In noise without a transient the cut is rare; with one of 60 runs it is found, in every one of 50 series. */
static void test_noise(void **state)
{
    (void)state;
    unsigned unsteady = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        noise(600, seed, 0.05);
        unsteady += !judge(600).steady;
        for (size_t i = 0; i < 60; i++) ns[i] = (uint64_t)((double)ns[i] * (1 + (double)(60 - i) / 60));
        struct warmup_verdict v = judge(600);
        assert_true(v.steady);
        assert_true(v.cut >= 45 && v.cut <= 200);
    }
    assert_true(unsteady <= 2);
}

static void test_trend_is_not_steady(void **state)
{
    (void)state;
    unsigned missed = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        noise(1000, seed, 0.05);
        for (size_t i = 0; i < 1000; i++) ns[i] = (uint64_t)((double)ns[i] * (1 + (double)i / 2000));
        missed += judge(1000).steady;
    }
    assert_true(missed == 0);
}

static void test_late_jump_is_not_steady(void **state)
{
    (void)state;
    noise(1000, 3, 0.02);
    for (size_t i = 600; i < 1000; i++) ns[i] *= 2;
    assert_false(judge(1000).steady);
    for (size_t i = 1000; i < 2000; i++) ns[i] = ns[i - 400];
    assert_true(judge(2000).steady); /* it has been steady for long now */
    assert_true(judge(2000).cut >= 600);
}

static void test_single_outliers_do_not_matter(void **state)
{
    (void)state;
    noise(1000, 4, 0.02);
    ns[990] *= 1000;
    ns[500] *= 1000;
    assert_true(judge(1000).steady);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    noise(100, 5, 0.1);
    for (long n = 0;; n++) {
        tare_error err = TARE_ERROR_INIT;
        struct warmup_verdict v;
        mem_fail_after(n);
        tare_status s = warmup_judge(ns, 100, &v, &err);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_constant_is_steady),
        cmocka_unit_test(test_exact_cut),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_trend_is_not_steady),
        cmocka_unit_test(test_late_jump_is_not_steady),
        cmocka_unit_test(test_single_outliers_do_not_matter),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
