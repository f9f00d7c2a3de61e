/* SPDX-License-Identifier: MIT
 * test_noise.c - what made-up series say, and that a real measurement is whole. Never a limit on a time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/mem.h"
#include "probe/noise.h"

enum { N = 400 };
static double series[N];

static double uniform(uint64_t *state) /* -1 .. 1 */
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

static struct noise_kernel summarise(const bool *switched, size_t n)
{
    tare_error err = TARE_ERROR_INIT;
    struct noise_kernel k = {.name = "made up", .step_ns = 3};
    struct noise_series x = {series, switched, n};
    if (noise_summarise(&k, &x, &err) < 0) fail_msg("%s", err.text);
    assert_string_equal(k.name, "made up");
    assert_int_equal(k.batches, n);
    return k;
}

static void test_silence(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++) series[i] = 1000;
    struct noise_kernel k = summarise(NULL, N);
    assert_true(k.batch_ns == 1000 && k.spread == 0 && k.tail == 1 && k.switched == 0);
    assert_true(k.resolve_ab == 0 && k.resolve_runs == 0);
}

static void test_known_noise(void **state)
{
    (void)state;
    uint64_t seed = 1;
    bool switched[N] = {0};
    for (int i = 0; i < N; i++) {
        series[i] = 1000 * (1 + 0.1 * uniform(&seed));
        switched[i] = i % 4 == 0;
    }
    struct noise_kernel k = summarise(switched, N);
    assert_true(fabs(k.batch_ns - 1000) < 20);
    assert_true(fabs(k.spread - 0.05) < 0.01); /* of a uniform +-10 % */
    assert_true(k.tail > 1.08 && k.tail < 1.11);
    assert_true(k.switched == 0.25);
    /* 200 pairs, each with a deviation of 0.0816: half the interval is about 0.0113, twice that is found */
    assert_true(k.resolve_ab > 0.015 && k.resolve_ab < 0.035);
    assert_true(k.resolve_runs >= k.resolve_ab);
}

/* A slow drift and a jump half-way leave the taking of turns alone, and spoil separate runs. */
static void test_drift(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < N; i++) series[i] = 1000 * (1 + 0.001 * uniform(&seed)) * (i < N / 2 ? 1 : 1.2);
    struct noise_kernel k = summarise(NULL, N);
    assert_true(k.resolve_ab < 0.001);
    assert_true(k.resolve_runs > 0.2);
}

static void test_outliers_show_in_the_tail(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++) series[i] = i % 50 == 7 ? 9000 : 1000;
    struct noise_kernel k = summarise(NULL, N);
    assert_true(k.spread == 0 && k.tail == 9);
}

static void test_too_few(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct noise_kernel k = {.name = "x", .batches = 77};
    struct noise_series x = {series, NULL, 19};
    assert_int_equal(noise_summarise(&k, &x, &err), TARE_INVALID);
    assert_int_equal(k.batches, 77);
    assert_non_null(strstr(err.text, "19 batches"));
}

static double last_share;
static void on_tick(void *ctx, double share)
{
    (*(int *)ctx)++;
    assert_true(share >= last_share);
    last_share = share;
}

static void test_measurement(void **state)
{
    (void)state;
    int ticks = 0;
    tare_error err = TARE_ERROR_INIT;
    struct noise n;
    struct noise_options opts = {{100000000}, 1 << 20, on_tick, &ticks};
    if (noise_measure(&n, &opts, &err) < 0) fail_msg("%s", err.text);
    assert_true(ticks >= 20 && last_share >= 1);
    assert_true(n.took.ns >= opts.budget.ns);
    assert_true(n.cpu_share > 0 && n.cpu_share < 1.1);
    assert_true(isnan(n.steal) || (n.steal >= 0 && n.steal <= 1));
    for (int i = 0; i < NOISE_KERNELS; i++) {
        const struct noise_kernel *k = &n.kernel[i];
        assert_int_equal(k->batches, ticks);
        assert_true(k->batch_ns > 1000 * k->step_ns && k->step_ns > 0);
        assert_true(k->tail >= 1 && k->switched >= 0 && k->switched <= 1);
        assert_true(k->resolve_ab >= 0 && k->resolve_runs >= k->resolve_ab);
    }
}

static void test_memory(void **state)
{
    (void)state;
    long before = mem_live_blocks();
    struct noise n = {.steal = 77};
    struct noise_options opts = {.budget = {1000000}, .memory_bytes = 1 << 16};
    for (long i = 0;; i++) {
        mem_fail_after(i);
        tare_status s = noise_measure(&n, &opts, NULL);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n.steal == 77 && i < 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence), cmocka_unit_test(test_known_noise),
        cmocka_unit_test(test_drift),   cmocka_unit_test(test_outliers_show_in_the_tail),
        cmocka_unit_test(test_too_few), cmocka_unit_test(test_measurement),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
