/* SPDX-License-Identifier: MIT
 * test_growth.c - the trend test tells a leak from noise, from a saw and from growth that ended. */
#include "analyze/watch/growth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"

enum { N = 200 };
#define MIB 1048576.0

static double at[N], value[N];

static struct growth test_of(size_t n)
{
    struct growth g = {.samples = 0};
    assert_int_equal(growth_test(&(struct growth_series){at, value, n}, &g, NULL), TARE_OK);
    return g;
}

static double noise(struct rng *r)
{
    return rng_unit(r) * 2 - 1;
}

static void fill(uint64_t seed, double (*f)(double t, struct rng *r))
{
    struct rng r;
    rng_seed(&r, seed);
    for (int i = 0; i < N; i++) at[i] = 0.1 * i, value[i] = 500 * MIB + f(at[i], &r) * MIB;
}

static double leak(double t, struct rng *r)
{
    return 2 * t + noise(r);
}
static double quiet(double t, struct rng *r)
{
    (void)t;
    return 0.3 * noise(r);
}
static double flat(double t, struct rng *r)
{
    (void)t, (void)r;
    return 0;
}
/* Taken and given back twice a second. */
static double saw(double t, struct rng *r)
{
    return 200 * fmod(t, 0.5) + 0.3 * noise(r);
}
static double leaking_saw(double t, struct rng *r)
{
    return saw(t, r) + 3 * t;
}
/* A model is loaded in the first third, then nothing more. */
static double loading(double t, struct rng *r)
{
    return (t < 7 ? 60 * t : 420) + 0.3 * noise(r);
}
/* A cache that fills ever more slowly: it rises to the end, by next to nothing. */
static double filling(double t, struct rng *r)
{
    (void)r;
    return 10 * (1 - exp(-t / 2));
}
/* 40 bytes a sample: no allocator asks the system for that. */
static double crumbs(double t, struct rng *r)
{
    (void)r;
    return t * 400 / MIB;
}

static void a_leak_is_found_with_its_rate(void **state)
{
    (void)state;
    fill(1, leak);
    struct growth g = test_of(N);
    assert_string_equal(g.verdict, "growing");
    assert_true(g.confidence > 0.99);
    assert_true(fabs(g.per_s / MIB - 2) < 0.2);
    assert_true(g.lo <= 2 * MIB && g.hi >= 2 * MIB && g.lo > 0);
    fill(2, leaking_saw);
    g = test_of(N);
    assert_string_equal(g.verdict, "growing");
    assert_true(fabs(g.per_s / MIB - 3) < 1);
}

static void what_does_not_leak_is_steady(void **state)
{
    double (*const shapes[])(double, struct rng *) = {quiet, flat, loading, filling, crumbs};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        fill(3 + i, shapes[i]);
        assert_string_equal(test_of(N).verdict, "steady");
    }
    fill(9, saw);
    assert_string_not_equal(test_of(N).verdict, "growing");
}

static void noise_is_seldom_called_growth(void **state)
{
    unsigned wrong = 0;
    (void)state;
    for (uint64_t seed = 100; seed < 500; seed++) {
        fill(seed, quiet);
        wrong += strcmp(test_of(N).verdict, "growing") == 0;
    }
    assert_true(wrong < 20); /* both halves must rise: under 5 in 100 */
}

static void few_samples_are_refused(void **state)
{
    struct growth g;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    fill(7, leak);
    assert_int_equal(growth_test(&(struct growth_series){at, value, 15}, &g, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "15 samples"));
    assert_int_equal(test_of(16).blocks, 8);
    at[5] = at[4];
    assert_int_equal(growth_test(&(struct growth_series){at, value, N}, &g, &err), TARE_INVALID);
    at[5] = NAN;
    assert_int_equal(growth_test(&(struct growth_series){at, value, N}, &g, &err), TARE_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leak_is_found_with_its_rate),
        cmocka_unit_test(what_does_not_leak_is_steady),
        cmocka_unit_test(noise_is_seldom_called_growth),
        cmocka_unit_test(few_samples_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
