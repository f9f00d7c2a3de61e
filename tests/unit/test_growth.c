/* SPDX-License-Identifier: MIT
 * test_growth.c - the judge tells a leak from noise, bursts, a saw, a step and growth that ended. */
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
/* Random bursts, nothing kept: but what was the greatest so far is given back by half. */
static double most;
static double bursts(double t, struct rng *r)
{
    double burst = 5 * (rng_unit(r) + rng_unit(r) + rng_unit(r));
    most = t == 0 ? burst : fmax(most, burst);
    return most / 2 + (rng_unit(r) < 0.3 ? burst : 0);
}
static double late_step(double t, struct rng *r)
{
    return (t < 11 ? 0 : 30) + 0.02 * noise(r);
}
/* Pieces of 132 KiB, as malloc takes them from the system. */
static double ten_kb_a_call(double t, struct rng *r)
{
    (void)r;
    return floor(t * 10 * 10000 / 135168) * 135168 / MIB;
}
/* A data set is built, and then used: the later, the more it looks like a leak. */
static double build_until;
static double building(double t, struct rng *r)
{
    return 40 * fmin(t, build_until) + 0.3 * noise(r);
}
/* Leaks from the middle on, or from 60 % on. */
static double leak_begins;
static double late_leak(double t, struct rng *r)
{
    return 4 * fmax(0, t - leak_begins) + 0.3 * noise(r);
}
/* 100 KiB a second below noise of a tenth of that. */
static double slow_leak(double t, struct rng *r)
{
    return 0.1 * t + 0.01 * noise(r);
}
/* Freed pieces that cannot be given back: ever fewer. */
static double fragments(double t, struct rng *r)
{
    return 30 * (1 - exp(-t / 3)) + 0.3 * noise(r);
}
/* A cache with a limit, full at two thirds. */
static double cache(double t, struct rng *r)
{
    return fmin(6 * t, 80) + 0.3 * noise(r);
}
/* Drifts without aim: what was kept is let go of at another time. */
static double level;
static double walk(double t, struct rng *r)
{
    level = t == 0 ? 0 : level + noise(r);
    return level;
}
/* The list of 800 MiB is freed, then the process is gone. */
static double dying_leak(double t, struct rng *r)
{
    static const double last[] = {-474, -495, -500};
    (void)r;
    return t < 0.1 * (N - 3) - 0.05 ? 40 * t : last[(int)(t * 10 + 0.5) - (N - 3)];
}

static void a_leak_is_found_with_its_rate(void **state)
{
    (void)state;
    fill(1, leak);
    struct growth g = test_of(N);
    assert_string_equal(g.verdict, "growing");
    assert_true(g.confidence > 0.99);
    assert_true(fabs(g.rate / MIB - 2) < 0.2);
    assert_true(g.lo <= 2 * MIB && g.hi >= 2 * MIB && g.lo > 0);
    fill(2, leaking_saw);
    g = test_of(N);
    assert_string_equal(g.verdict, "growing");
    assert_true(fabs(g.rate / MIB - 3) < 1);
    fill(3, dying_leak);
    g = test_of(N);
    assert_string_equal(g.verdict, "growing");
    assert_true(fabs(g.rate / MIB - 40) < 1 && g.to < 0.1 * (N - 4));
    assert_true(fabs(g.rise / (g.rate * (g.to - g.from)) - 1) < 0.03); /* what is told together agrees */
    fill(4, ten_kb_a_call);
    g = test_of(N);
    assert_string_equal(g.verdict, "growing");
    assert_true(fabs(g.rate / 100000 - 1) < 0.3);
}

static void what_does_not_leak_is_not_growing(void **state)
{
    double (*const never[])(double, struct rng *) = {loading, filling, crumbs, saw, late_step};
    (void)state;
    fill(3, flat);
    assert_string_equal(test_of(N).verdict, "steady");
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        fill(7 + i, never[i]);
        assert_string_not_equal(test_of(N).verdict, "growing");
    }
}

/* Whoever says "steady" has an interval that holds 0: nothing is both. */
static void no_verdict_against_its_own_interval(void **state)
{
    double (*const shapes[])(double, struct rng *) = {leak,    quiet,   flat,   saw,           leaking_saw,
                                                      loading, filling, crumbs, ten_kb_a_call, late_step};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        fill(20 + i, shapes[i]);
        struct growth g = test_of(N);
        assert_true(g.lo <= g.rate && g.rate <= g.hi);
        if (strcmp(g.verdict, "steady") == 0) assert_true(g.lo <= 0 && g.hi >= 0);
        if (strcmp(g.verdict, "growing") == 0) assert_true(g.lo > 0);
    }
}

static unsigned growing_of_400(double (*f)(double, struct rng *))
{
    unsigned n = 0;
    for (uint64_t seed = 100; seed < 500; seed++) {
        fill(seed, f);
        n += strcmp(test_of(N).verdict, "growing") == 0;
    }
    return n;
}

/* The rates that docs/judgement.md tells. */
static void how_often_it_is_wrong(void **state)
{
    (void)state;
    assert_int_equal(growing_of_400(quiet), 0);
    assert_int_equal(growing_of_400(bursts), 0);
    assert_int_equal(growing_of_400(late_step), 0);
    assert_in_range(growing_of_400(walk), 0, 24);
    assert_int_equal(growing_of_400(leak), 400);
    assert_int_equal(growing_of_400(leaking_saw), 400);
    assert_int_equal(growing_of_400(slow_leak), 400);
    for (build_until = 10; build_until < 17.2; build_until += 0.5)
        assert_int_equal(growing_of_400(building), 0);
    build_until = 20; /* to the end: nothing tells it from a leak, so that no text may say that it is one */
    assert_int_equal(growing_of_400(building), 400);
    assert_int_equal(growing_of_400(fragments), 0);
    assert_int_equal(growing_of_400(cache), 0);
    for (leak_begins = 8; leak_begins < 12.2; leak_begins += 0.5)
        assert_int_equal(growing_of_400(late_leak), 400);
}

static void few_samples_are_refused(void **state)
{
    struct growth g;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    fill(7, leak);
    assert_int_equal(growth_test(&(struct growth_series){at, value, 15}, &g, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "15 samples"));
    assert_int_equal(test_of(16).samples, 16);
    at[5] = at[4];
    assert_int_equal(growth_test(&(struct growth_series){at, value, N}, &g, &err), TARE_INVALID);
    at[5] = NAN;
    assert_int_equal(growth_test(&(struct growth_series){at, value, N}, &g, &err), TARE_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leak_is_found_with_its_rate),
        cmocka_unit_test(what_does_not_leak_is_not_growing),
        cmocka_unit_test(no_verdict_against_its_own_interval),
        cmocka_unit_test(how_often_it_is_wrong),
        cmocka_unit_test(few_samples_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
