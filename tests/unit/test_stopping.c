/* SPDX-License-Identifier: MIT
 * test_stopping.c - how precisely made-up series are known, and when to look again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/steady.h"
#include "core/mem.h"
#include "core/rng.h"

enum { MOST = 20000 };
static uint64_t ns[MOST];

static struct precision precision(size_t n, double percentile)
{
    tare_error err = TARE_ERROR_INIT;
    struct precision p;
    if (stopping_precision(ns, n, percentile, &p, &err) < 0) fail_msg("%s", err.text);
    return p;
}

static void noise(size_t n, uint64_t seed, double correlation)
{
    struct rng rng;
    double state = 0;
    rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        state = correlation * state + sqrt(1 - correlation * correlation) * (2 * rng_unit(&rng) - 1);
        ns[i] = (uint64_t)(1e6 * (1 + 0.2 * state));
    }
}

static void test_nothing_known(void **state)
{
    (void)state;
    noise(5, 1, 0);
    assert_true(isinf(precision(0, 0).median));
    assert_true(isinf(precision(5, 0).median)); /* five bound no median at 95 % */
    assert_true(precision(5, 0).percentile == 0);
    noise(100, 1, 0);
    assert_true(isfinite(precision(100, 0.5).percentile));
    assert_true(isinf(precision(100, 0.99).percentile)); /* needs 368 */
}

static void test_constant(void **state)
{
    (void)state;
    for (size_t i = 0; i < 1000; i++) ns[i] = 5000;
    struct precision p = precision(1000, 0.95);
    assert_true(p.median == 0 && p.percentile == 0);
    for (size_t i = 0; i < 1000; i++) ns[i] = 0;
    assert_true(precision(1000, 0).median == 0);
}

/* Uniform +-20 %: the median's 95 % interval is +-1.96 * 0.5 / sqrt(n) in rank, 0.4 of the median per rank. */
static void test_known_width(void **state)
{
    (void)state;
    double sum = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        noise(2500, seed, 0);
        sum += precision(2500, 0).median;
    }
    assert_true(sum / 20 > 0.0075 && sum / 20 < 0.0125);
}

/* Two hundred samples that hang together say less than two hundred that do not. */
static void test_correlation_widens(void **state)
{
    (void)state;
    double independent = 0, hanging = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        noise(2000, seed, 0);
        independent += precision(2000, 0).median;
        noise(2000, seed, 0.98);
        hanging += precision(2000, 0).median;
    }
    assert_true(hanging > 4 * independent);
}

/* The promise: of 200 series stopped by the rule at +-2 %, at least 90 % have the true median inside. */
static void test_promise_after_stopping(void **state)
{
    (void)state;
    unsigned inside = 0, all = 200;
    for (uint64_t seed = 0; seed < all; seed++) {
        noise(MOST / 4, seed + 1000, 0.5);
        size_t n = 30;
        while (n < MOST / 4 && precision(n, 0).median > 0.02) n = stopping_next(n);
        if (n > MOST / 4) n = MOST / 4;
        double below = 0, at_least = 0;
        for (size_t i = 0; i < n; i++) {
            below += ns[i] < 980000;
            at_least += ns[i] < 1020000;
        }
        inside += below < (double)n / 2 && at_least >= (double)n / 2;
    }
    assert_true(inside >= all * 9 / 10);
}

static void test_next(void **state)
{
    (void)state;
    assert_int_equal(stopping_next(0), 1);
    assert_int_equal(stopping_next(1), 2);
    assert_int_equal(stopping_next(30), 43);
    assert_int_equal(stopping_next(43), 61);
    assert_int_equal(stopping_next(10000), 14143);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    noise(100, 1, 0);
    for (long n = 0;; n++) {
        tare_error err = TARE_ERROR_INIT;
        struct precision p;
        mem_fail_after(n);
        tare_status s = stopping_precision(ns, 100, 0.9, &p, &err);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_known),        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_known_width),          cmocka_unit_test(test_correlation_widens),
        cmocka_unit_test(test_promise_after_stopping), cmocka_unit_test(test_next),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
